"""Bring a query graph into blocks: nested selections and projections are inlined (D4), meaning unchanged.

π(x)(σ(x > 3)(π(a + 1 AS x)(S)))   becomes   block(S; where a + 1 > 3; items x = a + 1)
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.nodes import Column, Expr, conjuncts
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    sources,
    walk,
)
from sluicegate.graph.windows import TupleWindow
from sluicegate.rewrite.blocks import AggLeaf, Block, JoinTree, SourceLeaf, UnionLeaf, aliases, leaves

MAX_OPERATORS = 4_000
MAX_BRANCHES = 64
MAX_GROWTH = 250
"""By how many terms an operator's expressions may grow when what nested queries compute is written out in them."""
REWRITE_CODES = {
    "order-over-union": "what is counted or ordered comes from a join in which a stream meets itself through a union",
    "rows-over-union": "a join side cannot count the tuples of a union: they have no single order of arrival",
    "query-too-large": "the query has more operators or terms than are rewritten, counted with what is repeated",
}


def inline_queries(root: Node) -> Block:
    """The query as a block."""
    _check_size(root)
    _check_growth(root)
    return _Inliner().block(root)


def _check_size(root: Node) -> None:
    """A DAG that shares nodes is unfolded here: its unfolded size is what counts."""
    sizes: dict[int, int] = {}
    for node in walk(root):
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.inputs)
    if sizes[id(root)] > MAX_OPERATORS:
        message = f"the query has {sizes[id(root)]} operators, more than {MAX_OPERATORS}"
        raise DiagnosticError([Diagnostic("query-too-large", message)])


def _check_growth(root: Node) -> None:
    """A sum of a sum of a sum doubles at each level: that is told before anything is written out."""
    sizes: dict[int, dict[Column, int]] = {}
    for node in walk(root):
        below = {column: size for child in node.inputs for column, size in sizes[id(child)].items()}
        written = [(each, _count(each, {})) for each in _expressions(node)]
        if sum(_count(each, below) - size for each, size in written) > MAX_GROWTH:
            message = f"nested queries written out in each other make more than {MAX_GROWTH:,} further terms"
            raise DiagnosticError([Diagnostic("query-too-large", message)])
        match node:
            case Project(items=items):
                sizes[id(node)] = {item.field.column: _count(item.expr, below) for item in items}
            case Select() | Join():
                sizes[id(node)] = below
            case _:
                sizes[id(node)] = {}


def _count(expr: Expr, sizes: dict[Column, int]) -> int:
    return sum(sizes.get(part, 1) if isinstance(part, Column) else 1 for part in walk_expr(expr))


def _expressions(node: Node) -> list[Expr]:
    match node:
        case Select(predicate=predicate) | Join(predicate=predicate):
            return [predicate]
        case Project(items=items):
            return [item.expr for item in items]
        case Aggregate(calls=calls, group_by=keys):
            return [*(key.expr for key in keys), *(call.arg for call in calls if call.arg is not None)]
        case _:
            return []


class _Inliner:
    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._over_union: set[int] = set()
        self._spread: set[str] = set()

    def block(self, node: Node) -> Block:
        match node:
            case Source():
                return self._source(node)
            case Select(input=inner, predicate=predicate):
                block = self.block(inner)
                added = tuple(_inline(part, block) for part in conjuncts(predicate))
                return replace(block, where=(*block.where, *added))
            case Project(input=inner, items=items):
                block = self.block(inner)
                return replace(block, items=_inline_items(items, block))
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case Union():
                return self._union(node)
            case _:
                raise InvariantError(f"a query has no {type(node).__name__}")

    def _name(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}~{count}"
        self._taken.add(name)
        return name

    def _source(self, node: Source) -> Block:
        source = replace(node, alias=self._name(node.alias))
        items = zip(node.fields, source.fields, strict=True)
        return Block(SourceLeaf(source), (), tuple(Item(old, new.column) for old, new in items))

    def _join(self, node: Join) -> Block:
        _check_countable(node)
        if _meets_in_union(node):
            return self._distribute(node)
        return self._pair(node, self.block(node.left), self.block(node.right))

    def _pair(self, node: Join, left: Block, right: Block) -> Block:
        items = (*left.items, *right.items)
        mapping = _mapping(items)
        predicate = tuple(substitute(part, mapping) for part in conjuncts(node.predicate))
        keep_left = left.where if isinstance(node.left_window, TupleWindow) else ()
        keep_right = right.where if isinstance(node.right_window, TupleWindow) else ()
        tree = JoinTree(
            left.tree,
            right.tree,
            predicate,
            node.left_window,
            node.right_window,
            keep_left,
            keep_right,
            id(node) in self._over_union,
        )
        hoisted = (*(() if keep_left else left.where), *(() if keep_right else right.where))
        return Block(tree, hoisted, items)

    def _distribute(self, node: Join) -> Block:
        """(A ∪ B) ⋈ A as (A ⋈ A) ∪ (B ⋈ A): there both A use one grant (R4)."""
        outputs = tuple(each for each in node.fields if not each.hidden)
        branches = _expand(node)
        for branch in branches:
            self._over_union |= _joins_over_union(node, branch)
        block = self._gathered(outputs, tuple(map(self.block, branches)))
        self._spread |= aliases(block.tree)
        return block

    def _is_spread(self, block: Block) -> bool:
        """Whether rows of a join that was spread over a union's branches reach the end of the block."""
        return any(
            leaf.alias in self._spread
            or (isinstance(leaf, UnionLeaf) and any(map(self._is_spread, leaf.branches)))
            for leaf in leaves(block.tree)
        )

    def _gathered(self, outputs: tuple[Field, ...], branches: tuple[Block, ...]) -> Block:
        name = self._name("∪")
        names: set[str] = set()
        fields = tuple(_renamed(each, name, names) for each in outputs)
        leaf = UnionLeaf(name, branches, fields)
        return Block(leaf, (), tuple(Item(o, n.column) for o, n in zip(outputs, fields, strict=True)))

    def _aggregate(self, node: Aggregate) -> Block:
        block = self.block(node.input)
        if _needs_order(node) and self._is_spread(block):
            message = "a stream meets itself through a union in a join whose rows are counted or ordered"
            help_ = "use a window by time, and MIN or MAX instead of FIRST or LAST"
            raise DiagnosticError([Diagnostic("order-over-union", message, help=help_)])
        name = self._name("Σ")
        names: set[str] = set()
        group_by = tuple(
            Item(_renamed(item.field, name, names), _inline(item.expr, block)) for item in node.group_by
        )
        calls = tuple(
            AggCall(call.function, _inline_arg(call.arg, block), _renamed(call.field, name, names))
            for call in node.calls
        )
        leaf = AggLeaf(name, block, calls, node.window, group_by)
        old = (*(item.field for item in node.group_by), *(call.field for call in node.calls))
        return Block(leaf, (), tuple(Item(o, n.column) for o, n in zip(old, leaf.fields, strict=True)))

    def _union(self, node: Union) -> Block:
        return self._gathered(node.outputs, tuple(self.block(branch) for branch in node.branches))


