"""What `check` warns of in XACML policies: streams that there are not, obligations that no stream can fulfil."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.language.xacml.obligations import CONDITION, PARTS, check_obligation
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.policy.xacml.context import Assignment, Notice
from sluicegate.policy.xacml.functions_scalar import name_function
from sluicegate.policy.xacml.model import (
    AllOf,
    AnyOf,
    Designator,
    Document,
    Effect,
    NoticeExpression,
    Policy,
    Reference,
    Rule,
    Target,
)
from sluicegate.policy.xacml.names import RESOURCE, RESOURCE_ID
from sluicegate.policy.xacml.values import Value
from sluicegate.rewrite.lint_punctuations import Warned

POLICY_LINT_CODES: dict[str, str] = {
    "policy-unknown-stream": "an XACML policy is for streams that the catalog does not have, so it permits nothing",
    "policy-obligation": "an obligation of an XACML policy cannot be fulfilled, so that what it permits is not given",
}

_EQUALITIES = {name_function("1.0", "string-equal"), name_function("1.0", "anyURI-equal")}
_Streams = frozenset[str] | None


def find_idle_policies(catalog: Catalog) -> Iterator[Warned]:
    """By id, each finding once."""
    for name, stored in sorted(catalog.policies.items()):
        yield from dict.fromkeys(_check(catalog, name, stored.document, None))


def _check(catalog: Catalog, name: str, part: Document | Rule, above: _Streams) -> Iterator[Warned]:
    named = _meet(above, _name_streams(part.target))
    if named is not None and not named & catalog.streams.keys():
        if above is None or above & catalog.streams.keys():
            listed = ", ".join(f"`{each[:60]}`" for each in sorted(named)) or "no stream"
            message = f"policy `{name[:80]}` is for {listed}, which the catalog does not have"
            yield Warned("policy-unknown-stream", "policy", name, message)
        return
    for each in part.notices:
        if each.binding and each.applies_to is Effect.PERMIT:
            yield from _check_obligation(catalog, name, each, named)
    for inner in _list_parts(part):
        yield from _check(catalog, name, inner, named)


def _list_parts(part: Document | Rule) -> Iterator[Document | Rule]:
    match part:
        case Rule():
            return
        case Policy():
            yield from part.rules
        case _:
            yield from (each for each in part.members if not isinstance(each, Reference))


def _check_obligation(
    catalog: Catalog, name: str, obligation: NoticeExpression, named: _Streams
) -> Iterator[Warned]:
    bound = _bind(obligation)
    if bound is None:
        return
    streams = [each for key, each in sorted(catalog.streams.items()) if named is None or key in named]
    reasons = [_explain(bound, each) for each in streams]
    wrong = [each for each in reasons if each is not None]
    # one that is for any stream is of use if it suits any
    if wrong and (named is not None or len(wrong) == len(streams)):
        message = f"policy `{name[:80]}`: {wrong[0]}"
        yield Warned("policy-obligation", "policy", name, message, "what it permits is not given")


def _explain(obligation: Notice, stream: Stream) -> str | None:
    return check_obligation(obligation, stream)


def _bind(obligation: NoticeExpression) -> Notice | None:
    """With its constants; nothing where a value is known only when somebody asks, but for what must be constant."""
    assigned = []
    for each in obligation.assignments:
        if isinstance(each.expression, Value):
            assigned.append(Assignment(each.attribute_id, each.expression))
        elif not each.attribute_id.endswith(CONDITION) and obligation.notice_id in PARTS:
            return None
    return Notice(obligation.notice_id, tuple(assigned), binding=True)


def _meet(above: _Streams, own: _Streams) -> _Streams:
    if above is None or own is None:
        return own if above is None else above
    return above & own


def _name_streams(target: Target) -> _Streams:
    """The only resources that the target can match, where it names any."""
    found: _Streams = None
    for part in target.parts:
        found = _meet(found, _name_any(part))
    return found


def _name_any(part: AnyOf) -> _Streams:
    ways = [_name_all(each) for each in part.ways]
    known = [each for each in ways if each is not None]
    return frozenset().union(*known) if ways and len(known) == len(ways) else None


def _name_all(way: AllOf) -> _Streams:
    found: _Streams = None
    for match in way.matches:
        at = match.attribute
        about = isinstance(at, Designator) and (at.category, at.attribute_id) == (RESOURCE, RESOURCE_ID)
        if about and match.function_id in _EQUALITIES:
            found = _meet(found, frozenset({str(match.value.content)}))
    return found
