"""Helpers for tests of pages in Chromium. The browser itself is a fixture of conftest.py."""

import os

import pytest

from railyard.report.chromium import Page, find_chromium

NEEDS_CHROMIUM = pytest.mark.skipif(
    find_chromium() is None and os.environ.get("RAILYARD_REQUIRE_ALL") != "1",
    reason="needs Chromium: run `make setup EXTRAS=browser`",
)
# Whatever is wider than the screen and has no scrolling region of its own around it.
OVERFLOWS = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, pre, .skip, svg')
    && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className)"""


def press(page: Page, key: str, code: int) -> None:
    """A key, down and up, as from a keyboard."""
    named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, **named)


def complaints(page: Page) -> list[str]:
    """The page's console warnings and errors, exceptions and failed loads since the last call."""
    messages: list[str] = []
    for event in page.events():
        data = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            messages.append(details.get("exception", {}).get("description") or details["text"])
        elif event["method"] == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            messages.append(" ".join(str(a.get("value", a.get("description"))) for a in data["args"]))
        elif event["method"] == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            messages.append(f"{data['entry']['text']} {data['entry'].get('url', '')}")
        elif event["method"] == "Network.requestWillBeSent" and data["request"]["url"].startswith("http"):
            messages.append(f"asked the network for {data['request']['url']}")
    return messages
