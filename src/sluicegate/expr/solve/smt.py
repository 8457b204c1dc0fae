"""What intervals cannot decide, with z3: ask, try the answer on the evaluator, learn from the difference, ask again.

Everything told to z3 holds on every row, so its "unsatisfiable" stands; its models are only proposals.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping

import z3

from sluicegate.expr.nodes import Expr, Value
from sluicegate.expr.solve.answers import Answer, Sat, Unknown, Unsat
from sluicegate.expr.solve.confirm import confirm
from sluicegate.expr.solve.domains import from_rank
from sluicegate.expr.solve.encode import Z3, Encoder, NotEncodableError
from sluicegate.expr.solve.lemmas import describe, learn, relate, sample_points
from sluicegate.expr.solve.round_off import round_off
from sluicegate.expr.types import STRING, Kind

_MOST_ROUNDS = 60
_MOST_WORK = 1_000_000
"""z3's own count of its steps for one question: the same on every machine, so that a decision is too (I4)."""
_MOST_SAMPLES = 400
_MOST_MEMORY_MB = 512
_threads = threading.local()


def _context() -> Z3:
    """z3 objects of one context may not be used by two threads."""
    if not hasattr(_threads, "context"):
        _threads.context = z3.Context()
    return _threads.context


def solve(pred: Expr, timeout_ms: int) -> Answer:
    """A confirmed row, a proof that there is none, or neither within the time."""
    try:
        return _Search(pred, timeout_ms).run()
    except NotEncodableError:
        return Unknown("a value without a known type is compared")
    except z3.Z3Exception as error:
        return Unknown(f"the solver stopped: {error}")


class _Search:
    def __init__(self, pred: Expr, timeout_ms: int) -> None:
        self.pred = pred
        self.encoder = Encoder(_context())
        self.solver = z3.Solver(ctx=_context())
        self.solver.set("max_memory", _MOST_MEMORY_MB)
        self.told = 0
        self.points: dict[Expr, list[Z3]] = {}
        self.tell(self.encoder.truth(pred)[0])
        self.deadline = time.monotonic() + timeout_ms / 1000
        self.work_left = _MOST_WORK
        self.samples_left = _MOST_SAMPLES

    def tell(self, *formulas: Z3) -> None:
        """Asserts formulas, and the facts about new constants that they brought."""
        self.solver.add(*self.encoder.facts[self.told :], *formulas)
        self.told = len(self.encoder.facts)

    def check(self, *assumptions: Z3) -> str:
        left = int((self.deadline - time.monotonic()) * 1000)
        if left <= 0 or self.work_left <= 0:
            return "timeout"
        self.solver.set("timeout", left)
        self.solver.set("rlimit", self.work_left)
        before = self.work_done()
        result = str(self.solver.check(*assumptions))
        self.work_left -= self.work_done() - before
        return result

    def work_done(self) -> int:
        statistics = self.solver.statistics()
        return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118

    def run(self) -> Answer:
        if self.check() == "unsat":
            return Unsat()
        self.study()
        for _ in range(_MOST_ROUNDS):
            # where everything opaque is known, what z3 finds is right
            if self.points and self.check(*self.at_known_points()) == "sat":
                answer = self.accept(self.read_model())
                if answer is not None:
                    return answer
            result = self.check()
            if result == "unsat":
                return Unsat()
            if result != "sat":
                return Unknown("the solver ran out of time")
            values = self.read_model()
            answer = self.accept(values)
            if answer is not None:
                return answer
            if not self.learn_from(values):
                return Unknown("the predicate uses what the solver does not look into")
        return Unknown("no row was found in the rounds allowed")

    def study(self) -> None:
        """First facts about everything opaque; looking at one may bring in another."""
        seen: set[Expr] = set()
        while new := [node for node in self.encoder.opaque if node not in seen]:
            for node in new:
                seen.add(node)
                self.tell(*describe(self.encoder, node))
                for values in sample_points(self.pred, node):
                    if self.samples_left > 0:
                        self.samples_left -= 1
                        self.add_lemma(node, values)
            self.tell(*relate(self.encoder, seen))

    def add_lemma(self, node: Expr, values: Mapping[Expr, Value]) -> bool:
        lemma = learn(self.encoder, node, values)
        if lemma is None:
            return False
        bases = [base for base in values if base in self.encoder.variables]
        here = self.encoder.all(*(self.encoder.is_value(base, values[base]) for base in bases))
        self.points.setdefault(node, []).append(here)
        self.tell(lemma)
        return True

    def at_known_points(self) -> list[Z3]:
        return [self.encoder.any(*points) for points in self.points.values()]

    def accept(self, values: Mapping[Expr, Value]) -> Sat | None:
        answer = confirm(self.pred, values)
        return confirm(self.pred, round_off(self.pred, values)) or answer if answer is not None else None

    def learn_from(self, values: Mapping[Expr, Value]) -> bool:
        learned = [self.add_lemma(node, values) for node in list(self.encoder.opaque)]
        return True in learned

    def read_model(self) -> Mapping[Expr, Value]:
        model = self.solver.model()
        numbers: dict[Expr, int | None] = {}
        for variable, encoded in self.encoder.variables.items():
            null = z3.is_true(model.eval(encoded.null, model_completion=True))
            numbers[variable] = None if null else _number(model, encoded.value)
        known = {_number(model, self.encoder.place(text)): text for text in self.encoder.texts}
        strings = [number for node, number in numbers.items() if node.type == STRING and number is not None]
        texts = _Texts(known, strings).texts
        return {node: _to_value(number, node.type.kind, texts) for node, number in numbers.items()}


def _number(model: Z3, term: Z3) -> int:
    number: int = model.eval(term, model_completion=True).as_long()
    return number


def _to_value(number: int | None, kind: Kind, texts: Mapping[int, str]) -> Value:
    if number is None:
        return None
    match kind:
        case Kind.STRING:
            return texts[number]
        case Kind.DOUBLE:
            return from_rank(number)
        case Kind.BOOLEAN:
            return bool(number)
        case _:
            return number


class _Texts:
    """Strings for places: the constants at theirs, and between them new ones in the order of the places."""

    def __init__(self, known: Mapping[int, str], used: Iterable[int]) -> None:
        self.texts = dict(known)
        constants = sorted(known)
        gaps: dict[int, list[int]] = {}
        for place in sorted(set(used) - set(known)):
            gaps.setdefault(bisect_left(constants, place), []).append(place)
        for after, places in gaps.items():
            end = known[constants[after]] if after < len(constants) else None
            self._fill(known[constants[after - 1]], end, places)

    def _fill(self, text: str, end: str | None, places: list[int]) -> None:
        letter = "a" if end is None or text + "a" * len(places) < end else "\0"
        for count, place in enumerate(places, 1):
            self.texts[place] = text + letter * count
