"""Whether the gateway is there, whether it delivers, and its counters."""

from __future__ import annotations

import hmac

from fastapi import Request, Response

from sluicegate.service.access import Need, OpenGateway, Route, find_caller
from sluicegate.service.gateway import Gateway
from sluicegate.service.metrics import Gauge
from sluicegate.service.schemas import HealthAnswer


def tell_health() -> HealthAnswer:
    """The process answers."""
    return HealthAnswer(status="ok")


def tell_ready(gateway: OpenGateway) -> HealthAnswer:
    """The gateway has its lease and the newest version that it knows of; else 503."""
    gateway.check_open()
    return HealthAnswer(status="ready", version=gateway.catalog.version)


def tell_metrics(request: Request, gateway: OpenGateway) -> Response:
    """Counters for Prometheus."""
    if not _has_metrics_token(request, gateway):
        find_caller(request)
    shown = gateway.metrics.render(_measure(request, gateway))
    return Response(shown, media_type="text/plain; version=0.0.4; charset=utf-8")


def _has_metrics_token(request: Request, gateway: Gateway) -> bool:
    given, wanted = request.headers.getlist("authorization"), gateway.settings.metrics_token
    return (
        bool(wanted)
        and len(given) == 1
        and hmac.compare_digest(given[0].encode(), f"Bearer {wanted}".encode())
    )


def _measure(request: Request, gateway: Gateway) -> list[Gauge]:
    return [
        Gauge("sluicegate_catalog_version", "the version in force", gateway.catalog.version),
        Gauge("sluicegate_queries", "queries that run", len(gateway.engine.running)),
        Gauge(
            "sluicegate_followers", "connections that follow results", request.app.state.delivery.hub.count
        ),
        Gauge(
            "sluicegate_feeds_stopped", "feeds that stopped by themselves", len(gateway.engine.feeds.failures)
        ),
        Gauge(
            "sluicegate_tick_failed",
            "whether results could not be made or kept",
            bool(gateway.engine.failure),
        ),
        Gauge("sluicegate_sinks_failing", "sinks whose last write failed", gateway.sending.count_failing()),
        Gauge("sluicegate_lease_valid", "whether rows may be handed over", gateway.find_obstacle() is None),
    ]


ROUTES = (
    Route("GET", "/healthz", tell_health, Need.NOBODY),
    Route("GET", "/readyz", tell_ready, Need.NOBODY),
    Route("GET", "/metrics", tell_metrics, Need.METRICS, {"response_class": Response}),
)
