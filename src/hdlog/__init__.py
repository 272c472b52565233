"""Datalog over knowledge graphs and tables, kept exact under additions and deletions."""

__version__ = "0.1.0"
