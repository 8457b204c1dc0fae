"""The running network of shared operators, with its switches: for administrators, since it shows everybody's queries."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from sluicegate.rewrite.sharing.draw_svg import draw_network
from sluicegate.rewrite.sharing.place_switches import place_switches
from sluicegate.rewrite.sharing.write_network import network_json
from sluicegate.runtime.network.describe import MOST_SHOWN
from sluicegate.service.access import Caller, Need, OpenGateway, Route
from sluicegate.service.schemas_console import NetworkAnswer, NetworkQueryAnswer

_SVG = "image/svg+xml"


def show_network(request: Request, caller: Caller, gateway: OpenGateway) -> Response:
    """Operators, edges, and switches open and closed; with `Accept: image/svg+xml` a drawing."""
    del caller
    shown = gateway.engine.describe_network()
    switches = place_switches(shown.network)
    if _SVG in request.headers.get("accept", ""):
        drawn = draw_network(shown.network, switches, shown.opened)
        return Response(
            drawn,
            media_type=_SVG,
            headers={"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )
    queries = {
        name: NetworkQueryAnswer(
            handle=each.handle,
            user=each.user,
            query=each.query,
            switch=each.switch,
            open=name in shown.opened,
        )
        for name, each in shown.queries.items()
    }
    parts: dict[str, Any] = network_json(shown.network, switches, shown.opened)
    answer = NetworkAnswer(**parts, queries=queries, left_out=shown.left_out)
    return Response(answer.model_dump_json(), media_type="application/json")


ROUTES = (
    Route(
        "GET",
        "/v1/network",
        show_network,
        Need.ADMIN,
        {
            "response_class": Response,
            "responses": {
                200: {
                    "model": NetworkAnswer,
                    "description": f"the network of at most {MOST_SHOWN} running queries",
                    "content": {_SVG: {"schema": {"type": "string"}}},
                }
            },
        },
    ),
)
