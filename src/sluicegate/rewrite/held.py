"""What a principal could read if it wanted to: MIN GROUP and COUNT(DISTINCT) ask for that, not for what it chose (R4, R8).

A role that a session left inactive shows nothing in it, and shows its tuples in the next one. So does a grant that an
ON RESULT leaves aside because it cannot be passed on. What another profile would make of a grant is not said here.
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Privilege, User
from sluicegate.rewrite.spgen import NO_OPTION


def held_reads(catalog: Catalog, user: User, stream: str) -> tuple[Grant, ...]:
    """The grants by which the user may read the stream, alone or beside others, with all the roles that it holds."""
    found = catalog.grants_naming(user.name, stream)
    if user.inactive:
        whole = replace(user, roles=(*user.roles, *user.inactive), inactive=())
        seated = with_decisions(catalog.with_user(whole), user.name, (stream,))
        found = (*found, *seated.grants_naming(user.name, stream))
    return tuple(
        grant
        for grant in dict.fromkeys(found)
        if grant.privilege is Privilege.READ and grant.closed in (None, NO_OPTION)
    )
