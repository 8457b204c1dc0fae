"""Of whose tuples an aggregate grant tells: its predicate with all that it names put in, as digests (R8).

The same windows over two populations that differ by one member tell that member's values. So the ledger knows each release
by what its grant's predicate was, and by the value that each fact and each attribute of the profile had in it.

    WHERE SID IN fleet('acme')      bound: a digest of all, values: (fleet('acme'), a digest of the set)

A grant that was passed on has its maker's profile written out in it (R19). So the values of what it rests on are its own too:
who may pass on `id < self.level` and does so as `id < 2` is told of the same population as by that grant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sluicegate.expr.nodes import NULL, Expr, FactRef, Literal, SelfRef, walk
from sluicegate.expr.text import to_text
from sluicegate.graph.json_expr import expr_json
from sluicegate.policy.bind import Binder, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.delegation import parents
from sluicegate.policy.model import Grant


@dataclass(frozen=True, slots=True)
class Population:
    """`moves`: an attribute of the profile follows a stream, so that the same event time may be told of others later (D3)."""

    bound: str
    values: tuple[tuple[str, str], ...] = ()
    moves: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether only another grant would make it another."""
        return not self.values and not self.moves


def find_population(binder: Binder, grant: Grant, catalog: Catalog | None = None) -> Population:
    """Of one stream DURING is no part of it: a window that is given lies in it wholly, whatever its bounds are.

    `catalog` is the whole one, where the binder's is a session's or lacks grants: what a grant rests on is found in it.
    """
    exprs = _list_exprs(grant)
    bound = [binder.bind(each) for each in exprs]
    profile = _name_profile(exprs)
    follow = binder.user.follow
    moving = [] if follow is None else [name for name in profile if name in follow.attributes]
    values = dict(_find_values(binder, bound, [name for name in profile if name not in moving]))
    if moving and follow is not None:
        # whose tuples are followed, and how long they hold
        key = binder.user.attribute(follow.on) or NULL
        told = [follow.stream, follow.on, follow.within, sorted(follow.attributes), expr_json(key)]
        values |= {f"self.{name}": _digest(told) for name in moving}
    streams = [[ref.stream, ref.alias] for ref in grant.streams]
    digest = _digest([streams, list(map(expr_json, bound)), tuple(sorted(values.items()))])
    for name, value in _find_inherited(catalog or binder.catalog, binder.user.name, grant):
        # two of one name are like neither
        values[name] = value if values.get(name, value) == value else _digest([values[name], value])
    return Population(digest, tuple(sorted(values.items())), bool(moving))


def _list_exprs(grant: Grant) -> list[Expr]:
    if grant.during is None or len(grant.streams) == 1:
        return [grant.predicate]
    return [grant.predicate, grant.during.lower, grant.during.upper]


def _name_profile(exprs: list[Expr]) -> list[str]:
    return sorted({node.name for each in exprs for node in walk(each) if isinstance(node, SelfRef)})


def _find_inherited(catalog: Catalog, principal: str, grant: Grant) -> Iterator[tuple[str, str]]:
    """The values of all that the grant rests on, near and far, each with the profile of who passed it on."""
    todo, seen = [grant], {grant.name}
    while todo:
        made = todo.pop()
        author = catalog.users.get(made.grantor or "")
        if author is None:
            continue
        binder, prefix = Binder(catalog, author), "" if author.name == principal else f"{author.name}."
        for parent in (catalog.grants[name] for name in parents(catalog, made)):
            exprs = _list_exprs(parent)
            yield from _find_values(binder, list(map(binder.bind, exprs)), _name_profile(exprs), prefix)
            if parent.name not in seen:
                seen.add(parent.name)
                todo.append(parent)


def _find_values(
    binder: Binder, bound: list[Expr], profile: list[str], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    for name in profile:
        yield f"{prefix}self.{name}", _digest_value(binder.user.attribute(name) or NULL)
    for node in (node for each in bound for node in walk(each) if isinstance(node, FactRef)):
        args = fact_args(node)
        fact = None if args is None else binder.catalog.fact(node.name, args)
        yield to_text(node), _digest_value(NULL if fact is None else fact.value)


@lru_cache(maxsize=256)
def _digest_value(value: Literal) -> str:
    return _digest(expr_json(value))


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
