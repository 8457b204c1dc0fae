"""Shared queries: made, admitted to, subscribed to; and the credentials that policies may ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.authorization.proofs import Ground
from sluicegate.service.authorization.state import Credential, Policy, SharedQuery, Subscription
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.principal import Principal
from sluicegate.service.presenting import show_instant
from sluicegate.service.refusals import refuse
from sluicegate.service.schemas import DoneAnswer
from sluicegate.service.schemas_shared import (
    CredentialAnswer,
    CredentialAsked,
    CredentialsAnswer,
    PolicyAsked,
    PolicyShown,
    ShareAsked,
    SharedAnswer,
    SharedListAnswer,
    SubscribeAsked,
    SubscriptionAnswer,
    SubscriptionsAnswer,
)

_ALL, _ONE = "/v1/shared", "/v1/shared/{name}"
Wanted = Annotated[str | None, Query(min_length=1, max_length=200)]
Named = Annotated[str, Query(min_length=1, max_length=200)]


def share(asked: ShareAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> SharedAnswer:
    """Make a query that others may subscribe to; nobody has it until a policy admits them."""
    made = gateway.shared.create(caller, asked.name, asked.query, request_id)
    return _show(gateway, caller, made)


def list_shared(caller: Caller, gateway: OpenGateway) -> SharedListAnswer:
    """Those that one owns, is subscribed to, or may be admitted to; for administrators all."""
    found = gateway.shared.list_known(caller)
    return SharedListAnswer(shared=[_show(gateway, caller, each) for each in found])


def show_shared(name: str, caller: Caller, gateway: OpenGateway) -> SharedAnswer:
    """One shared query, with its policies for whom they are, and the subscriptions that one may see."""
    return _show(gateway, caller, gateway.shared.show(caller, name))


def drop_shared(name: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> DoneAnswer:
    """End it for everybody, with its policies and subscriptions."""
    gateway.shared.drop(caller, name, request_id)
    return DoneAnswer()


def admit(
    name: str, asked: PolicyAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> DoneAnswer:
    """Admit a user, the holders of a role or of a credential; whoever is all that is said."""
    gateway.shared.admit(caller, _read_policy(name, asked.user, asked.role, asked.credential), request_id)
    return DoneAnswer()


def refuse_policy(
    name: str,
    caller: Caller,
    gateway: OpenGateway,
    request_id: RequestId,
    user: Wanted = None,
    role: Wanted = None,
    credential: Wanted = None,
) -> DoneAnswer:
    """Take a policy back: when the answer comes, whom nothing else admits is handed nothing more."""
    gateway.shared.refuse(caller, _read_policy(name, user, role, credential), request_id)
    return DoneAnswer()


def _read_policy(name: str, user: str | None, role: str | None, credential: str | None) -> Policy:
    if user is None and role is None and credential is None:
        raise refuse("shared-policy", "the policy admits nobody: give a user, a role or a credential")
    return Policy(name, user, role, credential)


def subscribe(
    name: str, asked: SubscribeAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> SubscriptionAnswer:
    """Subscribe until it expires; results are read by the handle told, as those of any query."""
    made = gateway.shared.subscribe(caller, name, asked.user, asked.expires_in, request_id)
    return _show_subscription(gateway, caller, made)


def renew(
    name: str, asked: SubscribeAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> SubscriptionAnswer:
    """Let a subscription last longer, or from now on again where it had expired."""
    made = gateway.shared.subscribe(caller, name, asked.user, asked.expires_in, request_id, renew=True)
    return _show_subscription(gateway, caller, made)


def cancel(
    name: str, caller: Caller, gateway: OpenGateway, request_id: RequestId, user: Wanted = None
) -> DoneAnswer:
    """End a subscription; its readers are told."""
    gateway.shared.cancel(caller, name, user, request_id)
    return DoneAnswer()


def list_subscriptions(caller: Caller, gateway: OpenGateway) -> SubscriptionsAnswer:
    """One's own, and those to one's queries; for administrators all."""
    found = gateway.shared.list_subscriptions(caller)
    return SubscriptionsAnswer(subscriptions=[_show_subscription(gateway, caller, each) for each in found])


def issue(
    asked: CredentialAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> CredentialAnswer:
    """Give a user a credential."""
    return _show_credential(
        gateway.shared.issue(caller, asked.name, asked.user, asked.expires_in, request_id)
    )


def renew_credential(
    asked: CredentialAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> CredentialAnswer:
    """Let a credential that was given last longer; one that was revoked or expired counts again."""
    made = gateway.shared.issue(caller, asked.name, asked.user, asked.expires_in, request_id, renew=True)
    return _show_credential(made)


def revoke(
    caller: Caller, gateway: OpenGateway, request_id: RequestId, name: Named, user: Named
) -> DoneAnswer:
    """Take a credential back: when the answer comes, what it proved is closed."""
    gateway.shared.revoke(caller, name, user, request_id)
    return DoneAnswer()


def list_credentials(caller: Caller, gateway: OpenGateway) -> CredentialsAnswer:
    """One's own; for administrators all."""
    found = gateway.shared.list_credentials(caller)
    return CredentialsAnswer(credentials=[_show_credential(each) for each in found])


