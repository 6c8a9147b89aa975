"""Conversion of measurements into Mahimahi traces: docs/reference/traces.md lists formats and counting rules."""
