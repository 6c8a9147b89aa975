"""What tests of pages in Chromium share; the browser itself is a fixture of conftest.py."""

from __future__ import annotations

import os

import pytest

from railyard.report.chromium import find_chromium

NEEDS_CHROMIUM = pytest.mark.skipif(
    find_chromium() is None and os.environ.get("RAILYARD_REQUIRE_ALL") != "1",
    reason="needs Chromium: run `scripts/setup.sh browser`",
)
# Whatever is wider than the screen and has no scrolling region of its own around it.
OVERFLOWS = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, pre, .skip, svg')
    && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className)"""
