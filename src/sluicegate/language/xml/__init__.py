"""Queries in XML, as eXACML+ has them, and query graphs, catalogs and results in that of ASSIST."""
