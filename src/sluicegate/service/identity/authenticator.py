"""From a request's Authorization header to a principal; nothing else in a request says who is asking."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.access_tokens import AccessTokens, VerifiedToken
from sluicegate.service.identity.accounts import Accounts
from sluicegate.service.identity.attempts import name_client
from sluicegate.service.identity.bearers import Bearer, BearerKind
from sluicegate.service.identity.claims import read_profile, read_roles, read_user
from sluicegate.service.identity.clock import Clock, Now, SystemClock
from sluicegate.service.identity.database import Database, DatabaseDownError
from sluicegate.service.identity.jwks import Fetch, IssuerKeys
from sluicegate.service.identity.passwords import wrong_password
from sluicegate.service.identity.principal import Principal, Profile, Refused, SignIn, close_roles
from sluicegate.service.identity.scopes import ADMIN, ALL
from sluicegate.service.identity.settings import IdentitySettings, OidcSettings

_LOG = logging.getLogger("sluicegate.identity")
_LONGEST_HEADER = 20_000
_LONGEST_NAME = 200
_TOKEN = re.compile(r"[A-Za-z0-9._=-]+")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session just opened: its principal, and the text that stands for it from now on."""

    principal: Principal
    text: str = field(repr=False)


class Authenticator:
    """Tells who is asking. `catalog` gives the version in force at the moment."""

    def __init__(
        self,
        settings: IdentitySettings,
        database: Database,
        catalog: Callable[[], Catalog],
        clock: Clock | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.accounts = Accounts(settings, database, self.clock)
        self._catalog = catalog
        self._oidc: tuple[OidcSettings, AccessTokens] | None = None
        if settings.oidc is not None:
            keys = IssuerKeys(settings.oidc, self.clock, fetch)
            self._oidc = (settings.oidc, AccessTokens(settings.oidc, keys, self.clock))

    def authenticate(self, authorization: str | Sequence[str] | None, client: str) -> Principal | Refused:
        """The principal that the header (all values of it, where there are several) proves."""
        try:
            found = self._authenticate(authorization)
        except DatabaseDownError:
            found = Refused("identity-store", "accounts cannot be looked up now", 1.0)
        if isinstance(found, Refused):
            _LOG.info("refused %s from %s", found.code, name_client(client))
        return found

    def sign_in(
        self, user: str, password: str, client: str, roles: Iterable[str] | None = None
    ) -> SignedIn | Refused:
        """Open a session with a password, with all roles of the user or those asked for."""
        try:
            found = self._sign_in(user, password, client, roles)
        except DatabaseDownError:
            found = Refused("identity-store", "accounts cannot be looked up now", 1.0)
        if isinstance(found, Refused):
            # without the name: people type passwords there
            _LOG.warning("sign-in refused %s from %s", found.code, name_client(client))
        return found

    def _authenticate(self, authorization: str | Sequence[str] | None) -> Principal | Refused:
        text = _read_header(authorization)
        if isinstance(text, Refused):
            return text
        if text.startswith(("sg_", "ss_")):
            bearer = self.accounts.bearers.find(text)
            return bearer if isinstance(bearer, Refused) else self._seat_bearer(bearer)
        if self._oidc is None:
            return Refused("token-malformed", "this is no token of this gateway")
        settings, tokens = self._oidc
        token = tokens.verify(text)
        return token if isinstance(token, Refused) else self._seat_claims(settings, token, text)

    def _sign_in(
        self, user: str, password: str, client: str, roles: Iterable[str] | None
    ) -> SignedIn | Refused:
        refused = self.accounts.attempts.take(user[:_LONGEST_NAME], client)
        refused = refused or self.accounts.passwords.check(user, password)
        if refused is not None:
            return refused
        catalog = self._catalog()
        known = catalog.users.get(user)
        if known is None or known.disabled:
            return wrong_password()
        self.accounts.attempts.succeed(user[:_LONGEST_NAME], client)
        asked = None if roles is None else frozenset(roles)
        if asked is not None and not asked <= catalog.roles_of(user):
            return Refused("role-not-held", f"`{user}` does not have all of these roles")
        closed = None if asked is None else close_roles(catalog, asked)
        seconds = self.settings.session_seconds
        issued = self.accounts.bearers.issue(BearerKind.SESSION, user, ALL, seconds, closed, made_by=user)
        principal = self._seat_bearer(issued.bearer)
        return principal if isinstance(principal, Refused) else SignedIn(principal, issued.text)

    def _seat_bearer(self, bearer: Bearer) -> Principal | Refused:
        catalog = self._catalog()
        known = catalog.users.get(bearer.user)
        if known is None:
            return Refused("user-unknown", "the catalog has no such user any more")
        if known.disabled:
            return Refused("user-disabled", "the account is disabled")
        held = catalog.roles_of(bearer.user)
        roles = held if bearer.roles is None else close_roles(catalog, bearer.roles & held)
        way = SignIn.PASSWORD if bearer.kind is BearerKind.SESSION else SignIn.TOKEN
        principal = Principal(
            bearer.user,
            roles,
            way,
            bearer.scopes,
            bearer.id,
            bearer.created_at,
            self._expire(bearer.expires_at),
        )
        return self._crown(principal, catalog)

    def _seat_claims(self, settings: OidcSettings, token: VerifiedToken, text: str) -> Principal | Refused:
        user = read_user(settings, token.claims)
        if user is None:
            return Refused("token-claims", f"the claim `{settings.user_claim}` names no user")
        catalog = self._catalog()
        known = catalog.users.get(user)
        if known is None and not settings.trust_roles:
            return Refused("user-unknown", "the catalog has no such user")
        if known is not None and known.disabled:
            return Refused("user-disabled", "the account is disabled")
        if token.issued_at < self.accounts.cutoffs().get(user, 0):
            return Refused("token-revoked", "the user's tokens of that time were revoked")
        roles = read_roles(settings, token.claims, catalog, user)
        profile: Profile = read_profile(settings, token.claims)
        principal = Principal(
            user,
            roles,
            SignIn.OIDC,
            token.scopes,
            "oidc_" + hashlib.sha256(text.encode()).hexdigest()[:32],
            token.issued_at,
            self._expire(token.expires_at),
            claimed=settings.trust_roles,
            profile=profile,
        )
        return self._crown(principal, catalog)

    def _expire(self, wall: int) -> Now:
        now = self.clock.now()
        return Now(wall, now.monotonic + (wall - now.wall))

    def _crown(self, principal: Principal, catalog: Catalog) -> Principal:
        role = self.settings.administrator_role
        by_role = role is not None and role in catalog.roles and role in principal.roles
        by_name = principal.user in self.settings.administrators
        return replace(principal, is_admin=(by_role or by_name) and principal.may(ADMIN))


def _read_header(authorization: str | Sequence[str] | None) -> str | Refused:
    given = [authorization] if isinstance(authorization, str) else list(authorization or ())
    if not given:
        return Refused("credentials-missing", "sign in, or send a token")
    words = given[0].split(" ")
    whole = len(given) == 1 and len(given[0]) <= _LONGEST_HEADER and len(words) == 2
    if not whole or words[0].lower() != "bearer" or not _TOKEN.fullmatch(words[1]):
        return Refused("credentials-malformed", "the header is `Authorization: Bearer TOKEN`")
    return words[1]