def _needs_order(node: Aggregate) -> bool:
    ordered = (AggFunction.FIRST, AggFunction.LAST)
    return isinstance(node.window, TupleWindow) or any(call.function in ordered for call in node.calls)


def _expand(node: Node) -> list[Node]:
    """The node's union branches, each joined and selected on its own; aggregates stay whole."""
    match node:
        case Union(branches=branches, outputs=outputs):
            return [_named(outputs, each) for branch in branches for each in _expand(branch)]
        case Join():
            _check_countable(node)
            lefts, rights = _expand(node.left), _expand(node.right)
            if len(lefts) * len(rights) > MAX_BRANCHES:
                message = f"a join of unions has more than {MAX_BRANCHES} combinations"
                raise DiagnosticError([Diagnostic("query-too-large", message)])
            if not any(in_union for _, in_union in _met(node)):
                return [node]
            return [replace(node, left=left, right=right) for left in lefts for right in rights]
        case Select() | Project():
            return [replace(node, input=each) for each in _expand(node.input)]
        case _:
            return [node]


def _joins_over_union(written: Node, branch: Node) -> set[int]:
    """The joins that `_expand` made anew; one that had no union below it is the one that was written."""
    kept = {id(node) for node in walk(written)}
    return {id(node) for node in walk(branch) if isinstance(node, Join) and id(node) not in kept}


def _meets_in_union(node: Join) -> bool:
    """Whether a stream meets itself in this join and one of the occurrences stands in a union, with no Σ between."""
    left, right = _met(node.left), _met(node.right)
    twice = {stream for stream, _ in left} & {stream for stream, _ in right}
    return any(in_union for stream, in_union in left | right if stream in twice)


def _check_countable(node: Join) -> None:
    """A union's tuples have no single order of arrival to count by on a join side."""
    for side, window in ((node.left, node.left_window), (node.right, node.right_window)):
        if isinstance(window, TupleWindow) and any(in_union for _, in_union in _met(side)):
            message = "a join side that counts tuples stands over a union"
            raise DiagnosticError([Diagnostic("rows-over-union", message, help="use a window by time")])


def _met(node: Node) -> set[tuple[str, bool]]:
    """Streams below, and whether a union stands between; an aggregate's are met as they are."""
    match node:
        case Source():
            return {(node.stream, False)}
        case Union():
            return {(stream, True) for branch in node.branches for stream, _ in _met(branch)}
        case Aggregate():
            return {(source.stream, False) for source in sources(node)}
        case _:
            return {each for child in node.inputs for each in _met(child)}


def _named(outputs: tuple[Field, ...], branch: Node) -> Node:
    own = [each for each in branch.fields if not each.hidden]
    return Project(branch, tuple(Item(new, old.column) for new, old in zip(outputs, own, strict=True)))


def _mapping(items: tuple[Item, ...]) -> dict[Column, Expr]:
    return {item.field.column: item.expr for item in items}


def _inline(expr: Expr, block: Block) -> Expr:
    return substitute(expr, _mapping(block.items))


def _inline_items(items: tuple[Item, ...], block: Block) -> tuple[Item, ...]:
    """Window bounds are no attributes: rows carry them on whether a projection names them or not."""
    mapping = _mapping(block.items)
    return tuple(Item(each.field, substitute(each.expr, mapping)) for each in items if not each.field.hidden)


def _inline_arg(expr: Expr | None, block: Block) -> Expr | None:
    return None if expr is None else _inline(expr, block)


def _renamed(field: Field, qualifier: str, taken: set[str]) -> Field:
    name = field.name if field.name not in taken else f"{field.qualifier}.{field.name}"
    while name in taken:
        name += "'"
    taken.add(name)
    return Field(qualifier, name, field.type)
