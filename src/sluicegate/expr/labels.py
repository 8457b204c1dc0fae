"""Labels of rows that aggregate grants gave, and the two internal functions on them.

A label is one or more grant names with `LABEL_JOINT` between them; a name may carry `LABEL_MARK` and a number that
tells populations of one grant apart. Both are control characters, and neither function has a name that a user can write.
"""

from __future__ import annotations

from sluicegate.expr.nodes import Value

LABEL_JOINT = "\x1e"
LABEL_MARK = "\x1f"
MERGE_LABELS = "#merge_labels"
LABEL_NAMES = "#label_names"


def merge_labels(*labels: Value) -> str | None:
    """All names of all labels, sorted, each once; NULL where no row was labelled."""
    names = {name for label in labels if isinstance(label, str) for name in label.split(LABEL_JOINT)}
    return LABEL_JOINT.join(sorted(names)) or None


def label_names(label: Value) -> str | None:
    """What is shown as `_grant`: the names alone, joined by `+`."""
    if not isinstance(label, str):
        return None
    return "+".join(sorted({name.split(LABEL_MARK)[0] for name in label.split(LABEL_JOINT)}))


def merge_labels_sql(target: str, args: list[str]) -> str:
    joint = f"chr({ord(LABEL_JOINT)})"
    if target == "duckdb":
        parts = ", ".join(f"string_split({arg}, {joint})" for arg in args)
        return f"array_to_string(nullif(list_sort(list_distinct(flatten(list_filter([{parts}], lambda p: p IS NOT NULL)))), []), {joint})"
    parts = ", ".join(f"coalesce(split({arg}, {joint}), array())" for arg in args)
    merged = f"array_sort(array_distinct(concat({parts})))"
    return f"nullif(array_join({merged}, {joint}), '')"


def label_names_sql(target: str, arg: str) -> str:
    joint, mark = f"chr({ord(LABEL_JOINT)})", f"chr({ord(LABEL_MARK)})"
    if target == "duckdb":
        names = f"list_transform(string_split({arg}, {joint}), lambda p: string_split(p, {mark})[1])"
        return f"array_to_string(list_sort(list_distinct({names})), '+')"
    names = f"transform(split({arg}, {joint}), p -> substring_index(p, {mark}, 1))"
    return f"array_join(array_sort(array_distinct({names})), '+')"
