"""What requests and answers of the HTTP API look like."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=1_048_576)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Version = Annotated[int, Field(ge=0, le=2**62)]


class Asked(BaseModel):
    """What is not in the schema is refused: a misspelt name must not be taken for its absence."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SignInAsked(Asked):
    user: Name = Field(examples=["paul"])
    password: Annotated[str, Field(min_length=1, max_length=1024)] = Field(examples=["correct horse battery"])
    roles: list[Name] | None = Field(None, max_length=1000, examples=[["Doctor"]])


class QueryAsked(Asked):
    query: Text = Field(examples=["SELECT SID FROM Health WHERE BPressure > 160"])


class ExplainAsked(QueryAsked):
    graphs: Annotated[int, Field(ge=0, le=1000)] = 100


class PunctuateAsked(Asked):
    statements: Text = Field(
        examples=[
            "INSERT SP INTO STREAM HeartRate LET DDP = TUPLES:ALL, SRP = frbac:Doctor, SIGN = POSITIVE;"
        ]
    )


class AckAsked(Asked):
    cursor: Annotated[str, Field(min_length=1, max_length=200)]


class ChangeAsked(Asked):
    statements: Text = Field(examples=["DROP GRANT own_platoon;"])
    reason: Annotated[str, Field(max_length=2000)] = Field("", examples=["the exercise is over"])
    dry_run: bool = False
    expected_version: Version | None = None


class RollbackAsked(Asked):
    version: Version
    reason: Annotated[str, Field(max_length=2000)] = ""


class TokenAsked(Asked):
    scopes: Annotated[list[Name], Field(min_length=1, max_length=100)] = Field(examples=[["read"]])
    expires_in: Annotated[float, Field(gt=0, le=10**9)] = Field(examples=[86400])
    roles: list[Name] | None = Field(None, max_length=1000)
    user: Name | None = None
    label: Annotated[str, Field(max_length=200)] = ""


class PasswordAsked(Asked):
    password: Annotated[str, Field(min_length=1, max_length=1024)]


class SignedInAnswer(BaseModel):
    token: str
    expires: str
    user: str
    roles: list[str]


class MeAnswer(BaseModel):
    user: str
    roles: list[str]
    scopes: list[str]
    is_admin: bool
    sign_in: str
    session: str
    expires: str


class AttributeAnswer(BaseModel):
    name: str
    type: str


class StreamAnswer(BaseModel):
    name: str
    attributes: list[AttributeAnswer]
    event_time: str | None
    owner: str | None
    is_owner: bool
    may_append: bool
    paused: bool


class StreamsAnswer(BaseModel):
    streams: list[StreamAnswer]


class RefusedRowAnswer(BaseModel):
    row: int
    reason: str


class PushAnswer(BaseModel):
    accepted: int
    refused: list[RefusedRowAnswer]
    refused_total: int


class PunctuatedAnswer(BaseModel):
    stream: str
    ts: str
    """What tuples of this policy name in `_sp_ts`."""
    count: int
    """What they name in `_sp_count`."""


class ReaderAnswer(BaseModel):
    """`roles`, `handle` and `query` of a query that the caller may know of."""

    user: str
    roles: list[str] | None
    handle: str | None
    query: str | None
    decision: str
    grants: list[str]
    """Those of the caller's streams that stand in what the reader gets."""
    rows_delivered: int
    paused: bool


class SharingAnswer(BaseModel):
    stream: str
    paused: bool
    readers: list[ReaderAnswer]
    denied: dict[str, int] = {}
    """Of a punctuated stream: tuples and punctuations that nobody gets, by reason."""


class DeadLetterAnswer(BaseModel):
    offset: int
    reason: str
    raw: str | None


class DeadLettersAnswer(BaseModel):
    stream: str
    dead: list[DeadLetterAnswer]


class PausedAnswer(BaseModel):
    stream: str
    paused: bool


class NoticeAnswer(BaseModel):
    code: str
    kind: str
    message: str


class QueryAnswer(BaseModel):
    handle: str
    uri: str
    user: str
    roles: list[str] | None
    query: str
    decision: str
    notices: list[NoticeAnswer]
    version: int = Field(description="the version of the catalog that the answer is of")
    paused: bool
    rows_delivered: int


class SinkAsked(BaseModel):
    sink: str = Field(min_length=1, max_length=80, description="a sink of the gateway's settings")


class SinkAnswer(BaseModel):
    sink: str
    running: bool
    failures: int = Field(description="tries in a row that failed; what was not written is tried again")
    problem: str | None


class QueriesAnswer(BaseModel):
    queries: list[QueryAnswer]


class ChangedAnswer(BaseModel):
    version: int
    withdrawn: int
    changed: int
    dry_run: bool = False
    queries: list[str] = Field(default_factory=list, description="their handles")


class PolicyChangedAnswer(ChangedAnswer):
    id: str


class PolicyAnswer(BaseModel):
    id: str
    policy_version: str
    is_set: bool
    description: str | None = None
    text: str | None = Field(default=None, description="its XML, where one policy was asked for")


class PoliciesAnswer(BaseModel):
    version: int
    policies: list[PolicyAnswer]


class VersionAnswer(BaseModel):
    version: int


class CatalogAnswer(BaseModel):
    version: int
    text: str


class EntryAnswer(BaseModel):
    version: int
    statements: list[str]
    author: str | None
    actor: str
    time: str
    reason: str
    hash: str


class HistoryAnswer(BaseModel):
    version: int
    entries: list[EntryAnswer]


class FactAnswer(BaseModel):
    name: str
    args: list[Any]
    value: Any
    public: bool
    polygon: list[Any] | None = Field(
        default=None, description="its coordinates, as a MultiPolygon of GeoJSON has them"
    )


class FactsAnswer(BaseModel):
    facts: list[FactAnswer]


class UserAnswer(BaseModel):
    name: str
    roles: list[str]
    profile: dict[str, Any]
    disabled: bool
    has_password: bool


class UsersAnswer(BaseModel):
    users: list[UserAnswer]


class WhoAnswer(BaseModel):
    stream: str
    attribute: str | None
    entries: list[dict[str, Any]]


class AuditAnswer(BaseModel):
    events: list[dict[str, Any]]
    next: int | None = Field(None, description="give it as `after` to read on")


class TokenAnswer(BaseModel):
    id: str
    user: str
    scopes: list[str]
    roles: list[str] | None
    label: str
    made_by: str
    created: str
    expires: str
    is_live: bool


class NewTokenAnswer(TokenAnswer):
    token: str = Field(description="shown this once")


class TokensAnswer(BaseModel):
    tokens: list[TokenAnswer]


class DoneAnswer(BaseModel):
    done: bool = True


class HealthAnswer(BaseModel):
    status: str
    version: int | None = None


class ErrorContent(BaseModel):
    code: str
    message: str
    help: str | None = None
    places: list[dict[str, Any]] = Field(default_factory=list)
    more: list[dict[str, Any]] = Field(default_factory=list)
    request: str


class ErrorAnswer(BaseModel):
    error: ErrorContent
