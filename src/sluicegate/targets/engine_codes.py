"""What the engine's diagnostics mean; beside the targets, so that they can be listed without Spark."""

ENGINE_CODES = {
    "constant-too-long": "a text in a query or a policy is longer than a running query may hold",
    "denied": "no grant lets the user see what the query reads",
    "feed-push": "rows were pushed into a stream that nobody reads or that has a source of its own",
    "not-live": "the query is understood, but cannot be followed live",
    "nothing-to-run": "grants apply, but nothing of the query can come back",
    "too-many-shapes": "as many different shapes of queries run as may",
    "unknown-handle": "there is no running query of this name",
    "withdrawn": "the running query has ended: no grant is left for it",
}
