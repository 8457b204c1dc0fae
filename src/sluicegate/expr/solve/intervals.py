"""The fast way: predicates as few boxes, each a set of values per variable; exact for comparisons with constants.

A box also carries the atoms that are not looked into. A box without them, over columns and unknowns alone, is exact: each of
its points is a row. Others say more than may be true, which suffices to prove implications and contradictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.like import read_pattern
from sluicegate.expr.nodes import (
    And,
    Call,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Op,
    Or,
    SelfRef,
    Value,
    conjuncts,
    walk,
)
from sluicegate.expr.solve.domains import (
    DOMAINS,
    NOTHING,
    ONLY_NULL,
    TOP,
    ValueSet,
    complement,
    contains,
    intersect,
    unite,
)
from sluicegate.expr.solve.terms import Term, as_double, read_term
from sluicegate.expr.types import BOOLEAN, Kind, Type, element_type
from sluicegate.expr.values import conform

MOST_BOXES: Final = 24
_NUMBERS = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE})
BASE = Column | SelfRef | FactRef
"""What a predicate is about: columns, and the unknowns of a policy."""


@dataclass(frozen=True, slots=True)
class Box:
    """Values allowed for each variable (all, where none are given), and opaque atoms with the truth they must have."""

    sets: Mapping[Expr, ValueSet]
    opaque: frozenset[tuple[Expr, bool]] = frozenset()

    @property
    def exact(self) -> bool:
        return not self.opaque and all(isinstance(variable, BASE) for variable in self.sets)


Boxes: TypeAlias = tuple[Box, ...]
_ALL: Final[Boxes] = (Box({}),)


class TooManyBoxesError(Exception):
    """The predicate is not for this method."""


def read_boxes(expr: Expr, truth: bool = True) -> Boxes:
    """Boxes that together hold every row on which the predicate is TRUE (or FALSE)."""
    match expr:
        case And(args) if truth:
            return _product([read_boxes(arg, True) for arg in args])
        case Or(args) if not truth:
            return _product([read_boxes(arg, False) for arg in args])
        case And(args) | Or(args):
            return _union(read_boxes(arg, truth) for arg in args)
        case Not(arg):
            return read_boxes(arg, not truth)
        case Literal(value):
            return _ALL if value is truth else ()
        case _:
            return _read_atom(expr, truth)


def _product(factors: list[Boxes]) -> Boxes:
    result = _ALL
    for factor in factors:
        result = tuple(box for left in result for right in factor if (box := _meet(left, right)) is not None)
        if len(result) > MOST_BOXES:
            raise TooManyBoxesError
    return result


def _union(parts: Iterable[Boxes]) -> Boxes:
    """All boxes, those over one and the same variable as one."""
    result: list[Box] = []
    single: dict[Expr, list[ValueSet]] = {}
    for box in (box for part in parts for box in part):
        if len(box.sets) == 1 and not box.opaque:
            ((variable, values),) = box.sets.items()
            single.setdefault(variable, []).append(values)
        else:
            result.append(box)
    result += [Box({variable: unite(sets)}) for variable, sets in single.items()]
    if len(result) > MOST_BOXES:
        raise TooManyBoxesError
    return tuple(result)


def _meet(left: Box, right: Box) -> Box | None:
    sets = dict(left.sets)
    for variable, values in right.sets.items():
        known = sets.get(variable)
        both = values if known is None else intersect(known, values)
        if both.empty:
            return None
        sets[variable] = both
    opaque = left.opaque | right.opaque if right.opaque else left.opaque
    if any((atom, not truth) in opaque for atom, truth in right.opaque):
        return None
    return Box(sets, opaque)


def _read_atom(expr: Expr, truth: bool) -> Boxes:
    found = read_test(expr, truth)
    if found is None:
        return (Box({}, frozenset({(expr, truth)})),)
    variable, values = found
    if values.empty:
        return ()
    return _ALL if variable is None else (Box({variable: values}),)


_ANYTHING = ONLY_NULL
"""For constants, which have no variable: any set that is not empty."""


def read_test(expr: Expr, truth: bool) -> tuple[Expr | None, ValueSet] | None:
    """The variable of an atom and the values that give it that truth; None for an atom that is not looked into."""
    match expr:
        case Compare(op, left, Literal(value) as right):
            return _read_compare(op, left, right, truth)
        case Compare(op, Literal() as left, right):
            return _read_compare(op.flipped, right, left, truth)
        case In(arg, items):
            return _read_in(arg, items, truth)
        case Call("is_member", (arg, Literal(value, of))):
            return _read_member(arg, value, element_type(of), truth)
        case IsNull(Literal(value)):
            return None, _ANYTHING if (value is None) is truth else NOTHING
        case IsNull(arg) if arg.type != BOOLEAN or isinstance(arg, BASE):
            term = read_term(arg)
            if term is None:
                return None
            nulls = term.nulls()
            return term.variable, nulls if truth else complement(nulls, term.domain)
        case Like(arg, pattern):
            return _read_like(arg, pattern, truth)
        case Column() | SelfRef() | FactRef() if expr.type == BOOLEAN:
            return expr, DOMAINS[Kind.BOOLEAN].satisfying(Op.EQ, int(truth))
        case _:
            return None


def _read_compare(op: Op, left: Expr, right: Literal, truth: bool) -> tuple[Expr | None, ValueSet] | None:
    if isinstance(left, Literal):
        return None, _ANYTHING if evaluate(Compare(op, left, right), {}) is truth else NOTHING
    if conform(right.value, right.of) is None:
        return None, NOTHING
    found = _compare_term(left, right)
    if found is None:
        return None
    term, value = found
    return term.variable, term.preimage(term.result.satisfying(op if truth else op.negated, value))


def _compare_term(expr: Expr, literal: Literal) -> tuple[Term, Value] | None:
    """The term, and the constant in the order in which the two are compared."""
    term, value = read_term(expr), conform(literal.value, literal.of)
    if term is None or (isinstance(expr, And | Or | Not | Compare | In | Like | IsNull)):
        return None
    kinds = {term.result.kind, literal.of.kind}
    if kinds <= _NUMBERS and isinstance(value, int | float):
        if Kind.DOUBLE in kinds:
            return as_double(term), float(value)
        return term, value
    if len(kinds) > 1:
        return None
    return term, int(value) if isinstance(value, bool) else value


def _read_in(arg: Expr, items: tuple[Expr, ...], truth: bool) -> tuple[Expr | None, ValueSet] | None:
    """IN is true where one item is equal, false where all differ (so never with a NULL item)."""
    if not items or not all(isinstance(item, Literal) for item in items):
        return None
    found = [read_test(Compare(Op.EQ, arg, item), True) for item in items]
    tests = [test for test in found if test is not None]
    if len(tests) < len(found):
        return None
    variable = next((variable for variable, _ in tests if variable is not None), None)
    equal = unite(values for _, values in tests)
    if truth:
        return variable, equal
    if any(evaluate(item, {}) is None for item in items):
        return None, NOTHING
    if isinstance(arg, Literal):
        return None, _ANYTHING if evaluate(In(arg, items), {}) is False else NOTHING
    term = read_term(arg)
    return None if term is None else (variable, _without(term, equal))


def _without(term: Term, values: ValueSet) -> ValueSet:
    """Where the term is not NULL, less these values of its variable."""
    return intersect(complement(values, term.domain), term.preimage(term.result.values))


def _read_member(arg: Expr, members: Value, of: Type, truth: bool) -> tuple[Expr | None, ValueSet] | None:
    if not isinstance(members, frozenset):
        return None, NOTHING
    if members:
        return _read_in(arg, tuple(Literal(member, of) for member in members), truth)
    term = read_term(arg)
    return None if term is None else (term.variable, NOTHING if truth else term.preimage(term.result.values))


def _read_like(arg: Expr, pattern: str, truth: bool) -> tuple[Expr | None, ValueSet] | None:
    """A pattern without wildcards, or a prefix before one `%`, is a span of strings."""
    first, *others = read_pattern(pattern)
    term = read_term(arg)
    if term is None or term.steps or None in first or (others and others != [()]):
        return None
    text = "".join(char or "" for char in first)
    span = (text, _after_prefix(text)) if others else (text, text + "\0")
    values = ValueSet(False, (span,))
    return term.variable, values if truth else intersect(complement(values, term.domain), term.domain.values)


def _after_prefix(prefix: str) -> object:
    """The first string after all that begin so."""
    while prefix and prefix[-1] == "\U0010ffff":
        prefix = prefix[:-1]
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else TOP


_cache: dict[int, tuple[Expr, Boxes | None]] = {}
_CACHE_SIZE: Final = 4096


def boxes_of(expr: Expr) -> Boxes | None:
    """`read_boxes` by the object's identity, since hashing a tree costs more than reading it; None when there are too many."""
    known = _cache.get(id(expr))
    if known is not None and known[0] is expr:
        return known[1]
    try:
        boxes = read_boxes(expr)
    except TooManyBoxesError:
        boxes = None
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    # the entry holds the expression, so its identity is not given away while it is here
    _cache[id(expr)] = (expr, boxes)
    return boxes


