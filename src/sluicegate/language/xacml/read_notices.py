"""Obligations and advice from XML."""

from __future__ import annotations

from sluicegate.language.xacml.cursor import Cursor
from sluicegate.language.xacml.read_expressions import ExpressionReader, list_named, read_attribute_value
from sluicegate.policy.xacml.model import AssignmentExpression, Effect, NoticeExpression


def read_effect(at: Cursor, name: str) -> Effect:
    told = at.need(name)
    try:
        return Effect(told)
    except ValueError:
        raise at.refuse("xacml-syntax", f"`{name}` is `{told}`, neither `Permit` nor `Deny`") from None


def read_notices(at: Cursor, reader: ExpressionReader) -> tuple[NoticeExpression, ...]:
    """`ObligationExpressions`, `AdviceExpressions`, or the `Obligations` of XACML 2.0."""
    match at.name:
        case "ObligationExpressions":
            parts = list_named(at, "ObligationExpression")
            return tuple(_read_notice(each, reader, "ObligationId", "FulfillOn") for each in parts)
        case "AdviceExpressions":
            parts = list_named(at, "AdviceExpression")
            return tuple(_read_notice(each, reader, "AdviceId", "AppliesTo") for each in parts)
        case "Obligations":
            return tuple(_read_obligation_2(each) for each in list_named(at, "Obligation"))
        case _:
            raise at.unexpected()


def _read_notice(at: Cursor, reader: ExpressionReader, id_name: str, effect_name: str) -> NoticeExpression:
    at.check_attributes(id_name, effect_name)
    assignments = tuple(
        _read_assignment(each, reader) for each in list_named(at, "AttributeAssignmentExpression")
    )
    return NoticeExpression(
        at.need(id_name), read_effect(at, effect_name), assignments, binding=id_name == "ObligationId"
    )


def _read_assignment(at: Cursor, reader: ExpressionReader) -> AssignmentExpression:
    at.check_attributes("AttributeId", "Category", "Issuer")
    parts = list(at.children())
    if len(parts) != 1:
        raise at.refuse("xacml-syntax", f"`{at.name}` needs one expression")
    expression, _ = reader.read(parts[0])
    return AssignmentExpression(at.need("AttributeId"), expression, at.get("Category"), at.get("Issuer"))


def _read_obligation_2(at: Cursor) -> NoticeExpression:
    at.check_attributes("ObligationId", "FulfillOn")
    assignments = tuple(
        AssignmentExpression(each.need("AttributeId"), read_attribute_value(each))
        for each in list_named(at, "AttributeAssignment")
    )
    return NoticeExpression(at.need("ObligationId"), read_effect(at, "FulfillOn"), assignments, binding=True)
