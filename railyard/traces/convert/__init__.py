"""Conversion of measurements into Mahimahi traces: docs/reference/traces.md lists formats and counting rules."""

from __future__ import annotations

from railyard.traces.convert.recipe import FORMATS, TraceRecipe
from railyard.traces.convert.run import convert_trace

__all__ = ["FORMATS", "TraceRecipe", "convert_trace"]