def _show(gateway: Gateway, caller: Principal, query: SharedQuery) -> SharedAnswer:
    desk = gateway.shared
    managed, found = desk.may_manage(caller, query), desk.list_subscriptions(caller, query.name)
    policies = [
        PolicyShown(user=each.user, role=each.role, credential=each.credential)
        for each in gateway.authorization.state.policies_of(query.name)
    ]
    return SharedAnswer(
        name=query.name,
        owner=query.owner,
        query=query.text if managed or found else None,
        policies=policies if managed else None,
        subscriptions=[_show_subscription(gateway, caller, each) for each in found],
    )


def _show_subscription(gateway: Gateway, caller: Principal, found: Subscription) -> SubscriptionAnswer:
    """Of others, those who do not administer see that there is one."""
    server, expires = gateway.authorization, show_instant(found.expires)
    if not gateway.shared.may_look_into(caller, found):
        return SubscriptionAnswer(query=found.query, user=found.user, expires=expires)
    return SubscriptionAnswer(
        query=found.query,
        user=found.user,
        roles=list(found.roles),
        expires=expires,
        handle=server.find_handle(found.key),
        is_open=server.is_open(found.key),
        reason=server.grounds.get(found.key, Ground.UNKNOWN).value,
    )


def _show_credential(found: Credential) -> CredentialAnswer:
    expires = show_instant(found.expires)
    return CredentialAnswer(name=found.name, user=found.user, expires=expires, revoked=found.revoked)


ROUTES = (
    Route("POST", _ALL, share, Need.GRANT, {"status_code": 201}),
    Route("GET", _ALL, list_shared, Need.READ),
    Route("GET", _ONE, show_shared, Need.READ),
    Route("DELETE", _ONE, drop_shared, Need.GRANT),
    Route("POST", _ONE + "/policies", admit, Need.GRANT),
    Route("DELETE", _ONE + "/policies", refuse_policy, Need.GRANT),
    Route("POST", _ONE + "/subscriptions", subscribe, Need.READ, {"status_code": 201}),
    Route("PUT", _ONE + "/subscriptions", renew, Need.READ),
    Route("DELETE", _ONE + "/subscriptions", cancel, Need.READ),
    Route("GET", "/v1/subscriptions", list_subscriptions, Need.READ),
    Route("POST", "/v1/credentials", issue, Need.ADMIN, {"status_code": 201}),
    Route("PUT", "/v1/credentials", renew_credential, Need.ADMIN),
    Route("DELETE", "/v1/credentials", revoke, Need.ADMIN),
    Route("GET", "/v1/credentials", list_credentials, Need.READ),
)
