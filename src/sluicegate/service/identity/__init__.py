"""Who is asking, what it may do, and whether that still holds. Works without Spark."""
