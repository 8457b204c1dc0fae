"""What the console asks for besides: grants in words, drawings, saved queries."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from sluicegate.service.schemas import Asked, Name, Text


class OwnGrantsAnswer(BaseModel):
    user: str
    profile: dict[str, Any]
    grants: list[dict[str, Any]]


class CursorAnswer(BaseModel):
    cursor: str


class DrawAsked(Asked):
    query: Text = Field(examples=["SELECT SID FROM Health WHERE BPressure > 160"])


class DrawingAsked(Asked):
    nodes: Annotated[list[dict[str, Any]], Field(max_length=1000)] = Field(
        examples=[[{"id": "a", "kind": "source", "stream": "Health", "inputs": []}]]
    )
    united: bool = False
    ending: Annotated[str, Field(max_length=65_536)] = ""


class ProblemAnswer(BaseModel):
    code: str
    message: str
    help: str | None = None
    severity: str = "error"
    start: int | None = None
    end: int | None = None
    node: str = ""
    field: str = ""


class ColumnAnswer(BaseModel):
    qualifier: str
    name: str
    type: str


class DrawnAnswer(BaseModel):
    drawing: dict[str, Any] | None
    outputs: list[ColumnAnswer]
    problems: list[ProblemAnswer]


class WrittenAnswer(BaseModel):
    text: str | None
    fields: dict[str, list[ColumnAnswer]] = Field(description="what each operator gives, by its id")
    problems: list[ProblemAnswer]


class WordAnswer(BaseModel):
    name: str
    told: str


class VocabularyAnswer(BaseModel):
    keywords: list[str]
    functions: list[WordAnswer]
    aggregates: list[str]


class SavedAnswer(BaseModel):
    name: str
    query: str
    changed: str


class SavedListAnswer(BaseModel):
    saved: list[SavedAnswer]


class SaveAsked(Asked):
    name: Name
    query: Text


class DiffAnswer(BaseModel):
    before: int
    after: int
    removed: list[str]
    added: list[str]


class NetworkQueryAnswer(BaseModel):
    handle: str
    user: str
    query: str
    switch: str | None = Field(
        description="what query-level punctuations call it; null where it has no switches"
    )
    open: bool


class NetworkAnswer(BaseModel):
    operators: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    switches: list[dict[str, Any]]
    outputs: dict[str, str] = Field(description="the operator of each query's rows")
    counts: dict[str, int]
    queries: dict[str, NetworkQueryAnswer] = Field(description="by the names that the network has for them")
    left_out: int = Field(description="how many running queries are not shown")
