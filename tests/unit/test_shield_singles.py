"""The short way of the shield against the reference model: tuples of one sender, policies with whole numbers for keys."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from sluicegate.expr.types import BIGINT, INT, Type
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.punctuation import Constant, DataDescription, OneOf
from unit.shield_world import OWNER, Element, cut_randomly, judge_by_model, make_stream, random_elements
from unit.test_shield_resolve import run_shield

np = pytest.importorskip("numpy")

_NEAR = {INT: (-3, -1, 0, 1, 2, 7), BIGINT: (2**63 - 1, 2**63 - 2, 2**63 - 9, 0, -(2**63), 1 - 2**63)}


def _narrow(seed: int, key: Type, sender: str) -> list[Element]:
    """Random elements as the short way is for: all of one sender, keys that lie near each other, alone or in sets."""
    pick = random.Random(seed)
    made: list[Element] = []
    for each in random_elements(seed, key, 200):
        if isinstance(each, Punctuation):
            keys = tuple(pick.sample(_NEAR[key][:3], pick.choice((1, 1, 1, 2))))
            tuples = Constant(keys[0]) if len(keys) == 1 else OneOf(keys)
            ddp = DataDescription(each.ddp.streams, tuples, each.ddp.attributes)
            made.append(replace(each, sender=sender, ddp=ddp))
        else:
            near = None if each.key is None else pick.choice((*_NEAR[key], *_NEAR[key][:3]))
            made.append(replace(each, sender=sender, key=near))
    return made


@pytest.mark.parametrize("steps", [0, 6])
@pytest.mark.parametrize("sender", [OWNER, "ann"])
@pytest.mark.parametrize("order_any", [False, True])
@pytest.mark.parametrize("key", list(_NEAR), ids=str)
def test_the_short_way_leads_where_the_long_one_does(
    key: Type, order_any: bool, sender: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluicegate.runtime.shield import singles

    short, seen = [0], Counter[str]()
    find = singles.Singles.find

    def spy(self: singles.Singles, *given: object) -> object:
        found = find(self, *given)  # type: ignore[arg-type]  # as it was called
        short[0] += int(np.count_nonzero(found >= 0))
        return found

    monkeypatch.setattr(singles.Singles, "find", spy)
    monkeypatch.setattr(singles, "_STEPS", steps)
    monkeypatch.setattr("sluicegate.runtime.shield.resolve.PIECE", 50)
    for seed in range(12):
        stream = make_stream(key, order_any=order_any, watermark=seed % 3)
        elements = _narrow(seed, key, sender)
        wanted = judge_by_model(stream, elements)
        whole, order, _ = run_shield(stream, [elements])
        assert whole == wanted, seed
        cut = run_shield(stream, cut_randomly(random.Random(seed), elements))
        assert cut[:2] == (wanted, order), seed
        seen.update(reason for reason, _ in wanted.values())
    assert short[0] > 30
    assert {"released", "no-policy", "incomplete", "not-covered", "superseded"} <= set(seen)


@pytest.mark.parametrize("spread", [1, 7, 1 << 50])
def test_values_are_numbered_as_numpy_numbers_them(spread: int) -> None:
    from sluicegate.runtime.shield.orders import number_values, sort_places

    pick = np.random.default_rng(spread)
    for size in (0, 1, 2, 5000):
        values = (pick.integers(-600, 600, size) * spread).astype(np.int64)
        for each in (values, np.sort(values), values.astype(np.float64), values.astype(str).astype(object)):
            found, place = number_values(each)
            wanted, inverse = np.unique(each, return_inverse=True)
            assert found.tolist() == wanted.tolist()
            assert place.tolist() == inverse.tolist()
        assert sort_places(values, 600 * spread).tolist() == np.argsort(values, kind="stable").tolist()
