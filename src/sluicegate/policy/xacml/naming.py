"""The types that name somebody or some place: x500Name, rfc822Name, ipAddress, dnsName."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

# A relative name is a set of (attribute type, value): `cn=a+uid=b` and `uid=b+cn=a` are one.
TypeAndValue = tuple[str, str]
RelativeName = frozenset[TypeAndValue]
DistinguishedName = tuple[RelativeName, ...]

_RFC822 = re.compile(r"([^@\s]+)@([^@\s]+)")
_PORT = r"(?:[0-9]{1,5})"
_PORTS = re.compile(rf"({_PORT})?(-)?({_PORT})?")
_V4 = re.compile(r"([0-9.]+)(?:/([0-9.]+))?(?::([0-9-]*))?")
_V6 = re.compile(r"\[([0-9A-Fa-f:.]+)\](?:/\[?([0-9A-Fa-f:.]+)\]?)?(?::([0-9-]*))?")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DNS = re.compile(rf"((?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?|\*)(?::([0-9-]*))?")
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
# RFC 2253 names and the OIDs that mean the same
_OIDS = {
    "2.5.4.3": "cn",
    "2.5.4.6": "c",
    "2.5.4.7": "l",
    "2.5.4.8": "st",
    "2.5.4.9": "street",
    "2.5.4.10": "o",
    "2.5.4.11": "ou",
    "0.9.2342.19200300.100.1.25": "dc",
    "0.9.2342.19200300.100.1.1": "uid",
}


@dataclass(frozen=True, slots=True)
class Ports:
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    address: str
    mask: str | None
    ports: Ports | None


@dataclass(frozen=True, slots=True)
class HostName:
    name: str
    ports: Ports | None


def read_rfc822(text: str) -> tuple[str, str]:
    """Local part, whose case counts, and domain, whose case does not."""
    found = _RFC822.fullmatch(text)
    if found is None:
        raise ValueError("not a mailbox `local@domain`")
    return found[1], found[2].lower()


def match_rfc822(pattern: str, name: tuple[str, str]) -> bool:
    """`user@host`, `host`, or `.domain` for all hosts below it (A.3.14)."""
    domain = name[1]
    if "@" in pattern:
        wanted, _, host = pattern.rpartition("@")
        return (wanted, host.lower()) == name
    if pattern.startswith("."):
        return domain.endswith(pattern.lower())
    return domain == pattern.lower()


def read_x500(text: str) -> DistinguishedName:
    """RFC 2253 with RFC 1779's semicolons; values compared without case and with spaces run together."""
    if not text.strip():
        return ()
    parts = _split_names(text)
    names: list[RelativeName] = []
    current: list[TypeAndValue] = []
    for part, end in parts:
        current.append(_read_pair(part))
        if end != "+":
            names.append(frozenset(current))
            current = []
    return tuple(names)


def ends_with_name(ending: DistinguishedName, name: DistinguishedName) -> bool:
    """Whether `ending` is a terminal sequence of `name`."""
    return len(ending) <= len(name) and name[len(name) - len(ending) :] == ending


def read_ip_address(text: str) -> NetworkAddress:
    if text.startswith("["):
        return _read_address(_V6.fullmatch(text), ipaddress.IPv6Address)
    return _read_address(_V4.fullmatch(text), ipaddress.IPv4Address)


def read_dns_name(text: str) -> HostName:
    found = _DNS.fullmatch(text)
    if found is None:
        raise ValueError("not a host name")
    return HostName(found[1].lower(), _read_ports(found[2]))


def _read_address(found: re.Match[str] | None, read: Callable[[str], object]) -> NetworkAddress:
    if found is None:
        raise ValueError("not a network address")
    mask = None if found[2] is None else str(read(found[2]))
    return NetworkAddress(str(read(found[1])), mask, _read_ports(found[3]))


def _read_ports(text: str | None) -> Ports | None:
    if not text:
        return None
    found = _PORTS.fullmatch(text)
    if found is None or text == "-" or (found[1] and found[3] and not found[2]):
        raise ValueError("not a port range")
    low, high = (int(each) if each else None for each in (found[1], found[3]))
    if any(each is not None and each > 65_535 for each in (low, high)):
        raise ValueError("not a port")
    return Ports(low, high if found[2] else low)


def _split_names(text: str) -> list[tuple[str, str]]:
    """The parts between unescaped and unquoted separators, each with the separator that ends it."""
    parts: list[tuple[str, str]] = []
    start, at, quoted = 0, 0, False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == '"':
            quoted = not quoted
        elif char in ",;+" and not quoted:
            parts.append((text[start:at], char))
            start = at + 1
        at += 1
    if quoted:
        raise ValueError("a quoted value is not closed")
    parts.append((text[start:], ""))
    return parts


def _read_pair(part: str) -> TypeAndValue:
    kind, equals, value = part.partition("=")
    kind = kind.strip().lower().removeprefix("oid.")
    if not equals or not re.fullmatch(r"[a-z][a-z0-9-]*|[0-9]+(\.[0-9]+)*", kind):
        raise ValueError("not a distinguished name `type=value,…`")
    if value.lstrip().startswith("#"):
        # encoded in another way: not the text that is written so
        return _OIDS.get(kind, kind), "\0" + value.strip().lower()
    return _OIDS.get(kind, kind), " ".join(_unescape(_strip_outer(value)).split()).casefold()


def _strip_outer(value: str) -> str:
    """Without spaces around, save one that was escaped."""
    value = value.lstrip()
    stripped = value.rstrip()
    cut = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if cut % 2 else stripped


def _unescape(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    # in one pass: an escaped backslash must not escape what follows it
    return _ESCAPED.sub(_read_escape, value.encode()).decode("utf-8")


def _read_escape(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode()) if len(found[1]) == 2 else found[1]
