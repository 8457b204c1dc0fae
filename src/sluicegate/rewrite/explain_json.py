"""An explanation as JSON: decision, grants used, notices, graphs; and what a reader may want besides."""

from __future__ import annotations

from sluicegate.expr.nodes import Value
from sluicegate.expr.text import to_text
from sluicegate.expr.types import Type
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.present import present_value
from sluicegate.graph.to_json import graph_json
from sluicegate.language.xacml.decisions import Decided
from sluicegate.policy.governed import is_provider
from sluicegate.policy.unknowns import hide_types
from sluicegate.policy.xacml.context import Notice as Obligation
from sluicegate.rewrite.blocks import SourceLeaf, all_blocks, leaves
from sluicegate.rewrite.explain import Explanation
from sluicegate.rewrite.graphs import AuthorizedGraph
from sluicegate.rewrite.merge_filters import list_merged
from sluicegate.rewrite.notices import Decision, Notice
from sluicegate.rewrite.pipeline import Draft
from sluicegate.rewrite.shield_states import find_shields


def explanation_json(found: Explanation, policies: bool = False) -> dict[str, object]:
    """`graphs` holds the first graphs that Algorithm 1 gives, `count` says how many there are.

    Facts are written with the type that their place asks for: their own would tell whether they are set (R9).
    `policies`: also which XACML policies decided, for owners of the streams and administrators alone.
    """
    told = {"xacml": [decided_json(each) for each in found.decided]} if policies else {}
    return told | {
        "user": found.user,
        "decision": found.decision.value,
        "grants": list(found.used),
        "reasons": [{"grant": each.name, "used": each.used, "reason": each.reason} for each in found.grants],
        "notices": [_notice_json(each, found.draft) for each in found.notices],
        "graph": graph_json(found.draft.root, hide_types),
        "plan": _plan_json(released_plan(found)),
        "merged": _merged_json(released_plan(found)),
        "shields": _shields_json(found),
        "graphs": [_graph_json(each) for each in found.graphs.graphs],
        "count": {"total": found.graphs.total, "valid": found.graphs.valid},
    }


def decided_json(decided: Decided) -> dict[str, object]:
    """What the policies say of one stream, and by which of them."""
    return {
        "stream": decided.stream,
        "decision": decided.decision.standard,
        "permitted": decided.permitted,
        "reason": decided.reason,
        "policies": list(decided.policies),
        "obligations": [_obligation_json(each) for each in decided.obligations],
        "clock": decided.read_clock,
    }


def _obligation_json(notice: Obligation) -> dict[str, object]:
    values = [{"id": each.attribute_id, "value": each.value.text} for each in notice.assignments]
    return {"id": notice.notice_id, "values": values}


def _merged_json(plan: AuthorizedPlan | None) -> list[dict[str, object]]:
    """The one condition on a source, where grants and query have one each."""
    found = [] if plan is None else list_merged(plan)
    return [{"source": each.alias, "condition": to_text(each.condition)} for each in found]


def _shields_json(found: Explanation) -> list[dict[str, object]]:
    plan = released_plan(found)
    if plan is None:
        return []
    return [each.to_json() for each in find_shields(plan, found.draft.binder.catalog, found.user)]


def released_plan(found: Explanation) -> AuthorizedPlan | None:
    """What would run; never anything of a query that is denied."""
    return None if found.decision is Decision.DENY else found.draft.plan


def present_witness(notice: Notice, draft: Draft) -> dict[str, object] | None:
    """A tuple asked for and withheld, times as ISO text."""
    if notice.witness is None:
        return None
    types = _types_by_name(draft)
    return {name: _present(value, types.get(name)) for name, value in notice.witness.items()}


def _present(value: Value, types: set[Type] | None) -> object:
    # one name in two parts of a query may mean two types; a number is then not taken for a time
    return present_value(value, next(iter(types)) if types and len(types) == 1 else None)


def _types_by_name(draft: Draft) -> dict[str, set[Type]]:
    """Of attributes, by their names bare and with the source's, as witnesses have them."""
    found = [
        leaf.source
        for block in all_blocks(draft.ready)
        for leaf in leaves(block.tree)
        if isinstance(leaf, SourceLeaf)
    ]
    types: dict[str, set[Type]] = {}
    for source in (*sources(draft.root), *found):
        for name, of in source.attributes:
            types.setdefault(name, set()).add(of)
            types.setdefault(f"{source.alias}.{name}", set()).add(of)
    return types


def _notice_json(notice: Notice, draft: Draft) -> dict[str, object]:
    return {
        "code": notice.code,
        "kind": notice.kind,
        "message": notice.message,
        "witness": present_witness(notice, draft),
    }


def _plan_json(plan: AuthorizedPlan | None) -> dict[str, object] | None:
    if plan is None:
        return None
    outputs = [
        {"name": each.name, "type": str(each.column.of), "always": each.shown is None}
        for each in plan.outputs
    ]
    return {
        "graph": graph_json(plan.root, hide_types),
        "outputs": outputs,
        "labelled": plan.label is not None,
    }


def _graph_json(each: AuthorizedGraph) -> dict[str, object]:
    return {
        "grants": [name for name in each.grants if not is_provider(name)],
        "valid": each.plan is not None,
        "reason": each.refusal,
        "graph": None if each.plan is None else graph_json(each.plan.root, hide_types),
    }
