"""The comparison with filtering afterwards as a picture, like seed 000's Fig. 9. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluicegate.bench.plot import FORMATS

_LINES = {"uniform": ("rewrite-uni", "o", "#1f6f8b"), "normal": ("rewrite-norm", "s", "#c8553d")}
_PANELS = (
    ("joins", "selectivity", "relative_joins", "(a) selectivity of the policy", "relative joins, %"),
    ("costs", "window_s", "relative_cpu", "(b) window, s", "relative CPU time, %"),
    ("costs", "window_s", "relative_memory", "(c) window, s", "relative memory, %"),
)


def draw_fig9(found: Mapping[str, Sequence[Mapping[str, Any]]], out: Path) -> list[Path]:
    """Write the figure into the folder, in each format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for ax, (part, x, y, below, beside) in zip(figure.subplots(1, 3), _PANELS, strict=True):
        for spread, (label, marker, colour) in _LINES.items():
            rows = [row for row in found[part] if row["health"] == spread]
            ax.plot(
                [row[x] for row in rows],
                [100 * row[y] for row in rows],
                marker=marker,
                color=colour,
                label=label,
            )
        ax.axhline(100, color="#888888", linestyle="--", label="filtered afterwards")
        ax.set_xlabel(below)
        ax.set_ylabel(beside)
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
        ax.legend()
    paths = [out / f"fig9.{each}" for each in FORMATS]
    for path in paths:
        # a date would make every run's picture another file
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths
