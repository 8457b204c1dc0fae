"""Shared networks in the cost model as pictures, like seed 003's Figs 8 and 9. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.bench.plot import FORMATS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BARS = {"unshared_log2": "no sharing", "shared_log2": "shared", "switched_log2": "shared, switches"}
_LINES = {
    "shared_ms": ("filters behind the outputs", "o", "#888888"),
    "lost_0_ms": ("switches, full access", "s", "#1f6f8b"),
    "lost_1_ms": ("one query lost", "^", "#c8553d"),
    "lost_2_ms": ("two queries lost", "v", "#3d7a4a"),
    "lost_3_ms": ("all lost", "x", "#7a4a8b"),
}
_COLOURS = ("#888888", "#1f6f8b", "#c8553d")
USERS = 10


def draw_model(figures: Mapping[str, Sequence[Mapping[str, Any]]], out: Path) -> list[Path]:
    """Write both figures into the folder, in each format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    return [*_draw_fig8(figures, out), *_draw_fig9(figures["fig9"], out)]


def _draw_fig8(figures: Mapping[str, Sequence[Mapping[str, Any]]], out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = (("fig8a", "(a) 3 queries, 15 operators"), ("fig8b", "(b) 5 queries, 25 operators"))
    for ax, (name, title) in zip(figure.subplots(1, 2), panels, strict=True):
        rows = [row for row in figures[name] if row["users"] == USERS]
        for at, (key, label) in enumerate(_BARS.items()):
            places = [number + (at - 1) * 0.27 for number in range(len(rows))]
            ax.bar(places, [row[key] for row in rows], width=0.25, label=label, color=_COLOURS[at])
        ax.set_xticks(range(len(rows)), [str(row["sharing"]) for row in rows])
        ax.set_xlabel(f"{title}: degree of sharing")
        ax.set_ylabel(f"time, log2 ms ({USERS} users)")
        ax.legend(loc="lower right")
    return _keep(figure, "fig8", out)


def _draw_fig9(rows: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    ax = figure.subplots()
    for key, (label, marker, colour) in _LINES.items():
        ax.plot(
            [row["sharing"] for row in rows],
            [row[key] for row in rows],
            marker=marker,
            color=colour,
            label=label,
        )
    ax.set_xlabel("degree of sharing (3 streams, 3 queries, 20 operators)")
    ax.set_ylabel("time, ms")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend()
    return _keep(figure, "fig9", out)


def _keep(figure: Figure, name: str, out: Path) -> list[Path]:
    paths = [out / f"{name}.{each}" for each in FORMATS]
    for path in paths:
        # a date would make every run's picture another file
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


_WAYS = {"unshared_s": "no sharing", "shared_s": "shared", "switched_s": "shared, switches"}
_LOST = {
    "lost_0_s": ("full access", "s", "#1f6f8b"),
    "lost_1_s": ("one query lost", "^", "#c8553d"),
    "lost_2_s": ("two queries lost", "v", "#3d7a4a"),
}


def draw_spark(result: Mapping[str, Any], out: Path) -> list[Path]:
    """The same two figures as measured on Spark."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, queries in zip(figure.subplots(1, 2), (3, 5), strict=True):
        rows = [row for row in result["fig8"] if row["queries"] == queries]
        for at, (key, label) in enumerate(_WAYS.items()):
            places = [number + (at - 1) * 0.27 for number in range(len(rows))]
            ax.bar(places, [row[key] for row in rows], width=0.25, label=label, color=_COLOURS[at])
        ax.set_xticks(range(len(rows)), [str(row["sharing"]) for row in rows])
        ax.set_xlabel(f"{queries} queries: degree of sharing")
        ax.set_ylabel(f"seconds for {result['rows']:,} rows")
        ax.legend(loc="lower right")
    paths = _keep(figure, "spark_fig8", out)
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    ax = figure.subplots()
    degrees = [row["sharing"] for row in result["fig9"]]
    for key, (label, marker, colour) in _LOST.items():
        ax.plot(degrees, [row[key] for row in result["fig9"]], marker=marker, color=colour, label=label)
    ax.set_xlabel("degree of sharing (3 streams, 3 queries, 20 operators)")
    ax.set_ylabel(f"seconds for {result['rows']:,} rows")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend()
    return [*paths, *_keep(figure, "spark_fig9", out)]
