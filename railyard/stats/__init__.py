"""Intervals, tests and verdicts. Imports nothing else of the package."""
