"""For each aggregate, the aggregate grants on exactly its input's streams, and whether R3 lets them serve it.

An aggregate-only reader may never choose the population: each predicate of the input must be implied by the grant's,
or speak of attributes that the grant lets its readers narrow by.
"""

from __future__ import annotations

from sluicegate.expr.nodes import Column, Expr, columns
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import AggCall, AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.bind import Binder
from sluicegate.policy.model import Grant, LeastWindow, Privilege
from sluicegate.rewrite.blocks import AggLeaf, Block, SourceLeaf, all_blocks, is_plain, joins, leaves
from sluicegate.rewrite.candidates import AggCandidate, Matched, event_time, matchings
from sluicegate.rewrite.held import held_reads
from sluicegate.rewrite.manner import Merge
from sluicegate.rewrite.passes.set_usage import Need, Usage
from sluicegate.rewrite.sightings import names_profile


def find_aggregates(
    block: Block, usage: Usage, binder: Binder, merge: Merge = Merge.WIDEN
) -> dict[str, tuple[AggCandidate, ...]]:
    """Candidates by the aggregate's name; aggregates that no grant names are left out."""
    found: dict[str, tuple[AggCandidate, ...]] = {}
    for inner in all_blocks(block):
        for leaf in leaves(inner.tree):
            if isinstance(leaf, AggLeaf):
                candidates = _candidates(leaf, usage, binder, merge)
                if candidates:
                    found[leaf.name] = candidates
    return found


def _candidates(leaf: AggLeaf, usage: Usage, binder: Binder, merge: Merge) -> tuple[AggCandidate, ...]:
    inputs = tuple(leaves(leaf.input.tree))
    sources = tuple(each.source for each in inputs if isinstance(each, SourceLeaf))
    if len(sources) != len(inputs):
        return ()
    grants = binder.catalog.grants_on(binder.user.name, tuple(source.stream for source in sources))
    return tuple(
        _candidate(Matched(binder, grant, matching), leaf, usage, merge)
        for grant in grants
        if grant.privilege is Privilege.AGGREGATE
        for matching in matchings(grant, sources)
    )


def _candidate(matched: Matched, leaf: AggLeaf, usage: Usage, merge: Merge) -> AggCandidate:
    grant = matched.grant
    predicate = matched.predicate()
    covered = frozenset(call.field.column for call in used_calls(leaf, usage) if _covers(matched, call))
    narrowing, refusal = _population(matched, predicate, leaf.input)
    refusal = (
        grant.closed
        or _shape(leaf)
        or _group_size(grant)
        or _functions(leaf, usage, covered)
        or _groups(matched, leaf)
        or refusal
    )
    refusal = refusal or _window_kind(grant.least, leaf.window)
    if merge is Merge.PAPER:
        refusal = refusal or _finer(grant, leaf.window) or _other_function(matched, leaf, usage, covered)
    unites = not grant.min_group and not _tests_members(matched.binder, leaf, usage, covered)
    return AggCandidate(grant, predicate, covered, widen(leaf.window, grant), narrowing, refusal, unites)


def used_calls(leaf: AggLeaf, usage: Usage) -> tuple[AggCall, ...]:
    """The calls whose results something above uses."""
    return tuple(call for call in leaf.calls if usage.need(call.field.column) is not Need.UNUSED)


def _covers(matched: Matched, call: AggCall) -> bool:
    """The right is on this function and bare source attribute; COUNT(*) is a right of its own (D6)."""
    for right in matched.grant.rights:
        if right.function is not call.function:
            continue
        if right.attribute is None:
            if call.arg is None:
                return True
        elif call.arg is not None and call.arg in matched.columns((right.attribute,)):
            return True
    return False


def _shape(leaf: AggLeaf) -> str | None:
    if not is_plain(leaf.input.tree):
        return (
            "it serves only a join of sources by time, with no union and no window that counts tuples below"
        )
    return None


def _group_size(grant: Grant) -> str | None:
    if grant.min_group and len(grant.streams) > 1:
        return "a join repeats tuples, so that its MIN GROUP cannot be kept"
    return None


def _functions(leaf: AggLeaf, usage: Usage, covered: frozenset[Column]) -> str | None:
    if not covered:
        return "it allows none of the functions asked for"
    for call in leaf.calls:
        if usage.need(call.field.column) is Need.REQUIRED and call.field.column not in covered:
            return f"it does not allow {call_text(call)}, which the query uses further on"
    return None


def call_text(call: AggCall) -> str:
    """As a user would write it, in backticks."""
    arg = "*" if call.arg is None else to_text(call.arg)
    if call.function is AggFunction.COUNT_DISTINCT:
        return f"`COUNT(DISTINCT {arg})`"
    return f"`{call.function.value}({arg})`"


