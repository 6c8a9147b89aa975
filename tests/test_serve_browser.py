"""The pages of `railyard serve` as a reader sees them, in Chromium: wide, on a phone, in the dark, by keyboard."""

import os
import time
from pathlib import Path

import pytest

from chromium import NEEDS_CHROMIUM, OVERFLOWS, complaints, press
from conftest import FakeRun
from railyard.report.chromium import Browser, Page
from railyard.run.folders import locked
from railyard.serve import leaderboard
from railyard.serve.store import Store
from web_server import Make, Server, campaign

REQUIRE = os.environ.get("RAILYARD_REQUIRE_ALL") == "1"
pytestmark = [pytest.mark.long, NEEDS_CHROMIUM]
SIZES = ((1280, 900, False), (390, 844, True))
UNNAMED = """[...document.querySelectorAll(
    'a, button, input:not([type=hidden]), select, [role=img], [role=region], table, section, nav')].filter(
    e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.caption
    || (e.labels && e.labels.length) || (/^(A|BUTTON)$/.test(e.tagName) && e.textContent.trim())))
    .map(e => e.outerHTML)"""
# Texts whose contrast is below that of WCAG 2.2, level AA: 4.5, or 3 for large text.
PALE = """(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter(e => !e.closest('svg, script, noscript, option')
      && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length).map(e => {
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const [a, b] = [light(parts(style.color)), light(ground(e))].sort((x, y) => y - x);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    return [(a + 0.05) / (b + 0.05), large ? 3 : 4.5, e.tagName + ' ' + e.textContent.trim().slice(0, 40)];
  }).filter(([ratio, least]) => ratio < least);
})()"""


def opened(
    browser: Browser, server: Server, path: str, width: int = 1280, height: int = 900, dark: bool = False
) -> Page:
    """The page, once it is ready and its plots are drawn."""
    page = browser.open(f"http://127.0.0.1:{server.port}{path}", width=width, height=height, dark=dark, plots=False)
    ready(page)
    return page


def ready(page: Page) -> None:
    page.wait_until(
        "document.readyState === 'complete' && !document.querySelector('#live[data-every=\"1\"]') && "
        "(!document.querySelector('.plot') || document.documentElement.dataset.plots === 'drawn')"
    )


def own_complaints(page: Page) -> list[str]:
    return [one for one in complaints(page) if "asked the network for http://127.0.0.1:" not in one]


def check(page: Page, width: int) -> None:
    assert own_complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERFLOWS) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(PALE) == []


def test_pages_fit_the_screen_are_named_and_are_legible(browser: Browser, make_campaign: Make) -> None:
    out = campaign(make_campaign)
    with Server(out.parent) as server:
        for path in (
            *("/", "/campaign/campaign", "/compare?campaign=campaign&by_pair=yes", "/start", "/leaderboard", "/job"),
            *("/run/campaign/subway-1--xlink--s1", "/run/campaign/subway-1--xlink--s1?chunk=1", "/nowhere"),
        ):
            for width, height, dark in SIZES:
                page = opened(browser, server, path, width, height, dark)
                if path == "/nowhere":
                    complaints(page)  # the browser complains of the 404, which is what is wanted
                page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
                check(page, width)
                page.close()


def test_the_exported_leaderboard_needs_no_server(browser: Browser, make_campaign: Make, tmp_path: Path) -> None:
    store = Store(campaign(make_campaign).parent)
    known = leaderboard.chosen(store, [])
    boards = [board for one in known if (board := leaderboard.board_of(one, leaderboard.FIGURES["rct_p95"]))]
    written = leaderboard.export(boards, tmp_path / "board")
    for width, height, dark in SIZES:
        page = browser.open(written, width=width, height=height, dark=dark, plots=False)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        check(page, width)
        page.close()


def test_a_click_on_a_point_opens_its_run(browser: Browser, make_campaign: Make) -> None:
    with Server(campaign(make_campaign).parent) as server:
        page = opened(browser, server, "/campaign/campaign")
        page.evaluate("document.querySelector('.plot').scrollIntoView({block: 'center'})")
        box = "[...document.querySelectorAll('.plot .scatter .point')].at(-1).getBoundingClientRect()"
        x, y = page.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        wanted = page.evaluate("document.querySelector('.plot').data.at(-1).customdata.at(-1)[0]")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            time.sleep(0.2)
        page.wait_until("location.pathname.startsWith('/run/')", limit_s=20)
        assert page.evaluate("location.pathname + location.search + location.hash") == wanted
        page.close()


def test_the_keyboard_alone_leads_from_the_list_to_a_run(browser: Browser, make_campaign: Make) -> None:
    with Server(campaign(make_campaign).parent) as server:
        page = opened(browser, server, "/")
        press(page, "Tab", 9)
        assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
        for begin in ("/campaign/", "/run/"):
            for _ in range(60):
                press(page, "Tab", 9)
                href = page.evaluate("document.activeElement.getAttribute('href')") or ""
                if href.startswith(begin):
                    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
                    break
            else:
                raise AssertionError(f"no link to {begin} by keyboard")
            page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13)
            page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)
            page.wait_until(f"location.pathname.startsWith('{begin}')", limit_s=20)
            ready(page)
        page.close()


def test_a_campaign_under_way_changes_on_the_page_and_keeps_the_focus(browser: Browser, make_campaign: Make) -> None:
    out = make_campaign(FakeRun(), FakeRun(seed=2), FakeRun(seed=3))
    later = (out / "runs" / "subway-1--xlink--s3").rename(out.parent / ".later")
    with Server(out.parent) as server, locked(out):
        page = opened(browser, server, "/")
        assert "running 2/3" in page.evaluate("document.getElementById('live').textContent")
        page.evaluate("document.querySelector('#live a').focus()")
        later.rename(out / "runs" / "subway-1--xlink--s3")
        page.wait_until("document.getElementById('live').textContent.includes('running 3/3')", limit_s=30)
        assert page.evaluate("document.activeElement.getAttribute('href')") == "/campaign/campaign"
        assert own_complaints(page) == []
        page.close()


@pytest.mark.usefixtures("built")
def test_the_form_shows_a_simulator_run(browser: Browser, make_campaign: Make) -> None:
    with Server(campaign(make_campaign).parent) as server:
        page = opened(browser, server, "/start", 390, 844)
        page.evaluate(
            "document.getElementById('player.duration_s').value = '2';"
            "document.getElementById('pair').value = 'subway-1'; document.querySelector('button.go').click()"
        )
        page.wait_until("location.pathname.startsWith('/campaign/subway-1')", limit_s=120)
        ready(page)
        assert "2 runs" in page.evaluate("document.getElementById('live').textContent")
        assert own_complaints(page) == []
        page.evaluate("document.querySelector('a[href*=\"chunk=\"]').click()")
        page.wait_until("document.body.textContent.includes('The largest part')", limit_s=60)
        page.evaluate("[...document.querySelectorAll('a')].find(one => one.textContent === 'Replay').click()")
        page.wait_until("document.documentElement.dataset.replay === 'ready'", limit_s=60)
        assert page.evaluate("window.origin") == "null"
        page.close()
