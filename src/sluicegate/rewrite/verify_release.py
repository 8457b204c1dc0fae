"""Where rows leave a region: at an aggregate, at the end of a union's branch, at the sink. There all must be proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import FALSE, TRUE, Call, Column, Compare, Expr, Literal, Not, Op, conjuncts
from sluicegate.expr.types import BOOLEAN
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggFunction, Aggregate, Field, Union
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.policy.model import Privilege
from sluicegate.rewrite.verify_aggregates import Granted
from sluicegate.rewrite.verify_atoms import Key, Option, key_of, near_size, resolve
from sluicegate.rewrite.verify_grants import Grants, event_time
from sluicegate.rewrite.verify_labels import Owed
from sluicegate.rewrite.verify_query import Query
from sluicegate.rewrite.verify_region import OWN, Leaf, Proof, Region, Uses, keys_in, own_column
from sluicegate.rewrite.verify_rows import Prover
from sluicegate.rewrite.verify_shields import ShieldCheck

Holder = Callable[[Key | None, str, str], bool]


class Releaser:
    """Judges regions at their ends, and makes of what leaves them the leaves of the regions above."""

    def __init__(self, grants: Grants, query: Query, united: bool) -> None:
        self.grants = grants
        self.query = query
        self.united = united
        self._numbers = 0

    def next_number(self) -> int:
        """For names that no other node has."""
        self._numbers += 1
        return self._numbers

    def uses(self, region: Region, *, aggregated: bool = False) -> Uses:
        """What predicates use; a claim that is not built of grants' conditions is a predicate too."""
        self.query.check_sources(region.sources.values())
        uses = Uses(region)
        if region.claims:
            known = self._policy(region, aggregated)
            for claim in region.claims:
                if not self._is_policy(claim.option, known, region):
                    uses.add_predicate(resolve(claim.expr, claim.env))
        return uses

    def _shields(self, region: Region) -> ShieldCheck:
        return ShieldCheck(region, self.grants.atoms, self.grants.binder.catalog)

    def _policy(self, region: Region, aggregated: bool) -> frozenset[int]:
        """The conditions of all grants that could speak of the region's rows."""
        pieces = [each for source in region.sources.values() for each in self.grants.readers(source).pieces]
        pieces += [each for _, found in Prover(self.grants, region, None).groups for each in found]
        if aggregated and not region.leaves and region.sources:
            sources = tuple(region.sources[alias] for alias in sorted(region.sources))
            pieces += self.grants.pieces(Privilege.AGGREGATE, sources)
        covers = (proof.covers for leaf in region.leaves for proof in leaf.proofs)
        return frozenset[int]().union(*(piece.numbers for piece in pieces), *covers)

    def _is_policy(self, option: Option, known: frozenset[int], region: Region) -> bool:
        atoms = self.grants.atoms
        return (
            all(
                self._is_policy_atom(atoms.exprs[each], known, region)
                for each in option.facts - known - atoms.split
            )
            and all(
                clause.number in known or all(self._is_policy(each, known, region) for each in clause.options)
                for clause in option.clauses
            )
            and all(self._is_policy(each, known, region) for each in option.denied)
        )

    def _is_policy_atom(self, expr: Expr, known: frozenset[int], region: Region) -> bool:
        """Of the rows of aggregates, of companions, of event times in join windows."""
        if isinstance(expr, Not):
            inner = self.grants.atoms.read(expr.arg)
            return inner is None or self._is_policy(inner, known, region)
        used = keys_in([expr])
        if used and all(qualifier.startswith(OWN) for qualifier, _ in used):
            return not any(map(region.is_secret, used)) or _is_count(expr)
        times = {key_of(time) for time in map(event_time, region.sources.values()) if time is not None}
        return bool(used) and used <= times and _is_near(expr)

    def prove(self, region: Region, uses: Uses) -> None:
        """Raises unless every row may be read with all that is used of it."""
        self._shields(region).check(uses)
        failed = None if region.dead else Prover(self.grants, region, uses).unproven()
        if failed is not None:
            raise InvariantError(self._explain(region, uses, failed))

    def _explain(self, region: Region, uses: Uses, failed: frozenset[str]) -> str:
        names = (
            ", ".join(f"`{region.sources[alias].stream}` as `{alias}`" for alias in sorted(failed))
            or "an aggregate"
        )
        if Prover(self.grants, region, None).unproven() is not None:
            return f"I1: rows of {names} leave without a grant's view that provably covers them"
        used = sorted(
            f"`{alias}.{name}`" for alias in failed for name in uses.all_of(alias) | uses.shown_of(alias)
        )
        return f"I1: rows of {names} are seen by grants that do not all show what is used: {', '.join(used)}"

    def aggregate(self, node: Aggregate, region: Region) -> Region:
        """The region that begins with the aggregate's rows."""
        number = self.next_number()
        calls = tuple(
            (call, None if call.arg is None else resolve(call.arg, region.env))
            for call in node.calls
            if call.function not in INTERNAL_FUNCTIONS
        )
        keys = tuple(resolve(item.expr, region.env) for item in node.group_by)
        parted = {key_of(own_column(number, each)): resolve(each, region.env) for each in node.partition}
        uses = self.uses(region, aggregated=True)
        withheld: dict[Key, frozenset[Key]] = {}
        for call, arg in calls:
            if arg is not None:
                uses.add_shown(arg)
                _note_withheld(
                    withheld, key_of(own_column(number, call.field.column)), region.tellers(arg), parted
                )
        for expr in keys:
            uses.add(expr)
        for expr in parted.values():
            uses.add_shown(expr, internal=True)
        prover = Prover(self.grants, region, uses)
        proofs = self._allow(prover, Granted(prover, node, calls, keys, self.united, number))
        owed = Owed(region, self.grants)
        owed.check_names(parted.values())
        carriers = owed.carriers(list(parted.values()))
        secret = [call.field for call in node.calls if call.function is AggFunction.COUNT_IF]
        made = _own_columns(number, node.fields)
        roles = self._shields(region).merged(node, number)
        leaf = Leaf(
            keys_in(list(made.values())),
            shielded=roles is not None,
            roles=roles,
            unchecked=roles is not None,
            reads=frozenset() if proofs else region.reads,
            proofs=proofs,
            owes=owed.is_owed or bool(proofs),
            carriers=frozenset(list(parted)[index] for index in carriers),
            withheld=withheld,
            secret=frozenset(key_of(own_column(number, each.column)) for each in secret),
            holds=self._holder([(region, uses, parted)]),
        )
        return Region(leaves=(leaf,), env=made, dead=region.dead)

    def _allow(self, prover: Prover, granted: Granted) -> tuple[Proof, ...]:
        """The aggregate grants that allow it, where it names one; none for an input that is readable."""
        region = prover.region
        if region.dead or prover.uses is None:
            return ()
        if granted.node.by:
            self._shields(region).check(prover.uses)
            proofs, why = granted.prove()
            if not proofs:
                names = ", ".join(f"`{source.stream}`" for source in region.sources.values())
                raise InvariantError(f"I1: an aggregate over {names} is not allowed by a grant: {why}")
            return proofs
        self.prove(region, prover.uses)
        return ()

    def union(self, node: Union, branches: Sequence[Region]) -> Region:
        """The region that begins with the union's rows."""
        number = self.next_number()
        outputs = [key_of(own_column(number, each.column)) for each in node.outputs]
        ends = []
        carriers = set(outputs)
        owes = False
        for branch, region in zip(node.branches, branches, strict=True):
            fields = [each for each in branch.fields if each.qualifier != "#window"]
            exprs = dict(zip(outputs, (resolve(each.column, region.env) for each in fields), strict=True))
            uses = self.uses(region)
            for each, expr in zip(fields, exprs.values(), strict=True):
                uses.add_shown(expr, internal=each.hidden)
            self.prove(region, uses)
            owed = Owed(region, self.grants)
            owed.check_names(expr for each, expr in zip(fields, exprs.values(), strict=True) if each.hidden)
            carriers &= {outputs[index] for index in owed.carriers(list(exprs.values()))}
            owes |= owed.is_owed
            ends.append((region, uses, exprs))
        made = _own_columns(number, node.fields)
        leaf = Leaf(
            keys_in(list(made.values())),
            shielded=any(self._shields(region).is_shielded for region in branches),
            roles=self._carried(outputs, ends),
            reads=frozenset[str]().union(*(region.reads for region in branches)),
            owes=owes,
            carriers=frozenset(carriers),
            withheld=self._withheld(node, outputs, [(region, exprs) for region, _, exprs in ends]),
            holds=self._holder(ends),
        )
        return Region(leaves=(leaf,), env=made, dead=all(region.dead for region in branches))

    def _carried(self, outputs: list[Key], ends: list[tuple[Region, Uses, dict[Key, Expr]]]) -> Key | None:
        """The output in which every branch hands on what its rows' policies allow."""
        found = (
            key
            for key in outputs
            if all(self._shields(region).is_carried_by(exprs[key]) for region, _, exprs in ends)
        )
        shielded = any(self._shields(region).is_shielded for region, _, _ in ends)
        return next(found, None) if shielded else None

    def _withheld(
        self, node: Union, outputs: list[Key], ends: list[tuple[Region, Mapping[Key, Expr]]]
    ) -> dict[Key, frozenset[Key]]:
        """Outputs that some branch or some row of a branch does not show, with those that tell which."""
        found: dict[Key, frozenset[Key]] = {}
        nulls = self.query.has_nulls
        for each, key in zip(node.outputs, outputs, strict=True):
            if each.hidden or all(_is_teller(TRUE, exprs[key], region, nulls) for region, exprs in ends):
                continue
            found[key] = frozenset(
                other
                for other, of in zip(outputs, node.outputs, strict=True)
                if of.type == BOOLEAN
                and other != key
                and all(_is_teller(exprs[other], exprs[key], region, nulls) for region, exprs in ends)
            )
        return found

    def _holder(self, ends: Sequence[tuple[Region, Uses, Mapping[Key, Expr]]]) -> Holder:
        """Answers whether rows for which a column is true were read by one grant of a stream alone."""
        known: dict[tuple[Key | None, str, str], bool] = {}

        def holds(column: Key | None, stream: str, grant: str) -> bool:
            asked = (column, stream, grant)
            if asked not in known:
                known[asked] = all(
                    self._is_read_by(
                        region, uses, None if column is None else exprs.get(column), stream, grant
                    )
                    for region, uses, exprs in ends
                )
            return known[asked]

        return holds

    def _is_read_by(self, region: Region, uses: Uses, flag: Expr | None, stream: str, grant: str) -> bool:
        if region.dead or flag == FALSE or stream not in region.reads:
            return True
        assumed = self.grants.atoms.number(flag) if isinstance(flag, Column) else None
        prover = Prover(self.grants, region, uses, {stream: grant})
        return prover.unproven(prover.world(assumed)) is None

    def check_sink(self, plan: AuthorizedPlan, region: Region) -> None:
        """What the principal receives: outputs, companions where rows differ, the label."""
        uses = self.uses(region)
        for each in plan.root.fields:
            if each.qualifier != "#window":
                uses.add_shown(resolve(each.column, region.env), internal=each.hidden)
        self.prove(region, uses)
        owed = Owed(region, self.grants)
        labels = [] if plan.label is None else [resolve(plan.label, region.env)]
        owed.check_names(labels)
        owed.carriers(labels)
        for output in plan.outputs:
            _check_output(output, region, self.query.has_nulls)
        self._check_something_left(plan, region)

    def _check_something_left(self, plan: AuthorizedPlan, region: Region) -> None:
        """A row of which nothing is left is not released (R1)."""
        shown = [None if each.shown is None else resolve(each.shown, region.env) for each in plan.outputs]
        if region.dead or not all(isinstance(each, Column) for each in shown):
            return
        wanted = frozenset(self.grants.atoms.number(each) for each in shown if each is not None)
        options = (clause.options for clause in region.option.clauses)
        if not wanted & region.option.facts and not any(
            all(wanted & each.facts for each in of) for of in options
        ):
            raise InvariantError("I1: rows are released of which nothing may be shown")


