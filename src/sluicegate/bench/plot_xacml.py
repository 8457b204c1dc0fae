"""What `bench xacml` found as pictures: decisions by the number of policies, response times after seed 001's Fig. 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sluicegate.bench.plot_service import Samples, draw_parts, save_figure
from sluicegate.bench.sample import quantile

_COLOUR = "#1f6f8b"


def draw_xacml(samples: Samples, decisions: Mapping[int, Sequence[float]], out: Path) -> list[Path]:
    """Write both figures into the folder, in each format."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluicegate"
    requests = Figure(figsize=(10, 3.8), layout="constrained")
    panels = (("unique", "(a) unique requests"), ("zipf", "(b) requests by Zipf's law"))
    for ax, (name, below) in zip(requests.subplots(1, 2), panels, strict=True):
        draw_parts(ax, samples[name])
        ax.set_xlabel(f"response time, ms\n{below}")
    return [*_draw_decisions(decisions, out), *save_figure(requests, "xacml_requests", out)]


def _draw_decisions(decisions: Mapping[int, Sequence[float]], out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    ax = figure.subplots()
    sizes = list(decisions)
    middle = [quantile(decisions[size], 0.5) * 1000 for size in sizes]
    high = [quantile(decisions[size], 0.99) * 1000 for size in sizes]
    ax.plot(sizes, middle, "o-", color=_COLOUR, label="median")
    ax.plot(sizes, high, "s--", color="#c8553d", label="p99")
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("policies")
    ax.set_ylabel("one decision, ms")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return save_figure(figure, "xacml_decisions", out)