def _groups(matched: Matched, leaf: AggLeaf) -> str | None:
    allowed = matched.columns(matched.grant.by)
    for item in leaf.group_by:
        if item.expr not in allowed:
            return f"it may not be grouped by `{to_text(item.expr)}`"
    return None


def _population(matched: Matched, predicate: Expr, input_: Block) -> tuple[tuple[Expr, ...], str | None]:
    """The user's narrowing conjuncts, and the first predicate that would choose the population."""
    narrow_by = _narrowing_attributes(matched)
    narrowing: list[Expr] = []
    for part in (*input_.where, *(part for join in joins(input_.tree) for part in join.predicate)):
        if matched.binder.entails(predicate, part):
            continue
        used = columns(part)
        if not used or not used <= narrow_by:
            return (
                (),
                f"its population does not lie within `{to_text(part)}`, and readers may not narrow it so",
            )
        narrowing.append(part)
    return tuple(narrowing), None


def _narrowing_attributes(matched: Matched) -> frozenset[Column]:
    """Never event time beside a least window by time: pieces of it narrowed apart would be finer windows (R8)."""
    found, least = matched.columns(matched.grant.narrow_by), matched.grant.least
    if least is None or not least.is_by_time:
        return found
    return found - {time for source in matched.sources.values() if (time := event_time(source)) is not None}


def _tests_members(binder: Binder, leaf: AggLeaf, usage: Usage, covered: frozenset[Column]) -> bool:
    """Whether uniting would tell which values are among those of the grant's own tuples (R4).

    Beside tuples that the reader chose, COUNT(DISTINCT) says whether their values are new. It chooses by a predicate, by a
    join, by whatever makes only some of the grants that show the attribute serve the query, and by how it signs in.
    """
    calls = [call for call in leaf.calls if call.field.column in covered]
    counted = {call.arg for call in calls if call.function is AggFunction.COUNT_DISTINCT}
    if not counted:
        return False
    tree = leaf.input.tree
    if not isinstance(tree, SourceLeaf):
        return True
    source = tree.source
    exprs = (*(call.arg for call in calls), *(item.expr for item in leaf.group_by))
    used = {column for expr in exprs if expr is not None for column in columns(expr)}
    used |= {each.column for each in source.fields if usage.need(each.column) is Need.REQUIRED}
    active = binder.catalog.grants_on(binder.user.name, (source.stream,))
    varying = binder.catalog.varying_of(binder.user)
    if varying and binder.catalog.policies:
        return True
    for grant in held_reads(binder.catalog, binder.user, source.stream):
        matched = Matched(binder, grant, {grant.streams[0].alias: source})
        if len(grant.streams) > 1 or counted.isdisjoint(matched.columns(grant.attributes)):
            continue
        if grant.closed is not None or grant not in active or not used <= matched.columns(grant.attributes):
            return True
        if names_profile(grant, varying):
            return True
        if not all(binder.entails(matched.predicate(), part) for part in leaf.input.where):
            return True
    return False


def _window_kind(least: LeastWindow | None, window: Window) -> str | None:
    if least is None or least.size == least.step == 0:
        return None
    if least.rows != isinstance(window, TupleWindow):
        allowed, asked = ("tuples", "time") if least.rows else ("time", "tuples")
        return f"it allows windows by {allowed}, not by {asked}"
    return None


def _finer(grant: Grant, window: Window) -> str | None:
    """Rules (1) and (2) of eXACML+: a smaller window is refused, not widened."""
    if widen(window, grant) == window:
        return None
    return "the window asked for is finer than it allows, and windows are not widened"


def _other_function(matched: Matched, leaf: AggLeaf, usage: Usage, covered: frozenset[Column]) -> str | None:
    """Rule (4): another function of an attribute that the grant aggregates is refused, not left out."""
    attributes = tuple(right.attribute for right in matched.grant.rights if right.attribute is not None)
    aggregated = matched.columns(attributes)
    for call in used_calls(leaf, usage):
        if call.field.column not in covered and call.arg in aggregated:
            return f"it allows another function than {call_text(call)} of that attribute"
    return None


def widen(window: Window, grant: Grant) -> Window:
    """Size and step the larger of asked and allowed; a window of the other kind is left as it is (and refused).

    Under MIN GROUP windows do not overlap: a small group is withheld, and two large ones that share all but it differ by it (R8).
    """
    least = grant.least or LeastWindow(0, 0)
    if _window_kind(least, window) is not None:
        return window
    made = TupleWindow if isinstance(window, TupleWindow) else TimeWindow
    size, step = max(window.size, least.size), max(window.step, least.step)
    return made(size, max(size, step) if grant.min_group else step)