def _own_columns(number: int, fields: Sequence[Field]) -> dict[Key, Expr]:
    """The leaf's columns, by the names that the plan has for them."""
    return {key_of(each.column): own_column(number, each.column) for each in fields}


def _note_withheld(
    withheld: dict[Key, frozenset[Key]],
    field: Key,
    tellers: frozenset[Key] | None,
    parted: Mapping[Key, Expr],
) -> None:
    """An aggregate of what some rows do not show is parted by the column that tells which (R4)."""
    if tellers is None:
        return
    known = frozenset(
        key for key, expr in parted.items() if isinstance(expr, Column) and key_of(expr) in tellers
    )
    if not known:
        raise InvariantError(f"I1: `{field[1]}` mixes rows that show its argument with rows that do not")
    withheld[field] = known


def _is_teller(candidate: Expr, expr: Expr, region: Region, nulls: bool) -> bool:
    """Whether the candidate is true only where the branch shows the expression."""
    if candidate == FALSE:
        return True
    tellers = region.tellers(expr)
    if tellers is None:
        return nulls or not _is_null(expr)
    return isinstance(candidate, Column) and key_of(candidate) in tellers


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _check_output(output: OutputColumn, region: Region, nulls: bool) -> None:
    expr = resolve(output.column, region.env)
    if _is_null(expr) and not nulls:
        raise InvariantError(f"I1: `{output.name}` is never shown and put out")
    tellers = region.tellers(expr)
    if tellers is None:
        return
    shown = TRUE if output.shown is None else resolve(output.shown, region.env)
    parts = conjuncts(shown)
    if FALSE not in parts and not any(isinstance(each, Column) and key_of(each) in tellers for each in parts):
        raise InvariantError(f"I1: `{output.name}` is withheld in some rows, and no companion tells which")


def _is_count(expr: Expr) -> bool:
    """The comparisons of MIN GROUP; any other would tell how many rows are hidden."""
    match expr:
        case Compare(Op.EQ, Column(), Literal(0)) | Compare(Op.GE, Column(), Literal()):
            return True
        case _:
            return False


def _is_near(expr: Expr) -> bool:
    """A pair's event times lie within a window, or the other way round."""
    match expr:
        case Compare(Op.GT, Column() | Call("greatest"), Column() | Call("greatest")):
            return True
        case _:
            return near_size(expr) is not None
