"""A proxy in front of gateways that remembers handles (seed 001, section 3) and has no right of its own."""
