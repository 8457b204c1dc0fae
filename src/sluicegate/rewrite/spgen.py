"""SPGen, the root of a query with an ON RESULT (R15): what its maker may pass on, and the policies that it states for it.

    CREATE STREAM Consult AS SELECT … FROM HeartRate ON RESULT (INSERT SP … SRP = frbac:Cardiologist …)

The maker's shields ask for the grant option, so that other tuples do not come up; what is stated is the same for all
tuples, so that a reader's shield above the result is made of constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import FALSE, TRUE, Column, Compare, Literal, Op
from sluicegate.expr.types import BIGINT
from sluicegate.graph.operators import Item, Node, Project, Select, Shield
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.governed import provider_grant
from sluicegate.policy.model import Grant, Privilege, Stream
from sluicegate.policy.stated import list_stated, mask_stated
from sluicegate.policy.verdict import judge
from sluicegate.policy.who import read_who

NO_OPTION = "it has no grant option, and ON RESULT passes on what it shows (R15)"


def close_undelegated(catalog: Catalog, user: str) -> Catalog:
    """Only grants that may be passed on count, and those on streams that are the user's own (R19)."""
    closed = {
        grant.name: replace(grant, closed=NO_OPTION)
        for grant in catalog.grants_to(user)
        if grant.closed is None and not _may_pass_on(catalog, user, grant)
    }
    return replace(catalog, grants={**catalog.grants, **closed}) if closed else catalog


def _may_pass_on(catalog: Catalog, user: str, grant: Grant) -> bool:
    if grant.privilege is Privilege.APPEND or grant.grant_option:
        return True
    return all(catalog.streams[name].owner == user for name in grant.stream_names)


def seat_stated(
    catalog: Catalog, user: str, streams: Sequence[Stream], ended: Mapping[str, str], delegating: bool
) -> Catalog:
    """What an ON RESULT states as a grant to the user: on the attributes that it allows, and none where it allows none.

    Which one role may see together is for the shield to say. Grants on such a result decide nothing (R14).
    """
    named = {each.name for each in streams}
    kept = {name: each for name, each in catalog.grants.items() if named.isdisjoint(each.stream_names)}
    for stream in streams:
        shown = list_stated(catalog, stream, user, option=delegating)
        if stream.governed_by_provider and shown:
            full = provider_grant(stream, user)
            attributes = tuple(each for each in full.attributes if each.name in shown)
            kept[full.name] = replace(full, attributes=attributes, closed=ended.get(stream.name))
    known = {each.name: replace(each, governed_by_provider=False) for each in streams}
    return replace(catalog, grants=kept, streams={**catalog.streams, **known})


def put_policy(graph: Node, shield: Shield, stream: Stream) -> Node:
    """The rows of a result as a reader's shield passes them: the flags and roles are those of what is stated."""
    if not stream.stated or not isinstance(shield.who, Literal):
        raise InvariantError(f"`{stream.name}` states no policies, and the plan has a shield for it")
    masks = mask_stated(stream, read_who(str(shield.who.value)))
    verdict = judge(masks, shield.needed, shield.told)
    own = len(shield.input.fields)
    items = [Item(each, each.column) for each in shield.fields[:own]]
    for name, flag in zip(shield.told, shield.fields[own:-1], strict=True):
        items.append(Item(flag, FALSE if not verdict.mask or name in verdict.hidden else TRUE))
    roles = shield.fields[-1]
    items.append(Item(roles, Literal(verdict.mask, BIGINT)))
    made = Project(graph, tuple(items))
    return Select(made, Compare(Op.NE, Column(roles.qualifier, roles.name, roles.type), Literal(0, BIGINT)))
