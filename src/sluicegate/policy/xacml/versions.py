"""Versions of policies, and the patterns by which references choose among them (5.11–5.13)."""

from __future__ import annotations

import re

from sluicegate.policy.xacml.model import Reference

_VERSION = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,31}")
_PATTERN = re.compile(r"(?:(?:[0-9]{1,18}|\*)\.){0,31}(?:[0-9]{1,18}|\*|\+)")


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def is_version_pattern(text: str) -> bool:
    return _PATTERN.fullmatch(text) is not None


def order_version(version: str) -> tuple[int, ...]:
    """To sort by: later versions are larger."""
    return tuple(int(part) for part in version.split("."))


def suits(reference: Reference, version: str) -> bool:
    """Whether a version is one that the reference takes."""
    return (
        (reference.version is None or _compare(version, reference.version) == 0)
        and (reference.earliest is None or _compare(version, reference.earliest) >= 0)
        and (reference.latest is None or _compare(version, reference.latest) <= 0)
    )


def _compare(version: str, pattern: str) -> int:
    """Below, within or above a pattern: `*` is any one number, `+` one and any further ones."""
    numbers, wanted = version.split("."), pattern.split(".")
    for at, part in enumerate(wanted):
        if at >= len(numbers):
            return -1
        if part == "+":
            return 0
        if part != "*" and int(numbers[at]) != int(part):
            return -1 if int(numbers[at]) < int(part) else 1
    return 1 if len(numbers) > len(wanted) else 0
