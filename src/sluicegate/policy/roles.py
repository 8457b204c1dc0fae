"""Roles as a graph (D2): who inherits from whom, and whether anyone inherits from itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sluicegate.policy.model import Role


def find_cycle(roles: Mapping[str, Role]) -> tuple[str, ...] | None:
    """A chain of roles that ends where it began (`("A", "B", "A")`), or None. Depth first, without recursion."""
    done: set[str] = set()
    for start in sorted(roles):
        if start in done:
            continue
        path = [start]
        todo = [iter(_inherited(roles, start))]
        while path:
            name = next(todo[-1], None)
            if name is None:
                todo.pop()
                done.add(path.pop())
            elif name in path:
                return (*path[path.index(name) :], name)
            elif name not in done:
                path.append(name)
                todo.append(iter(_inherited(roles, name)))
    return None


def juniors(roles: Mapping[str, Role], name: str) -> frozenset[str]:
    """All that the role inherits, near and far; the role itself only where there is a cycle."""
    return _reach(_inherited(roles, name), lambda each: _inherited(roles, each))


def seniors(roles: Mapping[str, Role], name: str) -> frozenset[str]:
    """All roles that inherit this one: they have what it has."""
    above: dict[str, list[str]] = {}
    for role in roles.values():
        for junior in role.inherits:
            above.setdefault(junior, []).append(role.name)
    return _reach(above.get(name, ()), lambda each: above.get(each, ()))


def _inherited(roles: Mapping[str, Role], name: str) -> tuple[str, ...]:
    """Those that exist: a role that is not there gives nothing (R7)."""
    role = roles.get(name)
    return tuple(each for each in role.inherits if each in roles) if role else ()


def _reach(start: Iterable[str], step: Callable[[str], Iterable[str]]) -> frozenset[str]:
    found: set[str] = set()
    todo = list(start)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(step(name))
    return frozenset(found)
