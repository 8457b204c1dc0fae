"""Names to columns, literals to typed values, and every operator checked against its operands' types.

A problem does not stop the reading: the part becomes NULL, which fits anywhere, and all problems are raised together.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.functions import FUNCTIONS, lookup
from sluicegate.expr.nodes import (
    NULL,
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
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
    arith_type,
)
from sluicegate.expr.types import (
    BOOLEAN,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
    common,
    comparable,
    element_type,
)
from sluicegate.expr.values import castable
from sluicegate.language.lexing import MAX_PROBLEMS
from sluicegate.language.scope import Scope, suggest
from sluicegate.language.syntax import Between, FuncCall, Lit, Member, Name, Negate, Resolved, span_of

AGGREGATES = frozenset({"MIN", "MAX", "COUNT", "AVG", "SUM", "FIRST", "LAST"})


def resolve_expression(expr: Expr, scope: Scope) -> Expr:
    """The expression with its names resolved and its types checked; raises everything that is wrong with it."""
    resolver = ExpressionResolver(scope)
    resolved = resolver.resolve(expr)
    if resolver.problems:
        raise DiagnosticError(resolver.problems)
    return resolved


class ExpressionResolver:
    """Resolves expressions of one scope and collects what is wrong with them."""

    def __init__(self, scope: Scope, problems: list[Diagnostic] | None = None) -> None:
        self.scope = scope
        self.problems: list[Diagnostic] = [] if problems is None else problems

    def resolve(self, expr: Expr) -> Expr:
        if len(self.problems) >= MAX_PROBLEMS:
            return NULL
        match expr:
            case Lit():
                return self._literal(expr)
            case Resolved(inner):
                return inner
            case Name():
                return self._resolve_name(expr)
            case FuncCall():
                return self._resolve_call(expr)
            case Compare(op, left, right):
                return self._compare(op, self.resolve(left), self.resolve(right), expr)
            case And(args):
                return And(tuple(self.resolve_condition(arg) for arg in args))
            case Or(args):
                return Or(tuple(self.resolve_condition(arg) for arg in args))
            case Not(arg):
                return Not(self.resolve_condition(arg))
            case IsNull(arg):
                return IsNull(self.resolve(arg))
            case Arith(op, left, right):
                return self._arith(op, self.resolve(left), self.resolve(right), expr)
            case Negate(arg):
                return self._negate(self.resolve(arg), expr)
            case _:
                return self._resolve_rest(expr)

    def _resolve_rest(self, expr: Expr) -> Expr:
        match expr:
            case In(arg, items):
                return self._in(self.resolve(arg), tuple(map(self.resolve, items)), expr)
            case Between():
                return self._between(expr)
            case Member(arg, among):
                return self._member(self.resolve(arg), among, expr)
            case Like(arg, pattern):
                return self._like(self.resolve(arg), pattern, expr)
            case Cast(arg, to):
                return self._cast(self.resolve(arg), to, expr)
            case Case():
                return self._case(expr)
            case _:
                raise TypeError(f"unknown expression {type(expr).__name__}")

    def resolve_condition(self, expr: Expr) -> Expr:
        """An expression that must be true or false."""
        resolved = self.resolve(expr)
        if resolved.type.kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
            self.report("not-a-condition", f"a condition is needed here, this is {_a(resolved.type)}", expr)
        return resolved

    def report(self, code: str, message: str, at: Expr, help: str | None = None) -> Expr:
        self.problems.append(Diagnostic(code, message, span_of(at), help))
        return NULL

    def _literal(self, lit: Lit) -> Expr:
        if lit.of.kind is Kind.SET and not self.scope.policy:
            return self.report("set-in-query", "a query has no sets", lit, "write `x IN (1, 2)`")
        return lit.literal

    def _resolve_name(self, name: Name) -> Expr:
        if name.qualifier == "self":
            if self.scope.policy:
                return SelfRef(name.name)
            return self.report(
                "self-in-query", "a query cannot name the profile of its user", name, "write the value"
            )
        found = self.scope.find(name)
        if isinstance(found, Diagnostic):
            self.problems.append(found)
            return NULL
        return found

    def _resolve_call(self, call: FuncCall) -> Expr:
        upper = call.name.upper()
        if upper in AGGREGATES:
            help_ = "in a query, write it in SELECT or HAVING"
            return self.report(
                "misplaced-aggregate", f"the aggregate `{call.name}` cannot stand here", call, help_
            )
        function = lookup(call.name)
        if function is None:
            return self._resolve_fact(call)
        if call.star or call.distinct:
            return self.report("type-mismatch", f"`{call.name}` takes plain arguments", call)
        args = tuple(map(self.resolve, call.args))
        for place, choices in function.choices.items():
            chosen = args[place] if place < len(args) else NULL
            if not isinstance(chosen, Literal) or chosen.value not in choices:
                wanted = ", ".join(f"'{choice}'" for choice in sorted(choices))
                at = call.args[place] if place < len(args) else call
                return self.report("bad-argument", f"`{call.name}` needs one of {wanted} here", at)
        result = function.result_type(tuple(arg.type for arg in args))
        if result is None:
            given = ", ".join(str(arg.type) for arg in args) or "nothing"
            return self.report("type-mismatch", f"`{call.name}` cannot be applied to ({given})", call)
        return Call(function.name, args, result)

    def _resolve_fact(self, call: FuncCall) -> Expr:
        if not self.scope.policy:
            help_ = (
                suggest(call.name.lower(), FUNCTIONS)
                or "user functions are not read; queries may not name facts"
            )
            return self.report("unknown-function", f"unknown function `{call.name[:60]}`", call, help_)
        if call.star or call.distinct:
            return self.report("bad-fact", f"the fact `{call.name}` takes plain arguments", call)
        args = tuple(self._resolve_fact_arg(arg) for arg in call.args)
        return FactRef(call.name, args, self.scope.fact_types.get(call.name, UNKNOWN))

    def _resolve_fact_arg(self, arg: Expr) -> Expr:
        if isinstance(arg, Lit) and isinstance(arg.value, bool | int | float | str):
            return arg.literal
        if isinstance(arg, Name) and arg.qualifier == "self":
            return SelfRef(arg.name)
        message = "an argument of a fact is a literal or an attribute of `self`"
        help_ = "functions that policies may use: " + ", ".join(sorted(FUNCTIONS))
        return self.report("bad-fact", message, arg, help_)

    def _compare(self, op: Op, left: Expr, right: Expr, at: Expr) -> Expr:
        left, right = _as_time_of_day(left, right), _as_time_of_day(right, left)
        if not comparable(left.type, right.type):
            self._report_incomparable(left.type, right.type, at)
        return Compare(op, left, right)

    def _report_incomparable(self, left: Type, right: Type, at: Expr) -> None:
        help_ = None
        if {left, right} == {TIMESTAMP, STRING}:
            help_ = "write a time as TIMESTAMP '2026-01-31 10:50:00'"
        elif STRING in (left, right) and (left.kind in _NUMBERS or right.kind in _NUMBERS):
            help_ = "write numbers without quotes and texts with them, or CAST one side"
        elif {left, right} == {TIMESTAMP, INTERVAL}:
            help_ = "a time minus a time is an interval"
        elif Kind.SET in (left.kind, right.kind):
            help_ = "write `x IN fact(…)`"
        self.report("type-mismatch", f"{_a(left)} cannot be compared with {_a(right)}", at, help_)

    def _in(self, arg: Expr, items: tuple[Expr, ...], at: Expr) -> Expr:
        if items and all(item.type == TIME for item in items):
            arg = _as_time_of_day(arg, items[0])
        for item in items:
            if not comparable(arg.type, item.type):
                self._report_incomparable(arg.type, item.type, at)
                break
        return In(arg, items)

    def _between(self, expr: Between) -> Expr:
        # the operand stands twice in what this means, so one inside another would double at each level
        if any(isinstance(node, Between) for node in _inside(expr.arg)):
            return self.report("nested-between", "a BETWEEN cannot stand to the left of a BETWEEN", expr)
        arg, low, high = self.resolve(expr.arg), self.resolve(expr.low), self.resolve(expr.high)
        first = self._compare(Op.GE, arg, low, expr)
        return And((first, self._compare(Op.LE, arg, high, expr)))

    def _member(self, arg: Expr, among: Expr, at: Expr) -> Expr:
        if not self.scope.policy:
            return self.report("set-in-query", "a query compares with a list", at, "write `x IN (1, 2)`")
        if not isinstance(among, Lit | FuncCall):
            return self.report("type-mismatch", "IN takes a list, a set or a fact", at, "write `x IN (…)`")
        group = self.resolve(among)
        if group.type.kind not in (Kind.SET, Kind.UNKNOWN):
            return self.report("type-mismatch", f"IN takes a set, this is {_a(group.type)}", among)
        if not comparable(arg.type, element_type(group.type)):
            self._report_incomparable(arg.type, element_type(group.type), at)
        return Call("is_member", (arg, group), BOOLEAN)

    def _like(self, arg: Expr, pattern: str, at: Expr) -> Expr:
        if arg.type.kind not in (Kind.STRING, Kind.UNKNOWN):
            self.report("type-mismatch", f"LIKE takes a STRING, this is {_a(arg.type)}", at)
        return Like(arg, pattern)

    def _arith(self, op: ArithOp, left: Expr, right: Expr, at: Expr) -> Expr:
        if arith_type(op, left.type, right.type) is None:
            message = f"`{op.value}` is not defined for {_a(left.type)} and {_a(right.type)}"
            help_ = (
                "write a duration as INTERVAL '5 minutes'" if TIMESTAMP in (left.type, right.type) else None
            )
            return self.report("type-mismatch", message, at, help_)
        return Arith(op, left, right)

    def _negate(self, arg: Expr, at: Expr) -> Expr:
        zero = Literal(0, INTERVAL if arg.type == INTERVAL else INT)
        if arith_type(ArithOp.SUB, zero.of, arg.type) is None:
            return self.report("type-mismatch", f"`-` is not defined for {_a(arg.type)}", at)
        return Arith(ArithOp.SUB, zero, arg)

    def _cast(self, arg: Expr, to: Type, at: Expr) -> Expr:
        if not castable(arg.type, to):
            return self.report("bad-cast", f"{_a(arg.type)} cannot be cast to {to}", at)
        return Cast(arg, to)

    def _case(self, expr: Case) -> Expr:
        whens = tuple((self.resolve_condition(when), self.resolve(then)) for when, then in expr.whens)
        otherwise = self.resolve(expr.otherwise)
        result = otherwise.type
        for _, then in whens:
            joined = common(result, then.type)
            if joined is None:
                return self.report("type-mismatch", "the results of CASE have no common type", expr)
            result = joined
        return Case(whens, otherwise)


_NUMBERS = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE})


def _as_time_of_day(expr: Expr, other: Expr) -> Expr:
    """A TIMESTAMP compared with a TIME means its time of day."""
    return Call("time_of_day", (expr,), TIME) if expr.type == TIMESTAMP and other.type == TIME else expr


def _a(of: Type) -> str:
    name = str(of)
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _inside(expr: Expr) -> Iterable[Expr]:
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)
