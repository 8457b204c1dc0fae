"""Options of a Java that lives for seconds or minutes, beside others on few cores."""

from __future__ import annotations

LIGHT_JAVA = " ".join(
    (
        # compiling well costs more than it saves
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        # with one level Java keeps 48 MB of compiled code: a few hundred plans fill it, and all is compiled again and again
        "-XX:ReservedCodeCacheSize=256m",
        # else each step in which the room for classes grows is a full collection
        "-XX:MetaspaceSize=256m",
    )
)
