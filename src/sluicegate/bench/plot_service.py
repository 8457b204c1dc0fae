"""Response times as pictures, after the captions of seed 001's Figs 6 and 7. matplotlib is the extra `bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.bench.plot import FORMATS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#c8553d", "#e0a458", "#1f6f8b", "#5b8e7d", "#6d597a")
Samples = Mapping[str, Mapping[str, Sequence[float]]]


def draw_service(samples: Samples, out: Path) -> list[Path]:
    """Write both figures into the folder, in each format; times in milliseconds, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    return [*_draw_overall(samples, out), *_draw_details(samples, out)]


def _draw_overall(samples: Samples, out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    panels = (("unique", "(a) unique requests"), ("zipf", "(b) requests by Zipf's law"))
    for ax, (name, below) in zip(figure.subplots(1, 2), panels, strict=True):
        draw_parts(ax, samples[name])
        ax.set_xlabel(f"response time, ms\n{below}")
    return save_figure(figure, "fig6", out)


def _draw_details(samples: Samples, out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    for at, (name, label) in enumerate((("few", "(a)"), ("many", "(b)"))):
        count = max(map(len, samples[name].values()))
        _draw_sequence(axes[0][at], samples[name])
        axes[0][at].set_xlabel(f"request\n{label} {count:,} requests")
        draw_parts(axes[1][at], samples[name])
        axes[1][at].set_xlabel("time, ms")
    return save_figure(figure, "fig7", out)


def draw_parts(ax: Axes, series: Mapping[str, Sequence[float]]) -> None:
    """What part of the requests took no longer."""
    from matplotlib.ticker import NullFormatter

    for (name, times), colour in zip(series.items(), _COLOURS, strict=False):
        ordered = sorted(times)
        parts = [(at + 1) / len(ordered) for at in range(len(ordered))]
        ax.step(ordered, parts, where="post", color=colour, label=name)
    ax.set_xscale("log")
    # over less than a decade they would lie on each other
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("part of the requests")
    ax.set_ylim(0, 1.02)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")


def _draw_sequence(ax: Axes, series: Mapping[str, Sequence[float]]) -> None:
    for (name, times), colour in zip(series.items(), _COLOURS, strict=False):
        # as drawn shapes, thousands of dots would make a picture of megabytes
        at = range(1, len(times) + 1)
        ax.plot(at, times, ".", markersize=2, color=colour, label=name, rasterized=True)
    ax.axhline(10, color="#888888", linestyle="--", linewidth=0.8)
    ax.set_yscale("log")
    ax.set_ylabel("time, ms")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", markerscale=4)


def save_figure(figure: Figure, name: str, out: Path) -> list[Path]:
    """In each format, under a name in the folder."""
    paths = [out / f"{name}.{each}" for each in FORMATS]
    for path in paths:
        # a date would make every run's picture another file
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths
