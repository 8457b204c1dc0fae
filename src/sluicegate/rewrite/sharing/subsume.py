"""Find an operator that gives all rows of another and more: what is left to do is a filter (R17).

σ(k > 3 AND g = 'a')(S)            over   σ(k > 3)(S)       is   σ(g = 'a')
σ(k > 3)(A) ⋈ B                    over   A ⋈ B             is   σ(k > 3)

Proven by the solver, within a bound; what it cannot prove is not shared. Only filters are taken apart, and only directly above
what both stand on: below an aggregate, a tuple window, FIRST or LAST the rows of two principals are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sluicegate.expr.nodes import Expr, columns, conjoin, conjuncts
from sluicegate.expr.solve import implies
from sluicegate.graph.operators import Join, Node, Select, walk
from sluicegate.rewrite.sharing.filters import counts_side, split_filters
from sluicegate.rewrite.sharing.idents import Idents
from sluicegate.rewrite.sharing.terms import write_key

MOST_LOOKED_AT = 24
"""Candidates for one operator; beyond, sharing is missed, never wrong."""
MOST_PARTS = 12
"""Conjuncts that the solver is asked about; of longer filters only what is written alike is found."""
TIMEOUT_MS = 100

Parts: TypeAlias = Mapping[str, Expr]
"""The conjuncts of a filter by their text."""


@dataclass(frozen=True, slots=True)
class Weaker:
    """An operator with more rows, and the filter that takes the wanted ones out of them; none where they are the same."""

    node: Node
    residual: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Filtered:
    """A node as a filter above what others may stand on too."""

    name: str
    node: Node
    family: str
    parts: Parts


class Pool:
    """The filtered operators that a new one may stand on, by what they filter."""

    def __init__(self, idents: Idents) -> None:
        self._idents = idents
        self._known: dict[str, dict[str, _Filtered]] = {}
        self._implied: dict[tuple[str, str], bool] = {}

    def add_operator(self, node: Node) -> None:
        """What an operator of the network means."""
        found = self._split(node)
        if found is not None:
            self._known.setdefault(found.family, {})[found.name] = found

    def add_graphs(self, roots: Sequence[Node]) -> None:
        """The filters and joins that canonical graphs will need: not those below a join that stands on a weaker one."""
        for root in roots:
            for node in walk(root):
                if isinstance(node, Join):
                    self.add_operator(node)
        seen: set[str] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if self._idents.digest(node) in seen:
                continue
            seen.add(self._idents.digest(node))
            if not isinstance(node, Join) or self.find_weaker(node) is None:
                self.add_operator(node)
                stack.extend(node.inputs)

    def find_weaker(self, node: Node) -> Weaker | None:
        """The strongest of the known operators that are weaker than this one; of equal ones the first by name."""
        own = self._split(node)
        if own is None:
            return None
        found = [each for each in self._list_candidates(own) if self._is_weaker(each, own)]
        if not found:
            return None
        best = max(found, key=lambda each: (sum(self._implies(each, other) for other in found), each.name))
        left = {key: part for key, part in own.parts.items() if not self._holds(best.parts, {key: part})}
        # taken one by one the parts that are left may say less than the filter does as a whole
        whole = self._holds({**best.parts, **left}, own.parts)
        return Weaker(best.node, tuple((left if whole else own.parts).values()))

    def _list_candidates(self, own: _Filtered) -> list[_Filtered]:
        """A bounded number; those whose every part is written in this one's come first."""
        others = [each for each in self._known.get(own.family, {}).values() if each.name != own.name]
        others.sort(key=lambda each: (not each.parts.keys() <= own.parts.keys(), each.name))
        return others[:MOST_LOOKED_AT]

    def _is_weaker(self, other: _Filtered, own: _Filtered) -> bool:
        return self._implies(own, other) and (not self._implies(other, own) or other.name < own.name)

    def _split(self, node: Node) -> _Filtered | None:
        match node:
            case Select(input=inner, predicate=predicate):
                family, parts = "select " + self._idents.digest(inner), conjuncts(predicate)
            case Join() if not counts_side(node):
                core, parts = split_filters(node)
                family = "join " + self._idents.digest(core)
            case _:
                return None
        return _Filtered(self._idents.digest(node), node, family, {write_key(each): each for each in parts})

    def _implies(self, strong: _Filtered, weak: _Filtered) -> bool:
        key = (strong.name, weak.name)
        if key not in self._implied:
            self._implied[key] = self._holds(strong.parts, weak.parts)
        return self._implied[key]

    def _holds(self, strong: Parts, weak: Parts) -> bool:
        """Whether wherever all strong parts are true the weak ones are."""
        open_ = [part for key, part in weak.items() if key not in strong]
        if not open_:
            return True
        used = {column for part in strong.values() for column in columns(part)}
        if len(strong) > MOST_PARTS or any(not columns(part) <= used for part in open_):
            return False
        return implies(conjoin(*strong.values()), conjoin(*open_), TIMEOUT_MS)
