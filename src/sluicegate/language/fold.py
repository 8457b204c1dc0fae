"""Statements into a catalog: each is checked against what is there, all findings are raised together, nothing is half done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from sluicegate.errors import Diagnostic, DiagnosticError, Severity
from sluicegate.expr.nodes import Literal
from sluicegate.language.authority import check_authority, check_grant_authority
from sluicegate.language.drops import mentions, plan_drop, plan_removal, remove
from sluicegate.language.fold_grants import (
    close_grant,
    resolve_during,
    resolve_grant,
    resolve_predicate,
    uses_fact,
)
from sluicegate.language.fold_policies import PolicyFolder
from sluicegate.language.fold_state import State, check_name, check_new, fail, find, unify_fact_types
from sluicegate.language.fold_streams import alter_stream, create_stream
from sluicegate.language.fold_users import alter_role, alter_user, create_role, create_user
from sluicegate.language.print_expression import print_expression
from sluicegate.language.punctuation_wire import fit_server
from sluicegate.language.punctuations import warn_unknown_model
from sluicegate.language.scope import Scope
from sluicegate.language.statements import (
    AlterRole,
    AlterStream,
    AlterUser,
    Begin,
    Commit,
    CreateGrant,
    CreatePolicy,
    CreateRole,
    CreateSP,
    CreateStream,
    CreateUser,
    Drop,
    DropFact,
    ExpressionText,
    FollowClause,
    FromFile,
    InsertSP,
    Name,
    ObjectKind,
    SetClock,
    SetFact,
    Statement,
)
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.delegation import orphans
from sluicegate.policy.model import Fact, Grant
from sluicegate.policy.punctuation import Anything, ServerPunctuation
from sluicegate.source import Span

__all__ = ["apply", "find_warnings", "fold_together", "order_statements", "plan_drop"]

MAX_FINDINGS = 50
_RANKS: dict[type[Statement], int] = {
    CreateRole: 0,
    CreateUser: 1,
    CreateStream: 2,
    SetFact: 4,
    CreateSP: 5,
    CreateGrant: 6,
    CreatePolicy: 6,
}


def apply(
    catalog: Catalog, statements: Iterable[Statement], author: str | None = None, recorded: bool = False
) -> Catalog:
    """The catalog after the statements, in order: a new version for each, or for each BEGIN … COMMIT.

    `author` is the user who makes the change, None for an administrator; with `recorded` it was made before, and is not
    judged by what is refused to writers since. Raises all findings; then nothing is changed.
    """
    folder = _Folder(catalog, author, recorded)
    begun: Statement | None = None
    for statement in statements:
        match statement:
            case Begin():
                if begun is not None:
                    folder.note("begin", "BEGIN stands inside BEGIN … COMMIT", statement.span)
                begun = statement
            case Commit():
                if begun is None:
                    folder.note("commit", "COMMIT stands without BEGIN", statement.span)
                begun = None
                folder.finish()
            case _:
                folder.fold(statement)
                if begun is None:
                    folder.finish()
    if begun is not None:
        folder.note("not-committed", "BEGIN has no COMMIT", begun.span, "write COMMIT; at the end")
    return folder.result()


def fold_together(statements: Sequence[Statement], catalog: Catalog | None = None) -> Catalog:
    """One version of all statements, whatever their order: what is made first, changes and drops after it as written."""
    folder = _Folder(catalog or Catalog(), None)
    _check_groups(folder, statements)
    for statement in order_statements(statements):
        folder.fold(statement)
    folder.finish()
    return folder.result()


def find_warnings(statements: Iterable[Statement]) -> list[Diagnostic]:
    """What is accepted but its writer should know."""
    told = list(statements)
    found = [warn_unknown_model(each) for each in told if isinstance(each, CreateSP | InsertSP)]
    return [note for each in told for note in each.notes] + [each for each in found if each is not None]


def _check_groups(folder: _Folder, statements: Sequence[Statement]) -> None:
    begun: Statement | None = None
    for statement in statements:
        if isinstance(statement, Begin):
            begun = statement
        elif isinstance(statement, Commit):
            if begun is None:
                folder.note("commit", "COMMIT stands without BEGIN", statement.span)
            begun = None
    if begun is not None:
        folder.note("not-committed", "BEGIN has no COMMIT", begun.span, "write COMMIT; at the end")


def order_statements(statements: Sequence[Statement]) -> list[Statement]:
    """Roles and users before what names them, streams before grants; named results after the streams they may read."""
    plain = [
        part for each in statements if not isinstance(each, Begin | Commit) for part in _split_follow(each)
    ]
    roles = _order_ready(
        [each for each in plain if isinstance(each, CreateRole)],
        lambda role, names: {each.text for each in role.inherits} & names,
    )
    results = _order_ready(
        [each for each in plain if isinstance(each, CreateStream) and each.query is not None],
        lambda result, names: {
            name for name in names if result.query is not None and mentions(result.query.text, name)
        },
    )
    rest = [each for each in plain if not isinstance(each, CreateRole)]
    rest = [each for each in rest if not (isinstance(each, CreateStream) and each.query is not None)]
    return sorted([*roles, *rest, *results], key=_rank)


def _split_follow(statement: Statement) -> list[Statement]:
    """A user may own the stream that it follows: the user is made first, the FOLLOW added when there are streams."""
    if not isinstance(statement, CreateUser) or statement.follow is None:
        return [statement]
    follow = AlterUser(statement.name, statement.follow, span=statement.span)
    return [replace(statement, follow=None), follow]


def _rank(statement: Statement) -> int:
    match statement:
        case CreateStream(query=query) if query is not None:
            return 3
        case AlterUser(action=FollowClause()):
            return 3
        case CreateGrant(replace=True) | CreatePolicy(replace=True):
            return 7
        case _:
            return _RANKS.get(type(statement), 8)


_Named = TypeVar("_Named", CreateRole, CreateStream)


def _order_ready(waiting: list[_Named], needs: Callable[[_Named, set[str]], set[str]]) -> list[_Named]:
    """What is needed first; what needs itself in a circle comes last as it is, and is refused when folded."""
    names = {each.name.text for each in waiting}
    needed = [(each, needs(each, names) - {each.name.text}) for each in waiting]
    made: list[_Named] = []
    while needed:
        ready = [each for each, others in needed if not others & names]
        if not ready:
            return made + [each for each, _ in needed]
        made += ready
        needed = [(each, others) for each, others in needed if others & names]
        names = {each.name.text for each, _ in needed}
    return made


class _Folder:
    """Folds statements into a state and gathers what is wrong with them."""

    def __init__(self, catalog: Catalog, author: str | None, recorded: bool = False) -> None:
        self.state = State(catalog, author, recorded)
        self.policies = PolicyFolder(self.state)
        self.findings: list[Diagnostic] = []
        self.failed: set[str] = set()
        self.retyped: dict[str, Span | None] = {}
        self.changed = self.unsettled = False
        if author is not None and (author not in self.state.users or self.state.users[author].disabled):
            self.note("unknown-author", f"`{author}` is not a user who may change the catalog", None)

    def note(self, code: str, message: str, span: Span | None, help: str | None = None) -> None:
        self.findings.append(Diagnostic(code, message, span, help))

    def fold(self, statement: Statement) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            return
        try:
            check_authority(self.state, statement)
            self._fold(statement)
            self.changed = True
        except DiagnosticError as error:
            self._gather(statement, error)

    def _gather(self, statement: Statement, error: DiagnosticError) -> None:
        """What only follows from another finding (the stream that could not be made is unknown) is not told."""
        name = getattr(statement, "name", None)
        if isinstance(name, Name):
            self.failed.add(f"{type(statement).__name__.removeprefix('Create').lower()}:{name.text}")
        for each in error.diagnostics:
            kind = each.code.removeprefix("unknown-")
            follows = each.span is not None and f"{kind}:{each.span.text}" in self.failed
            if not follows or not self.findings:
                self.findings.append(each if each.span else replace(each, span=statement.span))

    def _fold(self, statement: Statement) -> None:
        match statement:
            case CreateStream():
                create_stream(self.state, statement)
            case AlterStream():
                alter_stream(self.state, statement)
                self.unsettled = True
            case CreateRole():
                create_role(self.state, statement)
            case AlterRole():
                alter_role(self.state, statement)
                self.unsettled = True
            case CreateUser():
                create_user(self.state, statement)
            case AlterUser():
                alter_user(self.state, statement)
                self.unsettled = True
            case CreateGrant():
                self._create_grant(statement)
            case SetFact() | DropFact():
                self._change_fact(statement)
            case CreateSP():
                self._create_punctuation(statement)
            case CreatePolicy():
                self.policies.create(statement)
            case SetClock(moment):
                self.state.judged_at = moment
            case Drop():
                self._drop(statement)
            case InsertSP():
                help_ = "CREATE SP makes a server's punctuation; INSERT SP goes to a stream's feed"
                fail("not-a-catalog-change", "INSERT SP does not change the catalog", statement.span, help_)
            case _:
                raise TypeError(f"unknown statement {type(statement).__name__}")

    def _create_grant(self, statement: CreateGrant) -> None:
        if not statement.replace:
            check_new("grant", statement.name, self.state.grants)
        grant = resolve_grant(self.state, statement)
        grantor = check_grant_authority(self.state, statement, grant)
        self.state.grants[grant.name] = replace(grant, grantor=grantor)
        self.unsettled |= statement.replace or statement.grantor is not None

    def _create_punctuation(self, statement: CreateSP) -> None:
        check_new("punctuation", statement.name, self.state.punctuations)
        stream = find("stream", statement.stream, self.state.streams)
        if not stream.carries_policies:
            help_ = f"ALTER STREAM {stream.name} PUNCTUATED BY attribute makes it one"
            fail(
                "not-punctuated",
                f"the stream `{stream.name}` is not punctuated",
                statement.stream.span,
                help_,
            )
        if stream.stated and statement.ddp.tuples != Anything():
            message = f"the policies of `{stream.name}` are for all its tuples (ON RESULT)"
            fail("on-result", message, statement.span, "write TUPLES:ALL")
        try:
            ddp = fit_server(statement, stream, self.state.roles, self.state.users)
        except DiagnosticError as error:
            told = error.diagnostics[0]
            fail(told.code, told.message, statement.span, told.help)
        self.state.punctuations[statement.name.text] = ServerPunctuation(
            statement.name.text,
            statement.stream.text,
            ddp,
            statement.srp,
            statement.positive,
            statement.immutable,
        )

    def _change_fact(self, statement: SetFact | DropFact) -> None:
        args = tuple(_check_fact_arg(arg, statement) for arg in statement.args)
        key = (statement.name.text, args)
        before = self.state.facts.pop(key, None)
        try:
            if isinstance(statement, SetFact):
                check_name("fact", statement.name)
                value = _check_fact_value(statement)
                self.state.facts[key] = Fact(statement.name.text, args, value, statement.public)
            elif before is None:
                fail(
                    "unknown-fact",
                    f"the fact `{statement.name.text}` of these arguments is not set",
                    statement.name.span,
                )
            if unify_fact_types(self.state, statement.name.text, statement.name.span):
                self.retyped[statement.name.text] = statement.name.span
        except DiagnosticError:
            self.state.facts.pop(key, None)
            if before is not None:
                self.state.facts[key] = before
            raise

    def _drop(self, statement: Drop) -> None:
        catalog = self.state.snapshot()
        removal = plan_removal(catalog, statement)
        if removal.uses and not statement.cascade:
            shown = ", ".join(removal.uses[:5]) + (
                f" and {len(removal.uses) - 5} more" if len(removal.uses) > 5 else ""
            )
            message = f"the {statement.kind.value.lower()} `{statement.name.text}` is used: {shown}"
            fail("in-use", message, statement.name.span, "CASCADE drops these too")
        getattr(removal, _REMOVED[statement.kind]).add(statement.name.text)
        if statement.kind is ObjectKind.POLICY:
            self.policies.forget(self.state.policies[statement.name.text])
        self.state.take(remove(catalog, removal))
        self.unsettled = True

    def finish(self) -> None:
        """End a version: grants are read again where a fact changed its type, and those that lost their ground close."""
        if self.findings or not self.changed:
            return
        for name, span in self.retyped.items():
            self._retype_grants(name, span)
        self.retyped.clear()
        if self.unsettled:
            self._close_orphans()
        try:
            self.policies.check()
        except DiagnosticError as error:
            self.findings += error.diagnostics
            return
        self.state.version += 1
        self.changed = self.unsettled = False

    def _retype_grants(self, fact: str, span: Span | None) -> None:
        for grant in list(self.state.grants.values()):
            if not uses_fact(grant, fact):
                continue
            try:
                self.state.grants[grant.name] = _resolve_again(self.state, grant)
            except DiagnosticError as error:
                message = (
                    f"the fact `{fact}` does not fit the grant `{grant.name}`: {error.diagnostics[0].message}"
                )
                self.note("fact-type", message, span)

    def _close_orphans(self) -> None:
        if all(grant.grantor is None for grant in self.state.grants.values()):
            return
        for name in orphans(self.state.snapshot()):
            grant = self.state.grants[name]
            if grant.closed is None:
                reason = f"`{grant.grantor}` holds no grant any more that it could rest on (R19)"
                self.state.grants[name] = close_grant(grant, reason)

    def result(self) -> Catalog:
        if any(each.severity is Severity.ERROR for each in self.findings):
            raise DiagnosticError(self.findings[:MAX_FINDINGS])
        return self.state.snapshot()


_REMOVED = {
    ObjectKind.GRANT: "grants",
    ObjectKind.SP: "punctuations",
    ObjectKind.ROLE: "roles",
    ObjectKind.USER: "users",
    ObjectKind.STREAM: "streams",
    ObjectKind.POLICY: "policies",
}


def _check_fact_arg(arg: Literal, statement: SetFact | DropFact) -> int | str:
    """Texts and integers only: 1, 1.0 and TRUE are equal keys to a dict, not to a reader."""
    if isinstance(arg.value, str) or (isinstance(arg.value, int) and not isinstance(arg.value, bool)):
        return arg.value
    return fail("fact-argument", "an argument of a fact is a text or an integer", statement.span)


def _check_fact_value(statement: SetFact) -> Literal:
    if isinstance(statement.value, FromFile):
        help_ = "FROM FILE is read from the folder of a catalog; give the value itself here"
        fail("no-files", "there is no folder to read files from", statement.value.span, help_)
    if statement.value.value is None:
        fail("null-fact", "a fact cannot be NULL", statement.span, "DROP FACT unsets it")
    return statement.value


def _resolve_again(state: State, grant: Grant) -> Grant:
    scope = Scope.of_policy(
        [(ref.alias, state.streams[ref.stream]) for ref in grant.streams], state.fact_types
    )
    predicate = resolve_predicate(scope, ExpressionText(print_expression(grant.predicate)))
    during = grant.during
    if during is not None:
        during = resolve_during(
            state,
            ExpressionText(print_expression(during.lower)),
            ExpressionText(print_expression(during.upper)),
        )
    return replace(grant, predicate=predicate, during=during)
