"""Records that their producer signs: what is signed, and the keys by which it is checked.

A record has the headers `sg-sender`, a name of the catalog, and `sg-signature`: HMAC-SHA256, in 64 small hexadecimal digits,
under the sender's key over these parts, each after its length in eight bytes, the high ones first (a part that is missing
has eight bytes 0xFF instead): the text `sluicegate-2`, the topic, the partition in decimal digits, the key, the value, and
then the name and the value of each header in order, `sg-signature` left out. Policies are judged partition by partition
(R13): a record that somebody put into another one would be under what was never replaced there.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.table.databases import find_secret

SENDER_HEADER, SIGNATURE_HEADER = "sg-sender", "sg-signature"
SCHEME = "sluicegate-2"
SHORTEST_KEY = 16
_BLOCK = 64


def sign_record(
    sender: str,
    secret: bytes,
    topic: str,
    partition: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> list[tuple[str, bytes | None]]:
    """The headers of a record with those of its sender behind them, for a producer, which sends it to this partition."""
    named = [*headers, (SENDER_HEADER, sender.encode())]
    parts: list[bytes | None] = [SCHEME.encode(), topic.encode(), str(partition).encode(), key, value]
    for name, content in named:
        parts += [name.encode(), content]
    text = b"".join(map(_write_part, parts))
    return [*named, (SIGNATURE_HEADER, hmac.new(secret, text, hashlib.sha256).hexdigest().encode())]


def _write_part(part: bytes | None) -> bytes:
    return b"\xff" * 8 if part is None else len(part).to_bytes(8, "big") + part


def load_sender_keys(name: str) -> dict[str, list[tuple[bytes, bytes]]]:
    """Of each sender the keys, as the two blocks that HMAC begins with; a line of the secret is `sender:key`.

    A sender may have several lines, while its key is changed.
    """
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for line in (find_secret(name) or "").splitlines():
        if not line.strip():
            continue
        sender, _, key = line.strip().rpartition(":")
        if not sender or len(key.encode()) < SHORTEST_KEY:
            message = (
                f"the secret `{name}` has a line that is not `sender:key` with {SHORTEST_KEY} bytes or more"
            )
            raise refuse_feed("feed-secret", message)
        found.setdefault(sender, []).append(_make_blocks(key.encode()))
    if not found:
        raise refuse_feed("feed-secret", f"the secret `{name}` has no line `sender:key`")
    return found


def _make_blocks(key: bytes) -> tuple[bytes, bytes]:
    short = hashlib.sha256(key).digest() if len(key) > _BLOCK else key
    block = short.ljust(_BLOCK, b"\0")
    return bytes(each ^ 0x36 for each in block), bytes(each ^ 0x5C for each in block)


def write_sender(keys: str) -> str:
    """The sender of a record of Spark's source if the signature is the sender's, else NULL, as SQL.

    `keys` is a column of `map<string, array<struct<inner, outer>>>`: a value of the data, so that no plan shows it.
    """
    signed, named = _only(SIGNATURE_HEADER), _only(SENDER_HEADER)
    inner = f"unhex(sha2(concat(k.inner, {_write_signed()}), 256))"
    matches = f"sha2(concat(k.outer, {inner}), 256) = CAST({signed} AS STRING)"
    known = f"coalesce({keys}[CAST({named} AS STRING)], array())"
    return f"CASE WHEN exists({known}, k -> {matches}) THEN CAST({named} AS STRING) END"


def _only(name: str) -> str:
    """The value of a header that stands once; else NULL."""
    some = f"filter(headers, h -> h.key = '{name}')"
    return f"CASE WHEN size({some}) = 1 THEN {some}[0].value END"


def _write_signed() -> str:
    parts = ", ".join(map(_part, (f"'{SCHEME}'", "topic", "CAST(partition AS STRING)", "key", "value")))
    kept = f"filter(headers, h -> h.key <> '{SIGNATURE_HEADER}')"
    rest = f"aggregate({kept}, X'', (found, h) -> concat(found, {_part('h.key')}, {_part('h.value')}))"
    return f"concat({parts}, {rest})"


def _part(text: str) -> str:
    length = f"unhex(lpad(hex(CAST(octet_length({text}) AS BIGINT)), 16, '0'))"
    return (
        f"CASE WHEN {text} IS NULL THEN X'FFFFFFFFFFFFFFFF' ELSE concat({length}, CAST({text} AS BINARY)) END"
    )
