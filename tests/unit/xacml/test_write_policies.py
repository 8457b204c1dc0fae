"""A policy that is written and read again is the same policy (I6), whatever stands in it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.language.xacml.read_policies import read_policy
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.policy.xacml.model import (
    Apply,
    Policy,
    PolicySet,
    Reference,
    Rule,
    VariableDefinition,
    VariableReference,
)
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.values import read_value
from unit.xacml.test_index import Maker

# What XML can hold; a carriage return can be written, too.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", exclude_categories=["Cc", "Cs"])
    | st.sampled_from("\t\n\r")
)
NAMES = TEXT.map(lambda text: f"n{text}n")
AND = "urn:oasis:names:tc:xacml:1.0:function:string-equal"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 60), NAMES, TEXT, TEXT)
def test_random_policies(seed: int, name: str, text: str, told: str) -> None:
    maker = Maker(seed)
    value = read_value(DataType.STRING, text)
    equal = Apply(AND, (value, value), told)
    variable = VariableDefinition(name, equal)
    rule = Rule(name, maker.rule(0).effect, condition=VariableReference(name), description=told)
    policy = Policy(
        name, "1.2", maker.policy().algorithm, (rule,), maker.target(), (variable,), description=told
    )
    members = (
        policy,
        maker.policy_set(1),
        Reference(name, True, "1.*"),
        Reference("x", False, None, "1.+", "2"),
    )
    document = replace(maker.policy_set(0), members=members, description=told, max_delegation_depth=3)
    assert isinstance(document, PolicySet)
    written = write_policy(document)
    again = read_policy(written, "again.xml").document
    assert again == document
    assert write_policy(again) == written
