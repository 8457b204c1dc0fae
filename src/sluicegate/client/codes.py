"""Diagnostic codes of the client; those of the gateway come with its answers. Importing this needs no library."""

from __future__ import annotations

CLIENT_CODES = {
    "address-unsafe": "the gateway's address would carry passwords and tokens unprotected, or is none",
    "answer-malformed": "what answered is no gateway, or something between cut its answer short",
    "gap": "some results between the last rows and the next can no longer be had",
    "gateway-unreachable": "the gateway cannot be reached, or did not answer in time",
    "not-signed-in": "the command has no token for the gateway; `sluicegate login` gets one",
    "revoked": "the session that the results were followed with has ended or lost its right; nothing follows",
}
