"""Queries written in XML, as eXACML+ has them."""
