"""Policies that change as fast as they can under running queries: every row is judged by the versions it may be of."""
