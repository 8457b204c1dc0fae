"""Decisions and notices (R9): what is withheld, told from query, grants, profile and public facts alone.

EMPTY: the query contradicts itself. NR: grants apply, but nothing asked for can come back. PR: something asked for is or
may be withheld, with a witness where one exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from sluicegate.expr.nodes import Literal
from sluicegate.graph.operators import Shield, walk
from sluicegate.policy.model import Stream
from sluicegate.policy.stated import mask_stated
from sluicegate.policy.verdict import judge as judge_masks
from sluicegate.policy.who import read_who
from sluicegate.rewrite.allowed import Allowed
from sluicegate.rewrite.asked import contradicts, denied_streams
from sluicegate.rewrite.blocks import SourceLeaf, all_blocks, leaves
from sluicegate.rewrite.manner import OnPartial
from sluicegate.rewrite.notice import NOTICE_CODES, Notice
from sluicegate.rewrite.pipeline import Draft
from sluicegate.rewrite.withheld import Withheld

__all__ = ["NOTICE_CODES", "Decision", "Judgement", "Notice", "judge"]


class Decision(Enum):
    PERMIT = "permit"
    PARTIAL = "partial"
    EMPTY = "empty"
    DENY = "deny"


@dataclass(frozen=True)
class Judgement:
    decision: Decision
    notices: tuple[Notice, ...]


def judge(draft: Draft, on_partial: OnPartial = OnPartial.GIVE) -> Judgement:
    """The decision on a rewritten request, with its notices."""
    found = _judge(draft)
    if found.decision is not Decision.PARTIAL or on_partial is OnPartial.GIVE:
        return found
    message = "only a part of what the query asks for may be given, and parts are not given here"
    return Judgement(Decision.DENY, (Notice("DENY", "partial", message), *found.notices))


def _judge(draft: Draft) -> Judgement:
    block, allowed = draft.ready, Allowed(draft)
    denied = sorted(set(denied_streams(block.tree, draft.candidates)))
    if denied:
        listed = ", ".join(f"`{name}`" for name in denied)
        message = f"no grant lets `{draft.binder.user.name}` see {listed} in this way"
        return Judgement(Decision.DENY, (Notice("DENY", "deny", message),))
    if contradicts(allowed.wanted(block)):
        message = "the query contradicts itself: no tuple can satisfy it"
        return Judgement(Decision.EMPTY, (Notice("EMPTY", "rows", message),))
    told = allowed.told_items(block)
    if draft.plan is None or contradicts(allowed.seen(block, told)):
        message = "grants apply, but nothing of what the query asks for can come back"
        return Judgement(Decision.EMPTY, (Notice("NR", "rows", message),))
    found = _once(chain(Withheld(draft).of(block, told=told), _punctuated(draft)))
    return Judgement(Decision.PARTIAL if found else Decision.PERMIT, found)


def _punctuated(draft: Draft) -> Iterator[Notice]:
    """Policies that come with the data may withhold any tuple (R13), and decisions never depend on data."""
    for inner in all_blocks(draft.ready):
        for leaf in leaves(inner.tree):
            stream = (
                draft.binder.catalog.streams.get(leaf.source.stream) if isinstance(leaf, SourceLeaf) else None
            )
            if stream is not None and stream.stated:
                yield from _stated(draft, stream, leaf.alias)
            elif stream is not None and stream.carries_policies:
                message = (
                    f"tuples of `{stream.name}` are released only under the policies that come with them"
                )
                yield Notice("PR", "rows", message)


def _stated(draft: Draft, stream: Stream, alias: str) -> Iterator[Notice]:
    """What an ON RESULT states is known beforehand: hidden attributes are told as a grant's are, here are its roles."""
    shields = (node for node in walk(draft.plan.root) if isinstance(node, Shield)) if draft.plan else ()
    for each in shields:
        if each.input.alias == alias and isinstance(each.who, Literal):
            masks = mask_stated(stream, read_who(str(each.who.value)))
            if not judge_masks(masks, each.needed, each.told).mask:
                message = f"no role alone may see all that the query needs of `{stream.name}`"
                yield Notice("PR", "rows", message)


def _once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Without repetitions: several populations may hide the same thing."""
    seen: dict[tuple[str, str, str], Notice] = {}
    for notice in notices:
        seen.setdefault((notice.code, notice.kind, notice.message), notice)
    return tuple(seen.values())
