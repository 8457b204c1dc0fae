"""Responses as the standard has them, in XML and in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lxml import etree

from sluicegate.language.xacml.write_xml import add, add_value, make_root, show
from sluicegate.policy.xacml.context import Category, Notice, PolicyIdentifier, Response, Result, Status
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.values import Value


def write_response(response: Response) -> str:
    """XACML 3.0's `Response`."""
    root = make_root("Response")
    for each in response.results:
        _add_result(root, each)
    return show(root)


def write_json_response(response: Response) -> dict[str, Any]:
    """The `Response` of the JSON profile, for `json.dumps`."""
    return {"Response": [_result_json(each) for each in response.results]}


def _add_result(root: etree._Element, result: Result) -> None:
    at = add(root, "Result")
    add(at, "Decision", text=result.decision.standard)
    _add_status(at, result.status)
    _add_notices(at, "Obligations", "Obligation", result.obligations)
    _add_notices(at, "AssociatedAdvice", "Advice", result.advice)
    for category in result.attributes:
        _add_category(at, category)
    if result.policies:
        listed = add(at, "PolicyIdentifierList")
        for policy in result.policies:
            name = "PolicySetIdReference" if policy.is_set else "PolicyIdReference"
            add(listed, name, {"Version": policy.version}, policy.policy_id)


def _add_status(at: etree._Element, status: Status) -> None:
    shown = add(at, "Status")
    add(shown, "StatusCode", {"Value": status.code.value})
    if status.message is not None:
        add(shown, "StatusMessage", text=_clean(status.message))
    if status.missing:
        detail = add(shown, "StatusDetail")
        for each in status.missing:
            known = {"Category": each.category, "AttributeId": each.attribute_id}
            add(
                detail, "MissingAttributeDetail", known | {"DataType": each.type.value, "Issuer": each.issuer}
            )


def _clean(message: str) -> str:
    """Only what XML can hold."""
    return "".join(char if char.isprintable() else " " for char in message)


def _add_notices(at: etree._Element, group: str, name: str, notices: Sequence[Notice]) -> None:
    if not notices:
        return
    within = add(at, group)
    for each in notices:
        shown = add(within, name, {f"{name}Id": each.notice_id})
        for assigned in each.assignments:
            add_value(
                shown,
                assigned.value,
                "AttributeAssignment",
                AttributeId=assigned.attribute_id,
                Category=assigned.category,
                Issuer=assigned.issuer,
            )


def _add_category(at: etree._Element, category: Category) -> None:
    shown = add(at, "Attributes", {"Category": category.name})
    for each in category.attributes:
        known = {"IncludeInResult": str(each.include_in_result).lower(), "AttributeId": each.attribute_id}
        attribute = add(shown, "Attribute", known | {"Issuer": each.issuer})
        for value in each.values:
            add_value(attribute, value)


def _result_json(result: Result) -> dict[str, Any]:
    shown: dict[str, Any] = {"Decision": result.decision.standard, "Status": _status_json(result.status)}
    if result.obligations:
        shown["Obligations"] = [_notice_json(each) for each in result.obligations]
    if result.advice:
        shown["AssociatedAdvice"] = [_notice_json(each) for each in result.advice]
    if result.attributes:
        shown["Category"] = [_category_json(each) for each in result.attributes]
    if result.policies:
        shown["PolicyIdentifierList"] = _policies_json(result.policies)
    return shown


def _status_json(status: Status) -> dict[str, Any]:
    shown: dict[str, Any] = {"StatusCode": {"Value": status.code.value}}
    if status.message is not None:
        shown["StatusMessage"] = status.message
    if status.missing:
        details = (
            {"Category": each.category, "AttributeId": each.attribute_id, "DataType": each.type.value}
            | ({"Issuer": each.issuer} if each.issuer else {})
            for each in status.missing
        )
        shown["StatusDetail"] = {"MissingAttributeDetail": list(details)}
    return shown


def _notice_json(notice: Notice) -> dict[str, Any]:
    assignments = (
        {
            "AttributeId": each.attribute_id,
            "Value": _value_json(each.value),
            "DataType": each.value.type.value,
        }
        | ({"Category": each.category} if each.category else {})
        | ({"Issuer": each.issuer} if each.issuer else {})
        for each in notice.assignments
    )
    return {"Id": notice.notice_id, "AttributeAssignment": list(assignments)}


def _category_json(category: Category) -> dict[str, Any]:
    return {
        "CategoryId": category.name,
        "Attribute": [
            {
                "AttributeId": each.attribute_id,
                "Value": [_value_json(value) for value in each.values if value.type is kind],
                "DataType": kind.value,
                "IncludeInResult": each.include_in_result,
            }
            | ({"Issuer": each.issuer} if each.issuer else {})
            for each in category.attributes
            for kind in dict.fromkeys(
                value.type for value in each.values
            )  # in JSON an attribute has one type
        ],
    }


def _value_json(value: Value) -> Any:
    """Numbers and booleans as JSON has them, where it can hold them."""
    if value.type in (DataType.BOOLEAN, DataType.INTEGER):
        return value.content
    if value.type is DataType.DOUBLE and abs(value.content) < float("inf"):
        return value.content
    return value.text


def _policies_json(policies: Sequence[PolicyIdentifier]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, of_sets in (("PolicyIdReference", False), ("PolicySetIdReference", True)):
        listed = [
            {"Id": each.policy_id, "Version": each.version} for each in policies if each.is_set is of_sets
        ]
        if listed:
            shown[name] = listed
    return shown
