"""The store: versions of the catalog and the audit log, kept for good, in a file or in PostgreSQL."""

from sluicegate.service.store.audit import AuditLog, Search
from sluicegate.service.store.folders import Plan, plan
from sluicegate.service.store.leases import Lease, Leases, Renewal
from sluicegate.service.store.log import Store
from sluicegate.service.store.places import DEFAULT_URL, open_store
from sluicegate.service.store.records import Entry, Event, Recorded
from sluicegate.service.store.verify import Verification
from sluicegate.service.store.watch import Watch

__all__ = [
    "DEFAULT_URL",
    "AuditLog",
    "Entry",
    "Event",
    "Lease",
    "Leases",
    "Plan",
    "Recorded",
    "Renewal",
    "Search",
    "Store",
    "Verification",
    "Watch",
    "open_store",
    "plan",
]
