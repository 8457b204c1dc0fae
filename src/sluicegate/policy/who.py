"""All that decides, besides a policy class, what a shield lets through: whose query it is and what the server adds.

As one text, so that it is a constant of the query like any other: equal texts give equal verdicts, in every process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sluicegate.policy.classes import normalize_names
from sluicegate.policy.pattern_json import read_pattern, write_pattern
from sluicegate.policy.punctuation import Anything, DataDescription, Restriction, ServerPunctuation
from sluicegate.policy.verdict import Standing


@dataclass(frozen=True, slots=True)
class Who:
    """A principal's standing, and the server's punctuations of the stream.

    `option`: it asks for what it may pass on to others (`ON RESULT`), not for what it may see.
    """

    standing: Standing
    servers: tuple[ServerPunctuation, ...] = ()
    option: bool = False


def write_who(who: Who) -> str:
    """Equal ones give equal texts; names of punctuations decide nothing and are left out."""
    standing = who.standing
    roles = [[name, sorted(held)] for name, held in standing.roles]
    servers = sorted(json.dumps(_write_server(each), sort_keys=True) for each in who.servers)
    content = [standing.user, standing.known, roles, [json.loads(each) for each in servers], who.option]
    return json.dumps([*content, list(standing.inactive)], separators=(",", ":"))


def read_who(text: str) -> Who:
    """What `write_who` wrote; raises ValueError on anything else."""
    match json.loads(text):
        case [str(user), bool(known), list(roles), list(servers), bool(option), list(inactive)]:
            standing = Standing(
                user, tuple(_read_role(each) for each in roles), known, tuple(map(str, inactive))
            )
            return Who(standing, tuple(_read_server(each) for each in servers), option)
    raise ValueError("not what a shield is asked for")


def _read_role(found: Any) -> tuple[str, frozenset[str]]:
    match found:
        case [str(name), list(held)] if all(isinstance(each, str) for each in held):
            return name, frozenset(held)
    raise ValueError("not a role")


def _write_server(server: ServerPunctuation) -> dict[str, Any]:
    return {
        "tuples": write_pattern(server.ddp.tuples),
        "attributes": write_pattern(normalize_names(server.ddp.attributes)),
        "model": server.srp.model,
        "subjects": write_pattern(normalize_names(server.srp.subjects)),
        "option": server.srp.grant_option,
        "sign": server.positive,
    }


def _read_server(found: Any) -> ServerPunctuation:
    match found:
        case {
            "tuples": tuples,
            "attributes": attributes,
            "model": str(model),
            "subjects": subjects,
            "option": bool(option),
            "sign": bool(positive),
            **rest,
        } if not rest:
            ddp = DataDescription(Anything(), read_pattern(tuples), read_pattern(attributes))
            return ServerPunctuation(
                "", "", ddp, Restriction(model, read_pattern(subjects), option), positive
            )
    raise ValueError("not a punctuation of the server")
