"""Refusals of the ledger in words (R8)."""

from __future__ import annotations

from sluicegate.graph.windows import TupleWindow, Window, format_duration
from sluicegate.policy.entries import Entry
from sluicegate.policy.model import LeastWindow


def tell_refusal(code: str, entry: Entry, other: Entry) -> str:
    asked, given = describe_entry(entry), describe_entry(other)
    match code:
        case "ledger-tuples":
            return f"{asked} cannot be given beside {given}: tuple windows are given one at a time"
        case "ledger-made-up":
            return f"{asked} cannot be given beside {given}: averages, sums and counts would give finer ones together"
        case "ledger-average":
            return (
                f"{asked} cannot be given beside {given}: averages are given in one window and one grouping"
            )
        case "ledger-population":
            return (
                f"{asked} cannot be given on event time on which {given} was: what grant `{entry.grant}` covers "
                "has changed since, or is not known to be the same, so that both would tell the difference"
            )
        case "ledger-min-group":
            return f"{asked} cannot be given beside {given}: MIN GROUP allows one window and one grouping"
        case "ledger-join-window":
            return f"{asked} cannot be given beside {given}: {_tell_grant(entry, other)} is given with one join window"
        case "ledger-narrowing":
            return f"{asked} cannot be given beside {given}: {_tell_grant(entry, other)} was narrowed in another way"
        case _:
            raise ValueError(code)


def _tell_grant(entry: Entry, other: Entry) -> str:
    own = f"grant `{entry.grant}`"
    return own if entry.grant == other.grant else f"{own}, with `{other.grant}`,"


def tell_grid(entry: Entry, other: Entry, grid: LeastWindow | None) -> str:
    if grid is None:
        accepted = f"only {_describe_window(other.window)} is"
    else:
        accepted = f"sizes and steps that are multiples of {format_duration(grid.size)} are"
    return (
        f"{describe_entry(entry)} cannot be given beside {describe_entry(other)}: their differences are finer "
        f"than the grant allows; {accepted} accepted"
    )


def describe_entry(entry: Entry) -> str:
    name = "*" if entry.attribute is None else entry.attribute[1]
    grouped = ", ".join(each[1] for each in entry.grouping)
    by = f" by {grouped}" if grouped else ""
    return f"`{entry.function.value}({name})`{by} over {_describe_window(entry.window)}"


def _describe_window(window: Window) -> str:
    if isinstance(window, TupleWindow):
        return f"{window.size} rows every {window.step}"
    return f"{format_duration(window.size)} every {format_duration(window.step)}"
