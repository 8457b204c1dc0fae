"""Diagnostic codes of shared queries."""

from __future__ import annotations

SHARED_CODES = {
    "credential-unknown": "there is no credential of this name for this user",
    "shared-exists": "there is a shared query of this name already",
    "shared-limit": "there are as many shared queries, policies or credentials as may be; remove one first",
    "shared-often": "one user made, renewed and cancelled as many subscriptions within an hour as may be; wait",
    "shared-owner": "only the owner of the shared query and administrators may do this",
    "shared-policy": "a policy that admits nobody in particular, or names a user, a role or a credential that is not there",
    "shared-refused": "the proof that the user may have the shared query does not hold",
    "shared-session": "subscriptions are for users of the catalog, in sessions with all roles that they were made with",
    "shared-timeless": "a query over tables alone has no stream that punctuations could stand in",
    "shared-unknown": "there is no such shared query, or the caller may not know of it",
    "subscription-unknown": "there is no such subscription, or it is not the caller's",
}
