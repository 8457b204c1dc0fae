"""Files that facts are read from: only inside the catalog's own folder, bounded in size, data and nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Literal, Scalar
from sluicegate.expr.types import BIGINT, DOUBLE, INT, POLYGON, STRING, Type, set_of
from sluicegate.expr.values import cast_value
from sluicegate.language.fold_state import fail
from sluicegate.language.polygons import PolygonError, Ring, make_polygon
from sluicegate.language.statements import FromFile

MAX_DATA_FILE = 16 * 1024 * 1024
MAX_ELEMENTS = 1_000_000


def read_fact_file(folder: Path, source: FromFile) -> Literal:
    """A polygon from `.geojson`, a set from the first column of `.csv` or the lines of `.txt`."""
    path = find_inside(folder, source)
    text = read_bounded(path, source, MAX_DATA_FILE)
    match path.suffix.lower():
        case ".geojson" | ".json":
            return _read_geojson(text, source)
        case ".csv":
            return _read_set((row[0] for row in csv.reader(io.StringIO(text)) if row), source)
        case ".txt":
            return _read_set(text.splitlines(), source)
        case _:
            help_ = "facts are read from .geojson, .csv and .txt"
            return fail(
                "file-type",
                f"`{source.path[:80]}` is not a file that a fact can be read from",
                source.span,
                help_,
            )


def find_inside(folder: Path, source: FromFile) -> Path:
    """The file, if it lies in the folder by name and after all links are followed."""
    shape = PurePosixPath(source.path)
    windows = PureWindowsPath(source.path)
    outside = (
        shape.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\x00" in source.path
    )
    root = folder.resolve()
    target = root if outside else (root / shape).resolve()
    if outside or not source.path or not target.is_relative_to(root):
        help_ = "give the path of a file in the catalog's folder"
        fail("file-outside", f"`{source.path[:80]}` lies outside the catalog's folder", source.span, help_)
    if not target.is_file():
        fail("file-missing", f"there is no file `{source.path[:80]}` in the catalog's folder", source.span)
    return target


def read_bounded(path: Path, source: FromFile | None, limit: int) -> str:
    """The text of a file, never more than the limit of it in memory."""
    shown, span = (source.path, source.span) if source else (path.name, None)
    data = read_bytes(path, source, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fail("file-not-text", f"`{shown[:80]}` is not UTF-8 text (byte {error.start:,})", span)


def read_bytes(path: Path, source: FromFile | None, limit: int) -> bytes:
    shown, span = (source.path, source.span) if source else (path.name, None)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        fail("file-unreadable", f"`{shown[:80]}` cannot be read: {error.strerror or 'no access'}", span)
    if len(data) > limit:
        fail("file-too-large", f"`{shown[:80]}` has more than {limit:,} bytes", span)
    return data


def _read_set(lines: Iterable[str], source: FromFile) -> Literal:
    """Numbers if all are numbers, texts otherwise; blank lines are left out."""
    try:
        items = [line.strip() for line in lines]
    except csv.Error as error:
        fail("bad-csv", f"`{source.path[:80]}` is not CSV: {error}", source.span)
    items = [item for item in items if item]
    if len(items) > MAX_ELEMENTS:
        fail("set-too-large", f"the set has more than {MAX_ELEMENTS:,} elements", source.span)
    for of in (INT, BIGINT, DOUBLE):
        values = _convert(items, of)
        if values is not None:
            return Literal(values, set_of(of))
    return Literal(frozenset(items), set_of(STRING))


def _convert(items: list[str], of: Type) -> frozenset[Scalar] | None:
    values = [cast_value(item, STRING, of) for item in items]
    found = frozenset(value for value in values if isinstance(value, int | float))
    return found if items and None not in values else None


def _read_geojson(text: str, source: FromFile) -> Literal:
    try:
        parts = _parts(json.loads(text))
        return Literal(make_polygon(parts), POLYGON)
    except PolygonError as error:
        fail("bad-polygon", str(error), source.span)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        help_ = "a Polygon, MultiPolygon, Feature of one, or FeatureCollection of one"
        fail("bad-geojson", f"`{source.path[:80]}` is not GeoJSON of a polygon", source.span, help_)


def _parts(shape: Any, depth: int = 0) -> list[list[Ring]]:
    """The parts of a GeoJSON object; anything unexpected raises one of the errors caught above."""
    match shape["type"]:
        case "Polygon":
            return [_rings(shape["coordinates"])]
        case "MultiPolygon":
            return [_rings(part) for part in shape["coordinates"]]
        case "Feature" if depth < 2:
            return _parts(shape["geometry"], depth + 1)
        case "FeatureCollection" if depth == 0:
            (only,) = shape["features"]
            return _parts(only, depth + 1)
        case _:
            raise ValueError("no polygon")


def _rings(rings: Any) -> list[Ring]:
    return [[_point(point) for point in ring] for ring in rings]


def _point(point: Any) -> tuple[float, float]:
    x, y = point[0], point[1]
    if (
        isinstance(x, bool)
        or isinstance(y, bool)
        or not isinstance(x, int | float)
        or not isinstance(y, int | float)
    ):
        raise TypeError("a coordinate is a number")
    return float(x), float(y)


def explain_missing(folder: Path) -> DiagnosticError:
    what = "is not a folder" if folder.exists() else "does not exist"
    return DiagnosticError([Diagnostic("no-catalog", f"the catalog `{folder}` {what}")])
