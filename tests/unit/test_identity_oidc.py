"""Access tokens of an issuer (bypass 30): what is refused, how keys turn over, what claims may say."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.service.identity.claims import read_profile, read_user
from sluicegate.service.identity.jwks import IssuerKeys, fetch_url, pick_keys
from sluicegate.service.identity.jwt_text import JwtText, parse_jwt
from sluicegate.service.identity.principal import Principal, Refused, SignIn, seat
from sluicegate.service.identity.settings import OidcSettings, ProfileClaim
from unit.identity_world import (
    AUDIENCE,
    ISSUER,
    HandClock,
    World,
    encode_part,
    make_key,
    make_world,
    public_jwk,
    public_pem,
    rsa_key,
)


@pytest.fixture
def world() -> World:
    return make_world()


def by_hand(header: dict[str, Any], claims: dict[str, Any] | str, signature: bytes = b"x") -> str:
    payload = claims if isinstance(claims, str) else json.dumps(claims)
    return ".".join(map(encode_part, (json.dumps(header).encode(), payload.encode(), signature)))


def test_a_good_token_is_its_user_with_the_catalogs_roles(world: World) -> None:
    found = world.bearer(world.issuer.token())
    assert isinstance(found, Principal)
    assert (found.user, found.sign_in, found.scopes) == ("chen", SignIn.OIDC, {"read"})
    assert found.roles == {"Cardiologist", "Doctor", "Nurse"}
    assert not found.is_admin
    assert not found.is_expired(world.clock.now())


def test_bypass_30_another_issuer_with_its_own_keys(world: World) -> None:
    foreign = make_key("foreign")
    other = world.issuer.claims(iss="https://evil.example.org")
    assert world.code(world.issuer.sign(other, foreign)) == "token-issuer"
    assert world.issuer.fetched == []
    # the same issuer's name, signed by somebody else
    assert world.code(world.issuer.sign(world.issuer.claims(), foreign)) == "token-signature"
    assert world.code(world.issuer.token(iss=ISSUER + "/")) == "token-issuer"
    assert world.code(world.issuer.token(iss=[ISSUER])) == "token-issuer"
    assert all(url.startswith(ISSUER) for url in world.issuer.fetched)


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, ["ES256"], "HS256"])
def test_bypass_30_none_and_strange_algorithms(world: World, alg: object) -> None:
    header = {"kid": "one", "typ": "at+jwt", "alg": alg}
    assert world.code(by_hand(header, world.issuer.claims())) == "token-algorithm"
    assert world.code(by_hand(header, world.issuer.claims(), b"")) == "token-malformed"


def test_bypass_30_hs256_signed_with_the_public_key(world: World) -> None:
    world.issuer.keys = [public_jwk(rsa_key(), "one")]
    header = encode_part(json.dumps({"kid": "one", "typ": "at+jwt", "alg": "HS256"}).encode())
    signed = f"{header}.{encode_part(json.dumps(world.issuer.claims()).encode())}"
    for secret in (public_pem(rsa_key()), json.dumps(world.issuer.keys[0]).encode()):
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        assert world.code(f"{signed}.{encode_part(mac)}") == "token-algorithm"
    good = world.issuer.sign(world.issuer.claims(), rsa_key(), "RS256")
    assert isinstance(world.bearer(good), Principal)


@pytest.mark.parametrize("algorithms", [("none",), ("HS256",), ("RS256", "HS512"), ()])
def test_bypass_30_unsafe_algorithms_cannot_be_configured(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(DiagnosticError) as caught:
        OidcSettings(ISSUER, AUDIENCE, algorithms=algorithms)
    assert caught.value.diagnostics[0].code == "identity-settings"


@pytest.mark.parametrize("audience", ["other", ["other"], [], "", {"sluicegate": 1}, "sluicegate2", None])
def test_bypass_30_wrong_audience(world: World, audience: object) -> None:
    assert world.code(world.issuer.token(aud=audience)) == "token-audience"


def test_every_algorithm_of_the_default_list_verifies() -> None:
    edwards = ed25519.Ed25519PrivateKey.generate()
    signers: dict[str, Any] = {
        "RS256": rsa_key(),
        "PS256": rsa_key(),
        "ES256": make_key("one"),
        "EdDSA": edwards,
    }
    assert set(signers) == set(OidcSettings(ISSUER, AUDIENCE).algorithms)
    for algorithm, key in signers.items():
        world = make_world()
        raw = (
            OKPAlgorithm.to_jwk(key.public_key(), as_dict=True) if key is edwards else public_jwk(key, "one")
        )
        world.issuer.keys = [{**raw, "kid": "one"}]
        good = world.issuer.sign(world.issuer.claims(), key, algorithm)
        assert isinstance(world.bearer(good), Principal)
        assert world.code(good[: good.rindex(".")] + "." + encode_part(b"s" * 64)) == "token-signature"


def test_one_of_several_audiences_is_enough(world: World) -> None:
    assert isinstance(world.bearer(world.issuer.token(aud=["other", AUDIENCE])), Principal)


def test_bypass_30_an_id_token_as_access_token(world: World) -> None:
    plain = {"typ": "JWT"}
    id_token = world.issuer.claims(scope=None)
    assert world.code(world.issuer.sign(id_token, header=plain)) == "token-scope"
    for mark in ("nonce", "at_hash", "c_hash", "events"):
        claims = world.issuer.claims(**{mark: "x"})
        assert world.code(world.issuer.sign(claims, header=plain)) == "token-kind"
    assert world.code(world.issuer.token(typ="ID")) == "token-kind"
    assert world.code(world.issuer.sign(world.issuer.claims(), header={"typ": "logout+jwt"})) == "token-kind"
    assert isinstance(world.bearer(world.issuer.sign(world.issuer.claims(), header=plain)), Principal)


def test_only_at_jwt_where_the_settings_ask_for_it() -> None:
    world = make_world(lambda oidc: replace(oidc, require_at_jwt=True))
    assert world.code(world.issuer.sign(world.issuer.claims(), header={"typ": "JWT"})) == "token-kind"
    assert isinstance(world.bearer(world.issuer.token()), Principal)


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c", "crit"])
def test_bypass_30_keys_that_the_token_brings(world: World, name: str) -> None:
    foreign = make_key("foreign")
    value: object = {
        "jku": "https://evil.example.org/keys",
        "x5u": "https://evil.example.org/cert",
        "jwk": public_jwk(foreign, "one"),
        "x5c": ["MIIB"],
        "crit": ["exp"],
    }[name]
    for key in (foreign, make_key("one")):
        token = world.issuer.sign(world.issuer.claims(), key, header={name: value})
        assert world.code(token) == "token-header"
    assert world.issuer.fetched == []


def test_bypass_30_old_keys_after_rotation(world: World) -> None:
    old = world.issuer.token(exp=int(world.clock.seconds) + 80_000)
    assert isinstance(world.bearer(old), Principal)
    world.issuer.keys = [public_jwk(make_key("two"), "two")]
    world.clock.move(31)
    new = world.issuer.sign(world.issuer.claims(), make_key("two"), header={"kid": "two"})
    assert isinstance(world.bearer(new), Principal)
    assert world.code(old) == "token-key"


def test_bypass_30_a_dropped_key_counts_no_longer_than_keys_are_kept(world: World) -> None:
    """Even when no token with a new key comes along."""
    old = world.issuer.token(exp=int(world.clock.seconds) + 80_000)
    assert isinstance(world.bearer(old), Principal)
    world.issuer.keys = [public_jwk(make_key("two"), "two")]
    world.clock.move(599)
    assert isinstance(world.bearer(old), Principal)
    world.clock.move(1)
    assert world.code(old) == "token-key"


def test_keys_that_cannot_be_renewed_run_out(world: World) -> None:
    long = world.issuer.token(exp=int(world.clock.seconds) + 80_000)
    assert isinstance(world.bearer(long), Principal)
    world.issuer.down = True
    world.clock.move(1_100)
    assert isinstance(world.bearer(long), Principal)
    world.clock.move(100)
    assert world.code(long) == "token-keys-unavailable"


def test_no_keys_at_all_is_no_access(world: World) -> None:
    world.issuer.down = True
    assert world.code(world.issuer.token()) == "token-keys-unavailable"


def test_unknown_keys_cannot_make_a_flood_of_fetches(world: World) -> None:
    for number in range(50):
        token = world.issuer.sign(world.issuer.claims(), header={"kid": f"k{number}"})
        assert world.code(token) == "token-key"
        world.clock.move(1)
    assert len(world.issuer.fetched) == 2


def test_bypass_30_kid_confusion(world: World) -> None:
    claims = world.issuer.claims()
    for kid in (None, "", 1, ["one"], "ONE", "one ", "../one", "one\x00"):
        header = {"alg": "ES256", "typ": "at+jwt", "kid": kid}
        assert world.code(by_hand(header, claims, b"s" * 64)) == "token-key"


def test_bypass_30_an_id_that_two_keys_have_names_neither(world: World) -> None:
    world.issuer.keys.append(public_jwk(make_key("foreign"), "one"))
    assert world.code(world.issuer.token()) == "token-key"


def test_bypass_30_a_key_for_another_algorithm_or_use(world: World) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        (public_jwk(make_key("one"), "one", alg="ES384"), "token-algorithm"),
        (public_jwk(rsa_key(), "one"), "token-algorithm"),
        (public_jwk(make_key("one"), "one", use="enc"), "token-key"),
        (public_jwk(make_key("one"), "one", key_ops=["encrypt"]), "token-key"),
        ({"kty": "oct", "kid": "one", "k": "c2VjcmV0"}, "token-key"),
        ({**ECAlgorithm.to_jwk(make_key("one"), as_dict=True), "kid": "one"}, "token-key"),
        ({**public_jwk(make_key("one"), "one"), "x": "!!"}, "token-key"),
    ]
    for jwk, code in wrong:
        world.issuer.keys = [jwk]
        world.clock.move(700)
        assert world.code(world.issuer.token()) == code


def test_expired_and_early(world: World) -> None:
    now = int(world.clock.seconds)
    assert world.code(world.issuer.token(exp=now)) == "token-expired"
    assert world.code(world.issuer.token(iat=now - 600, nbf=now - 600, exp=now - 1)) == "token-expired"
    assert world.code(world.issuer.token(nbf=now + 31)) == "token-not-yet"
    assert world.code(world.issuer.token(iat=now + 31)) == "token-not-yet"
    assert isinstance(world.bearer(world.issuer.token(nbf=now + 30, iat=now + 30)), Principal)


def test_a_token_counts_no_longer_than_the_settings_allow(world: World) -> None:
    now = int(world.clock.seconds)
    assert world.code(world.issuer.token(iat=now - 86_400, exp=now + 9_999_999)) == "token-expired"


@pytest.mark.parametrize("name", ["exp", "iat", "nbf"])
@pytest.mark.parametrize("value", [None, "1800000100", True, -1, 1e300, [1], {}])
def test_times_are_required_and_are_numbers(world: World, name: str, value: object) -> None:
    assert world.code(world.issuer.token(**{name: value})) == "token-claims"


def test_nbf_may_be_left_out_where_the_settings_say_so() -> None:
    world = make_world(lambda oidc: replace(oidc, require_nbf=False))
    assert isinstance(world.bearer(world.issuer.token(nbf=None)), Principal)
    assert world.code(world.issuer.token(nbf="soon")) == "token-claims"


def test_bypass_30_a_claim_given_twice(world: World) -> None:
    text = json.dumps(world.issuer.claims())
    twice = text[:-1] + ', "sub": "root"}'
    assert world.code(world.issuer.sign(twice)) == "token-claims"
    deep = text[:-1] + ', "realm": {"roles": [], "roles": ["administrator"]}}'
    assert world.code(world.issuer.sign(deep)) == "token-claims"


def test_text_that_can_be_read_in_two_ways(world: World) -> None:
    good = world.issuer.token()
    head, body, signature = good.split(".")
    last = signature[-1]
    spare = {"A": "B", "Q": "R", "g": "h", "w": "x"}.get(last)
    assert spare is not None
    assert world.code(f"{head}.{body}.{signature[:-1]}{spare}") == "token-malformed"
    for text in (
        f"{head}.{body}",
        f"{good}.x",
        f"{head}..{signature}",
        good + "=",
        f"{head}.{body}.",
        "x" * 19_000,
    ):
        assert world.code(text) == "token-malformed"
    assert world.code(world.issuer.sign("[" * 5_000)) == "token-malformed"
    assert world.code(world.issuer.sign("[]")) == "token-malformed"
    assert world.code(world.issuer.sign('{"iss": NaN}')) == "token-malformed"


@settings(max_examples=50)
@given(
    st.text(max_size=80) | st.binary(max_size=80).map(encode_part) | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*")
)
@example("e30.e30.e30")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    assert isinstance(parse_jwt(text), JwtText | Refused)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_changed_character_leaves_a_token_good(world: World, data: st.DataObject) -> None:
    good = world.issuer.token()
    place = data.draw(st.integers(0, len(good) - 1))
    char = data.draw(st.sampled_from("ABCabc012-_."))
    if good[place] != char:
        world.code(good[:place] + char + good[place + 1 :])


ROLES = ("realm_access", "roles")


def with_roles(**more: object) -> World:
    return make_world(lambda oidc: replace(oidc, roles_claim=ROLES, **more))  # type: ignore[arg-type]


def test_claimed_roles_are_those_that_the_catalog_gives_the_user() -> None:
    world = with_roles()
    found = world.bearer(world.issuer.token(realm_access={"roles": ["Doctor", "administrator", "nobody", 7]}))
    assert isinstance(found, Principal)
    assert found.roles == {"Doctor"}
    for strange in ("Doctor", None, {"Doctor": 1}, ["doctor"]):
        found = world.bearer(world.issuer.token(realm_access={"roles": strange}))
        assert isinstance(found, Principal)
        assert found.roles == set()


def test_trusted_roles_exist_in_the_catalog_and_reach_users_it_does_not_know() -> None:
    world = with_roles(trust_roles=True, role_names={"heart-team": "Cardiologist", "gone": "Gone"})
    token = world.issuer.token(sub="yuki", realm_access={"roles": ["heart-team", "gone", "Nurse"]})
    found = world.bearer(token)
    assert isinstance(found, Principal)
    assert found.roles == {"Cardiologist", "Doctor"}
    seated = seat(found, world.catalog)
    assert [grant.name for grant in seated.grants_to("yuki")] == ["heart"]
    assert world.catalog.grants_to("yuki") == ()
    assert world.still(found) is None


def test_users_that_the_catalog_does_not_know_stay_out(world: World) -> None:
    assert world.code(world.issuer.token(sub="yuki")) == "user-unknown"


@pytest.mark.parametrize(
    "name", ["", " chen", "#x", "_x", "self", "a\nb", "a" * 201, 7, None, ["chen"], "a\0"]
)
def test_a_claim_that_is_no_name(name: object) -> None:
    assert read_user(OidcSettings(ISSUER, AUDIENCE), {"sub": name}) is None


def test_scopes_are_mapped_and_an_administrator_needs_the_scope() -> None:
    world = make_world(administrators=frozenset({"chen"}))
    plain, full = (
        world.bearer(world.issuer.token(scope=scope))
        for scope in ("sluicegate.read", "sluicegate.read sluicegate.admin")
    )
    assert isinstance(plain, Principal)
    assert isinstance(full, Principal)
    assert (plain.is_admin, full.is_admin) == (False, True)
    assert world.code(world.issuer.token(scope="admin read push:*")) == "token-scope"
    assert isinstance(world.bearer(world.issuer.token(scope=None, scp=["sluicegate.push"])), Principal)


def test_profile_claims_are_typed_and_replace_the_catalogs() -> None:
    mapped = (ProfileClaim(("ward",), "Ward", INT), ProfileClaim(("org", "unit"), "Unit"))
    world = make_world(lambda oidc: replace(oidc, profile=mapped))
    found = world.bearer(world.issuer.token(ward=5, org={"unit": "east"}))
    assert isinstance(found, Principal)
    chen = seat(found, world.catalog).users["chen"]
    assert (chen.attribute("Ward"), chen.attribute("Unit")) == (Literal(5, INT), Literal("east", STRING))
    without = world.bearer(world.issuer.token(ward="5", Patient_id=120))
    assert isinstance(without, Principal)
    chen = seat(without, world.catalog).users["chen"]
    assert (chen.attribute("Ward"), chen.attribute("Unit"), chen.attribute("Patient_id")) == (
        None,
        None,
        None,
    )
    assert found.key != without.key


@settings(max_examples=50)
@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
)
def test_a_claim_is_of_its_type_or_absent(value: object) -> None:
    types = (STRING, INT, BIGINT, DOUBLE, BOOLEAN)
    oidc = OidcSettings(ISSUER, AUDIENCE, profile=tuple(ProfileClaim(("c",), str(of), of) for of in types))
    python = {STRING: str, INT: int, BIGINT: int, DOUBLE: float, BOOLEAN: bool}
    for (_, found), of in zip(read_profile(oidc, {"c": value}), types, strict=True):
        assert found is None or (type(found.value) is python[of] and found.of == of)


def test_settings_that_would_be_unsafe_are_refused() -> None:
    unsafe: list[dict[str, Any]] = [
        {"issuer": "http://id.example.org"},
        {"issuer": "https://id.example.org?x=1"},
        {"jwks_url": "http://id.example.org/keys"},
        {"jwks_url": "file:///etc/passwd"},
        {"jwks_url": ISSUER, "jwks_file": "keys.json"},
        {"audience": ""},
        {"leeway_seconds": 3_600},
        {"trust_roles": True},
        {"scopes": {"x": ("everything",)}},
    ]
    for each in unsafe:
        with pytest.raises(DiagnosticError):
            OidcSettings(**{"issuer": ISSUER, "audience": AUDIENCE} | each)
    with pytest.raises(DiagnosticError):
        ProfileClaim(("x",), "X", TIMESTAMP)


def test_discovery_is_of_exactly_the_configured_issuer() -> None:
    def keys_of(document: dict[str, Any]) -> object:
        def fetch(url: str) -> bytes:
            found = document if "well-known" in url else {"keys": [public_jwk(make_key("one"), "one")]}
            return json.dumps(found).encode()

        return IssuerKeys(OidcSettings(ISSUER, AUDIENCE), HandClock(), fetch).find("one", "ES256")

    good = {"issuer": ISSUER, "jwks_uri": ISSUER + "/keys"}
    assert not isinstance(keys_of(good), Refused)
    for wrong in (
        {"issuer": ISSUER + "/"},
        {"issuer": None},
        {"jwks_uri": "http://evil.example.org"},
        {"jwks_uri": 1},
    ):
        assert isinstance(keys_of(good | wrong), Refused)


def test_keys_from_a_file(tmp_path: Any) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [public_jwk(make_key("one"), "one")]}))
    world = make_world(lambda oidc: replace(oidc, jwks_url=None, jwks_file=str(file)))
    assert isinstance(world.bearer(world.issuer.token()), Principal)
    assert world.issuer.fetched == []


@pytest.mark.parametrize("document", [{}, {"keys": {}}, {"keys": 1}])
def test_a_document_without_keys_is_an_error(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no keys"):
        pick_keys(document)


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "/keys")
        self.end_headers()
        self.wfile.write(b"x" * (600 * 1024) if self.path == "/long" else b'{"keys": []}')

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def place() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_fetching_follows_no_redirects_and_stops_at_a_size(place: str) -> None:
    assert fetch_url(place + "/keys") == b'{"keys": []}'
    for path in ("/moved", "/long"):
        with pytest.raises(OSError, match=r"redirects|too long"):
            fetch_url(place + path)
