"""Measurements: ratios and figures, each repeatable from a fixed seed."""
