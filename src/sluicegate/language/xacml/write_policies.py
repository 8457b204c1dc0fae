"""Policies as XML of XACML 3.0: what is written and read again is the same policy."""

from __future__ import annotations

from lxml import etree

from sluicegate.language.xacml.write_xml import add, add_value, make_root, show
from sluicegate.policy.xacml.model import (
    Apply,
    Designator,
    Document,
    Expression,
    FunctionName,
    NoticeExpression,
    Policy,
    PolicySet,
    Reference,
    Rule,
    Selector,
    Target,
    VariableReference,
)
from sluicegate.policy.xacml.values import Value


def write_policy(document: Document) -> str:
    """The text of a policy or a policy set."""
    name = "Policy" if isinstance(document, Policy) else "PolicySet"
    root = make_root(name, _list_attributes(document))
    _fill_document(root, document)
    return show(root)


def _list_attributes(document: Document) -> dict[str, str | None]:
    depth = document.max_delegation_depth
    known = {"Version": document.version, "MaxDelegationDepth": None if depth is None else str(depth)}
    if isinstance(document, Policy):
        return {"PolicyId": document.policy_id, "RuleCombiningAlgId": document.algorithm} | known
    return {"PolicySetId": document.policy_id, "PolicyCombiningAlgId": document.algorithm} | known


def _fill_document(at: etree._Element, document: Document) -> None:
    if document.description is not None:
        add(at, "Description", text=document.description)
    if document.xpath_version is not None:
        what = "PolicyDefaults" if isinstance(document, Policy) else "PolicySetDefaults"
        add(add(at, what), "XPathVersion", text=document.xpath_version)
    _add_target(at, document.target)
    if isinstance(document, Policy):
        for variable in document.variables:
            _add_expression(
                add(at, "VariableDefinition", {"VariableId": variable.variable_id}), variable.expression
            )
        for rule in document.rules:
            _add_rule(at, rule)
    else:
        for member in document.members:
            _add_member(at, member)
    _add_notices(at, document.notices)


def _add_member(at: etree._Element, member: Document | Reference) -> None:
    match member:
        case Policy():
            _fill_document(add(at, "Policy", _list_attributes(member)), member)
        case PolicySet():
            _fill_document(add(at, "PolicySet", _list_attributes(member)), member)
        case Reference():
            name = "PolicySetIdReference" if member.to_set else "PolicyIdReference"
            versions = {"EarliestVersion": member.earliest, "LatestVersion": member.latest}
            add(at, name, {"Version": member.version} | versions, member.policy_id)
        case _:
            raise TypeError(f"no such member: {member!r}")


def _add_rule(at: etree._Element, rule: Rule) -> None:
    shown = add(at, "Rule", {"RuleId": rule.rule_id, "Effect": rule.effect.value})
    if rule.description is not None:
        add(shown, "Description", text=rule.description)
    if rule.target.parts:
        _add_target(shown, rule.target)
    if rule.condition is not None:
        _add_expression(add(shown, "Condition"), rule.condition)
    _add_notices(shown, rule.notices)


def _add_target(at: etree._Element, target: Target) -> None:
    shown = add(at, "Target")
    for part in target.parts:
        any_of = add(shown, "AnyOf")
        for way in part.ways:
            all_of = add(any_of, "AllOf")
            for match in way.matches:
                element = add(all_of, "Match", {"MatchId": match.function_id})
                add_value(element, match.value)
                _add_expression(element, match.attribute)


def _add_notices(at: etree._Element, notices: tuple[NoticeExpression, ...]) -> None:
    for binding, group, name, effect in (
        (True, "ObligationExpressions", "ObligationExpression", "FulfillOn"),
        (False, "AdviceExpressions", "AdviceExpression", "AppliesTo"),
    ):
        chosen = [each for each in notices if each.binding is binding]
        within = add(at, group) if chosen else at
        for each in chosen:
            id_name = "ObligationId" if binding else "AdviceId"
            shown = add(within, name, {id_name: each.notice_id, effect: each.applies_to.value})
            for assigned in each.assignments:
                known = {"AttributeId": assigned.attribute_id, "Category": assigned.category}
                made = add(shown, "AttributeAssignmentExpression", known | {"Issuer": assigned.issuer})
                _add_expression(made, assigned.expression)


def _add_expression(at: etree._Element, expression: Expression) -> None:
    match expression:
        case Value():
            add_value(at, expression)
        case Designator():
            _add_designator(at, expression)
        case Selector():
            _add_selector(at, expression)
        case FunctionName(function_id):
            add(at, "Function", {"FunctionId": function_id})
        case VariableReference(variable_id):
            add(at, "VariableReference", {"VariableId": variable_id})
        case Apply(function_id, arguments, description):
            shown = add(at, "Apply", {"FunctionId": function_id})
            if description is not None:
                add(shown, "Description", text=description)
            for each in arguments:
                _add_expression(shown, each)
        case _:
            raise TypeError(f"no such expression: {expression!r}")


def _add_designator(at: etree._Element, designator: Designator) -> None:
    known = {"Category": designator.category, "AttributeId": designator.attribute_id}
    needed = {"DataType": designator.type.value, "MustBePresent": str(designator.must_be_present).lower()}
    add(at, "AttributeDesignator", known | needed | {"Issuer": designator.issuer})


def _add_selector(at: etree._Element, selector: Selector) -> None:
    known = {"Category": selector.category, "Path": selector.path, "DataType": selector.type.value}
    needed = {"MustBePresent": str(selector.must_be_present).lower()}
    more = {"ContextSelectorId": selector.context_selector_id}
    add(at, "AttributeSelector", known | needed | more, namespaces=selector.namespaces)
