"""The routes of the HTTP API, by what they are about; `ROUTES` is all of them."""

from sluicegate.service.access import Route
from sluicegate.service.routes import (
    audit,
    authorization,
    catalog,
    console,
    diffs,
    graphs,
    health,
    network,
    own,
    people,
    queries,
    results,
    signing,
    sinks,
    streams,
    xacml,
)

ROUTES: tuple[Route, ...] = (
    *signing.ROUTES,
    *streams.ROUTES,
    *queries.ROUTES,
    *results.ROUTES,
    *sinks.ROUTES,
    *authorization.ROUTES,
    *diffs.ROUTES,
    *graphs.ROUTES,
    *own.ROUTES,
    *catalog.ROUTES,
    *xacml.ROUTES,
    *people.ROUTES,
    *audit.ROUTES,
    *health.ROUTES,
    *network.ROUTES,
    *console.ROUTES,
)
