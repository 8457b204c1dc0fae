"""Every setting of the gateway in one table: a TOML file, then the environment (`SLUICEGATE_…`), then the command line.

None of them widens what anybody may see: there is no setting that switches a check off.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from sluicegate.rewrite.manner import Manner, Merge, OnPartial
from sluicegate.runtime.sinking import DeclaredSink, read_sinks
from sluicegate.service.identity.settings import IdentitySettings, OidcSettings, ProfileClaim

PREFIX = "SLUICEGATE_"
_TABLES = ("oidc", "sinks")


def _setting(default: Any, told: str) -> Any:
    return field(default=default, metadata={"told": told})


@dataclass(frozen=True, slots=True)
class Settings:
    """What `sluicegate serve` can be told."""

    host: str = _setting("127.0.0.1", "the address to listen on")
    port: int = _setting(8765, "the port; 0 for any that is free")
    store: str = _setting("sqlite:///sluicegate.db", "the store: a file, or `postgresql://…`")
    state: str = _setting("sluicegate-state", "the folder of logs, results and windows (mode 0700)")
    gateway: str = _setting("", "this gateway's name among those that share a store; else one is made up")
    administrators: tuple[str, ...] = _setting((), "users who administer, besides those with the role")
    administrator_role: str = _setting(
        "administrator", "the role that makes an administrator; empty for none"
    )
    session_seconds: float = _setting(28_800.0, "how long a session lasts")
    most_token_seconds: float = _setting(31_622_400.0, "the longest life of an API token")
    metrics_token: str = _setting("", "a bearer text that may read `/metrics` and nothing else")
    lease_seconds: float = _setting(5.0, "how long a gateway may deliver without hearing from the store")
    lease_margin: float = _setting(1.0, "how much earlier it stops by its own clock")
    acknowledge_seconds: float = _setting(30.0, "how long a change waits for other gateways")
    watch_seconds: float = _setting(
        0.25, "how often valid sessions and new versions are looked for; at most 0.5"
    )
    merge: str = _setting(
        "widen", "what becomes of windows finer than a grant allows: `widen`, or `paper` to refuse them"
    )
    on_partial: str = _setting(
        "give", "what becomes of a query of which only a part may be given: `give` or `refuse`"
    )
    most_body_bytes: int = _setting(8_388_608, "the largest body of a push")
    most_text_bytes: int = _setting(1_048_576, "the largest body of any other request")
    most_statements: int = _setting(20_000, "statements in one change")
    most_push_rows: int = _setting(50_000, "tuples in one push")
    most_queries: int = _setting(100, "queries of one user at a time")
    most_streams: int = _setting(50, "results that one user follows at a time")
    most_read_rows: int = _setting(10_000, "rows in one answer")
    caller_rate: float = _setting(200.0, "requests of one user each second, in the long run")
    caller_burst: float = _setting(400.0, "requests of one user at once")
    client_rate: float = _setting(400.0, "requests from one address each second, in the long run")
    client_burst: float = _setting(800.0, "requests from one address at once")
    body_seconds: float = _setting(30.0, "how long a body may take to arrive")
    heartbeat_seconds: float = _setting(15.0, "how often an idle stream says that it is there")
    most_wait_seconds: float = _setting(60.0, "how long a request may wait for rows or a version")
    keep_seconds: float = _setting(600.0, "how far back a source's log reaches for queries that come later")
    keep_result_bytes: int = _setting(
        1_073_741_824, "how large the log of results may grow; the oldest go first, read or not"
    )
    keep_token_seconds: float = _setting(
        2_592_000.0, "how long sessions and tokens that ended are still listed"
    )
    shuffle_partitions: int = _setting(4, "Spark's shuffle partitions")
    cores: int = _setting(2, "Spark's local cores")
    master: str = _setting(
        "", "a cluster: `spark://HOST:PORT`, `yarn` or `k8s://URL`; else Spark runs in the gateway"
    )
    master_secret: str = _setting(
        "cluster", "the name of the secret that a `spark://` master and its workers share"
    )
    driver_host: str = _setting(
        "", "the gateway's address for executors; else the one that leads to the master"
    )
    driver_port: int = _setting(0, "the first of two ports that executors come to; 0 for any")
    executor_memory: str = _setting("1g", "of each executor")
    executor_cores: int = _setting(1, "of each executor")
    executor_python: str = _setting(
        "", "Python, at one path on all machines; else the one that runs the gateway"
    )
    spark_options: tuple[str, ...] = _setting(
        (), "`name=value` of Spark's for YARN and Kubernetes, and how many executors"
    )
    log_level: str = _setting("info", "`debug`, `info`, `warning` or `error`")
    oidc: OidcSettings | None = field(
        default=None, metadata={"told": "the issuer of access tokens: a table of its own, see below"}
    )
    sinks: tuple[DeclaredSink, ...] = _setting((), "where results may be sent: a table for each, see below")

    def __post_init__(self) -> None:
        if not 0 < self.watch_seconds <= 0.5:
            raise _refuse("`watch_seconds` is not between 0 and 0.5")
        if not 0 < self.lease_margin < self.lease_seconds:
            raise _refuse("`lease_margin` is not between 0 and `lease_seconds`")
        if self.keep_result_bytes <= 0 or self.keep_token_seconds < 0:
            raise _refuse("`keep_result_bytes` or `keep_token_seconds` is below what can be kept")
        if self.merge not in {each.value for each in Merge}:
            raise _refuse("`merge` is neither `widen` nor `paper`")
        if self.on_partial not in {each.value for each in OnPartial}:
            raise _refuse("`on_partial` is neither `give` nor `refuse`")
        if self.metrics_token and len(self.metrics_token) < 32:
            raise _refuse("`metrics_token` has fewer than 32 characters")

    @property
    def manner(self) -> Manner:
        """How policies and queries are put together."""
        return Manner(Merge(self.merge), OnPartial(self.on_partial))

    @property
    def identity(self) -> IdentitySettings:
        """What sign-in needs of them."""
        return IdentitySettings(
            administrators=frozenset(self.administrators),
            administrator_role=self.administrator_role or None,
            session_seconds=self.session_seconds,
            most_token_seconds=self.most_token_seconds,
            oidc=self.oidc,
        )


@dataclass(frozen=True, slots=True)
class Described:
    """A row of the generated reference."""

    name: str
    kind: str
    default: str
    told: str

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def describe_settings() -> list[Described]:
    """Every setting in order, for docs/settings.md."""
    kinds = get_type_hints(Settings)
    return [
        Described(each.name, _name_kind(kinds[each.name]), _show(each.default), each.metadata["told"])
        for each in fields(Settings)
    ]


def read_settings(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Settings:
    """The file's, overruled by the environment's, overruled by `given`; what is unknown or malformed is refused."""
    found = {} if path is None else _read_file(path)
    variables = os.environ if environment is None else environment
    kinds = get_type_hints(Settings)
    for name, kind in kinds.items():
        text = variables.get(PREFIX + name.upper())
        if text is not None and name not in _TABLES:
            found[name] = _read_text(name, kind, text)
    found |= {name: value for name, value in (given or {}).items() if value is not None}
    return replace(Settings(), **found)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise _refuse(f"the settings `{path}` cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refuse(f"the settings `{path}` are not TOML: {error}") from error
    kinds = get_type_hints(Settings)
    unknown = sorted(set(content) - set(kinds))
    if unknown:
        raise _refuse(f"there is no setting `{unknown[0]}`", "docs/settings.md lists them")
    return {name: _check(name, kinds[name], value) for name, value in content.items()}


def _check(name: str, kind: Any, value: Any) -> Any:
    if name == "oidc":
        return _read_oidc(value)
    if name == "sinks":
        return tuple(read_sinks(value).values())
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if get_args(kind) and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if get_args(kind) or type(value) is not kind:
        raise _refuse(f"the setting `{name}` is not {_name_kind(kind)}")
    return value


def _read_text(name: str, kind: Any, text: str) -> Any:
    try:
        if kind in (int, float):
            return kind(text)
    except ValueError:
        raise _refuse(f"the setting `{name}` is not {_name_kind(kind)}") from None
    if get_args(kind):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


_CLAIM_TYPES = {str(of): of for of in (STRING, INT, BIGINT, DOUBLE, BOOLEAN)}


def _read_oidc(value: Any) -> OidcSettings:
    """Names as in `OidcSettings`; claims are paths with dots, `profile` is `{attribute = "claim TYPE"}`."""
    known = {each.name for each in fields(OidcSettings)}
    if not isinstance(value, dict) or set(value) - known:
        raise _refuse("the table `oidc` is none, or has a setting that there is not")
    found = dict(value)
    try:
        if "roles_claim" in found:
            found["roles_claim"] = tuple(found["roles_claim"].split("."))
        if "algorithms" in found:
            found["algorithms"] = tuple(found["algorithms"])
        if "scopes" in found:
            found["scopes"] = {name: tuple(each) for name, each in found["scopes"].items()}
        if "profile" in found:
            found["profile"] = tuple(_read_claim(name, text) for name, text in found["profile"].items())
        return OidcSettings(**found)
    except (TypeError, AttributeError, ValueError, KeyError) as error:
        raise _refuse("a setting of the table `oidc` is not of its type") from error


def _read_claim(attribute: str, text: str) -> ProfileClaim:
    path, _, kind = text.partition(" ")
    return ProfileClaim(tuple(path.split(".")), attribute, _CLAIM_TYPES[kind or str(STRING)])


def _name_kind(kind: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a text"}
    is_table = "Oidc" in str(kind) or "Sink" in str(kind)
    return names.get(kind, "a table" if is_table else "a list of texts")


def _show(default: Any) -> str:
    if isinstance(default, tuple):
        return "[]"
    if isinstance(default, float):
        return str(int(default)) if default.is_integer() else str(default)
    return "none" if default is None else f'"{default}"' if isinstance(default, str) else str(default)


def _refuse(message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic("setting-malformed", message, help=help_)])
