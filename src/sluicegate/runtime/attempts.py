"""Work of which one part must not keep the others from being done."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def attempt_all(works: Sequence[Callable[[], object]]) -> None:
    """Do all of it, also where something fails; then raise the first failure."""
    failed: list[Exception] = []
    for work in works:
        try:
            work()
        except Exception as error:  # noqa: BLE001 — raised below, when all the others are done
            failed.append(error)
    if failed:
        raise failed[0]
