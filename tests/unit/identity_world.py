"""A small world to sign in to: a catalog, a clock that is moved by hand, and an issuer with keys of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.authenticator import Authenticator
from sluicegate.service.identity.clock import Now, to_micros
from sluicegate.service.identity.database import Database, SqliteDatabase, create_tables
from sluicegate.service.identity.principal import Principal, Refused
from sluicegate.service.identity.settings import IdentitySettings, OidcSettings, PasswordSettings
from sluicegate.service.identity.watch import Watch

ISSUER = "https://id.example.org/realm"
AUDIENCE = "sluicegate"
HOME = "192.0.2.7"
PASSWORD = "correct horse battery"
CHEAP = PasswordSettings(time_cost=1, memory_kib=8, parallelism=1)

CATALOG = """
CREATE ROLE Doctor;
CREATE ROLE Cardiologist INHERITS Doctor;
CREATE ROLE Nurse;
CREATE ROLE Device;
CREATE ROLE administrator;
CREATE USER hospital;
CREATE USER chen ROLES (Cardiologist, Nurse) SET (Ward = 3);
CREATE USER nina ROLES (Nurse);
CREATE USER root ROLES (administrator);
CREATE USER device120 ROLES (Device) SET (Patient_id = 120);
CREATE STREAM Heart (ts TIMESTAMP, Patient_id INT, Beats INT, Secret STRING) TIMESTAMP BY ts OWNER hospital;
CREATE STREAM Breath (ts TIMESTAMP, Patient_id INT) TIMESTAMP BY ts OWNER hospital;
CREATE STREAM Payroll (ts TIMESTAMP, Salary INT) TIMESTAMP BY ts OWNER root;
CREATE GRANT heart READ (ts, Patient_id, Beats) ON Heart TO Doctor WITH GRANT OPTION;
CREATE GRANT ward READ (ts, Beats) ON Heart TO Nurse;
CREATE GRANT feed APPEND ON Heart WHERE Patient_id = self.Patient_id TO Device;
"""


@cache
def base_catalog() -> Catalog:
    return read_catalog(CATALOG)


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0
        self.set_back = 0.0

    def now(self) -> Now:
        return Now(to_micros(self.seconds - self.set_back), to_micros(self.seconds))

    def move(self, seconds: float) -> None:
        self.seconds += seconds


@cache
def make_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_jwk(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, kid: str, **more: object
) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **more}


def encode_part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Issuer:
    """An identity provider: signs what it is told to, and serves its keys to whoever fetches them."""

    clock: HandClock
    keys: list[dict[str, Any]] = field(default_factory=lambda: [public_jwk(make_key("one"), "one")])
    fetched: list[str] = field(default_factory=list)
    down: bool = False

    def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if self.down:
            raise OSError("no route")
        if url.endswith("/.well-known/openid-configuration"):
            return json.dumps({"issuer": ISSUER, "jwks_uri": ISSUER + "/keys"}).encode()
        return json.dumps({"keys": self.keys}).encode()

    def claims(self, **changes: object) -> dict[str, Any]:
        """Claims of a good access token; a change to None takes one away."""
        now = int(self.clock.seconds)
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "chen",
            "iat": now,
            "nbf": now,
            "exp": now + 300,
            "scope": "openid sluicegate.read",
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def sign(
        self,
        claims: dict[str, Any] | str,
        key: Any = None,
        algorithm: str = "ES256",
        header: dict[str, Any] | None = None,
    ) -> str:
        payload = claims if isinstance(claims, str) else json.dumps(claims)
        headers = {"kid": "one", "typ": "at+jwt"} | (header or {})
        return PyJWS().encode(payload.encode(), key or make_key("one"), algorithm, headers)

    def token(self, **changes: object) -> str:
        return self.sign(self.claims(**changes))


@dataclass
class World:
    """Everything that a sign-in needs, small and fast."""

    settings: IdentitySettings
    catalog: Catalog
    clock: HandClock
    issuer: Issuer
    database: Database
    auth: Authenticator = field(init=False)
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.auth = Authenticator(
            self.settings, self.database, lambda: self.catalog, self.clock, self.issuer.fetch
        )
        self.watch = Watch(self.auth.accounts, self.clock)

    def bearer(self, text: str) -> Principal | Refused:
        return self.auth.authenticate(f"Bearer {text}", HOME)

    def sign_in(self, user: str = "chen", **more: Any) -> Principal:
        signed = self.auth.sign_in(user, PASSWORD, HOME, **more)
        assert not isinstance(signed, Refused), signed
        return signed.principal

    def code(self, text: str) -> str:
        """Of the refusal; a principal is a failure."""
        found = self.bearer(text)
        assert isinstance(found, Refused), found
        return found.code

    def still(self, principal: Principal) -> str | None:
        return self.watch.still_valid(principal, self.catalog)


def make_world(
    change: Callable[[OidcSettings], OidcSettings] = lambda oidc: oidc,
    database: Database | None = None,
    **settings: Any,
) -> World:
    clock = HandClock()
    if database is None:
        database = SqliteDatabase()
        create_tables(database)
    oidc = change(OidcSettings(ISSUER, AUDIENCE, jwks_url=ISSUER + "/keys"))
    made = replace(IdentitySettings(passwords=CHEAP, oidc=oidc), **settings)
    world = World(made, base_catalog(), clock, Issuer(clock), database)
    for user in ("chen", "nina", "root", "hospital"):
        assert world.auth.accounts.set_password(user, PASSWORD) is None
    return world
