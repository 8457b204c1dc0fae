"""What `bench shield` found as pictures, like seed 002's Figs 13–16. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.bench.plot import FORMATS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#1f6f8b", "#c8553d", "#6a994e")
_STRATEGIES = ("filter_and_probe", "probe_and_filter", "adaptive")


def draw_shield(result: Mapping[str, Any], out: Path) -> list[Path]:
    """Write every figure into the folder, in each format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    figures = {
        "fig13": _draw_costs(result),
        "fig14": _draw_places(result["fig14"], "us_per_report", "µs a report"),
        "fig15": _draw_places(result["fig15"], "time_ratio", "time against no shield"),
        "fig16": _draw_joins(result),
    }
    paths = []
    for name, figure in figures.items():
        for path in (out / f"{name}.{each}" for each in FORMATS):
            # a date would make every run's picture another file
            figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
            paths.append(path)
    return paths


def _make(panels: int) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * panels + 1, 3.6), layout="constrained")
    axes = figure.subplots(1, panels)
    return figure, [axes] if panels == 1 else list(axes)


def _finish(ax: Axes, below: str, beside: str, legend: bool = True) -> None:
    ax.set_xlabel(below)
    ax.set_ylabel(beside)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    if legend:
        ax.legend()


def _draw_costs(result: Mapping[str, Any]) -> Figure:
    figure, axes = _make(2)
    names = (
        ("fig13a", "ratio", "(a) reports under one punctuation"),
        ("fig13b", "roles", "(b) roles in a policy"),
    )
    for ax, (name, x, below) in zip(axes, names, strict=True):
        rows = result[name]
        ax.plot(
            [row[x] for row in rows], [row["us_per_report"] for row in rows], marker="o", color=_COLOURS[0]
        )
        ax.set_xscale("log")
        _finish(ax, below, "beyond no policies, ms per 1,000 reports", legend=False)
    return figure


def _draw_places(rows: Sequence[Mapping[str, Any]], value: str, beside: str) -> Figure:
    figure, axes = _make(1)
    places = list(dict.fromkeys(row["shield"] for row in rows))
    roles = sorted({row["roles"] for row in rows})
    for at, place in enumerate(places):
        own = {row["roles"]: row[value] for row in rows if row["shield"] == place}
        spots = [number + (at - (len(places) - 1) / 2) * 0.25 for number in range(len(roles))]
        axes[0].bar(spots, [own[each] for each in roles], 0.22, color=_COLOURS[at], label=place)
    axes[0].set_xticks(range(len(roles)), [str(each) for each in roles])
    _finish(axes[0], "roles in a policy", beside)
    return figure


def _draw_joins(result: Mapping[str, Any]) -> Figure:
    figure, axes = _make(3)
    names = (
        ("fig16a", "(a) reports under one punctuation"),
        ("fig16b", "(b) similarity of policies"),
        ("fig16c", "(c) join selectivity"),
    )
    for ax, (name, below) in zip(axes, names, strict=True):
        rows = result[name]
        at = [row["varied"] for row in rows]
        for colour, strategy in zip(_COLOURS, _STRATEGIES, strict=True):
            middle = [row[f"{strategy}_us_per_tuple"] for row in rows]
            ax.plot(at, middle, marker="o", color=colour, label=strategy.replace("_", " "))
        _finish(ax, below, "µs a tuple")
    return figure
