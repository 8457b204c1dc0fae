"""Expressions in Spark's SQL, every one total (I2): only `try_` functions, guards and the allow-list's renderings.

Spark may run a user's predicate on rows that a policy hides before the policy's own; none can fail there and tell.
What two engines of SQL say alike is inherited from the writer for the other one.
"""

from __future__ import annotations

from sluicegate.errors import InvariantError
from sluicegate.expr.functions import builtin
from sluicegate.expr.nodes import Arith, ArithOp, Call, Cast, Expr, Like, Literal, Parameter
from sluicegate.expr.types import TIMESTAMP, Kind, Type
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.targets.duckdb_expressions import ExpressionWriter, bind
from sluicegate.targets.spark_casts import write_cast
from sluicegate.targets.spark_like import write_like
from sluicegate.targets.spark_text import finite, keep_if, spark_type, write_literal, write_null

_OPERATORS = {
    ArithOp.ADD: "try_add",
    ArithOp.SUB: "try_subtract",
    ArithOp.MUL: "try_multiply",
    ArithOp.DIV: "try_divide",
    ArithOp.MOD: "try_mod",
}
_MOMENTS = f"{{}} BETWEEN {TIMESTAMP_MIN} AND {TIMESTAMP_MAX}"


class SparkWriter(ExpressionWriter):
    """Writes expressions over the columns that `reference` can name."""

    def write_as(self, expr: Expr, of: Type) -> str:
        bound = bind(expr, self.env)
        return write_null(of) if bound.type.kind is Kind.UNKNOWN else self._write(bound)

    def _write(self, expr: Expr) -> str:
        match expr:
            case Literal():
                return write_literal(expr)
            case Parameter(index):
                # only a plan over subscriptions has these columns; elsewhere the abilities refuse it first
                return f"i.p{index}"
            case Like(arg, pattern):
                return write_like(self._write(arg), pattern)
            case Cast(arg, to):
                return write_cast(self._write(arg), arg.type, to)
            case _:
                return super()._write(expr)

    def _branch(self, expr: Expr, of: Type) -> str:
        if of.kind is Kind.UNKNOWN:
            return "NULL"
        text = self._write(expr)
        return text if expr.type == of else f"CAST({text} AS {spark_type(of)})"

    def _call(self, expr: Call) -> str:
        function = builtin(expr.function)
        if function is None:
            raise InvariantError(f"unknown function `{expr.function}`")
        return function.render("spark", [self._write(arg) for arg in expr.args], expr.args)

    def _arith(self, expr: Arith) -> str:
        of = expr.type
        if Kind.UNKNOWN in (expr.left.type.kind, expr.right.type.kind, of.kind):
            return write_null(of)
        wanted = "DOUBLE" if of.kind is Kind.DOUBLE else "BIGINT"
        operands = ", ".join(self._operand(each, wanted) for each in (expr.left, expr.right))
        result = f"{_OPERATORS[expr.op]}({operands})"
        match of.kind:
            case Kind.DOUBLE:
                return finite(result)
            case Kind.TIMESTAMP:
                return f"timestamp_micros({keep_if(result, _MOMENTS)})"
            case Kind.BIGINT | Kind.INTERVAL:
                return result
            case _:
                raise TypeError(f"unknown arithmetic of {of}")

    def _operand(self, expr: Expr, wanted: str) -> str:
        text = self._write(expr)
        return f"unix_micros({text})" if expr.type == TIMESTAMP else f"CAST({text} AS {wanted})"
