"""XACML requests to the gateway: who may ask what of its policies, and what they are told.

An administrator may ask anything, the owner of a stream anything about that stream. Everybody else may ask what it may
read itself: its roles and profile are the catalog's, the time is now, and of a stream that it may not know of it is told
the same as of one that is not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sluicegate.language.xacml.decisions import READ, decide_stream, make_request
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.xacml.context import OK, Attribute, Category, Decision, Request, Result, Status
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.link import LinkError
from sluicegate.policy.xacml.names import (
    ACTION,
    ACTION_ID,
    RESOURCE,
    RESOURCE_ID,
    SUBJECT,
    SUBJECT_ID,
    StatusCode,
)
from sluicegate.policy.xacml.temporal import moment_at
from sluicegate.service.decisions import known_streams
from sluicegate.service.identity.principal import Principal, seat
from sluicegate.service.refusals import refuse

_NOTHING = Result(Decision.NOT_APPLICABLE)
_PLAIN = {SUBJECT: SUBJECT_ID, RESOURCE: RESOURCE_ID, ACTION: ACTION_ID}
"""What a request about oneself has, and nothing else."""


def find_one(request: Request, category: str, attribute_id: str) -> str | None:
    """The only value of an attribute; None where there is none, or more."""
    found = [
        value.text.strip()
        for part in request.categories
        if part.name == category
        for attribute in part.attributes
        if attribute.attribute_id == attribute_id
        for value in attribute.values
    ]
    return found[0] if len(found) == 1 else None


def answer_request(catalog: Catalog, principal: Principal, asked: Request, now: int) -> Result:
    """The answer that this principal gets; raises where it may not ask this. `catalog` is the one in force."""
    if asked.fault is not None:
        return Result(Decision.INDETERMINATE_DP, asked.fault)
    if principal.is_admin or _is_about_own(catalog, principal, asked):
        return _answer_free(catalog, _complete(catalog, asked), now)
    _check_plain(principal, asked)
    return _answer_plain(catalog.judge_at(now), principal, asked)


def _answer_free(catalog: Catalog, asked: Request, now: int) -> Result:
    try:
        return decide(catalog.policies.root, asked, moment_at(now)) if catalog.policies else _NOTHING
    except LinkError as error:
        return Result(Decision.INDETERMINATE_DP, Status(StatusCode.PROCESSING_ERROR, error.message))


def _is_about_own(catalog: Catalog, principal: Principal, asked: Request) -> bool:
    """One stream of the caller's, and nothing else that a policy on another could take for its own."""
    parts = [part for part in asked.categories if part.name == RESOURCE]
    named = [each.attribute_id for part in parts for each in part.attributes]
    stream = catalog.streams.get(find_one(asked, RESOURCE, RESOURCE_ID) or "")
    bare = named == [RESOURCE_ID] and all(part.content is None for part in asked.categories)
    return bare and stream is not None and principal.owns(stream)


def _complete(catalog: Catalog, asked: Request) -> Request:
    """What the request does not say of a user whom the catalog knows, as the catalog has it."""
    user = catalog.users.get(find_one(asked, SUBJECT, SUBJECT_ID) or "")
    if user is None or user.disabled:
        return asked
    known = make_request(user, sorted(catalog.roles_of(user.name)), "").categories[0].attributes
    given = {
        each.attribute_id for part in asked.categories if part.name == SUBJECT for each in part.attributes
    }
    added = tuple(each for each in known if each.attribute_id not in given)
    return replace(asked, categories=tuple(_add(part, added) for part in asked.categories))


def _add(part: Category, added: Iterable[Attribute]) -> Category:
    return replace(part, attributes=(*part.attributes, *added)) if part.name == SUBJECT else part


def _check_plain(principal: Principal, asked: Request) -> None:
    """A user query in it is of no matter here: the caller is not asked for anything that policies could read."""
    named = {(part.name, each.attribute_id) for part in asked.categories for each in part.attributes}
    if not named <= set(_PLAIN.items()) or find_one(asked, SUBJECT, SUBJECT_ID) != principal.user:
        told = "about others, or with attributes of one's own, only administrators and the stream's owner may ask"
        raise refuse("xacml-others", told)


def _answer_plain(catalog: Catalog, principal: Principal, asked: Request) -> Result:
    stream, action = find_one(asked, RESOURCE, RESOURCE_ID), find_one(asked, ACTION, ACTION_ID)
    seated = seat(principal, catalog)
    known = known_streams(seated, principal.user).streams
    if stream is None or stream not in known or action != READ:
        return _NOTHING
    found = decide_stream(seated, principal.user, stream)
    if found.decision is Decision.PERMIT:
        return Result(found.decision, obligations=found.obligations)
    # the words of a status may be those of others' policies
    failed = found.decision.indeterminate
    return Result(found.decision, Status(StatusCode.PROCESSING_ERROR) if failed else OK)
