"""Who may say what of shared queries. Each call is on record, and in force here when it returns (R10, R18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.rewrite.notices import Decision
from sluicegate.service.authorization.pace import Pace
from sluicegate.service.authorization.proofs import Ground, judge_grants, prove_without
from sluicegate.service.authorization.server import AuthorizationServer
from sluicegate.service.authorization.state import (
    Admit,
    Cancel,
    Content,
    Create,
    Credential,
    Drop,
    Issue,
    Policy,
    Refuse,
    Revoke,
    SharedQuery,
    State,
    Subscribe,
    Subscription,
)
from sluicegate.service.decisions import read_known
from sluicegate.service.identity.clock import to_micros
from sluicegate.service.identity.principal import Principal, seat
from sluicegate.service.naming import name_streams, normalize
from sluicegate.service.refusals import RefusedError, refuse

if TYPE_CHECKING:
    from sluicegate.service.gateway import Gateway

MOST_QUERIES, MOST_POLICIES, MOST_CREDENTIALS = 1_000, 1_000, 10_000
MOST_TURNS = 240
"""Subscriptions that one who does not administer makes, renews and cancels in an hour: each is a word for good."""
MOST_SECONDS = 10 * 366 * 86_400.0


class Desk:
    """Of one gateway."""

    def __init__(self, gateway: Gateway, server: AuthorizationServer) -> None:
        self._gateway, self._server = gateway, server
        self._pace = Pace(MOST_TURNS, to_micros(3600))

    def create(self, caller: Principal, name: str, text: str, request: str = "") -> SharedQuery:
        """A query that others may subscribe to; by those who could ask it themselves, and administrators."""

        def decide(state: State) -> Sequence[Content]:
            if name in state.queries:
                raise refuse("shared-exists", "there is a shared query of this name already")
            own = sum(each.owner == caller.user for each in state.queries.values())
            if own >= self._gateway.settings.most_queries or len(state.queries) >= MOST_QUERIES:
                raise refuse("shared-limit", f"you have {own} shared queries already")
            return [Create(name, caller.user, made)]

        with _Recorded(self._gateway, caller, "shared-create", name, request) as told:
            made = self._read_text(caller, text)
            told.subject = f"{name} {made}"
            self._server.say(caller.user, decide)
        return self._server.state.queries[name]

    def _read_text(self, caller: Principal, text: str) -> str:
        gateway, made = self._gateway, normalize(text)
        catalog = seat(caller, gateway.engine.catalog)
        if caller.user not in gateway.catalog.users:
            raise refuse("shared-session", "only users of the catalog share queries")
        if caller.is_admin:
            from sluicegate.language.resolve import read_query
            from sluicegate.source import SourceText

            read_query(SourceText("<query>", text), gateway.engine.catalog)
        else:
            read_known(catalog, caller.user, text)
            if gateway.explain(caller, text, 0).decision not in (Decision.PERMIT, Decision.PARTIAL):
                raise refuse("shared-refused", Ground.NOT_GRANTED.value)
        found = [gateway.engine.catalog.streams.get(each) for each in name_streams(text)]
        if all(each is not None and each.event_time is None and each.query is None for each in found):
            raise refuse("shared-timeless", "the query reads tables alone, which carry no punctuations")
        return made

    def drop(self, caller: Principal, name: str, request: str = "") -> None:
        """With its policies and subscriptions; its readers are told that it has ended."""
        self._do(caller, "shared-drop", name, name, request, lambda _: [Drop(name)])

    def admit(self, caller: Principal, policy: Policy, request: str = "") -> None:
        def decide(state: State) -> Sequence[Content]:
            self._check_names(policy)
            if len(state.policies_of(policy.query)) >= MOST_POLICIES:
                raise refuse("shared-limit", f"the query has {MOST_POLICIES} policies already")
            return [Admit(policy.query, policy.user, policy.role, policy.credential)]

        self._do(caller, "shared-admit", policy.query, _write_policy(policy), request, decide)

    def refuse(self, caller: Principal, policy: Policy, request: str = "") -> None:
        """Take a policy back, said as it was made."""

        def decide(state: State) -> Sequence[Content]:
            if policy not in state.policies_of(policy.query):
                raise refuse("shared-policy", "there is no such policy")
            return [Refuse(policy.query, policy.user, policy.role, policy.credential)]

        self._do(caller, "shared-refuse", policy.query, _write_policy(policy), request, decide)

    def _check_names(self, policy: Policy) -> None:
        catalog = self._gateway.catalog
        if policy.user is not None and policy.user not in catalog.users:
            raise refuse("shared-policy", f"there is no user `{policy.user[:60]}`")
        if policy.role is not None and policy.role not in catalog.roles:
            raise refuse("shared-policy", f"there is no role `{policy.role[:60]}`")

    def _do(
        self,
        caller: Principal,
        action: str,
        name: str,
        subject: str,
        request: str,
        decide: Callable[[State], Sequence[Content]],
    ) -> None:
        """What the owner of a query and administrators may do."""

        def check(state: State) -> Sequence[Content]:
            self._check_owner(caller, state, name)
            return decide(state)

        with _Recorded(self._gateway, caller, action, subject, request):
            self._server.say(caller.user, check)

    def _check_owner(self, caller: Principal, state: State, name: str) -> SharedQuery:
        found = state.queries.get(name)
        if found is None or not self.may_know(caller, found):
            raise refuse("shared-unknown", "there is no such shared query, or you may not know of it")
        if not self.may_manage(caller, found):
            raise refuse("shared-owner", "only the query's owner and administrators may do this")
        return found

    def may_manage(self, caller: Principal, query: SharedQuery) -> bool:
        return caller.is_admin or query.owner == caller.user

    def may_know(self, caller: Principal, query: SharedQuery) -> bool:
        """Its owner, administrators, subscribers, and whom a policy may admit."""
        state = self._server.state
        if self.may_manage(caller, query) or (query.name, caller.user) in state.subscriptions:
            return True
        return any(
            each.user in (None, caller.user)
            and (each.role is None or each.role in caller.roles)
            and (each.credential is None or (each.credential, caller.user) in state.credentials)
            for each in state.policies_of(query.name)
        )

    def list_known(self, caller: Principal) -> list[SharedQuery]:
        found = self._server.state.queries.values()
        return sorted((each for each in found if self.may_know(caller, each)), key=lambda each: each.name)

    def show(self, caller: Principal, name: str) -> SharedQuery:
        found = self._server.state.queries.get(name)
        if found is None or not self.may_know(caller, found):
            raise refuse("shared-unknown", "there is no such shared query, or you may not know of it")
        return found

    def issue(
        self, caller: Principal, name: str, user: str, seconds: float, request: str = "", renew: bool = False
    ) -> Credential:
        """Give a user a credential, or, with `renew`, one that it was given before for longer; by administrators."""

        def decide(state: State) -> Sequence[Content]:
            self._check_admin(caller)
            if user not in self._gateway.catalog.users:
                raise refuse("user-missing", "the catalog has no such user")
            if renew and (name, user) not in state.credentials:
                raise refuse("credential-unknown", "the user has no credential of this name")
            if (name, user) not in state.credentials and len(state.credentials) >= MOST_CREDENTIALS:
                raise refuse("shared-limit", f"there are {MOST_CREDENTIALS} credentials already")
            return [Issue(name, user, self._expire(seconds))]

        action = "credential-renew" if renew else "credential-issue"
        with _Recorded(self._gateway, caller, action, f"{name} {user}", request):
            self._server.say(caller.user, decide)
        return self._server.state.credentials[name, user]

    def revoke(self, caller: Principal, name: str, user: str, request: str = "") -> None:

        def decide(state: State) -> Sequence[Content]:
            self._check_admin(caller)
            if (name, user) not in state.credentials:
                raise refuse("credential-unknown", "the user has no credential of this name")
            return [Revoke(name, user)]

        with _Recorded(self._gateway, caller, "credential-revoke", f"{name} {user}", request):
            self._server.say(caller.user, decide)

    def list_credentials(self, caller: Principal) -> list[Credential]:
        """One's own; for administrators all."""
        found = self._server.state.credentials.values()
        mine = [each for each in found if caller.is_admin or each.user == caller.user]
        return sorted(mine, key=lambda each: (each.name, each.user))

    def subscribe(
        self,
        caller: Principal,
        name: str,
        user: str | None,
        seconds: float,
        request: str = "",
        renew: bool = False,
    ) -> Subscription:
        """For oneself, where everything else is proven; administrators also for others, whose switches stay closed until
        it is.
        """
        whom = user or caller.user
        action = "subscription-renew" if renew else "subscription-make"
        with _Recorded(self._gateway, caller, action, f"{name} {whom}", request):
            self._check_pace(caller)
            known = self._server.state.subscriptions.get((name, whom))
            wish = self._make_wish(caller, name, whom, seconds, known if renew else None)
            self._check_wish(caller, wish, renew, known)
            self._server.say(caller.user, lambda state: self._decide_wish(state, wish, renew))
        return self._server.state.subscriptions[name, whom]

    def _make_wish(
        self, caller: Principal, name: str, whom: str, seconds: float, known: Subscription | None
    ) -> Subscription:
        """With the roles of the session; for somebody else with all that it has."""
        catalog = self._gateway.catalog
        roles = caller.roles if whom == caller.user else catalog.roles_of(whom)
        kept = tuple(sorted(roles)) if known is None else known.roles
        return Subscription(name, whom, kept, self._expire(seconds))

    def _check_wish(
        self, caller: Principal, wish: Subscription, renew: bool, known: Subscription | None
    ) -> None:
        gateway, state = self._gateway, self._server.state
        self.show(caller, wish.query)
        if wish.user != caller.user:
            self._check_admin(caller, "only administrators subscribe others")
        elif caller.claimed or caller.profile:
            raise refuse("shared-session", "roles and profile of this session are not the catalog's")
        if wish.user not in gateway.catalog.users:
            raise refuse("user-missing", "the catalog has no such user")
        if renew and known is None:
            raise refuse("subscription-unknown", "there is no such subscription")
        held = gateway.catalog.roles_of(wish.user) & set(wish.roles)
        if wish.user == caller.user and not held <= caller.roles:
            raise refuse("shared-session", "this session has fewer roles than the subscription was made with")
        if wish.user != caller.user:
            return
        catalog = gateway.engine.catalog
        judge = judge_grants(catalog, gateway.engine.graphs.manner)
        proof = prove_without(state, catalog, self._server.now(), wish, judge)
        if not proof.holds:
            raise refuse("shared-refused", proof.ground.value)

    def _decide_wish(self, state: State, wish: Subscription, renew: bool) -> Sequence[Content]:
        if wish.query not in state.queries or (renew and wish.key not in state.subscriptions):
            raise refuse("subscription-unknown", "it was dropped or cancelled just now")
        own = sum(each.user == wish.user for each in state.subscriptions.values())
        if wish.key not in state.subscriptions and own >= self._gateway.settings.most_queries:
            raise refuse("query-limit", f"there are {own} subscriptions already")
        return [Subscribe(wish.query, wish.user, wish.roles, wish.expires)]

    def cancel(self, caller: Principal, name: str, user: str | None, request: str = "") -> None:
        """One's own; its owner and administrators anybody's."""
        whom = user or caller.user

        def decide(state: State) -> Sequence[Content]:
            query = state.queries.get(name)
            managed = query is not None and self.may_manage(caller, query)
            if (name, whom) not in state.subscriptions or not (managed or whom == caller.user):
                raise refuse("subscription-unknown", "you have no such subscription")
            return [Cancel(name, whom)]

        with _Recorded(self._gateway, caller, "subscription-cancel", f"{name} {whom}", request):
            # what closes is never kept waiting, but it counts
            self._pace.take(caller.user, self._server.now())
            self._server.say(caller.user, decide)

    def list_subscriptions(self, caller: Principal, query: str | None = None) -> list[Subscription]:
        """One's own, and those to one's queries; for administrators all."""
        state = self._server.state
        found = [
            each
            for each in state.subscriptions.values()
            if query in (None, each.query)
            and (each.user == caller.user or self.may_manage(caller, state.queries[each.query]))
        ]
        return sorted(found, key=lambda each: each.key)

    def _check_pace(self, caller: Principal) -> None:
        if not caller.is_admin and not self._pace.take(caller.user, self._server.now()):
            raise refuse("shared-often", f"you made and cancelled {MOST_TURNS} subscriptions within an hour")

    def may_look_into(self, caller: Principal, found: Subscription) -> bool:
        """Roles, state and reason tell of the user's profile and grants: an owner sees who is subscribed, not how."""
        return caller.is_admin or found.user == caller.user

    def _check_admin(
        self, caller: Principal, message: str = "only administrators give and take credentials"
    ) -> None:
        if not caller.is_admin:
            raise refuse("administrators-only", message)

    def _expire(self, seconds: float) -> int:
        return self._server.now() + to_micros(min(seconds, MOST_SECONDS))


def _write_policy(policy: Policy) -> str:
    parts = [("user", policy.user), ("role", policy.role), ("credential", policy.credential)]
    return " ".join([policy.query, *(f"{kind} {name}" for kind, name in parts if name is not None)])


class _Recorded:
    """Puts a call on record: what was refused with the codes, the rest when it is done."""

    def __init__(self, gateway: Gateway, caller: Principal, action: str, subject: str, request: str) -> None:
        self._gateway, self._caller, self._action, self._request = gateway, caller, action, request
        self.subject = subject

    def __enter__(self) -> _Recorded:
        self._gateway.check_open()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        codes: tuple[str, ...] = ()
        if isinstance(error, RefusedError):
            codes = (error.refused.code,)
        elif isinstance(error, DiagnosticError):
            codes = tuple(dict.fromkeys(each.code for each in error.diagnostics[:20]))
        if error is None or codes:
            decision = "deny" if codes else ""
            self._gateway.record(
                self._caller,
                self._action,
                self.subject,
                decision=decision,
                notices=codes,
                request=self._request,
            )
