"""The reference model: what a query may return to a principal, straight from docs/semantics.md.

It judges the rewriter and shares no code with it. It never builds an authorized query: it governs the rows one by one
and runs the **original** query over them, with plain lists and loops.

*Use.* From the output down, each column is required (a predicate, a join key, a group-by, a computed expression needs
it, or an aggregate that one of these needs), optional (it only reaches the output, bare or as the argument of an
aggregate), or dead. A nested query's dead columns do not count; an aggregate of which nothing is used counts its
functions as optional.

*Ways of seeing.* A row carries every way in which the principal may see it: which grant each stream is read under, and
which live columns that shows. A source tuple has one for each read grant that shows what is required and admits the
tuple (R1); a pair has the combinations of its sides' in which a stream on both sides has one grant (R4), and one for
each join grant on exactly its streams (R2), whose pairs are looked for among all tuples, in windows no shorter than its
least. A row that nobody's grant shows does not exist.

*Populations.* A join side that counts tuples counts every row that may be seen there once. An aggregate parts rows by
shown set and label: each row is in one population for every largest shown set it has. Where a stream inside an aggregate meets itself in a join above, the
populations are those of each grant. A function whose argument a population does not show is absent, and a population
without any function gives no row.

*Aggregate grants* (R3). Over a select-project-join, each valid grant gives rows of its own, labelled by its name: over
all tuples that it admits and the query selects, in windows no finer than its least, if DURING holds the whole window,
without groups below MIN GROUP. UNITED adds the readable tuples that show what its functions need, instead of giving
them rows of their own. Labels part populations above, and a join's row carries those of both sides.

*Tables.* Of a table with a key, rows that a later one replaces, and rows without a whole key, do not exist (D1).

*Named results.* The rows that a maker gets are written down, and are the tuples of the stream that others read. With an
ON RESULT they are those that the maker may pass on (grants and punctuations count only where they have the grant option),
and every tuple has the policy that is stated.

*Policies* (R13–R15). A tuple of a punctuated stream exists only under the policy that it names, for the subjects that this
allows all attributes that the query needs of it. A row of several tuples has those whom all of them allow, and with none
is not there. Which rows grants give is settled first; what a policy hides is then left out of each.

*Extent* (R18). Of what was open for a while only, windows that began before are not there, nor results that were not final
when it closed.

*Output.* Each row once for every largest shown set; a row that shows nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggFunction,
    Aggregate,
    Field,
    Node,
    walk,
)
from sluicegate.graph.windows import TupleWindow
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.oracle_decide import possible_ways
from sluicegate.testing.oracle_extent import EVERYTHING, Extent
from sluicegate.testing.oracle_grants import Data, Principal
from sluicegate.testing.oracle_policies import attributes_asked
from sluicegate.testing.oracle_results import write_results
from sluicegate.testing.oracle_run import Run
from sluicegate.testing.oracle_usage import Usage, leaves
from sluicegate.testing.oracle_ways import maximal_sets

NO_UNION = frozenset({AggFunction.AVG, AggFunction.FIRST, AggFunction.LAST})


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The rows as a bag (a withheld attribute is absent), and whether any way of authorizing the query exists."""

    rows: list[dict[str, Value]]
    decision_allows: bool


def expected(
    catalog: Catalog,
    user: str,
    query_root: Node,
    outputs: tuple[Field, ...],
    data: Data,
    united: bool = False,
    delegating: bool = False,
    paper: bool = False,
    extent: Extent = EVERYTHING,
) -> ModelResult:
    """What the user gets from the query over tuples in arrival order; a missing attribute is NULL.

    `delegating` where the query has an ON RESULT: what the user may pass on. `paper`: a grant gives nothing of an
    aggregate that is finer than it allows, or another function of an attribute that it aggregates. `extent`: which results count as whole (R18).
    """
    _check(query_root, united)
    catalog, data = write_results(catalog, user, query_root, data, _ask, delegating)
    principal = Principal(catalog, user, data, delegating, paper)
    usage: Usage = {field.column: False for field in outputs if not field.hidden}
    allows = any(shown for _, shown in possible_ways(principal, query_root, usage, frozenset()))
    rows = []
    asked = attributes_asked(query_root, usage)
    for row in Run(principal, united, asked, extent).rows(query_root, usage, frozenset()):
        if not extent.holds_result(row.time):
            continue
        extra: dict[str, Value] = {}
        if WINDOW_START in row.values:
            extra = {"window_start": row.values[WINDOW_START], "window_end": row.values[WINDOW_END]}
        if row.label:
            extra["_grant"] = "+".join(sorted({name for name, _ in row.label}))
        for shown in maximal_sets(row.alternatives):
            kept = {
                field.name: row.values[field.column]
                for field in outputs
                if field.column in shown - row.hidden
            }
            if kept:
                rows.append(kept | extra)
    return ModelResult(rows, allows)


def _ask(
    catalog: Catalog,
    user: str,
    root: Node,
    outputs: tuple[Field, ...],
    data: Data,
    united: bool,
    delegating: bool,
) -> list[dict[str, Value]]:
    return expected(catalog, user, root, outputs, data, united, delegating).rows


def _check(root: Node, united: bool) -> None:
    aliases = [source.alias for source in leaves(root)]
    if len(aliases) != len(set(aliases)):
        raise ValueError("a source occurrence is used twice: nested queries are inlined")
    for node in walk(root):
        if united and isinstance(node, Aggregate):
            refused = any(call.function in NO_UNION for call in node.calls)
            if refused or isinstance(node.window, TupleWindow):
                raise ValueError("UNITED is refused with tuple windows, AVG, FIRST and LAST")
