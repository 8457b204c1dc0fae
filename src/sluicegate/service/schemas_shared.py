"""What requests and answers about shared queries look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from sluicegate.service.schemas import Asked, Name, Text

Seconds = Annotated[float, Field(gt=0, le=10**9)]


class ShareAsked(Asked):
    name: Name = Field(examples=["Q2"])
    query: Text = Field(examples=["SELECT SID FROM Health WHERE BPressure > 160"])


class PolicyAsked(Asked):
    """All that is given must hold: this user, a holder of this role, a holder of this credential."""

    user: Name | None = None
    role: Name | None = Field(None, examples=["Nurse"])
    credential: Name | None = Field(None, examples=["ward-3"])


class SubscribeAsked(Asked):
    expires_in: Seconds = Field(examples=[86400])
    user: Name | None = None


class CredentialAsked(Asked):
    name: Name = Field(examples=["ward-3"])
    user: Name = Field(examples=["ann"])
    expires_in: Seconds = Field(examples=[86400])


class PolicyShown(BaseModel):
    user: str | None
    role: str | None
    credential: str | None


class SubscriptionAnswer(BaseModel):
    query: str
    user: str
    expires: str
    roles: list[str] | None = Field(
        default=None, description="for its user and administrators, as all that follows"
    )
    handle: str | None = Field(default=None, description="its results are those of a query of this handle")
    is_open: bool | None = None
    reason: str | None = Field(default=None, description="why its switch is as it is")


class SharedAnswer(BaseModel):
    name: str
    owner: str
    query: str | None = Field(None, description="for its owner, its subscribers and administrators")
    policies: list[PolicyShown] | None = Field(None, description="for its owner and administrators")
    subscriptions: list[SubscriptionAnswer]


class SharedListAnswer(BaseModel):
    shared: list[SharedAnswer]


class SubscriptionsAnswer(BaseModel):
    subscriptions: list[SubscriptionAnswer]


class CredentialAnswer(BaseModel):
    name: str
    user: str
    expires: str
    revoked: bool


class CredentialsAnswer(BaseModel):
    credentials: list[CredentialAnswer]
