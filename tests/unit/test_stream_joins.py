"""Streams joined with tables in streaming frames: both sides read the subscription, and may not read the same."""

from __future__ import annotations

from sluicegate.api import Gate
from sluicegate.graph.operators import Join, walk
from sluicegate.language.load import read_catalog
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.targets.spark_stream import make_context, write_step

_CATALOG = """
CREATE STREAM T (ts TIMESTAMP, x INT, kind STRING) TIMESTAMP BY ts WATERMARK '1 second';
CREATE STREAM U (x INT, kind STRING);
CREATE ROLE Reader;
CREATE USER ann ROLES (Reader) SET (kind = 'a');
CREATE GRANT own READ (ts, x) ON T WHERE kind = self.kind TO Reader;
CREATE GRANT other READ (x) ON U WHERE kind = self.kind TO Reader;
"""


def test_a_change_between_both_sides_fails_the_batch_and_drops_no_pair() -> None:
    allowed = Gate(read_catalog(_CATALOG)).authorize("ann", "SELECT T.x FROM T JOIN U ON T.x = U.x")
    assert allowed.plan is not None
    shape = find_shape(allowed.plan, allowed.environment).shape
    ctx = make_context(shape, {"T": "t", "U": "u"}, "q", "row", {"T": "_moment"})
    texts = []
    for at, node in enumerate(walk(shape.root)):
        text = write_step(node, ctx)
        ctx.steps[id(node)] = f"s{at}"
        texts += [text] if isinstance(node, Join) else []
    assert len(texts) == 1
    assert "if(l.q = r.q, TRUE, raise_error('policy-moved" in texts[0]
