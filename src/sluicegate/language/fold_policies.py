"""CREATE POLICY: the XML read and checked, the id the one it says, and all policies fitting together."""

from __future__ import annotations

from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.fold_state import State, fail
from sluicegate.language.statements import CreatePolicy
from sluicegate.language.xacml.stored import read_stored
from sluicegate.language.xacml.xml import MAX_MESSAGE
from sluicegate.policy.xacml.link import LinkError, link
from sluicegate.policy.xacml.policies import PolicyIds, StoredPolicy
from sluicegate.source import SourceText, Span

MAX_ID = 1000


class PolicyFolder:
    """Policies that come and go; one more costs its own size, unless any refers to another."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: PolicyIds | None = None
        self._places: dict[str, Span | None] = {}
        self._checked = True

    def create(self, statement: CreatePolicy) -> None:
        """Raises what is wrong with the policy by itself, and an id that is there already."""
        name, known = statement.name, self._state.policies
        source = statement.text.source or SourceText(f"<policy {name.text[:60]}>", statement.text.text)
        stored = statement.text.stored or read_stored(source)
        place = Span(source, 0, 1) if statement.text.source is not None else name.span
        if stored.policy_id != name.text:
            message = f"the policy calls itself `{stored.policy_id[:80]}`, not `{name.text[:80]}`"
            fail("policy-id", message, place, "write the id that the XML has")
        if not name.text.strip() or len(name.text) > MAX_ID:
            fail("policy-id", f"the id of a policy has 1 to {MAX_ID} characters", place)
        if not statement.replace and name.text in known:
            help_ = "CREATE OR REPLACE POLICY replaces it"
            fail("name-taken", f"the policy `{name.text[:80]}` exists already", place, help_)
        self._put(stored, place)

    def _put(self, stored: StoredPolicy, place: Span | None) -> None:
        ids, before = self._find_ids(), self._state.policies.get(stored.policy_id)
        if before is not None:
            ids.discard(before)
        self._places[stored.policy_id] = place
        self._checked = False
        try:
            ids.add(stored)
        except LinkError as error:
            self._tell(error, stored.policy_id)
        self._state.policies[stored.policy_id] = stored

    def _find_ids(self) -> PolicyIds:
        if self._known is None:
            self._known = PolicyIds(self._state.policies.values())
        return self._known

    def forget(self, stored: StoredPolicy) -> None:
        """It is dropped: what referred to it has to be looked at again."""
        self._find_ids().discard(stored)
        self._checked = False

    def check(self) -> None:
        """Raises where policies refer to what is not there, or in a circle."""
        if self._checked:
            return
        self._checked = True
        if not self._find_ids().refers:
            return
        try:
            link([each.document for each in self._state.policies.values()])
        except LinkError as error:
            self._tell(error, error.about.policy_id)

    def _tell(self, error: LinkError, about: str) -> NoReturn:
        place = self._places.get(about)
        raise DiagnosticError([Diagnostic(error.code, error.message[:MAX_MESSAGE], place)]) from None
