"""Conversion of measurements into Mahimahi traces: docs/traces.md says which formats, and how bytes are counted."""

from __future__ import annotations

from railyard.traces.convert.recipe import FORMATS, TraceRecipe
from railyard.traces.convert.run import convert_trace

__all__ = ["FORMATS", "TraceRecipe", "convert_trace"]
