"""Diagnostic codes of the proxy; those of the gateways pass through it as they are."""

from __future__ import annotations

PROXY_CODES = {
    "gateway-unreachable": "a gateway behind the proxy cannot be reached, or did not answer in time; nothing is answered from memory then",
    "proxy-answer": "what answered behind the proxy is no gateway",
}
