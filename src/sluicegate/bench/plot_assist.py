"""ASSIST's Table 3 as a picture: tuples and time of both ways, by the number of boats. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluicegate.bench.plot_service import save_figure

_COLOURS = {"rewriting": "#1f6f8b", "post-filtering": "#c8553d"}
_PANELS = (
    ("tuples", "deviation", "(a) tuples that come out"),
    ("flowing", None, "(b) tuples that flow"),
    ("median_ms", None, "(c) time of a run, ms"),
)


def draw_table3(rows: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Write the figure into the folder, in each format."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    sizes = sorted({int(row["boats"]) for row in rows})
    for ax, (value, spread, title) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        for shift, (way, colour) in zip((-0.2, 0.2), _COLOURS.items(), strict=True):
            own = {int(row["boats"]): row for row in rows if row["way"] == way}
            heights = [own[size][value] for size in sizes]
            bars = None if spread is None else [own[size][spread] for size in sizes]
            at = [place + shift for place in range(len(sizes))]
            ax.bar(at, heights, 0.38, yerr=bars, color=colour, label=way, capsize=3)
        ax.set_xticks(range(len(sizes)), [f"{size:,} boats" for size in sizes])
        ax.set_yscale("log")
        ax.set_xlabel(title)
        ax.grid(alpha=0.3, axis="y")
        ax.legend(fontsize="small")
    return save_figure(figure, "assist_table3", out)
