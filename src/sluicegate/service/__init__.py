"""The gateway: HTTP, identities, the store of catalog versions."""
