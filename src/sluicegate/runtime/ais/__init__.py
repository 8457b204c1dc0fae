"""AIS: sentences of receivers, put together into messages, decoded into the tuples of typed streams."""
