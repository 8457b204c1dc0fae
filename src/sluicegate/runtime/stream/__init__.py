"""Authorized queries as streaming frames, for code that writes its own Structured Streaming: no gate, no source log."""
