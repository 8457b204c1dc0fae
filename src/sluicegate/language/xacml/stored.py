"""Policies as a catalog holds them: small enough for one statement, and of characters that a statement may have."""

from __future__ import annotations

from typing import Final

from sluicegate.language.lexing import check_text
from sluicegate.language.xacml.read_policies import read_policy
from sluicegate.policy.xacml.policies import StoredPolicy
from sluicegate.source import SourceText

# Quotes double in a statement, and a statement has to be read again.
MAX_POLICY: Final = 1024 * 1024


def read_stored(source: SourceText) -> StoredPolicy:
    """One policy or policy set; raises what is wrong with it, at its place in the XML."""
    check_text(source, limit=MAX_POLICY)
    document = read_policy(source.text, source.name, MAX_POLICY).document
    return StoredPolicy(document.policy_id, source.text, document)
