"""The mix of `bench service` in XACML, as the paper wrote it: a policy file and a request file for each query graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from sluicegate.bench.mix import FEEDS, Asked, Graph, Mix, write_stream

_URN = "urn:oasis:names:tc:xacml:"
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_SUBJECT = _URN + "1.0:subject-category:access-subject"
_ROLE = _URN + "2.0:subject:role"
ADMINISTRATOR = "root"
_FUNCTIONS = {"LAST": "lastval", "FIRST": "firstval"}
XACML_NOTES = [
    "a policy has a role of its own in its target, beside the stream and the action, and the graph as its obligations; a request names its subject, stream and action, and has the user query of the graph inside",
    "decisions are timed one at a time in this process, sizes taking turns; each asks for another policy's subject",
    "the proxy is a process of its own; a request that it remembers is confirmed by the gateway with the caller's own credentials before it is answered",
]


def write_policy(graph: Graph, number: int) -> str:
    """An XACML 3.0 policy whose obligations are the graph."""
    return (
        f'<Policy xmlns="{_URN}3.0:core:schema:wd-17" PolicyId="policy-{number}" Version="1.0"'
        f' RuleCombiningAlgId="{_URN}3.0:rule-combining-algorithm:deny-overrides">'
        f"<Target><AnyOf><AllOf>{_match(_SUBJECT, _ROLE, f'r{number}')}"
        f"{_match(_URN + '3.0:attribute-category:resource', _URN + '1.0:resource:resource-id', graph.feed.name)}"
        f"{_match(_URN + '3.0:attribute-category:action', _URN + '1.0:action:action-id', 'read')}"
        f'</AllOf></AnyOf></Target><Rule RuleId="permit" Effect="Permit"/>'
        f"<ObligationExpressions>{''.join(_write_obligations(graph))}</ObligationExpressions></Policy>"
    )


def _match(category: str, attribute: str, value: str) -> str:
    return (
        f'<Match MatchId="{_URN}1.0:function:string-equal"><AttributeValue DataType="{_STRING}">{value}'
        f'</AttributeValue><AttributeDesignator Category="{category}" AttributeId="{attribute}"'
        f' DataType="{_STRING}" MustBePresent="false"/></Match>'
    )


def _write_obligations(graph: Graph) -> Iterable[str]:
    if graph.filter is not None:
        condition = f"{graph.filter[0]} > {graph.filter[1]!r}"
        yield _oblige("filter", [("filter-condition", _STRING, condition)])
    if "MB" in graph.kind:
        yield _oblige("map", [("map-attribute", _STRING, name) for name in graph.shown])
    if graph.window is not None:
        size, step = graph.window
        calls = [
            ("window-attr", _STRING, f"{attribute}:{_FUNCTIONS.get(function, function.lower())}")
            for function, attribute in graph.functions
        ]
        extent = [("window-size", _INTEGER, str(size)), ("window-step", _INTEGER, str(step))]
        yield _oblige("window", [("window-type", _STRING, "time"), *extent, *calls])


def _oblige(name: str, values: Iterable[tuple[str, str, str]]) -> str:
    inner = "".join(
        f'<AttributeAssignmentExpression AttributeId="exacml:obligation:stream-{attribute}-id">'
        f'<AttributeValue DataType="{of}">{escape(value)}</AttributeValue></AttributeAssignmentExpression>'
        for attribute, of, value in values
    )
    return f'<ObligationExpression ObligationId="exacml:obligation:stream-{name}" FulfillOn="Permit">{inner}</ObligationExpression>'


def write_request(user: str, stream: str, roles: Iterable[str] = (), content: str = "") -> str:
    """A request to read a stream; `content` is the user query inside it."""
    given = "".join(_attribute(_ROLE, each) for each in roles)
    return (
        f'<Request xmlns="{_URN}3.0:core:schema:wd-17" ReturnPolicyIdList="false" CombinedDecision="false">'
        f'<Attributes Category="{_SUBJECT}">{_attribute(_URN + "1.0:subject:subject-id", user)}{given}</Attributes>'
        f'<Attributes Category="{_URN}3.0:attribute-category:resource">{content}'
        f"{_attribute(_URN + '1.0:resource:resource-id', stream)}</Attributes>"
        f'<Attributes Category="{_URN}3.0:attribute-category:action">'
        f"{_attribute(_URN + '1.0:action:action-id', 'read')}</Attributes></Request>"
    )


def _attribute(name: str, value: str) -> str:
    return (
        f'<Attribute AttributeId="{name}" IncludeInResult="false">'
        f'<AttributeValue DataType="{_STRING}">{escape(value)}</AttributeValue></Attribute>'
    )


def write_user_query(graph: Graph) -> str:
    """The graph as the paper's user query (its Fig. 4a)."""
    parts = [f'<Stream name="{graph.feed.name}"/>']
    if graph.filter is not None:
        condition = escape(f"{graph.filter[0]} > {graph.filter[1]!r}")
        parts.append(f"<Filter><FilterCondition>{condition}</FilterCondition></Filter>")
    if graph.window is None or "MB" in graph.kind:
        mapped = "".join(f"<Attribute>{name}</Attribute>" for name in graph.shown)
        parts.append(f"<Map>{mapped}</Map>")
    if graph.window is not None:
        size, step = graph.window
        calls = "".join(
            f"<Attribute>{_FUNCTIONS.get(function, function.lower())}({attribute})</Attribute>"
            for function, attribute in graph.functions
        )
        extent = (
            f"<WindowType>time</WindowType><WindowSize>{size}</WindowSize><WindowStep>{step}</WindowStep>"
        )
        parts.append(f"<Aggregation>{extent}{calls}</Aggregation>")
    return f'<UserQuery xmlns="">{"".join(parts)}</UserQuery>'


@dataclass(frozen=True, slots=True)
class XacmlMix(Mix):
    """The same mix with policies in XACML in place of grants, and somebody who may put more."""

    def write_catalog(self) -> str:
        roles = [f"CREATE ROLE r{at};" for at in range(len(self.policies))]
        users = [f"CREATE USER {each.user} ROLES (r{each.policy});" for each in self.requests]
        policies = [write_statement(each, at) for at, each in enumerate(self.policies)]
        first = ["CREATE ROLE administrator;", f"CREATE USER {ADMINISTRATOR} ROLES (administrator);"]
        return "\n".join([*map(write_stream, FEEDS), *first, *roles, *users, *policies])


def write_statement(graph: Graph, number: int) -> str:
    text = write_policy(graph, number).replace("'", "''")
    return f"CREATE POLICY 'policy-{number}' AS '{text}';"


def write_carrier(asked: Asked) -> str:
    """A user's request with its query inside."""
    inside = f"<Content>{write_user_query(asked.graph)}</Content>"
    return write_request(asked.user, asked.graph.feed.name, content=inside)
