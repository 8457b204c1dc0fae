"""Short ways to write policies and requests for tests."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.policy.xacml.context import Attribute, Category, Request, Result
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.model import Document
from sluicegate.policy.xacml.names import SUBJECT, DataType
from sluicegate.policy.xacml.temporal import Moment, read_date_time
from sluicegate.policy.xacml.values import read_value

NS = 'xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17"'
RULE_ALG = "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:"
POLICY_ALG = "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:"
F1 = "urn:oasis:names:tc:xacml:1.0:function:"
F3 = "urn:oasis:names:tc:xacml:3.0:function:"
XSD = "http://www.w3.org/2001/XMLSchema#"
NOON = read_date_time("2026-03-01T12:00:00Z")


def value(text: str, kind: str = "string") -> str:
    return f'<AttributeValue DataType="{XSD}{kind}">{text}</AttributeValue>'


def designator(
    name: str, kind: str = "string", category: str = SUBJECT, needed: bool = False, more: str = ""
) -> str:
    return (
        f'<AttributeDesignator Category="{category}" AttributeId="{name}" DataType="{XSD}{kind}" '
        f'MustBePresent="{str(needed).lower()}" {more}/>'
    )


def apply(function: str, *arguments: str, base: str = F1) -> str:
    return f'<Apply FunctionId="{base}{function}">{"".join(arguments)}</Apply>'


def target(*attributes: tuple[str, str], needed: bool = False) -> str:
    """All of these attributes have these values."""
    matches = "".join(
        f'<Match MatchId="{F1}string-equal">{value(text)}{designator(name, needed=needed)}</Match>'
        for name, text in attributes
    )
    return f"<Target><AnyOf><AllOf>{matches}</AllOf></AnyOf></Target>" if matches else "<Target/>"


def rule(effect: str = "Permit", name: str = "r", within: str = "") -> str:
    return f'<Rule RuleId="{name}" Effect="{effect}">{within}</Rule>'


def condition(expression: str) -> str:
    return f"<Condition>{expression}</Condition>"


def policy(
    *rules: str, name: str = "p", algorithm: str = "deny-overrides", where: str = "<Target/>", after: str = ""
) -> str:
    return (
        f'<Policy {NS} PolicyId="{name}" Version="1.0" RuleCombiningAlgId="{RULE_ALG}{algorithm}">'
        f"{where}{''.join(rules)}{after}</Policy>"
    )


def policy_set(
    *members: str,
    name: str = "s",
    algorithm: str = POLICY_ALG + "deny-overrides",
    where: str = "<Target/>",
    version: str = "1.0",
) -> str:
    return (
        f'<PolicySet {NS} PolicySetId="{name}" Version="{version}" PolicyCombiningAlgId="{algorithm}">'
        f"{where}{''.join(members)}</PolicySet>"
    )


def load(text: str) -> Document:
    return read_policy(text, "policy.xml").document


def ask(policies: str | Iterable[str], request: str | Request, moment: Moment | None = NOON) -> Result:
    """The answer of some policies, read from their texts, to a request."""
    texts = [policies] if isinstance(policies, str) else list(policies)
    root = link_documents([read_policy(text, f"policy{at}.xml") for at, text in enumerate(texts)])
    asked = read_request(request, "request.xml") if isinstance(request, str) else request
    return decide(root, asked, moment)


def attribute(
    name: str, *texts: str, kind: DataType = DataType.STRING, issuer: str | None = None
) -> Attribute:
    return Attribute(name, tuple(read_value(kind, text) for text in texts), issuer)


def subject(*attributes: Attribute, more: Iterable[Category] = ()) -> Request:
    return Request((Category(SUBJECT, attributes), *more))
