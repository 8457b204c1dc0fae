"""The soldiers' catalog over a file that is replayed, as large and in as many micro-batches as a test wants."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

_BEGIN = datetime(2026, 1, 1, 10, tzinfo=UTC)
COLUMNS = "ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE"
CATALOG = """CREATE ROLE Doctor; CREATE ROLE Captain; CREATE USER staff;
CREATE USER paul ROLES (Doctor) SET (Platoon = '{platoon}');
CREATE USER cole ROLES (Captain);
CREATE STREAM Position ({columns}) TIMESTAMP BY ts WATERMARK '5 seconds' OWNER staff{source};
CREATE GRANT own READ (ts, SID, Pos) ON Position WHERE Platoon = self.Platoon TO {reader};
CREATE GRANT whole READ (ts, SID, Platoon, Pos) ON Position TO Captain;
"""
QUERY = """SELECT Platoon, AVG(Pos) AS mean, COUNT(SID) AS many FROM Position [RANGE 10 SECONDS SLIDE 10 SECONDS]
GROUP BY Platoon START AT EARLIEST"""
"""For cole: a row for every ten seconds and platoon, each another."""


def write_catalog(
    folder: Path,
    path: Path | None = None,
    rows_per_batch: int = 50,
    platoon: str = "X",
    reader: str = "Doctor",
) -> Path:
    """With a file, the stream replays it."""
    source = (
        "" if path is None else f" FROM replay OPTIONS (path = '{path}', rows_per_batch = '{rows_per_batch}')"
    )
    folder.mkdir(parents=True, exist_ok=True)
    text = CATALOG.format(columns=COLUMNS, source=source, platoon=platoon, reader=reader)
    (folder / "catalog.sql").write_text(text, encoding="utf-8")
    return folder


def list_positions(many: int, begin: int = 0) -> list[dict[str, object]]:
    """Two each second, of two platoons."""
    return [
        {
            "ts": (_BEGIN + timedelta(seconds=at // 2)).isoformat(),
            "SID": f"s{at % 7}",
            "Platoon": "XY"[at % 2],
            "Pos": float(at),
        }
        for at in range(begin, begin + many)
    ]


def write_positions(path: Path, many: int, begin: int = 0) -> Path:
    """A file that appears whole."""
    hidden = path.with_name(f".{path.name}")
    rows = list_positions(many, begin)
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return hidden.rename(path)
