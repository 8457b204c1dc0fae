"""Where a query's results go besides its readers."""

from __future__ import annotations

from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.refusals import refuse
from sluicegate.service.schemas import DoneAnswer, SinkAnswer, SinkAsked

_SINK = "/v1/queries/{handle}/sink"


def attach(
    handle: str, asked: SinkAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> SinkAnswer:
    """Send the results of a query of one's own to a sink of the operator's, from the first row that is still kept on."""
    gateway.sending.attach(caller, handle, asked.sink, request_id)
    return show(handle, caller, gateway)


def show(handle: str, caller: Caller, gateway: OpenGateway) -> SinkAnswer:
    """The sink of a query, and whether it takes rows."""
    gateway.find_running(caller, handle)
    found = gateway.sending.state(handle)
    if found is None:
        raise refuse("sink-unknown", "the results of this query go to no sink")
    return SinkAnswer(
        sink=found.sink, running=found.is_running, failures=found.failures, problem=found.problem
    )


def detach(handle: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> DoneAnswer:
    """Write nothing more; what was written stays where it is."""
    if not gateway.sending.detach(caller, handle, request_id):
        raise refuse("sink-unknown", "the results of this query go to no sink")
    return DoneAnswer()


ROUTES = (
    Route("PUT", _SINK, attach, Need.READ),
    Route("GET", _SINK, show, Need.READ),
    Route("DELETE", _SINK, detach, Need.READ),
)
