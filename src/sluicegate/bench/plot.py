"""The measured figures as pictures, like the papers'. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg")
_STYLES = {"permitted": ("o", "#1f6f8b"), "refused": ("s", "#c8553d"), "": ("o", "#1f6f8b")}
MISSING = "left out: matplotlib is not installed; install `sluicegate[bench]`"


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def draw_figures(result: Mapping[str, Any], out: Path) -> list[Path]:
    """Write every figure of a result of `bench rewrite` into the folder."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    return [
        *_draw(
            "fig8", out, [("operators", result["fig8a"]), ("policies on Q3", result["fig8b"])], "median_ms"
        ),
        *_draw(
            "fig13", out, [("operators", result["fig13a"]), ("policies on Q30", result["fig13b"])], "mean_ms"
        ),
    ]


def _draw(name: str, out: Path, panels: Iterable[tuple[str, list[dict[str, Any]]]], value: str) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for letter, ax, (label, rows) in zip("ab", axes, panels, strict=True):
        _draw_panel(ax, rows, value)
        ax.set_xlabel(f"({letter}) {label}")
        ax.set_ylabel(f"rewriting, ms ({value.removesuffix('_ms')}; bars: middle half)")
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    paths = [out / f"{name}.{each}" for each in FORMATS]
    for path in paths:
        # a date would make every run's picture another file
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _draw_panel(ax: Axes, rows: list[dict[str, Any]], value: str) -> None:
    for answer, (marker, colour) in _STYLES.items():
        own = [row for row in rows if row.get("answer", "") == answer]
        if not own:
            continue
        at = [float(row["policies"] if "policies" in row else row["operators"]) for row in own]
        ax.plot(at, [row[value] for row in own], marker=marker, color=colour, label=answer or None)
        ax.vlines(
            at, [row["p25_ms"] for row in own], [row["p75_ms"] for row in own], color=colour, lw=4, alpha=0.3
        )
        if answer:
            ax.legend()
