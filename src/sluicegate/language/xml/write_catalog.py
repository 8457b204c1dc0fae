"""Roles and grants of a catalog as ASSIST's XML: read beside the other statements, it gives the same catalog (I6)."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from sluicegate.expr.nodes import TRUE, Column, Expr
from sluicegate.language.xml.words import UNITS, WRITTEN_FUNCTIONS, choose_unit
from sluicegate.language.xml.write_document import show
from sluicegate.language.xml.write_expression import add, set_attribute, write_expression
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, Grant, LeastWindow, Privilege, Role


def print_authorizations(catalog: Catalog) -> str:
    """One document with every role, and every grant below its role or user."""
    owners: dict[tuple[bool, str], etree._Element] = {}
    for role in catalog.roles.values():
        owners[False, role.name] = _write_role(role)
    for grant in catalog.grants.values():
        key = (grant.subject.is_user, grant.subject.name)
        if key not in owners:
            owners[key] = etree.Element("user" if grant.subject.is_user else "role")
            set_attribute(owners[key], "name", grant.subject.name)
        _write_grant(owners[key], grant)
    return show(*owners.values())


def _write_role(role: Role) -> etree._Element:
    made = etree.Element("role")
    set_attribute(made, "name", role.name)
    for name in role.inherits:
        add(made, "inherits", name=name)
    return made


def _write_grant(owner: etree._Element, grant: Grant) -> None:
    made = add(
        owner,
        "policy",
        name=grant.name,
        grantoption="true" if grant.grant_option else None,
        mingroup=str(grant.min_group) if grant.min_group else None,
        grantor=grant.grantor,
        closed=grant.closed,
    )
    for ref in grant.streams:
        alias = None if ref.alias == ref.stream else ref.alias
        stream = add(made, "inputstream", name=ref.stream, alias=alias)
        for column in grant.attributes:
            if column.qualifier == ref.alias:
                add(stream, "attribute", name=column.name)
    if grant.closed is None and grant.predicate != TRUE:
        write_expression(add(made, "predicate"), grant.predicate, _refer)
    _write_privilege(made, grant)
    if grant.during is not None:
        _write_during(made, grant.during)


def _write_privilege(made: etree._Element, grant: Grant) -> None:
    joined = grant.privilege is Privilege.READ and len(grant.streams) > 1
    value = "join" if joined else grant.privilege.value.lower()
    privilege = add(made, "privilege", value=value)
    if grant.privilege is Privilege.AGGREGATE:
        for right in grant.rights:
            column = right.attribute
            add(
                privilege,
                "function",
                name=WRITTEN_FUNCTIONS[right.function],
                attribute="*" if column is None else column.name,
                inputstream=None if column is None else column.qualifier,
            )
        if not grant.rights:
            # a closed grant has none left, and must not be read as COUNT
            set_attribute(privilege, "function", "count")
    if grant.least is not None:
        _write_least(privilege, grant.least)
    _write_names(privilege, "groupby", grant.by)
    _write_names(privilege, "narrowby", grant.narrow_by)


def _write_least(privilege: etree._Element, least: LeastWindow) -> None:
    unit = "tuples" if least.rows else choose_unit(least.size, least.step)
    scale = 1 if least.rows else UNITS[unit]
    size, step = str(least.size // scale), str(least.step // scale)
    add(privilege, "wtc", units=unit, minsize=size, minhop=step)


def _write_names(privilege: etree._Element, tag: str, columns: Iterable[Column]) -> None:
    for column in columns:
        add(privilege, tag, name=column.name, inputstream=column.qualifier)


def _write_during(made: etree._Element, during: During) -> None:
    gtc = add(made, "gtc")
    _write_bound(gtc, "start", during.lower)
    _write_bound(gtc, "end", during.upper)


def _write_bound(gtc: etree._Element, name: str, bound: Expr) -> None:
    write_expression(add(gtc, name), bound, _refer)


def _refer(parent: etree._Element, column: Column) -> None:
    add(parent, "attribute", inputstream=column.qualifier, name=column.name)
