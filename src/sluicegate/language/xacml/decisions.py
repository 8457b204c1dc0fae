"""What a catalog's XACML policies allow a user, as grants of the core model, wherever access is decided.

Each (user, stream) is one request to the policies; where they permit it, and all obligations can be fulfilled, the
answer is one grant, `xacml:<stream>` to that user. It is derived, never stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import Kind
from sluicegate.language.xacml.obligations import Refusal, fulfil
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Stream, User
from sluicegate.policy.xacml.context import OK, Attribute, Category, Decision, Notice, Request, Result, Status
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.link import LinkError
from sluicegate.policy.xacml.names import (
    ACTION,
    ACTION_ID,
    RESOURCE,
    RESOURCE_ID,
    SUBJECT,
    SUBJECT_ID,
    URN,
    DataType,
    StatusCode,
)
from sluicegate.policy.xacml.temporal import moment_at
from sluicegate.policy.xacml.values import Value, make_value

ROLE_ID: Final = URN + "2.0:subject:role"
PROFILE: Final = "sluicegate:profile:"
READ: Final = "read"

_KINDS: Final = {
    Kind.STRING: DataType.STRING,
    Kind.BOOLEAN: DataType.BOOLEAN,
    Kind.INT: DataType.INTEGER,
    Kind.BIGINT: DataType.INTEGER,
    Kind.DOUBLE: DataType.DOUBLE,
    Kind.TIMESTAMP: DataType.DATE_TIME,
}


@dataclass(frozen=True, slots=True)
class Decided:
    """What policies say of one user and stream: a grant, or why there is none."""

    user: str
    stream: str
    grant: Grant | None
    decision: Decision
    reason: str
    """For the stream's owner and administrators: it names policies and obligations."""
    policies: tuple[str, ...] = ()
    """The ids of those that decided."""
    obligations: tuple[Notice, ...] = ()
    read_clock: bool = False
    status: Status = OK
    """The standard's, of the decision."""

    @property
    def permitted(self) -> bool:
        return self.grant is not None


def with_decisions(catalog: Catalog, user: str, streams: Iterable[str] | None = None) -> Catalog:
    """The catalog with what its policies allow the user on these streams (all, where none are named).

    What was put in before is not put in again; without policies the catalog itself comes back.
    """
    if not catalog.policies or not _is_active(catalog, user):
        return catalog
    named = catalog.streams if streams is None else dict.fromkeys(streams)
    wanted = [each for each in named if each in catalog.streams and (user, each) not in catalog.decided]
    if not wanted:
        return catalog
    found = [decide_stream(catalog, user, each) for each in wanted]
    return catalog.with_decided(user, wanted, [each.grant for each in found if each.grant is not None])


def decide_stream(catalog: Catalog, user: str, stream: str, at: int | None = None) -> Decided:
    """What the policies say at a moment (in microseconds), which is the catalog's where none is given."""
    known = catalog.streams[stream]
    person = catalog.users.get(user)
    if person is None or person.disabled:
        return Decided(user, stream, None, Decision.NOT_APPLICABLE, "the user is not known, or disabled")
    if stream in catalog.undecided:
        return Decided(user, stream, None, Decision.NOT_APPLICABLE, "sharing of the stream is paused")
    moment = catalog.judged_at if at is None else at
    late = catalog.late.get(stream, frozenset())
    key = (user, catalog.roles_of(user), person.inactive, _profile(person), known, late)
    found = catalog.policies.recall(key) or catalog.policies.recall((key, moment))
    if isinstance(found, Decided):
        return found
    made = _decide(catalog, person, known, moment)
    if at is None or not made.read_clock:
        # a look at the clock is at a moment of its own: kept, each would drive out what is asked for again
        catalog.policies.remember((key, moment) if made.read_clock else key, made)
    return made


def _is_active(catalog: Catalog, user: str) -> bool:
    known = catalog.users.get(user)
    return known is not None and not known.disabled


