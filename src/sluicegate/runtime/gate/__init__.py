"""Delivery: what the network found, kept on disk for its readers and handed over only under the version in force (R10)."""
