"""The HTTP application, built by a function: no globals, so that tests build as many as they like."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI

import sluicegate.service.routes as routes
from sluicegate.service.access import Need, Route, find_caller
from sluicegate.service.delivery import Delivery
from sluicegate.service.frontier import Frontier
from sluicegate.service.gateway import Gateway
from sluicegate.service.limits import MOST_READING, Buckets, Slots
from sluicegate.service.refusals import ANSWERS, answer_error
from sluicegate.service.schemas import ErrorAnswer
from sluicegate.service.settings import Settings

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": told}
    for status, told in (
        (400, "what was written is wrong; with places in the text"),
        (401, "nobody known is asking"),
        (403, "not allowed"),
        (404, "nothing here that the caller may know of"),
        (408, "the body did not arrive in time"),
        (409, "not as things are now"),
        (413, "too large"),
        (415, "a content that is not read"),
        (422, "a part of the request is malformed"),
        (429, "too many"),
        (501, "not served yet"),
        (503, "the gateway cannot deliver now"),
    )
}


def create_app(settings: Settings, gateway: Gateway) -> FastAPI:
    """The application over a gateway, which it starts and stops with itself."""
    delivery = Delivery(gateway)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        delivery.start()
        gateway.start()
        try:
            yield
        finally:
            await delivery.stop()
            gateway.stop()

    app = FastAPI(
        title="sluicegate",
        summary="Who may see what of a data stream",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=live,
        redirect_slashes=False,
    )
    app.state.gateway, app.state.delivery = gateway, delivery
    app.state.callers = Buckets(settings.caller_rate, settings.caller_burst)
    app.state.reading = Slots(MOST_READING, "rate-limit", "your other queries are still being read")
    app.state.needs = {(route.method, route.path): route.need for route in routes.ROUTES}
    for route in routes.ROUTES:
        _add(app, route)
    for kind, _ in ANSWERS:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(Exception, answer_error)
    app.add_middleware(Frontier, settings=settings, metrics=gateway.metrics)
    return app


def _add(app: FastAPI, route: Route) -> None:
    """With who may call it: also where the answering function does not ask who it is."""
    checked = route.need not in (Need.NOBODY, Need.METRICS)
    app.add_api_route(
        route.path,
        route.answer,
        methods=[route.method],
        dependencies=[Depends(find_caller)] if checked else [],
        **{**route.more, "responses": {**_ERRORS, **route.more.get("responses", {})}},
    )
