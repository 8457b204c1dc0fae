"""Text in Spark's SQL, whatever the session's settings: what they could read otherwise is written as bytes.

A backslash depends on `spark.sql.parser.escapedStringLiterals`, and `${…}` is replaced by a variable of the session, the
JVM or the machine before the query is even parsed, inside quotes too.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[ !#%&()*+,\-./0-9:;<=>?@A-Z\[\]^_a-z|~]*")


def quote_spark_text(text: str) -> str:
    """A string literal. Raises `UnicodeEncodeError` for half of a surrogate pair, which no engine holds."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
