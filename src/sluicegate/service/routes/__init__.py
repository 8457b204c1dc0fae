"""The routes of the HTTP API, by what they are about; `ROUTES` is all of them."""

from sluicegate.service.access import Route
from sluicegate.service.routes import (
    audit,
    catalog,
    health,
    people,
    queries,
    results,
    signing,
    streams,
    xacml,
)

ROUTES: tuple[Route, ...] = (
    *signing.ROUTES,
    *streams.ROUTES,
    *queries.ROUTES,
    *results.ROUTES,
    *catalog.ROUTES,
    *xacml.ROUTES,
    *people.ROUTES,
    *audit.ROUTES,
    *health.ROUTES,
)