def decide_implies(p: Expr, q: Expr) -> bool | None:
    """Whether p implies q; None where this method cannot tell."""
    if p is q or p == q:
        return True
    given = boxes_of(p)
    if given is None:
        return True if set(conjuncts(q)) <= set(conjuncts(p)) else None
    answer: bool | None = True
    for part in conjuncts(q):
        decided = _decide_part(given, part)
        if decided is False:
            return False
        answer = answer if decided else None
    return answer


def _decide_part(given: Boxes, part: Expr) -> bool | None:
    wanted = boxes_of(part)
    if wanted is None:
        return None
    answer: bool | None = True
    for box in given:
        left = _outside(box, wanted)
        if left is None or (left and not _conclusive(box, wanted)):
            answer = None
        elif left:
            return False
    return answer


def _conclusive(box: Box, wanted: Boxes) -> bool:
    """Whether what is left outside proves that there is no implication (or that looking closer cannot prove one)."""
    return all(other.exact for other in wanted) and (box.exact or _is_loose(box, wanted))


def _is_loose(box: Box, wanted: Boxes) -> bool:
    """Whether what the box does not look into are calls over variables that occur nowhere else: nobody could tell more."""
    inexact = [variable for variable in box.sets if not isinstance(variable, BASE)]
    if box.opaque or not all(isinstance(variable, Call) for variable in inexact):
        return False
    seen: set[Expr] = {variable for variable in box.sets if isinstance(variable, BASE)}
    seen |= {variable for other in wanted for variable in other.sets}
    for variable in inexact:
        inside = {node for node in walk(variable) if isinstance(node, BASE)}
        if inside & seen:
            return False
        seen |= inside
    return True


def _outside(box: Box, wanted: Boxes) -> list[Box] | None:
    """What of the box none of the wanted boxes holds; None when the pieces are too many."""
    left = [box]
    for other in wanted:
        if other.opaque <= box.opaque:
            left = [piece for whole in left for piece in _subtract(whole, other)]
        if len(left) > MOST_BOXES:
            return None
    return left


def _subtract(whole: Box, other: Box) -> list[Box]:
    pieces, sets = [], dict(whole.sets)
    for variable, values in other.sets.items():
        domain = DOMAINS[variable.type.kind]
        known = sets.get(variable, domain.full)
        if contains(values, known):
            continue
        pieces.append(Box({**sets, variable: intersect(known, complement(values, domain))}, whole.opaque))
        sets[variable] = intersect(known, values)
        if sets[variable].empty:
            return [whole]
    return pieces


def decide_satisfiable(expr: Expr) -> tuple[bool | None, Box | None]:
    """Whether some row makes the predicate TRUE, with an exact box if so; None where this method cannot tell."""
    boxes = boxes_of(expr)
    if boxes is None:
        return None, None
    if not boxes:
        return False, None
    exact = next((box for box in boxes if box.exact), None)
    return (True, exact) if exact is not None else (None, None)
