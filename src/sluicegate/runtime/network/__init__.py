"""The network: shapes of authorized queries, their subscriptions, and the ticks that take them through the source logs."""
