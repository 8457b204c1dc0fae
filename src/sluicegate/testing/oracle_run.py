"""The model's run: the original query over governed rows, operator by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sluicegate.expr.evaluate import evaluate, is_true
from sluicegate.expr.nodes import TRUE, Column, Expr, Value
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
)
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.model import Grant
from sluicegate.testing.oracle_extent import EVERYTHING, Extent
from sluicegate.testing.oracle_grants import (
    Principal,
    Reading,
    attributes_of,
    contains,
    covered_calls,
    required_attributes,
)
from sluicegate.testing.oracle_policies import Asked, hidden_columns
from sluicegate.testing.oracle_usage import (
    Usage,
    considered_calls,
    leaves,
    lineage,
    own_columns,
    selections,
    stream_names,
    usage_below,
    visible_columns,
)
from sluicegate.testing.oracle_ways import (
    NOBODY,
    Alternatives,
    combine,
    complete,
    could_be_read,
    could_be_seen,
    join_ways,
    keep_maximal,
    read_ways,
    through_project,
    through_union,
)
from sluicegate.testing.oracle_windows import (
    Alternative,
    Assignment,
    Label,
    Pane,
    Row,
    arrival_order,
    common_subjects,
    compute_call,
    cut_windows,
    group_rows,
    pair_rows,
    pair_time,
    time_order,
)

NO_LABEL: Label = frozenset()
ANYBODY: Alternatives = frozenset({(NOBODY, frozenset())})


class Run:
    """One query of one principal. `tied` names the streams that an operator's rows meet again in a join above."""

    def __init__(
        self,
        principal: Principal,
        united: bool,
        asked: Mapping[str, Asked] | None = None,
        extent: Extent = EVERYTHING,
    ) -> None:
        """`asked` says, by alias, what the query wants of a punctuated source's tuples (R15)."""
        self.principal = principal
        self.asked = asked or {}
        self.env = principal.env
        self.united = united
        self.extent = extent
        self._made = 0

    def rows(self, node: Node, usage: Usage, tied: frozenset[str]) -> list[Row]:
        """The rows of an operator that the principal may see, with all the ways in which it may."""
        match node:
            case Source():
                rows = self._read(node, usage)
            case Select(input=below, predicate=predicate):
                (used,) = usage_below(node, usage)
                rows = self._select(self.rows(below, used, tied), predicate)
            case Project(input=below):
                (used,) = usage_below(node, usage)
                rows = self._project(self.rows(below, used, tied), node)
            case Join():
                rows = self._join(node, usage, tied)
            case Union():
                rows = self._union(node, usage, tied)
            case Aggregate():
                rows = self._aggregate(node, usage, tied)
            case _:
                raise TypeError(f"the model does not know {type(node).__name__}")
        return self._trim(rows, usage, tied)

    def _trim(self, rows: list[Row], usage: Usage, tied: frozenset[str]) -> list[Row]:
        memo: dict[Alternatives, Alternatives] = {}
        for row in rows:
            if row.alternatives not in memo:
                memo[row.alternatives] = keep_maximal(row.alternatives, usage, tied)
        return [row.with_alternatives(memo[row.alternatives]) for row in rows if memo[row.alternatives]]

    def _read(self, node: Source, usage: Usage) -> list[Row]:
        ways = dict(read_ways(self.principal, node, usage))
        grants = [self.principal.by_name[name] for name in ways]
        rows = []
        for row in self._tuples(node):
            at = (node, row.identity[0][1])
            row.alternatives = frozenset(
                ways[grant.name]
                for grant in grants
                if self.principal.admits(grant, {grant.streams[0].alias: at})
            )
            rows.append(row)
        return rows

    def _tuples(self, node: Source) -> list[Row]:
        rows = []
        for position in range(self.principal.count(node.stream)):
            given = self.principal.tuple_at(node, position)
            values = {field.column: given[field.name] for field in node.fields}
            time = self.principal.time_of(node, position)
            timeless = node.event_time is None
            row = Row(values, time, timeless, (position,), ((node.alias, position),), ANYBODY)
            if node.stream in self.principal.policies.governed:
                judged = self.principal.policies.judge(node, position, self.asked[node.alias])
                if judged is None:
                    continue
                row.subjects, row.hidden = judged.subjects, hidden_columns(node, judged)
            rows.append(row)
        return rows

    def _select(self, rows: list[Row], predicate: Expr) -> list[Row]:
        return [row for row in rows if is_true(predicate, row.values, self.env)]

    def _project(self, rows: list[Row], node: Project) -> list[Row]:
        made = []
        memo: dict[Alternatives, Alternatives] = {}
        for row in rows:
            values = {
                item.field.column: evaluate(item.expr, row.values, self.env)
                for item in node.items
                if not item.field.hidden
            }
            values |= {
                bound: row.values[bound] for bound in (WINDOW_START, WINDOW_END) if bound in row.values
            }
            if row.alternatives not in memo:
                memo[row.alternatives] = through_project(node, row.alternatives)
            other = row.with_alternatives(memo[row.alternatives])
            other.values = values
            other.hidden = frozenset(item.field.column for item in node.items if item.expr in row.hidden)
            made.append(other)
        return made

    def _union(self, node: Union, usage: Usage, tied: frozenset[str]) -> list[Row]:
        made = []
        below = usage_below(node, usage)
        for number, (branch, used) in enumerate(zip(node.branches, below, strict=True)):
            names = dict(zip(own_columns(branch), (field.column for field in node.outputs), strict=True))
            for row in self.rows(branch, used, tied):
                values = {names.get(column, column): value for column, value in row.values.items()}
                other = row.with_alternatives(through_union(node, branch, row.alternatives))
                other.values = values
                other.hidden = frozenset(names[column] for column in row.hidden if column in names)
                other.arrivals = (number, *row.arrivals)
                made.append(other)
        return made

    def _join(self, node: Join, usage: Usage, tied: frozenset[str]) -> list[Row]:
        left_usage, right_usage = usage_below(node, usage)
        left_tied = tied | stream_names(node.right)
        right_tied = tied | stream_names(node.left)
        left = self.rows(node.left, left_usage, left_tied)
        right = self.rows(node.right, right_usage, right_tied)
        found = self._pairs(node, left, right, 0)
        for reading, way in join_ways(self.principal, node, usage):
            least = reading.grant.least
            for row in self._ungoverned(node, least.size if least else 0):
                if self.principal.admits_reading(reading, dict(row.identity)):
                    found.append(row.with_alternatives(frozenset({way})))
        return _merge(found)

    def _part(self, rows: list[Row], tied: Iterable[str]) -> list[Row]:
        """Each row once for every way of seeing it: populations that are counted apart."""
        ways: dict[Alternative, Alternatives] = {}
        made = []
        for row in rows:
            for each in sorted_ways(row.alternatives):
                for way in complete(self.principal, each, tied):
                    made.append(row.with_alternatives(ways.setdefault(way, frozenset({way}))))
        return made

    def _pairs(self, node: Join, left: Sequence[Row], right: Sequence[Row], least: int) -> list[Row]:
        made = []
        memo: dict[tuple[Alternatives, Alternatives], Alternatives] = {}
        windows = (_widen_join(node.left_window, least), _widen_join(node.right_window, least))
        for a, b in pair_rows(left, right, *windows):
            key = (a.alternatives, b.alternatives)
            if key not in memo:
                memo[key] = combine(*key)
            subjects = common_subjects((a, b))
            if not memo[key] or subjects == frozenset():
                continue
            values = {**a.values, **b.values}
            values.pop(WINDOW_START, None)
            values.pop(WINDOW_END, None)
            if node.predicate == TRUE or is_true(node.predicate, values, self.env):
                time, timeless = pair_time(a, b)
                identity = a.identity + b.identity
                label = a.label | b.label
                pair = Row(values, time, timeless, a.arrivals + b.arrivals, identity, memo[key], label)
                pair.subjects, pair.hidden = subjects, a.hidden | b.hidden
                made.append(pair)
        return made

    def _ungoverned(self, node: Node, least: int) -> list[Row]:
        """All rows of a select-project-join, whoever may see them; join windows at least `least` long."""
        match node:
            case Source():
                return self._tuples(node)
            case Select(input=below, predicate=predicate):
                return self._select(self._ungoverned(below, least), predicate)
            case Project(input=below):
                rows = self._project(self._ungoverned(below, least), node)
                return [row.with_alternatives(ANYBODY) for row in rows]
            case Join(left=left, right=right):
                return self._pairs(node, self._ungoverned(left, least), self._ungoverned(right, least), least)
            case _:
                raise TypeError(f"the model does not know {type(node).__name__} here")

    def _aggregate(self, node: Aggregate, usage: Usage, tied: frozenset[str]) -> list[Row]:
        (below,) = usage_below(node, usage)
        read = self.rows(node.input, below, tied)
        readings = self.principal.aggregate_readings(node, usage)
        uniting = [each for each in readings if self.united and not each.grant.min_group]
        apart = [each for each in uniting if self._counts_chosen(node, usage, each)]
        united = [each for each in uniting if each not in apart]
        # beside a grant that is left apart what can be read gives its own rows, whatever else is united (R4)
        made = self._readable(node, usage, read, tied) if apart or not united else []
        for reading in readings:
            made += self._released(node, usage, reading, read if reading in united else [])
        return made

    def _counts_chosen(self, node: Aggregate, usage: Usage, reading: Reading) -> bool:
        """Whether COUNT(DISTINCT) would count beside a part of what can be read: the reader chose it (R4)."""
        calls = covered_calls(reading, node, usage)
        distinct = [call for call in calls if call.function is AggFunction.COUNT_DISTINCT]
        if not distinct:
            return False
        occurrences = list(leaves(node.input))
        if len(occurrences) > 1:
            return True
        source = occurrences[0]
        counted = {name for call in distinct for _, name in self._places(node, [call.arg])}
        (below,) = usage_below(node, usage)
        used = self._attributes_used(node, calls) | required_attributes(node.input, below)
        for grant in self.principal.could_read_by:
            shown = {column.name for column in grant.attributes}
            if grant.stream_names != (source.stream,) or not counted & shown:
                continue
            if grant not in self.principal.grants or not {name for _, name in used} <= shown:
                return True
            if not self.principal.is_settled_grant(grant):
                return True
            laid = Reading(grant, 0, ((grant.streams[0].alias, source),))
            if not all(self.principal.implied(laid, part) for part in selections(node.input)):
                return True
        return False

    def _readable(self, node: Aggregate, usage: Usage, read: list[Row], tied: frozenset[str]) -> list[Row]:
        """The first way of R3: a population for each shown set and label, and for each grant of a tied stream."""
        populations: dict[tuple[Alternative, Label], list[Row]] = defaultdict(list)
        for row in self._part(read, sorted(tied & stream_names(node.input))):
            (way,) = row.alternatives
            populations[way, row.label].append(row)
        made = []
        calls = considered_calls(node, usage)
        for ((assignment, shown), label), rows in populations.items():
            visible = [call for call in calls if call.arg is None or visible_columns(call.arg) <= shown]
            if visible:
                for pane in self._panes(node, rows, node.window):
                    made += self._fold(node, pane, visible, assignment, label)
        return made

    def _released(self, node: Aggregate, usage: Usage, reading: Reading, read: list[Row]) -> list[Row]:
        """The second way of R3: the rows of one aggregate grant, with readable rows where these are united (R4)."""
        grant = reading.grant
        calls = covered_calls(reading, node, usage)
        needed = frozenset().union(*(visible_columns(call.arg) for call in calls if call.arg is not None))
        least = grant.least if grant.least is not None and not grant.least.rows else None
        rows = {
            row.identity: row
            for row in self._ungoverned(node.input, least.size if least else 0)
            if self.principal.admits_reading(reading, dict(row.identity))
        }
        for row in read:
            if any(needed <= shown for _, shown in row.alternatives):
                rows.setdefault(row.identity, row)
        made = []
        label = frozenset({(grant.name, reading.number)})
        bounds = self.principal.interval(grant.during)
        for pane in self._panes(node, list(rows.values()), _widen(node.window, grant)):
            if bounds is None or (pane.start is not None and not contains(bounds, pane.start, pane.time)):
                continue
            made += self._fold(
                node, self._withhold(node, usage, pane, calls, grant.min_group), calls, NOBODY, label
            )
        return made

    def _panes(self, node: Aggregate, rows: list[Row], window: Window) -> list[Pane]:
        alone = len(list(leaves(node.input))) == 1
        panes = cut_windows(rows, window, arrival_order if alone else time_order)
        return [each for each in panes if self.extent.holds_window(node, each.start)]

    def _withhold(
        self, node: Aggregate, usage: Usage, pane: Pane, calls: Sequence[AggCall], least: int
    ) -> Pane:
        """Only groups without a tuple that could not be read otherwise, or with `least` that could not be seen (R8)."""
        if not least:
            return pane
        used = self._attributes_used(node, calls)
        (below,) = usage_below(node, usage)
        kept = []
        for rows in group_rows(pane.rows, lambda row: self._key(node, row)).values():
            unread = [
                not could_be_read(self.principal, node.input, row.identity, used, below) for row in rows
            ]
            unseen = [not could_be_seen(self.principal, node.input, row.identity) for row in rows]
            if not any(unread) or sum(unseen) >= least:
                kept += rows
        return Pane(pane.start, pane.end, pane.time, kept)

    def _attributes_used(self, node: Aggregate, calls: Sequence[AggCall]) -> frozenset[tuple[str, str]]:
        return self._places(node, [*(call.arg for call in calls), *(item.expr for item in node.group_by)])

    def _places(self, node: Aggregate, exprs: Iterable[Expr | None]) -> frozenset[tuple[str, str]]:
        origin = lineage(node.input)
        return frozenset(
            place
            for expr in exprs
            if expr is not None
            for column in visible_columns(expr)
            for place in attributes_of(origin[column])
        )

    def _key(self, node: Aggregate, row: Row) -> tuple[Value, ...]:
        return tuple(evaluate(item.expr, row.values, self.env) for item in node.group_by)

    def _fold(
        self, node: Aggregate, pane: Pane, calls: list[AggCall], assignment: Assignment, label: Label
    ) -> list[Row]:
        """A row for each group of a window."""
        made = []
        shown = frozenset(
            [item.field.column for item in node.group_by] + [call.field.column for call in calls]
        )
        for key, rows in group_rows(pane.rows, lambda row: self._key(node, row)).items():
            subjects = common_subjects(rows)
            if subjects == frozenset():
                continue
            values: dict[Column, Value] = {call.field.column: None for call in node.calls}
            values |= {item.field.column: value for item, value in zip(node.group_by, key, strict=True)}
            values |= {call.field.column: compute_call(call, rows, self.env) for call in calls}
            if pane.start is not None:
                values |= {WINDOW_START: pane.start, WINDOW_END: pane.end}
            self._made += 1
            way = frozenset({(assignment, shown)})
            made.append(Row(values, pane.time, False, (), (("#", self._made),), way, label, subjects))
        return made


def sorted_ways(alternatives: Alternatives) -> list[Alternative]:
    return sorted(alternatives, key=lambda way: (sorted(way[0]), sorted(map(str, way[1]))))


def _merge(rows: list[Row]) -> list[Row]:
    """One row for each pair, with all the ways in which it may be seen."""
    found: dict[tuple[object, Label], Row] = {}
    for row in rows:
        key = (row.identity, row.label)
        if key in found:
            row = row.with_alternatives(found[key].alternatives | row.alternatives)
        found[key] = row
    return list(found.values())


def _widen(window: Window, grant: Grant) -> Window:
    """Neither finer than the least window nor, where groups have a least number of tuples, overlapping (R8)."""
    size, step = window.size, window.step
    if grant.least is not None:
        size, step = max(size, grant.least.size), max(step, grant.least.step)
    if grant.min_group and step < size:
        step = size
    return TimeWindow(size, step) if isinstance(window, TimeWindow) else TupleWindow(size, step)


def _widen_join(window: Window | None, least: int) -> Window | None:
    return TimeWindow(max(window.size, least), window.step) if isinstance(window, TimeWindow) else window
