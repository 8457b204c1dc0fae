"""Who may change what: administrators everything, owners their streams, holders of the grant option what R19 allows."""

from __future__ import annotations

from sluicegate.language.fold_state import State, fail
from sluicegate.language.statements import (
    AddAttribute,
    AlterStream,
    CreateGrant,
    CreateSP,
    CreateStream,
    Drop,
    ObjectKind,
    Statement,
    StreamOptions,
)
from sluicegate.policy.delegation import check_delegation, name_secrets
from sluicegate.policy.model import Grant
from sluicegate.source import Span


def check_authority(state: State, statement: Statement) -> None:
    """Raises when the author may not make this change. Grants are checked when they are resolved."""
    if state.author is None or isinstance(statement, CreateGrant):
        return
    match statement:
        case CreateStream(query=query) if query is not None:
            owner = statement.options.owner
            if owner is not None and owner.text != state.author:
                _refuse(state, "make a stream for another owner", owner.span)
        case AlterStream(name):
            _check_owner(state, name.text, name.span)
            _check_reading(state, statement)
            _check_options(state, statement)
        case Drop(ObjectKind.STREAM, name):
            _check_owner(state, name.text, name.span)
        case CreateSP(stream=stream):
            _check_owner(state, stream.text, stream.span)
        case Drop(ObjectKind.SP, name):
            punctuation = state.punctuations.get(name.text)
            _check_owner(state, punctuation.stream if punctuation else "", name.span)
        case Drop(ObjectKind.GRANT, name):
            if not _may_change(state, state.grants.get(name.text)):
                _refuse(state, f"drop the grant `{name.text}`", name.span)
        case _:
            _refuse(state, "make this change", statement.span)


def check_grant_authority(state: State, statement: CreateGrant, grant: Grant) -> str | None:
    """The grantor to record: None for an administrator or the owner of all its streams."""
    if state.author is None:
        return _check_grantor(state, statement)
    if statement.grantor is not None or statement.closed is not None:
        _refuse(state, "write GRANTED BY or CLOSED", statement.name.span)
    existing = state.grants.get(grant.name)
    if existing is not None and not _may_change(state, existing):
        _refuse(state, f"replace the grant `{grant.name}`", statement.name.span)
    if all(state.owns(ref.stream) for ref in grant.streams):
        if any(state.streams[ref.stream].query is not None for ref in grant.streams):
            _check_facts(state, statement, grant)
        return None
    reason = check_delegation(state.snapshot(), state.author, grant)
    if reason is not None:
        help_ = "a grant needs the owner of its streams, or a grant with the grant option that it is no wider than"
        fail("may-not-grant", reason, statement.name.span, help_)
    _check_facts(state, statement, grant)
    return state.author


def _check_facts(state: State, statement: CreateGrant, grant: Grant) -> None:
    """Anybody may make a named result or pass a grant on, and read by it: no way to ask for facts (D3)."""
    secrets = name_secrets(state.snapshot(), state.author or "", grant)
    if secrets:
        listed = ", ".join(f"`{name}`" for name in secrets)
        help_ = "name public facts, or those of the grant that is passed on"
        fail("may-not-grant", f"`{state.author}` may not name the fact {listed}", statement.name.span, help_)


def _check_grantor(state: State, statement: CreateGrant) -> str | None:
    if statement.grantor is None:
        return None
    if statement.grantor.text not in state.users:
        fail("unknown-user", f"unknown user `{statement.grantor.text}`", statement.grantor.span)
    return statement.grantor.text


def _may_change(state: State, grant: Grant | None) -> bool:
    """Its maker, or who owns all its streams; for others it is as if it did not exist."""
    if grant is None:
        return False
    return grant.grantor == state.author or all(state.owns(ref.stream) for ref in grant.streams)


def _check_owner(state: State, stream: str, span: Span | None) -> None:
    if stream not in state.streams or not state.owns(stream):
        _refuse(state, "change what belongs to another", span)


def _check_reading(state: State, statement: AlterStream) -> None:
    """Attributes name what is read from a source, which has more than its owner was given."""
    stream = state.streams[statement.name.text]
    if stream.format is None:
        return
    match statement.action:
        case AddAttribute():
            _refuse(state, "widen what is read from a source", statement.span)
        case StreamOptions(key=key) if key and tuple(each.text for each in key) != stream.key:
            _refuse(state, "change the key of what is read from a source", statement.span)


def _check_options(state: State, statement: AlterStream) -> None:
    """Where a feed reads from reaches beyond its stream; a named result runs with the rights of its owner."""
    options = statement.action
    if not isinstance(options, StreamOptions):
        return
    if options.format is not None or options.options:
        _refuse(state, "change where a stream comes from", statement.span)
    if options.owner is not None and state.streams[statement.name.text].query is not None:
        _refuse(state, "give a named result to another", options.owner.span)


def _refuse(state: State, what: str, span: Span | None) -> None:
    fail("not-allowed", f"`{state.author}` may not {what}", span, "ask the owner or an administrator")
