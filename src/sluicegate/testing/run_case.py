"""Judge one corpus case: rewrite, run by an engine, compare all that the case states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import Shield
from sluicegate.graph.plan import END_NAME, START_NAME, AuthorizedPlan
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import DECIDED, Catalog
from sluicegate.policy.environment import environment
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.rewrite.manner import Merge
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.notice import tell_warnings
from sluicegate.rewrite.notices import Decision
from sluicegate.targets.base import Construct, Part, find_constructs
from sluicegate.targets.duckdb import ABILITIES as DUCKDB
from sluicegate.targets.spark import ABILITIES as SPARK
from sluicegate.testing.corpus import Case, ExpectedError, Rows
from sluicegate.testing.corpus_compare import compare_rows, format_time
from sluicegate.testing.in_force import settle
from sluicegate.testing.masks import add_masks
from sluicegate.testing.oracle import expected

Found: TypeAlias = list[dict[str, Value]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as the case states it; `lines` where a list says more than two texts."""

    what: str
    expected: str
    got: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A case that could be read."""

    case: Case
    catalog: Catalog
    query: ResolvedQuery
    data: Mapping[str, Rows]
    explanation: Explanation


def judge_case(case: Case, engine: str = "interpreter") -> list[Difference]:
    """What differs; nothing when the case holds. A fault of ours, or a `CorpusError`, is raised."""
    try:
        catalog = case.seat(case.load_catalog())
        query = read_query(case.query, catalog)
    except DiagnosticError as error:
        return _judge_error(case.error, error)
    if case.error is not None:
        return [Difference("error", case.error.code, "the query is read")]
    found = explain(catalog, case.user, query.root, query.united, 0, query.delegating, case.manner)
    explanation = replace(found, notices=(*tell_warnings(query.warnings), *found.notices))
    asked = Asked(case, catalog, query, case.typed_input(catalog), explanation)
    rows = [] if _is_unable(asked, engine) else _judge_rows(asked, ENGINES[engine])
    return [*_judge_explanation(case, explanation), *_judge_refused(asked), *rows]


def _is_unable(asked: Asked, engine: str) -> bool:
    """Whether the engine has no shield, and the query needs one: it says nothing of the rows then."""
    plan = asked.explanation.draft.plan
    abilities = {DUCKDB.target: DUCKDB, SPARK.target: SPARK}.get(engine)
    shield = Construct(Part.OPERATOR, Shield.__name__)
    return (
        plan is not None
        and abilities is not None
        and not abilities.has(shield)
        and shield in find_constructs(plan)
    )


def _judge_refused(asked: Asked) -> list[Difference]:
    wanted = asked.case.refused
    got = () if wanted is None else asked.case.refused_input(asked.catalog)
    if wanted in (None, got):
        return []
    return [Difference("refused", ", ".join(wanted or ()) or "none", ", ".join(got) or "none")]


def _judge_error(wanted: ExpectedError | None, error: DiagnosticError) -> list[Difference]:
    got = "; ".join(_describe(each.code, each.span.text if each.span else None) for each in error.diagnostics)
    if wanted is None:
        return [Difference("error", "none", got, tuple(str(error).splitlines()))]
    for each in error.diagnostics:
        text = each.span.text if each.span else None
        if each.code == wanted.code and (wanted.at is None or text == wanted.at):
            return []
    return [Difference("error", _describe(wanted.code, wanted.at), got)]


def _describe(code: str, at: str | None) -> str:
    return code if at is None else f"{code} at `{at}`"


def _judge_explanation(case: Case, found: Explanation) -> list[Difference]:
    codes = {notice.code for notice in found.notices}
    pairs: list[tuple[str, str | int | None, str | int]] = [
        ("decision", case.decision, found.decision.value),
        ("grants", None if case.grants is None else _join(case.grants), _join(found.used)),
        ("notices", _join(case.notices | codes), _join(codes)),
        ("graphs", case.graphs, found.graphs.total),
        ("valid_graphs", case.valid_graphs, found.graphs.valid),
    ]
    different = [
        Difference(what, str(wanted), str(got)) for what, wanted, got in pairs if wanted not in (None, got)
    ]
    return different + _judge_witnesses(case, found)


def _judge_witnesses(case: Case, found: Explanation) -> list[Difference]:
    """There is a witness, and none tells more than these attributes (R9)."""
    wanted = case.witness_attributes
    shown = [frozenset(notice.witness) for notice in found.notices if notice.witness is not None]
    if wanted is None or (shown and all(each <= wanted for each in shown)):
        return []
    got = " and ".join(map(_join, shown)) or "no witness"
    return [Difference("witness_attributes", _join(wanted), got)]


def _join(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _judge_rows(asked: Asked, engine: Callable[[Asked], Found]) -> list[Difference]:
    wanted = asked.case.rows
    if wanted is None:
        return []
    got = engine(asked)
    if compare_rows(wanted, got) is None:
        return []
    # told with times as people write them; values that only then look alike are told as they are
    told = compare_rows(wanted, _readable(asked, got)) or compare_rows(wanted, got) or ""
    return [Difference("rows", str(len(wanted)), str(len(got)), tuple(told.splitlines()))]


def _readable(asked: Asked, rows: Found) -> list[dict[str, object]]:
    times = {each.name for each in asked.query.outputs if each.type == TIMESTAMP} | {START_NAME, END_NAME}
    return [
        {
            name: format_time(value) if name in times and isinstance(value, int) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _interpret(asked: Asked) -> Found:
    plan = released_plan(asked)
    if plan is None:
        return []
    data = add_masks(asked.catalog, plan, settle(asked.data, asked.catalog.streams))
    rows = run(plan.root, data, environment(asked.catalog, asked.case.user))
    return result_rows(rows, plan.outputs, plan.label)


def _run_duckdb(asked: Asked) -> Found:
    # imported here: the other engines work without it
    from sluicegate.testing.duckdb_run import run_duckdb

    plan = released_plan(asked)
    if plan is None:
        return []
    env = environment(asked.catalog, asked.case.user)
    return run_duckdb(plan, asked.data, asked.catalog.streams, env)


def _consult_model(asked: Asked) -> Found:
    query = asked.query
    if any(each.kind == "partial" for each in asked.explanation.notices):
        # refused for being partial: the model knows what a part is, not who wants none
        return []
    return expected(
        _decide_everyone(asked.catalog, asked.case.user),
        asked.case.user,
        query.root,
        query.outputs,
        asked.data,
        query.united,
        query.delegating,
        asked.case.manner.merge is Merge.PAPER,
    ).rows


def _decide_everyone(catalog: Catalog, user: str) -> Catalog:
    """What policies come to is tested by itself; from there on the model decides by its own rules.

    Makers of named results need theirs too, under names of their own.
    """
    others = {
        f"{grant.name} of {each}": replace(grant, name=f"{grant.name} of {each}")
        for each in (catalog.users if catalog.policies else ())
        for grant in with_decisions(catalog, each).grants_to(each)
        if grant.name.startswith(DECIDED) and each != user
    }
    return with_decisions(replace(catalog, grants={**catalog.grants, **others}) if others else catalog, user)


def released_plan(asked: Asked) -> AuthorizedPlan | None:
    """What an engine runs: named results are put in as their makers may have them."""
    plan = asked.explanation.draft.plan
    denied = asked.explanation.decision is Decision.DENY
    results = Results(asked.catalog, delegating=asked.query.delegating)
    return None if denied or plan is None else results.inline(plan)


ENGINES: dict[str, Callable[[Asked], Found]] = {
    "interpreter": _interpret,
    "duckdb": _run_duckdb,
    "reference": _consult_model,
}
