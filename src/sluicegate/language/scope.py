"""What names mean where an expression stands: attributes by relation, and whether it is a policy or a query."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import Column
from sluicegate.expr.types import Type
from sluicegate.graph.operators import Field
from sluicegate.language.syntax import Name
from sluicegate.policy.model import Stream
from sluicegate.source import Span


@dataclass(frozen=True)
class Relation:
    """What an alias stands for; `label` is how it is spoken of: "stream `Position`"."""

    alias: str
    label: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Scope:
    """The relations in sight. In a policy `self.x` and facts may be named, in a query they are refused (D3)."""

    relations: tuple[Relation, ...]
    policy: bool = False
    fact_types: Mapping[str, Type] = field(default_factory=dict)
    _hints: list[None] = field(default_factory=lambda: [None] * 50, repr=False, compare=False)
    """Near misses are looked for this often only: a text of nothing but unknown names is still read fast."""

    @classmethod
    def of_policy(cls, streams: Iterable[tuple[str, Stream]], fact_types: Mapping[str, Type]) -> Scope:
        """The scope of a grant `ON stream AS alias, …`: pairs of alias and stream."""
        return cls(tuple(relate_stream(alias, stream) for alias, stream in streams), True, fact_types)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[Relation, Field]]]:
        index: dict[str, list[tuple[Relation, Field]]] = {}
        for relation in self.relations:
            for each in relation.fields:
                index.setdefault(each.name, []).append((relation, each))
        return index

    @cached_property
    def _by_alias(self) -> dict[str, Relation]:
        return {relation.alias: relation for relation in self.relations}

    def find(self, name: Name) -> Column | Diagnostic:
        """The column that a name means, or why there is none."""
        if name.qualifier:
            return self._find_qualified(name)
        found = self._by_name.get(name.name, [])
        if len(found) == 1:
            return found[0][1].column
        if found:
            return _say_ambiguous(name, [relation.alias for relation, _ in found])
        return self._say_unknown(name)

    def _find_qualified(self, name: Name) -> Column | Diagnostic:
        relation = self._by_alias.get(name.qualifier)
        if relation is None:
            message = f"unknown stream or alias `{_cut(name.qualifier)}`"
            return Diagnostic(
                "unknown-alias", message, name.span, self._suggest(name.qualifier, self._by_alias)
            )
        for owner, each in self._by_name.get(name.name, []):
            if owner is relation:
                return each.column
        known = [each.name for each in relation.fields]
        message = f"unknown attribute `{_cut(name.name)}` of {relation.label}"
        return Diagnostic("unknown-attribute", message, name.span, self._suggest(name.name, known))

    def _say_unknown(self, name: Name) -> Diagnostic:
        if not self.relations:
            return Diagnostic(
                "unknown-attribute", f"no attribute can be named here: `{_cut(name.name)}`", name.span
            )
        owners = " or ".join(relation.label for relation in self.relations[:3])
        message = f"unknown attribute `{_cut(name.name)}` of {owners}"
        return Diagnostic("unknown-attribute", message, name.span, self._suggest(name.name, self._by_name))

    def _suggest(self, name: str, known: Iterable[str]) -> str | None:
        if not self._hints:
            return None
        self._hints.pop()
        return suggest(name, known)


def relate_stream(alias: str, stream: Stream, qualifier: str | None = None) -> Relation:
    """A stream under an alias; its columns are qualified by `qualifier` where that differs."""
    fields = tuple(Field(qualifier or alias, name, type_) for name, type_ in stream.attributes)
    return Relation(alias, f"stream `{stream.name}`", fields)


def _say_ambiguous(name: Name, aliases: list[str]) -> Diagnostic:
    choices = ", ".join(f"`{alias}.{name.name}`" for alias in aliases[:5])
    return Diagnostic(
        "ambiguous-attribute",
        f"the attribute `{name.name}` is ambiguous",
        name.span,
        f"write one of {choices}",
    )


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"


def suggest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean …?` for a near miss, with a word on case where only that differs."""
    if len(name) > 100:
        return None
    names = list(known)
    folded = name.lower()
    for each in names:
        if each.lower() == folded:
            return f"did you mean `{each}`? names are case-sensitive"
    near = difflib.get_close_matches(name, names[:2000], 1)
    return f"did you mean `{near[0]}`?" if near else None


def unknown_stream(name: str, span: Span | None, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("unknown-stream", f"unknown stream `{_cut(name)}`", span, suggest(name, known))
