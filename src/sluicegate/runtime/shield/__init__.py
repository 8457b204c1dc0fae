"""Punctuated streams: which policy each tuple is under, decided once, where the tuple comes in (R13, R14)."""
