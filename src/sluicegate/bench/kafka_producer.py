"""Messages at a steady pace into a topic, each with the moment at which it was sent: `SERVERS TOPIC RATE SECONDS`."""

from __future__ import annotations

import json
import sys
import time

_STEP = 0.02


def main(args: list[str]) -> int:
    from confluent_kafka import Producer

    servers, topic, rate, seconds = args[0], args[1], int(args[2]), int(args[3])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 2})
    began, sent = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        due = int((time.monotonic() - began) * rate)
        for at in range(sent, due):
            producer.produce(topic, _make(at))
        sent = due
        producer.poll(0)
        time.sleep(_STEP)
    producer.flush(30)
    return 0


def _make(at: int) -> bytes:
    now = time.time_ns() // 1_000_000
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03}"
    found = {"ts": moment, "sent": now, "SID": f"S{at % 100}", "Platoon": f"P{at % 2}", "Heart": 61 + at % 60}
    return json.dumps(found).encode("ascii")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
