"""The catalog: change it, wait for a version, look at it and its history."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Annotated

from fastapi import Query, Request

from sluicegate.expr.nodes import Polygon
from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.policy.catalog import Catalog
from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.principal import Principal
from sluicegate.service.outcomes import Changed
from sluicegate.service.presenting import show_literal
from sluicegate.service.schemas import (
    CatalogAnswer,
    ChangeAsked,
    ChangedAnswer,
    EntryAnswer,
    FactAnswer,
    FactsAnswer,
    HistoryAnswer,
    RollbackAsked,
    VersionAnswer,
)
from sluicegate.service.store import Entry
from sluicegate.service.wording import list_rings

_POLL_SECONDS = 0.02


def change(asked: ChangeAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> ChangedAnswer:
    """Make statements one version; when the answer comes it is in force wherever rows are handed over (R10)."""
    made = gateway.change(
        caller,
        asked.statements,
        asked.reason,
        dry_run=asked.dry_run,
        expected=asked.expected_version,
        request=request_id,
    )
    return show_change(made, caller, gateway)


def rollback(
    asked: RollbackAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> ChangedAnswer:
    """A new version whose state is that of an old one."""
    made = gateway.rollback(caller, asked.version, asked.reason, request_id)
    return show_change(made, caller, gateway)


def show_change(made: Changed, caller: Principal, gateway: Gateway) -> ChangedAnswer:
    """What became of the queries that the caller may know of."""
    withdrawn = [each.handle for each in made.withdrawn if gateway.may_know(caller, each)]
    changed = [each.handle for each in made.changed if gateway.may_know(caller, each)]
    return ChangedAnswer(
        version=made.version,
        withdrawn=len(withdrawn),
        changed=len(changed),
        dry_run=made.dry_run,
        queries=sorted((*withdrawn, *changed)),
    )


async def wait_version(
    request: Request,
    caller: Caller,
    gateway: OpenGateway,
    wait_for: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    timeout: Annotated[float, Query(ge=0, le=60)] = 30.0,
) -> VersionAnswer:
    """The version in force here; with `wait_for`, after it is, or the time is over."""
    until = time.monotonic() + min(timeout, gateway.settings.most_wait_seconds)
    while wait_for is not None and gateway.catalog.version < wait_for and time.monotonic() < until:
        if request.app.state.delivery.hub.is_stopped or await request.is_disconnected():
            break
        await asyncio.sleep(_POLL_SECONDS)
    return VersionAnswer(version=gateway.catalog.version)


def show_catalog(caller: Caller, gateway: OpenGateway) -> CatalogAnswer:
    """For administrators all of it as text; for others what they own or granted, without the OPTIONS of sources."""
    catalog = gateway.catalog
    shown = catalog if caller.is_admin else _find_own(catalog, caller)
    text = "\n".join(print_statement(each) for each in catalog_statements(shown))
    return CatalogAnswer(version=catalog.version, text=text)


def _find_own(catalog: Catalog, caller: Principal) -> Catalog:
    # only administrators write OPTIONS, which name hosts, accounts, paths and secrets
    streams = {name: replace(each, options=()) for name, each in catalog.streams.items() if caller.owns(each)}
    grants = {
        name: each
        for name, each in catalog.grants.items()
        if each.grantor == caller.user
        or (each.streams and all(ref.stream in streams for ref in each.streams))
    }
    punctuations = {name: each for name, each in catalog.punctuations.items() if each.stream in streams}
    return Catalog(catalog.version, streams, grants=grants, punctuations=punctuations)


def show_history(
    caller: Caller,
    gateway: OpenGateway,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> HistoryAnswer:
    """Changes, oldest first: all for administrators, for others those that they made."""
    found = [
        each
        for each in gateway.store.history(after, limit if caller.is_admin else None)
        if caller.is_admin or each.actor == caller.user
    ]
    return HistoryAnswer(
        version=gateway.catalog.version, entries=[_show_entry(each) for each in found[:limit]]
    )


def _show_entry(entry: Entry) -> EntryAnswer:
    return EntryAnswer(
        version=entry.version,
        statements=list(entry.statements),
        author=entry.author,
        actor=entry.actor,
        time=entry.time,
        reason=entry.reason,
        hash=entry.hash,
    )


def show_facts(caller: Caller, gateway: OpenGateway) -> FactsAnswer:
    """Facts that are public; for administrators all."""
    found = [each for each in gateway.catalog.facts.values() if each.public or caller.is_admin]
    shown = [
        FactAnswer(
            name=each.name,
            args=list(each.args),
            value=show_literal(each.value),
            public=each.public,
            polygon=list_rings(each.value.value) if isinstance(each.value.value, Polygon) else None,
        )
        for each in found
    ]
    return FactsAnswer(facts=shown)


ROUTES = (
    Route("POST", "/v1/catalog", change, Need.GRANT),
    Route("GET", "/v1/catalog", show_catalog, Need.READ),
    Route("GET", "/v1/catalog/version", wait_version, Need.CALLER),
    Route("GET", "/v1/catalog/history", show_history, Need.READ),
    Route("POST", "/v1/catalog/rollback", rollback, Need.ADMIN),
    Route("GET", "/v1/facts", show_facts, Need.READ),
)
