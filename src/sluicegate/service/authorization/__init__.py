"""The authorization server: shared queries, who may have them, and the switches that its proofs open and close (R16, R18)."""
