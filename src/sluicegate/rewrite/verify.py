"""The last pass: judges the authorized plan as if a stranger had built it (I1, I2).

It binds the principal's grants afresh and walks the plan from its sources. Where rows leave a region of selections,
projections and joins, it must follow from the conditions passed on the way that the principal may see them, with
every column that was used. Markers in the plan are claims to be checked; what is not recognised proves nothing.
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, conjuncts
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.graph.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    shown_field,
    sources,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TupleWindow
from sluicegate.policy.bind import Binder
from sluicegate.rewrite.verify_atoms import Clause, Key, Option, check_known, key_of, resolve
from sluicegate.rewrite.verify_grants import Grants
from sluicegate.rewrite.verify_query import Query, streams_below
from sluicegate.rewrite.verify_region import Claim, Joined, Mask, Region, own_column
from sluicegate.rewrite.verify_release import Releaser
from sluicegate.rewrite.verify_shields import is_roles_check, shield_region


def verify(plan: AuthorizedPlan, binder: Binder, root: Node, united: bool) -> None:
    """Raises `InvariantError` unless the plan provably shows the principal nothing that its grants do not."""
    _Verifier(binder, root, united).check(plan)


class _Verifier:
    def __init__(self, binder: Binder, root: Node, united: bool) -> None:
        self.grants = Grants(binder, (source.stream for source in sources(root)))
        self.atoms = self.grants.atoms
        self.query = Query(root, binder.catalog)
        self.releaser = Releaser(self.grants, self.query, united)
        self.regions: dict[int, Region] = {}
        self.streams: dict[int, frozenset[str]] = {}

    def check(self, plan: AuthorizedPlan) -> None:
        self.query.check_outputs(plan)
        self.streams = streams_below(plan.root)
        for node in walk(plan.root):
            self.regions[id(node)] = self._visit(node)
        self.releaser.check_sink(plan, self.regions[id(plan.root)])

    def _visit(self, node: Node) -> Region:
        match node:
            case Source():
                self.query.check_source(node)
                return Region(sources={node.alias: node})
            case Shield():
                return shield_region(node, self.releaser.next_number(), self.atoms, self.grants.binder)
            case Select():
                return self._select(node, self._below(node.input))
            case Project():
                return self._project(node, self._below(node.input))
            case Join():
                return self._join(node, self._below(node.left), self._below(node.right))
            case Unfold():
                return self._unfold(node, self._below(node.input))
            case Aggregate():
                leasts, tumbles = self.grants.leasts(node.by), self.grants.tumbles(node.by)
                self.query.check_aggregate(node, self.streams[id(node)], leasts, tumbles)
                return self.releaser.aggregate(node, self._below(node.input))
            case Union():
                return self.releaser.union(node, [self._below(branch) for branch in node.branches])
            case _:
                raise InvariantError(f"I2: a plan has no {type(node).__name__}")

    def _below(self, node: Node) -> Region:
        return self.regions[id(node)]

    def _select(self, node: Select, region: Region) -> Region:
        option = self.atoms.read(node.predicate, region.env)
        if is_roles_check(node.predicate, region):
            return region.know(option)
        if node.by or _is_hidden(node.predicate):
            claims = () if option is None else (Claim(node.predicate, region.env, option),)
            return replace(region, claims=(*region.claims, *claims)).know(option)
        wanted = (resolve(part, region.env) for part in conjuncts(node.predicate))
        return replace(region, wanted=(*region.wanted, *wanted)).know(option)

    def _project(self, node: Project, region: Region) -> Region:
        env: dict[Key, Expr] = {}
        for item in node.items:
            if not isinstance(item.expr, Column):
                check_known(item.expr)
            expr = resolve(item.expr, region.env)
            key = (item.field.qualifier, item.field.name)
            if not isinstance(expr, Column) or key_of(expr) != key:
                env[key] = expr
        return replace(region, env=env)

    def _join(self, node: Join, left: Region, right: Region) -> Region:
        self.query.check_join(node, self.streams[id(node)])
        if left.sources.keys() & right.sources.keys():
            raise InvariantError(
                f"I1: two sources are named {sorted(left.sources.keys() & right.sources.keys())}"
            )
        for side, window in ((left, node.left_window), (right, node.right_window)):
            if isinstance(window, TupleWindow):
                # Rows that may not be seen would push others out of the window.
                self.releaser.prove(side, self.releaser.uses(side))
        kept = {
            key: expr for env in (left.env, right.env) for key, expr in env.items() if key[0] != "#window"
        }
        sources = {**left.sources, **right.sources}
        parts = tuple(resolve(part, kept) for part in conjuncts(node.predicate))
        parted = tuple(resolve(each, kept) for each in (*node.left_partition, *node.right_partition))
        made = Joined(
            frozenset(sources),
            not (left.leaves or right.leaves),
            (node.left_window, node.right_window),
            parts,
        )
        both = Region(
            sources,
            (*left.leaves, *right.leaves),
            kept,
            left.option,
            (*left.claims, *right.claims),
            (*left.wanted, *right.wanted, *parted),
            (*left.joins, *right.joins, made),
            {**left.masks, **right.masks},
            left.dead or right.dead,
            {**left.shields, **right.shields},
        )
        return both.know(right.option).know(self.atoms.read(node.predicate, kept))

    def _unfold(self, node: Unfold, region: Region) -> Region:
        number = self.releaser.next_number()
        env = dict(region.env)
        masks = dict(region.masks)
        companions: dict[Column, int] = {}
        for column in node.variable:
            mask, companion = own_column(number, column), own_column(number, shown_field(column).column)
            masks[key_of(mask)] = Mask(resolve(column, region.env), key_of(companion))
            companions[column] = self.atoms.number(companion)
            env[key_of(column)] = mask
            env[key_of(shown_field(column).column)] = companion
        claims: list[Claim] = []
        options: list[tuple[UnfoldCase, Option]] = []
        for case in node.cases:
            if not set(case.shown) <= set(node.variable):
                raise InvariantError("I1: an unfolding shows a column that it does not vary")
            option = self.atoms.read(case.when, region.env)
            if option is not None:
                claims.append(Claim(case.when, region.env, option))
                facts = frozenset(companions[each] for each in case.shown)
                nulled = frozenset(
                    key_of(own_column(number, each)) for each in set(node.variable) - set(case.shown)
                )
                options.append((case, Option(option.facts | facts, option.clauses, option.denied, nulled)))
        self._check_cases(options)
        for column in node.variable:
            key = key_of(own_column(number, column))
            masks[key] = replace(masks[key], tells_base=self._tells_base(column, region, options))
        clause = Clause(tuple(option for _, option in options), frozenset(companions.values()))
        made = replace(region, env=env, masks=masks, claims=(*region.claims, *claims))
        return made.know_clause(clause)

    def _tells_base(self, column: Column, region: Region, cases: list[tuple[UnfoldCase, Option]]) -> bool:
        """Whether what withheld the column before tells in every case that shows it."""
        base = resolve(column, region.env)
        mask = region.masks.get(key_of(base)) if isinstance(base, Column) else None
        if mask is None or (not mask.tells_base and region.tellers(mask.base) is not None):
            return False
        earlier = [n for n in range(len(self.atoms.exprs)) if _is_column(self.atoms.exprs[n], mask.companion)]
        return all(option.facts.intersection(earlier) for case, option in cases if column in case.shown)

    def _check_cases(self, cases: list[tuple[UnfoldCase, Option]]) -> None:
        """A row is shown once for each set, and not with a set that another of its own contains (R4)."""
        sets = [frozenset(map(key_of, case.shown)) for case, _ in cases]
        if len(set(sets)) != len(sets):
            raise InvariantError("I1: an unfolding shows one set of columns in two cases")
        for small, (_, option) in zip(sets, cases, strict=True):
            ruled_out = list(self.atoms.ruled_out(option))
            for large, (_, other) in zip(sets, cases, strict=True):
                if small < large and not any(self.atoms.follows(other, each) for each in ruled_out):
                    raise InvariantError(f"I1: an unfolding shows {sorted(small)} beside {sorted(large)}")


def _is_column(expr: Expr, key: Key) -> bool:
    return isinstance(expr, Column) and key_of(expr) == key


def _is_hidden(predicate: Expr) -> bool:
    """Whether it speaks only of columns that no user can name."""
    found = [node.hidden for node in walk_expr(predicate) if isinstance(node, Column)]
    return bool(found) and all(found)