def _decide(catalog: Catalog, user: User, stream: Stream, moment: int | None) -> Decided:
    """Roles that a session has not activated permit nothing, and still deny and oblige (R14): both ways have to permit."""
    try:
        root = catalog.policies.root
    except LinkError as error:
        status = Status(StatusCode.PROCESSING_ERROR, error.message)
        decision = Decision.INDETERMINATE_DP
        return Decided(user.name, stream.name, None, decision, error.message, status=status)
    held = sorted(catalog.roles_of(user.name))
    clock = None if moment is None else moment_at(moment)
    asked = [held] if not user.inactive else [held, sorted({*held, *user.inactive})]
    results = [decide(root, make_request(user, roles, stream.name), clock) for roles in asked]
    made = _conclude(user.name, stream, results, catalog.late.get(stream.name, frozenset()))
    if clock is None and made.read_clock and made.grant is not None:
        # a rule that denies after hours denies nothing where it finds no time (R7)
        told = "a policy reads the clock, and there is none"
        status = Status(StatusCode.PROCESSING_ERROR, told)
        return replace(
            made, grant=None, decision=Decision.INDETERMINATE_DP, reason=told, obligations=(), status=status
        )
    return made


def _conclude(user: str, stream: Stream, results: list[Result], late: frozenset[str]) -> Decided:
    policies = tuple(dict.fromkeys(each.policy_id for result in results for each in result.policies))
    obligations = tuple(dict.fromkeys(each for result in results for each in result.obligations))
    clock = any(each.read_clock for each in results)
    refused = next((each for each in results if each.decision is not Decision.PERMIT), None)
    if refused is not None:
        reason = refused.status.message or f"the policies say {refused.decision.standard}"
        status = refused.status
        return Decided(user, stream.name, None, refused.decision, reason, policies, (), clock, status)
    made = fulfil(obligations, stream, user, late)
    if isinstance(made, Refusal):
        return Decided(user, stream.name, None, Decision.PERMIT, made.reason, policies, obligations, clock)
    return Decided(user, stream.name, made, Decision.PERMIT, "permitted", policies, obligations, clock)


def make_request(user: User, roles: Iterable[str], stream: str) -> Request:
    """What the policies are asked. Values are marked as not written in any policy: see `obligations`."""
    about = [_text(SUBJECT_ID, user.name)]
    named = [make_value(DataType.STRING, role) for role in roles]
    if named:
        about.append(Attribute(ROLE_ID, tuple(named)))
    for name, literal in _profile(user):
        value = _convert(literal)
        if value is not None:
            about += [Attribute(PROFILE + name, (value,)), *_name_plainly(name, value)]
    return Request(
        (
            Category(SUBJECT, tuple(about)),
            Category(RESOURCE, (_text(RESOURCE_ID, stream),)),
            Category(ACTION, (_text(ACTION_ID, READ),)),
        ),
        return_policy_ids=True,
    )


def _text(attribute_id: str, text: str) -> Attribute:
    return Attribute(attribute_id, (make_value(DataType.STRING, text),))


def _name_plainly(name: str, value: Value) -> list[Attribute]:
    """A profile attribute by its bare name too; never one that could pass for an id of the standard, or another's."""
    return [] if ":" in name else [Attribute(name, (value,))]


def _profile(user: User) -> tuple[tuple[str, Literal], ...]:
    """Without what follows a stream: that moves with the data, and no decision could keep up with it."""
    moving = set(user.follow.attributes) if user.follow is not None else set()
    return tuple((name, value) for name, value in user.profile if name not in moving)


def _convert(literal: Literal) -> Value | None:
    """NULL and what XACML has no type for is missing."""
    kind = _KINDS.get(literal.of.kind)
    if kind is None or literal.value is None:
        return None
    if kind is DataType.DATE_TIME:
        return make_value(kind, moment_at(int(str(literal.value))))
    return make_value(kind, literal.value)
