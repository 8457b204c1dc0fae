"""ASSIST's Table 3 as a picture: what rewriting takes of what post-filtering takes. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluicegate.bench.plot_service import save_figure

_COLOURS = ("#1f6f8b", "#c8553d", "#8a9a5b", "#7d5ba6")
_PARTS = (
    ("tuples_ratio", "tuples that\ncome out"),
    ("flowing_ratio", "tuples that\nflow"),
    ("time_ratio", "time"),
    ("first_time_ratio", "time, planned\nand compiled"),
)


def draw_table3(rows: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Write the figure into the folder, in each format; a group of bars for each measure, a bar for each size."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    sizes = [row for row in rows if row["way"] == "rewriting"]
    width = 0.8 / len(sizes)
    for number, (row, colour) in enumerate(zip(sizes, _COLOURS, strict=False)):
        at = [place + (number - (len(sizes) - 1) / 2) * width for place in range(len(_PARTS))]
        heights = [100 / max(row[name], 0.01) for name, _ in _PARTS]
        bars = ax.bar(at, heights, width * 0.95, color=colour, label=f"{row['boats']:,} boats")
        ax.bar_label(bars, fmt="%.0f", fontsize="small")
    ax.axhline(100, color="#888888", linestyle="--", label="post-filtering")
    ax.set_xticks(range(len(_PARTS)), [label for _, label in _PARTS])
    ax.set_ylabel("rewriting, % of post-filtering")
    ax.grid(alpha=0.3, axis="y")
    ax.legend(fontsize="small")
    return save_figure(figure, "assist_table3", out)
