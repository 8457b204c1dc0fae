"""An explanation for people: decision first, then grants, notices, the graphs before and after, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sluicegate.cli.console import Console
from sluicegate.cli.tables import write_value
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import Node
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.pretty import MARK, draw
from sluicegate.language.xacml.decisions import Decided
from sluicegate.policy.governed import is_provider
from sluicegate.rewrite.explain import Explanation, GrantReport
from sluicegate.rewrite.explain_json import present_witness, released_plan
from sluicegate.rewrite.graphs import AuthorizedGraph
from sluicegate.rewrite.merge_filters import list_merged
from sluicegate.rewrite.notices import Decision, Notice
from sluicegate.rewrite.shield_states import find_shields

_WORDS = {
    Decision.PERMIT: ("green", "may have all that the query asks for"),
    Decision.PARTIAL: ("yellow", "may have a part of what the query asks for"),
    Decision.EMPTY: ("yellow", "gets nothing: no row can come back, whatever the data"),
    Decision.DENY: ("red", "may not run the query"),
}


def tell(console: Console, found: Explanation, query: str) -> str:
    """Everything that `explain` says."""
    parts = [
        _title(console, f"`{found.user}` asks", indent(query.strip())),
        tell_decision(console, found),
        _title(console, "Grants", _tell_grants(console, found.grants)),
        _title(console, "XACML policies", _tell_decided(found)),
        _title(console, "Notices", _tell_notices(console, found)),
        _title(console, "The query as asked", indent(draw_graph(console, found.draft.root))),
        _title(
            console,
            f"The query as authorized ({MARK} put there by a grant)",
            indent(draw_authorized(console, found)),
        ),
        _title(console, "Conditions of grants and query, merged", _tell_merged(found)),
        _tell_graphs(console, found),
    ]
    return "\n\n".join(part for part in parts if part)


def tell_decision(console: Console, found: Explanation) -> str:
    """One line: the decision, and what it means."""
    colour, words = _WORDS[found.decision]
    return f"{console.style(found.decision.value.upper(), colour, 'bold')}  `{found.user}` {words}"


def draw_authorized(console: Console, found: Explanation) -> str:
    """The graph that would run, with a word on streams whose tuples carry policies of their own."""
    plan = released_plan(found)
    if plan is None:
        return console.style("none", "dim")
    return "\n".join([draw_graph(console, plan.root), *_tell_shields(found, plan)])


def _tell_merged(found: Explanation) -> str:
    """Where one of them follows from the others; elsewhere the graph says it."""
    plan = released_plan(found)
    merged = [] if plan is None else [each for each in list_merged(plan) if each.shorter]
    return "\n".join(f"  {each.alias}: {to_text(each.condition)}" for each in merged)


def _tell_shields(found: Explanation, plan: AuthorizedPlan) -> Iterator[str]:
    for each in find_shields(plan, found.draft.binder.catalog, found.user):
        when = "if its own policy allows it" if each.alone else "only if its own policy allows that too"
        yield f"`{each.stream}` is punctuated: a tuple is shown {when} (R14)"
        yield f"  APO {', '.join(each.apo)}"
        yield f"  APR {', '.join(each.apr)}"
        yield f"  PFF {'yes: what is made of several tuples asks for their policies' if each.pff else 'no'}"
        yield f"  CP  {each.cp}"
        yield f"  judged {each.place}"
        if each.narrowed:
            yield "  narrowed by the server's punctuations, unless it is immutable"


def draw_graph(console: Console, root: Node) -> str:
    """The graph, with what policies put there in colour."""
    lines = draw(root).rstrip("\n").split("\n")
    return "\n".join(console.style(line, "cyan") if MARK in line else line for line in lines)


def indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))


def _title(console: Console, title: str, body: str) -> str:
    return f"{console.style(title, 'bold')}\n{body}" if body else ""


def _tell_grants(console: Console, reports: tuple[GrantReport, ...]) -> str:
    if not reports:
        return "  none to this user or its roles"
    width = max(len(each.name) for each in reports)
    ordered = sorted(reports, key=lambda each: not each.used)
    return "\n".join(_tell_grant(console, each, width) for each in ordered)


def _tell_grant(console: Console, report: GrantReport, width: int) -> str:
    name = report.name.ljust(width)
    if report.used:
        return f"  {console.style('✓ ' + name, 'green')}  {report.reason}"
    return f"  {console.style('✗ ' + name, 'dim')}  not used: {report.reason}"


def _tell_decided(found: Explanation) -> str:
    return "\n".join(line for each in found.decided for line in _tell_stream(each))


def _tell_stream(decided: Decided) -> Iterator[str]:
    by = f", by {', '.join(f'`{each}`' for each in decided.policies)}" if decided.policies else ""
    yield f"  `{decided.stream}`: {decided.decision.standard}{by}"
    if not decided.permitted:
        yield f"    not given: {decided.reason}"
    for each in decided.obligations:
        values = ", ".join(one.value.text.strip() for one in each.assignments)
        yield f"    {each.notice_id}: {values}"


def _tell_notices(console: Console, found: Explanation) -> str:
    lines: list[str] = []
    for notice in found.notices:
        lines.append(f"  {console.style(notice.code, 'yellow')}  {notice.message}{_tell_kind(notice)}")
        witness = present_witness(notice, found.draft)
        if witness:
            lines.append(f"  {' ' * len(notice.code)}  for example {write_tuple(witness)}")
    return "\n".join(lines)


def _tell_kind(notice: Notice) -> str:
    return f" ({notice.kind})" if notice.code == "PR" else ""


def write_tuple(row: Mapping[str, object]) -> str:
    """`SID = 'a', Pos = 3.0`."""
    return ", ".join(
        f"{name} = {repr(value) if isinstance(value, str) else write_value(value)}"
        for name, value in row.items()
    )


def _tell_graphs(console: Console, found: Explanation) -> str:
    total, valid = found.graphs.total, found.graphs.valid
    if not total:
        return ""
    lines = [_tell_graph(console, number, each) for number, each in enumerate(found.graphs.graphs, 1)]
    left = total - len(lines)
    if left > 0:
        lines.append(console.style(f"  … and {left:,} more (--graphs N lists N)", "dim"))
    word = "graph" if total == 1 else "graphs"
    return _title(console, f"Authorized {word} one by one: {valid:,} valid of {total:,}", "\n".join(lines))


def _tell_graph(console: Console, number: int, each: AuthorizedGraph) -> str:
    names = " + ".join("policies of tuples" if is_provider(name) else name for name in each.grants)
    if each.plan is not None:
        return f"  {number:>2}  {names}"
    return f"  {number:>2}  {console.style(names, 'dim')}  {console.style('invalid', 'red')}: {each.refusal}"
