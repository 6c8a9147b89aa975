"""Railyard: runs experiments over paired mobility traces and writes their report."""

__version__ = "0.2.0"
