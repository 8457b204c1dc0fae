"""Settings of sign-in, frozen and checked when made: what is unsafe cannot be configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Type
from sluicegate.service.identity.scopes import check_scope

ASYMMETRIC = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
CLAIM_TYPES = frozenset({STRING, INT, BIGINT, DOUBLE, BOOLEAN})
MOST_LEEWAY = 120
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def refuse_settings(message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic("identity-settings", message, help=help_)])


def check_url(url: str) -> None:
    """HTTPS, or HTTP to this machine itself; without user, query and fragment."""
    parts = urlsplit(url)
    secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not (secure and parts.hostname and plain):
        raise refuse_settings(f"`{url}` is not a plain https URL")


@dataclass(frozen=True, slots=True)
class PasswordSettings:
    """argon2id as RFC 9106 recommends it for little memory; a changed parameter is taken on at the next sign-in."""

    time_cost: int = 3
    memory_kib: int = 65_536
    parallelism: int = 4
    at_once: int = 4
    """Hashes that may be computed at the same time: each takes `memory_kib`."""
    wait_seconds: float = 2.0
    least_length: int = 12


@dataclass(frozen=True, slots=True)
class LockSettings:
    """From the `limit`-th failure on each doubles the wait. Addresses have more room: many people may share one."""

    user_limit: int = 5
    client_limit: int = 30
    first_seconds: float = 2.0
    most_seconds: float = 900.0
    forget_seconds: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ProfileClaim:
    """A claim (a path of names) that becomes a profile attribute of a type; a value of another type is absent (R7)."""

    claim: tuple[str, ...]
    attribute: str
    type: Type = STRING

    def __post_init__(self) -> None:
        if not self.claim or self.type not in CLAIM_TYPES:
            raise refuse_settings(f"the claim for `{self.attribute}` has no name or cannot be {self.type}")


DEFAULT_SCOPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sluicegate.read": ("read",),
        "sluicegate.push": ("push:*",),
        "sluicegate.grant": ("grant",),
        "sluicegate.admin": ("admin",),
    }
)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """One issuer, and how its claims are read.

    Keys come from `jwks_url`, from `jwks_file`, or with neither from the issuer's discovery document. With
    `roles_claim` the token says which roles are active: of those that the catalog gives the user, or, with
    `trust_roles`, of all that the catalog has, for users too whom it does not know.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    jwks_file: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    leeway_seconds: int = 30
    require_nbf: bool = True
    require_at_jwt: bool = False
    most_seconds: int = 86_400
    """A token counts no longer than this after it was issued, whatever it says itself."""
    user_claim: str = "sub"
    roles_claim: tuple[str, ...] | None = None
    role_names: Mapping[str, str] | None = None
    """From the issuer's names of roles to the catalog's; where there is none they are the same."""
    trust_roles: bool = False
    profile: tuple[ProfileClaim, ...] = ()
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DEFAULT_SCOPES)
    keys_seconds: float = 600.0
    """How old the issuer's keys may be before they are read again: a key that it dropped counts no longer than this."""
    refetch_seconds: float = 30.0
    """The least time between two reads, whatever tokens ask for."""

    def __post_init__(self) -> None:
        check_url(self.issuer)
        if self.jwks_url is not None:
            check_url(self.jwks_url)
        if self.jwks_url is not None and self.jwks_file is not None:
            raise refuse_settings("`jwks_url` and `jwks_file` are both set")
        if not self.audience:
            raise refuse_settings("`audience` is empty", "it names this gateway in the issuer's tokens")
        wrong = sorted(set(self.algorithms) - ASYMMETRIC)
        if wrong or not self.algorithms:
            listed = ", ".join(f"`{name}`" for name in wrong) or "none"
            raise refuse_settings(
                f"tokens cannot be signed with {listed}", "only asymmetric algorithms are safe here"
            )
        if not 0 <= self.leeway_seconds <= MOST_LEEWAY:
            raise refuse_settings(f"`leeway_seconds` is not between 0 and {MOST_LEEWAY}")
        if self.trust_roles and self.roles_claim is None:
            raise refuse_settings("`trust_roles` needs `roles_claim`")
        for scope in (each for given in self.scopes.values() for each in given):
            check_scope(scope)


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """All of sign-in."""

    administrators: frozenset[str] = frozenset()
    administrator_role: str | None = "administrator"
    session_seconds: float = 8 * 3_600.0
    most_token_seconds: float = 366 * 86_400.0
    trust_seconds: float = 1.0
    """How long what the store said about sessions and tokens counts; after that, without an answer, nobody is valid."""
    passwords: PasswordSettings = PasswordSettings()
    lock: LockSettings = LockSettings()
    oidc: OidcSettings | None = None

    @property
    def claimed(self) -> frozenset[str]:
        """Profile attributes that the issuer's claims decide."""
        return (
            frozenset(each.attribute for each in self.oidc.profile) if self.oidc is not None else frozenset()
        )
