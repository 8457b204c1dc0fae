"""Running the programs of `regex_syntax`: all ways at once, so the time grows with the text and no faster."""

from __future__ import annotations

from sluicegate.policy.xacml.regex_syntax import Edge, Fork, Program, Take, compile_pattern
from sluicegate.policy.xacml.signature import LimitError

MAX_WORK = 2_000_000


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text, as XPath's `matches`; `PatternError` if it is none."""
    program = compile_pattern(pattern)
    ways: set[int] = set()
    work = 0
    for at in range(len(text) + 1):
        reached = _follow(program, ways | {0}, at == 0, at == len(text))
        if len(program) in reached:
            return True
        work += len(reached) + 1
        if work > MAX_WORK:
            raise LimitError("too much work for a pattern and its text")
        if at < len(text):
            ways = {each + 1 for each in reached if _takes(program, each, text[at])}
    return False


def _takes(program: Program, at: int, char: str) -> bool:
    step = program[at]
    return isinstance(step, Take) and step.test(char)


def _follow(program: Program, starts: set[int], first: bool, last: bool) -> set[int]:
    """All places that are reached without taking a character."""
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        at = waiting.pop()
        if at in reached:
            continue
        reached.add(at)
        step = program[at] if at < len(program) else None
        match step:
            case Fork(one, other):
                waiting += [at + one, at + other]
            case Edge(end) if last if end else first:
                waiting.append(at + 1)
            case _:
                pass
    return reached
