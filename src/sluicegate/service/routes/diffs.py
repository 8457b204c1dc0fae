"""What is different between two versions of the catalog, as statements."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from sluicegate.language.print_catalog import catalog_statements
from sluicegate.language.print_statements import print_statement
from sluicegate.policy.catalog import Catalog
from sluicegate.service.access import Caller, Need, OpenGateway, Route
from sluicegate.service.schemas_console import DiffAnswer

_Version = Annotated[int, Query(ge=0, le=2**62)]


def show_diff(caller: Caller, gateway: OpenGateway, before: _Version, after: _Version) -> DiffAnswer:
    """Statements that only one of two versions has, in the order in which the catalog is printed."""
    old, new = (_print(gateway.store.load(version)) for version in (before, after))
    return DiffAnswer(
        before=before,
        after=after,
        removed=[each for each in old if each not in new],
        added=[each for each in new if each not in old],
    )


def _print(catalog: Catalog) -> dict[str, None]:
    return dict.fromkeys(print_statement(each) for each in catalog_statements(catalog))


ROUTES = (Route("GET", "/v1/catalog/diff", show_diff, Need.ADMIN),)
