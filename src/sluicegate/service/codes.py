"""Diagnostic codes of the gateway."""

from __future__ import annotations

GATEWAY_CODES = {
    "administrators-only": "only administrators may ask for this",
    "body-too-large": "the request's body is larger than this gateway reads",
    "client-slow": "the request's body did not arrive in time",
    "clock-own": "SET CLOCK is the gateway's own: it follows the time by itself",
    "gateway-closed": "this gateway cannot take the newest version of the catalog, or is about to stop, so it delivers nothing",
    "gateway-lease": "this gateway is cut off from the store, so it delivers nothing until it is back",
    "internal": "a fault of the gateway; nothing was let through. The request's id finds it in the log",
    "method-unknown": "the place does not know this method",
    "not-a-punctuation": "what was sent as punctuations is no INSERT SP, or one for another stream",
    "not-acknowledged": "the change is stored, but another gateway has not said in time that it has it",
    "owners-only": "only the stream's owner and administrators may ask for this",
    "place-unknown": "there is nothing at this place",
    "push-content": "what was pushed is not of the type that its header says, or cannot be read as it",
    "push-source": "the stream has a source of its own, so nothing can be pushed into it",
    "query-limit": "the user has as many queries as it may have; drop one first",
    "query-unknown": "the caller has no query of this handle",
    "rate-limit": "too many requests; try again after the time told",
    "request-malformed": "a part of the request is missing, or not of its type",
    "saved-limit": "the user has as many saved queries as it may have; remove one first",
    "setting-malformed": "a setting is unknown, or not of its type",
    "stream-limit": "too many results are followed at once",
    "user-missing": "the catalog has no user of this name",
    "xacml-content": "the body is no XACML in a form that is read here: `application/xacml+xml`, or `application/xacml+json` for requests",
    "xacml-others": "an XACML request about somebody else, or with attributes that the caller made up",
    "stream-unknown": "there is no such stream, or the caller may not know of it",
}
