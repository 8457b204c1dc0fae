"""Many readers of a gateway over HTTP while its policies change: every row is judged by the versions it may be of."""
