"""Expressions: tokens to unresolved nodes by precedence climbing (docs/design/parsing.md says why not by sqlglot).

What is not listed here is refused with its place. Depth is bounded before any recursive pass sees the tree.
"""

from __future__ import annotations

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Case,
    Cast,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Op,
    Or,
)
from sluicegate.expr.types import UNKNOWN
from sluicegate.language.lexing import MAX_NESTING, NAME, OP, QUOTED, STRING, Cursor, Token
from sluicegate.language.literals import at_literal, read_literal, read_set, read_type
from sluicegate.language.resolve_expression import resolve_expression
from sluicegate.language.scope import Scope
from sluicegate.language.syntax import Between, FuncCall, Lit, Member, Name, Negate, span_of
from sluicegate.source import SourceText

__all__ = ["RESERVED", "parse_expression", "read_expression", "resolve_expression"]

_RESERVED_WORDS = """
    ALL AND AS BETWEEN CASE CAST CROSS DISTINCT ELSE EXCEPT EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTERSECT
    IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL ON OR ORDER OUTER OVER RIGHT SELECT THEN TRUE UNION USING WHEN WHERE WITH
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
"""Words that are never a bare name in an expression; quoted they are names like any other."""

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY = range(1, 8)
_COMPARISONS = {op.value: op for op in Op} | {"!=": Op.NE}
_ARITHMETIC = {
    "+": (_SUM, ArithOp.ADD),
    "-": (_SUM, ArithOp.SUB),
    "*": (_PRODUCT, ArithOp.MUL),
    "/": (_PRODUCT, ArithOp.DIV),
    "%": (_PRODUCT, ArithOp.MOD),
}
_PREDICATES = frozenset({"IS", "IN", "BETWEEN", "LIKE", "NOT"})
_INSTEAD = {
    "==": "write `=`",
    "<=>": "write `a = b OR (a IS NULL AND b IS NULL)`",
    "||": "texts cannot be joined",
    "::": "write CAST(x AS type)",
    "RLIKE": "write LIKE with `%` and `_`",
    "REGEXP": "write LIKE with `%` and `_`",
    "ILIKE": "write LOWER(x) LIKE '…'",
    "DIV": "write CAST(a / b AS BIGINT)",
    "MOD": "write `a % b`",
}


def read_expression(source: SourceText, scope: Scope, start: int = 0, end: int | None = None) -> Expr:
    """Parse and resolve a text that is one expression and nothing else."""
    cursor = Cursor.over(source, start, end)
    expr = parse_expression(cursor)
    if not cursor.done:
        cursor.fail_unexpected("the end of the expression", help=_INSTEAD.get(cursor.current.key))
    return resolve_expression(expr, scope)


def parse_expression(cursor: Cursor) -> Expr:
    """The expression at the cursor, unresolved; the cursor is left at the first token that is not part of it."""
    expr = _parse(cursor, _OR)
    _check_height(cursor, expr)
    return expr


def _check_height(cursor: Cursor, root: Expr) -> None:
    """Chains like a + b + c … grow deep without brackets: what recursive passes cannot take is refused here."""
    level: list[Expr] = [root]
    for _ in range(MAX_NESTING):
        level = [child for node in level for child in node.children]
        if not level:
            return
    cursor.fail("too-deep", f"the expression is nested more than {MAX_NESTING} deep", span_of(root))


def _parse(cursor: Cursor, level: int) -> Expr:
    cursor.depth += 1
    if cursor.depth > 2 * MAX_NESTING:
        cursor.fail("too-deep", f"the expression is nested more than {MAX_NESTING} deep")
    try:
        return _parse_infix(cursor, _parse_prefix(cursor, level), level)
    finally:
        cursor.depth -= 1


def _parse_infix(cursor: Cursor, left: Expr, level: int) -> Expr:
    while True:
        key = cursor.current.key
        if key in _ARITHMETIC:
            bound, op = _ARITHMETIC[key]
            if bound < level:
                return left
            cursor.next()
            left = Arith(op, left, _parse(cursor, bound + 1))
        elif key == "AND" and level <= _AND:
            left = And(_parse_chain(cursor, left, "AND", _NOT))
        elif key == "OR" and level <= _OR:
            left = Or(_parse_chain(cursor, left, "OR", _AND))
        elif level <= _COMPARE and (key in _COMPARISONS or key in _PREDICATES):
            left = _parse_comparison(cursor, left, key)
        elif key in _INSTEAD:
            cursor.fail_unexpected("an operator", help=_INSTEAD[key])
        else:
            return left


def _parse_chain(cursor: Cursor, left: Expr, key: str, level: int) -> tuple[Expr, ...]:
    parts = [left]
    while cursor.accept(key):
        parts.append(_parse(cursor, level))
    return tuple(parts)


def _parse_comparison(cursor: Cursor, left: Expr, key: str) -> Expr:
    if key in _COMPARISONS:
        cursor.next()
        result: Expr = Compare(_COMPARISONS[key], left, _parse(cursor, _SUM))
    else:
        result = _parse_predicate(cursor, left)
    if cursor.current.key in _COMPARISONS or cursor.current.key in _PREDICATES:
        help_ = "write brackets around one, or join two comparisons with AND"
        cursor.fail("chained-comparison", "comparisons cannot be chained", cursor.span(cursor.current), help_)
    return result


def _parse_predicate(cursor: Cursor, left: Expr) -> Expr:
    if cursor.accept("IS"):
        negated = cursor.accept("NOT")
        if not cursor.accept("NULL"):
            cursor.fail_unexpected("`NULL`", help="of IS only IS NULL and IS NOT NULL are read")
        return Not(IsNull(left)) if negated else IsNull(left)
    negated = cursor.accept("NOT")
    if cursor.accept("IN"):
        result = _parse_in(cursor, left)
    elif cursor.accept("BETWEEN"):
        low = _parse(cursor, _SUM)
        cursor.expect("AND")
        result = Between(left, low, _parse(cursor, _SUM))
    elif cursor.accept("LIKE"):
        result = _parse_like(cursor, left)
    else:
        cursor.fail_unexpected("`IN`, `BETWEEN` or `LIKE`")
    return Not(result) if negated else result


def _parse_in(cursor: Cursor, left: Expr) -> Expr:
    if cursor.at("{"):
        return Member(left, read_set(cursor))
    if not cursor.at("("):
        return Member(left, _parse(cursor, _UNARY))
    cursor.next()
    _refuse_subquery(cursor)
    items = [_parse(cursor, _OR)]
    while cursor.accept(","):
        items.append(_parse(cursor, _OR))
    cursor.expect(")")
    return In(left, tuple(items))


def _parse_like(cursor: Cursor, left: Expr) -> Expr:
    if cursor.current.kind != STRING:
        cursor.fail_unexpected("a pattern in quotes", help="LIKE takes a literal: LIKE 'abc%'")
    pattern = cursor.next().text
    if cursor.at("ESCAPE"):
        cursor.fail_unexpected("the end of the pattern", help="a backslash is the escape character")
    return Like(left, pattern)


def _parse_prefix(cursor: Cursor, level: int) -> Expr:
    token = cursor.current
    if at_literal(cursor):
        return read_literal(cursor)
    if token.kind == QUOTED:
        return _parse_name(cursor)
    match token.key:
        case "NOT" if level <= _NOT:
            return _parse_not(cursor)
        case "-":
            cursor.next()
            return Negate(_parse(cursor, _UNARY))
        case "(":
            return _parse_brackets(cursor)
        case "{":
            return read_set(cursor)
        case "CASE":
            return _parse_case(cursor)
        case "CAST":
            return _parse_cast(cursor)
        case "EXISTS":
            cursor.fail("subquery", "EXISTS is not read", cursor.span(token), _SUBQUERY_HELP)
    if token.kind != NAME or token.key in RESERVED:
        cursor.fail_unexpected("an expression")
    return _parse_name(cursor)


_SUBQUERY_HELP = "write a join instead"


def _refuse_subquery(cursor: Cursor) -> None:
    if cursor.at("SELECT"):
        cursor.fail(
            "subquery",
            "a query cannot stand inside an expression",
            cursor.span(cursor.current),
            _SUBQUERY_HELP,
        )


def _parse_not(cursor: Cursor) -> Expr:
    cursor.next()
    return Not(_parse(cursor, _NOT))


def _parse_brackets(cursor: Cursor) -> Expr:
    cursor.next()
    _refuse_subquery(cursor)
    inner = _parse(cursor, _OR)
    if cursor.at(","):
        cursor.fail_unexpected("`)`", help="compare the attributes one by one, joined with AND")
    cursor.expect(")")
    return inner


def _parse_case(cursor: Cursor) -> Expr:
    cursor.next()
    if not cursor.at("WHEN"):
        cursor.fail_unexpected("`WHEN`", help="write CASE WHEN x = 1 THEN … instead of CASE x WHEN 1 THEN …")
    whens: list[tuple[Expr, Expr]] = []
    while cursor.accept("WHEN"):
        condition = _parse(cursor, _OR)
        cursor.expect("THEN")
        whens.append((condition, _parse(cursor, _OR)))
    otherwise: Expr = Lit(None, UNKNOWN)
    if cursor.accept("ELSE"):
        otherwise = _parse(cursor, _OR)
    cursor.expect("END")
    return Case(tuple(whens), otherwise)


def _parse_cast(cursor: Cursor) -> Expr:
    first = cursor.next()
    cursor.expect("(")
    arg = _parse(cursor, _OR)
    cursor.expect("AS")
    to = read_type(cursor)
    cursor.expect(")")
    # a NULL with a type is a literal, so that one prints as itself (I6)
    if isinstance(arg, Lit) and arg.value is None:
        return Lit(None, to, cursor.span_from(first))
    return Cast(arg, to)


def _parse_name(cursor: Cursor) -> Expr:
    first = cursor.next()
    if cursor.at("(") and first.kind == NAME:
        return _parse_call(cursor, first)
    if not cursor.accept("."):
        if first.key == "END":
            cursor.rewind(cursor.position - 1)
            cursor.fail_unexpected("an expression")
        return Name("", first.text, cursor.span(first))
    name = cursor.expect_name("an attribute")
    if cursor.at("."):
        cursor.fail_unexpected("the end of the name", help="a name has at most one qualifier")
    if cursor.at("(") and cursor.current.kind == OP:
        cursor.fail("user-function", "functions with a qualifier are not read", cursor.span(first, name))
    qualifier = "self" if first.key == "SELF" else first.text
    return Name(qualifier, name.text, cursor.span(first, name))


def _parse_call(cursor: Cursor, first: Token) -> Expr:
    cursor.expect("(")
    _refuse_subquery(cursor)
    distinct = star = False
    args: list[Expr] = []
    if cursor.accept("*"):
        star = True
    elif not cursor.at(")"):
        distinct = cursor.accept("DISTINCT") is not None
        args.append(_parse(cursor, _OR))
        while cursor.accept(","):
            args.append(_parse(cursor, _OR))
    cursor.expect(")")
    span = cursor.span_from(first)
    _refuse_call_suffix(cursor)
    return FuncCall(first.text, tuple(args), distinct, star, span)


def _refuse_call_suffix(cursor: Cursor) -> None:
    token = cursor.current
    if token.key == "OVER":
        help_ = "write a window in brackets after the stream: FROM s [RANGE 1 HOUR]"
        cursor.fail("window-function", "window functions are not read", cursor.span(token), help_)
    if token.key == "FILTER" and cursor.peek().key == "(":
        cursor.fail("filter", "FILTER is not read", cursor.span(token), "write the condition in WHERE")
    if cursor.at("WITHIN", "GROUP"):
        cursor.fail("syntax", "WITHIN GROUP is not read", cursor.span(token))
