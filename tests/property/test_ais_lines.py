"""What a receiver's bytes say does not depend on how they come, and nothing in them can do harm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.runtime.ais.checksums import fold_bytes
from sluicegate.runtime.ais.decode import decode_message, write_fields
from sluicegate.runtime.ais.lines import LONGEST, LineCutter
from sluicegate.runtime.ais.reader import Dead
from unit.ais_world import codes, messages, position, read_all, seal, sentences, tag

pytest.importorskip("pyais")

LOG = "\r\n".join(
    [
        position(lat=1.0),
        tag("s:a,c:1700000000") + position(lat=2.0),
        *sentences(5, shipname="VEGA"),
        "junk",
        "y" * (LONGEST + 500),
        seal("$PGHP,1,2010,6,11,11,46,11,390,231,45,,1,"),
        position(lat=3.0, talker="BSVDO"),
        *sentences(5, sequence=2, shipname="LYRA")[:2],
        "!AIVDM,1,1,,A,cut off",
    ]
).encode()
SIX_BITS = "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVW`abcdefghijklmnopqrstuvw"
ALPHABET = st.sampled_from(
    [b"!", b"$", b"\\", b"*", b",", b"\r", b"\n", b"\0", b"\xff", b"AIVDM", b"1", b"0", b"w"]
)
LINES = st.sampled_from(LOG.split(b"\r\n"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=40))
def test_cuts_leave_no_trace(sizes: list[int]) -> None:
    whole, reader = read_all(LOG)
    cut, again = read_all(LOG, sizes)
    assert cut == whole
    assert again.counts == reader.counts


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60).filter(lambda junk: not set(junk) & set(b"!$\\\r\n")), max_size=6))
def test_junk_between_lines_changes_no_message(junk: list[bytes]) -> None:
    lines = LOG.split(b"\r\n")
    mixed = [part for at, line in enumerate(lines) for part in (line, *junk[at : at + 1])]
    found, _ = read_all(b"\n".join(mixed))
    plain, _ = read_all(LOG)
    assert [(each.raw, each.time) for each in messages(found)] == [
        (each.raw, each.time) for each in messages(plain)
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(ALPHABET, LINES, st.binary(max_size=30)), max_size=60))
def test_nothing_raises_and_everything_is_counted(pieces: list[bytes]) -> None:
    found, reader = read_all(b"".join(pieces))
    assert reader.counts.waiting == 0
    assert reader.counts.whole == len(messages(found))
    assert reader.counts.dead == len(codes(found))


@settings(max_examples=300, deadline=None)
@given(
    st.text(SIX_BITS, min_size=1, max_size=190),
    st.integers(0, 5),
)
def test_any_payload_is_decoded_or_a_dead_letter(payload: str, fill: int) -> None:
    found, _ = read_all(seal(f"!AIVDM,1,1,,A,{payload},{fill}").encode())
    (message,) = messages(found)
    decoded = decode_message(message)
    if not isinstance(decoded, Dead):
        assert write_fields(decoded, 0).startswith("{")


@given(st.binary(max_size=400))
def test_a_checksum_is_every_byte_xor_the_next(text: bytes) -> None:
    plain = 0
    for byte in text:
        plain ^= byte
    assert fold_bytes(text) == plain


def test_a_line_without_end_is_held_to_its_beginning() -> None:
    cutter = LineCutter()
    for _ in range(100):
        assert cutter.feed(b"x" * 10_000) == []
        assert len(cutter.state[0]) <= LONGEST + 1
    assert [len(line) for _, line in cutter.feed(b"\n")] == [LONGEST + 1]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_message_is_a_tuple_of_its_types_or_a_dead_letter(data: st.DataObject) -> None:
    """Of whatever length and content."""
    pytest.importorskip("pyarrow")
    from sluicegate.language.ais_streams import KINDS
    from sluicegate.language.check_ais import read_ais_options
    from sluicegate.runtime.ais.duplicates import Duplicates
    from sluicegate.runtime.ais.rows import RowMaker
    from sluicegate.runtime.ais.statics import Statics
    from sluicegate.runtime.frames import make_table
    from unit.test_ais_streams import all_of

    stream = all_of(data.draw(st.sampled_from(sorted(KINDS))))
    maker = RowMaker(stream, read_ais_options(stream), Statics(10), Duplicates(0))
    rows = []
    for _ in range(60):
        first = data.draw(st.sampled_from(SIX_BITS[:29]))
        rest = data.draw(st.text(SIX_BITS, max_size=75))
        found, _ = read_all(seal(f"!AIVDM,1,1,,A,{first}{rest},{data.draw(st.integers(0, 5))}").encode())
        made = maker.make(messages(found)[0], 0)
        if made is not None and not isinstance(made, Dead):
            rows.append(made)
    assert make_table(stream, rows, range(len(rows))).num_rows == len(rows)
