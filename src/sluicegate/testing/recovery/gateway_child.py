"""`python -m sluicegate.testing.recovery.gateway_child POINT SIDE CALL serve …`: a gateway that kills itself at a point."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from sluicegate.cli.main import main
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feeds import Feeds
from sluicegate.runtime.gate import committing
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.network.running import Records
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.bearers import Bearers
from sluicegate.service.store import chain, log
from sluicegate.service.store.log import Store
from sluicegate.testing.load.light import make_light
from sluicegate.testing.recovery.points import Point, set_point

GATEWAY_POINTS: Mapping[str, Point] = {
    "change written": Point(chain, "add_entry", 4),
    "change told to the audit log": Point(log, "record_event", 4),
    "change stored": Point(Store, "append_statements", 4),
    "change put in force": Point(Engine, "apply", 4),
    "change acknowledged": Point(Store, "wait_acknowledged", 4),
    "query registered": Point(Engine, "register", 8),
    "query recorded": Point(Records, "save", 12),
    "handle opened": Point(Gate, "open", 8),
    "query audited": Point(Gateway, "_audit_register", 8),
    "query dropped": Point(Engine, "remove", 3),
    "tuples pushed": Point(Feeds, "push", 8),
    "batch committed": Point(SourceLog, "commit", 8),
    "batch described": Point(SourceLog, "_write_meta", 8),
    "tick published": Point(committing, "publish", 2),
    "token made": Point(Bearers, "issue", 2),
    "token revoked": Point(Bearers, "revoke", 2),
}


if __name__ == "__main__":
    make_light()
    set_point(sys.argv[1], sys.argv[2], int(sys.argv[3]), GATEWAY_POINTS)
    sys.exit(main(sys.argv[4:]))
