"""What a stream's shield remembers, as one file for each batch: there whole before the batch is complete, or not at all.

A line of JSON, and after it the tables that it tells the lengths of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sluicegate.expr.types import Kind
from sluicegate.policy.classes import Member, PolicyClass, read_class, write_class
from sluicegate.runtime.feed.log_files import PRIVATE, TEMPORARY, refuse_log, sync_folder
from sluicegate.runtime.shield.partition import PartitionState
from sluicegate.runtime.shield.prune import Floors
from sluicegate.runtime.shield.rows import Coder, Rows, key_dtype

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = ("ts", "sn", "arrival", "immutable", "broken", "everything")


@dataclass(frozen=True, slots=True)
class ShieldState:
    """The partitions by name, what was denied so far by reason, and whether the input has ended."""

    partitions: Mapping[str, PartitionState] = field(default_factory=dict)
    denied: Mapping[str, int] = field(default_factory=dict)
    ended: bool = False
    classes: int = 0
    """How many classes there were: a table that has fewer has lost some, and would number others alike."""


def save_state(path: Path, state: ShieldState) -> None:
    heads, blobs = [], []
    for name, each in state.partitions.items():
        rows = _write_table(_rows_to_table(each))
        held = b"" if each.held is None else _write_table(each.held)
        heads.append(
            {
                "name": name,
                "taken": each.taken,
                "greatest": each.greatest,
                "forgotten": dict(each.floors.forgotten),
                "evicted": dict(each.floors.evicted),
                "rows": len(rows),
                "held": len(held),
            }
        )
        blobs += [rows, held]
    head = {"partitions": heads, "denied": dict(state.denied), "ended": state.ended}
    head["classes"] = state.classes
    making = path.with_name(path.name + TEMPORARY)
    making.unlink(missing_ok=True)
    with os.fdopen(os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file:
        file.write(json.dumps(head).encode("ascii") + b"\n")
        file.writelines(blobs)
        file.flush()
        os.fsync(file.fileno())
    making.replace(path)
    sync_folder(path.parent)


def load_state(path: Path, kind: Kind) -> ShieldState:
    """What `save_state` wrote; anything else is damage, and nothing is guessed from it."""
    import pyarrow as pa

    try:
        head, _, body = path.read_bytes().partition(b"\n")
        found = json.loads(head)
        partitions = dict(_read_partitions(found["partitions"], body, kind))
        return ShieldState(partitions, found["denied"], found["ended"], found["classes"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise refuse_log(f"`{path.name}` is not what the shield wrote") from error


def _read_partitions(
    heads: list[dict[str, Any]], body: bytes, kind: Kind
) -> Iterator[tuple[str, PartitionState]]:
    if len(body) != sum(each["rows"] + each["held"] for each in heads):
        raise ValueError("another length")
    at = 0
    for each in heads:
        middle, end = at + each["rows"], at + each["rows"] + each["held"]
        rows, senders, members = _table_to_rows(_read_table(body[at:middle]), kind)
        held = _read_table(body[middle:end]) if each["held"] else None
        floors = Floors(each["forgotten"], each["evicted"])
        yield (
            each["name"],
            PartitionState(rows, senders, members, each["taken"], each["greatest"], held, floors),
        )
        at = end


def _write_table(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _read_table(content: bytes) -> pa.Table:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        return reader.read_all()


def _rows_to_table(state: PartitionState) -> pa.Table:
    import pyarrow as pa

    rows = state.rows
    offsets = pa.array(np.searchsorted(rows.box_row, np.arange(len(rows) + 1)).astype(np.int32))
    texts = [_write_member(each) for each in state.members.values]
    columns = {
        "sender": pa.DictionaryArray.from_arrays(rows.sender, pa.array(state.senders.values, pa.string())),
        "member": pa.DictionaryArray.from_arrays(rows.member, pa.array(texts, pa.string())),
        **{name: pa.array(getattr(rows, name)) for name in _PLAIN},
        **{
            name: pa.ListArray.from_arrays(offsets, _to_arrow(getattr(rows, name)))
            for name in ("low", "high", "open")
        },
    }
    return pa.table(columns)


def _to_arrow(values: Any) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string()) if values.dtype == object else pa.array(values)


def _table_to_rows(table: pa.Table, kind: Kind) -> tuple[Rows, Coder[str], Coder[Member]]:
    sender, member = table["sender"].combine_chunks(), table["member"].combine_chunks()
    boxes = {name: table[name].combine_chunks() for name in ("low", "high", "open")}
    plain = {name: table[name].to_numpy() for name in _PLAIN}
    ends = {
        name: np.array(boxes[name].flatten().to_numpy(zero_copy_only=False), key_dtype(kind))
        for name in ("low", "high")
    }
    rows = Rows(
        sender=np.asarray(sender.indices, np.int64),
        member=np.asarray(member.indices, np.int64),
        **plain,
        **ends,
        box_row=np.asarray(boxes["low"].value_parent_indices(), np.int64),
        open=np.asarray(boxes["open"].flatten().to_numpy(zero_copy_only=False), np.bool_),
    )
    members = [_read_member(text) for text in member.dictionary.to_pylist()]
    return rows, Coder(sender.dictionary.to_pylist()), Coder(members)


@lru_cache(maxsize=10_000)
def _write_member(member: Member) -> str:
    return write_class(PolicyClass(frozenset({member})))


def _read_member(text: str) -> Member:
    (member,) = read_class(text).members
    return member
