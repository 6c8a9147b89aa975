"""The pages of the report as a reader sees them: in Chromium, wide, narrow, dark and on paper."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from chromium import NEEDS_CHROMIUM, OVERFLOWS, complaints, press
from conftest import FakeRun, good
from in_process import railyard
from railyard.base.errors import UserError
from railyard.report import write_report, write_whole
from railyard.report.chromium import Browser, BrowserError, print_pdf
from railyard.report.replay import write_replay
from railyard.results.explain.explanation import explain, sentences
from railyard.results.records import load_campaign
from report_exhibit import exhibit_of

REQUIRE = os.environ.get("RAILYARD_REQUIRE_ALL") == "1"
pytestmark = NEEDS_CHROMIUM
PHONE_WIDTH, PHONE_HEIGHT = 390, 844


CUT_TEXTS = """[...document.querySelectorAll('.plot text')].filter(text => {
    const box = text.getBoundingClientRect(), plot = text.closest('.plot').getBoundingClientRect();
    return box.width > 0 && (box.left < plot.left - 1 || box.right > plot.right + 1 || box.bottom > plot.bottom + 1);
}).map(text => text.textContent)"""
"""Texts of the plots that reach out of them."""


@pytest.fixture(scope="module")
def campaign(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real campaign in virtual time."""
    out = tmp_path_factory.mktemp("results") / "smoke"
    good(railyard("run", "smoke", "--arena", "sim", "--out", str(out)))
    return out


@pytest.fixture(scope="module")
def results(campaign: Path) -> Path:
    """A results directory with a campaign and two exhibits that were computed from its runs."""
    for name in ("fig13", "table4"):
        exhibit_of(campaign, name).write(campaign.parent / name)
    write_whole(campaign.parent)
    return campaign.parent


def pages_of(pdf: Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


def test_every_plot_of_a_campaign_is_drawn_without_complaint(browser: Browser, campaign: Path) -> None:
    page = browser.open(campaign / "report.html")
    places, drawn = page.evaluate(
        "[document.querySelectorAll('.plot').length, document.querySelectorAll('.plot > .plot-container').length]"
    )
    assert complaints(page) == []
    assert places == drawn == 9
    marks = page.evaluate("[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.trace').length)")
    assert all(marks), f"plots without a single trace: {marks}"
    page.evaluate("document.querySelectorAll('details.data').forEach(d => { d.open = true; })")
    page.wait_until("document.querySelectorAll('details.data table').length === 9")
    rows = page.evaluate("[...document.querySelectorAll('details.data table')].map(t => t.tBodies[0].rows.length)")
    assert all(rows), f"values of the plots as tables: {rows}"
    page.close()


VALUES = """[...document.querySelectorAll('details.data table')].map(t => [...t.rows].map(
    row => [...row.cells].map(cell => cell.textContent)))"""


def test_a_value_of_a_plot_has_its_panel_and_its_unit(browser: Browser, campaign: Path, tmp_path: Path) -> None:
    axes = {"yaxis": {"title": {"text": "Mbps"}, "domain": [0.6, 1]}, "xaxis": {"matches": "x2", "domain": [0, 1]}}
    axes |= {"yaxis2": {"title": {"text": "KB"}, "domain": [0, 0.4]}}
    axes |= {"xaxis2": {"title": {"text": "time, s"}, "domain": [0, 1], "anchor": "y2"}}
    at_top = {"x": 0, "xref": "paper", "yref": "paper", "showarrow": False}
    layout = axes | {"annotations": [{"text": "link", "y": 1} | at_top, {"text": "window", "y": 0.4} | at_top]}
    data = [{"name": "capacity", "x": [1], "y": [20]}, {"x": [1], "y": [348], "xaxis": "x2", "yaxis": "y2"}]
    named = {"xaxis": {"title": {"text": "pair"}, "tickvals": [0, 1], "ticktext": ["subway", "rail"]}}
    beside = {"data": [{"name": "sp", "x": [-0.1, 0.9], "y": [3, 4]}], "layout": named}
    text = (campaign / "report.html").read_text()
    for number, figure in enumerate([{"data": data, "layout": layout}, beside], 1):
        start = text.index(f'data-figure="figure-{number}">') + len(f'data-figure="figure-{number}">')
        text = text[:start] + json.dumps(figure) + text[text.index("</script>", start) :]
    changed = tmp_path / "changed.html"
    changed.write_text(text)
    page = browser.open(changed)
    page.evaluate("document.querySelectorAll('details.data').forEach(d => { d.open = true; })")
    page.wait_until("document.querySelectorAll('details.data table').length === 9")
    panels, places = page.evaluate(VALUES)[:2]
    assert panels[0][:3] == ["Series", "Panel", "time, s"]
    assert panels[1:] == [["capacity", "link, Mbps", "1", "20"], ["–", "window, KB", "1", "348"]]
    assert places == [["Series", "pair", "y"], ["sp", "subway", "3"], ["sp", "rail", "4"]]
    page.close()


def test_nothing_is_wider_than_a_phone_and_in_the_dark_ink_and_paper_change_places(
    browser: Browser, campaign: Path
) -> None:
    page = browser.open(campaign / "report.html", width=PHONE_WIDTH, height=PHONE_HEIGHT, dark=True)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE_WIDTH
    assert page.evaluate(OVERFLOWS) == []
    grounds = page.evaluate(
        """[getComputedStyle(document.body).backgroundColor,
            ...[...document.querySelectorAll('.plot .main-svg:first-child')].map(s => s.style.backgroundColor)]"""
    )
    assert set(grounds) == {"rgb(20, 23, 26)"}
    page.close()


def test_long_names_and_names_like_markup_are_shown_as_they_are(
    browser: Browser, make_campaign: Callable[..., Path]
) -> None:
    names, pair = ("a<b>&c", "L" * 48), "x" * 64
    out = make_campaign(*[FakeRun(pair=pair, label=name) for name in names], FakeRun(pair="q"), FakeRun(pair="r"))
    page = browser.open(write_report(*load_campaign(out), out), width=PHONE_WIDTH, height=PHONE_HEIGHT)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE_WIDTH
    assert page.evaluate(OVERFLOWS) == []
    legends = page.evaluate("[...document.querySelectorAll('.plot .legendtext')].map(one => one.textContent)")
    assert set(names) < set(legends)
    page.evaluate("document.querySelectorAll('details.data').forEach(d => { d.open = true; })")
    page.wait_until("document.querySelectorAll('details.data table').length > 9")
    assert any(row[0] == "a<b>&c" for table in page.evaluate(VALUES) for row in table)
    page.close()


def test_the_keyboard_comes_first_to_the_content_then_everywhere(browser: Browser, campaign: Path) -> None:
    page = browser.open(campaign / "report.html")
    press(page, "Tab", 9)
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    seen = set()
    for _ in range(60):
        press(page, "Tab", 9)
        seen.add(page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert {"A.", "DIV.wide", "SUMMARY."} <= seen
    unnamed = page.evaluate(
        """[...document.querySelectorAll('[role=img], [role=region], table, nav, section')].filter(e =>
            !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.caption)).length"""
    )
    assert unnamed == 0
    page.close()


def test_where_plots_cannot_be_drawn_the_page_says_so_above_them(
    browser: Browser, campaign: Path, tmp_path: Path
) -> None:
    text = (campaign / "report.html").read_text()
    assert 0 < text.index("<noscript>") < text.index("<main")
    old = tmp_path / "old.html"  # as in a browser of 2021
    old.write_text(text.replace("<head>", "<head><script>delete window.DecompressionStream;</script>"))
    page = browser.open(old, plots=False)
    page.wait_until("document.documentElement.dataset.plots === 'failed'")
    said = page.evaluate("document.querySelector('#main').firstElementChild.textContent")
    assert said.startswith("This browser cannot draw the plots of this page (DecompressionStream is not defined).")
    page.close()


def test_a_page_that_fails_is_found_out(browser: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(
        "<script>document.documentElement.dataset.plots = 'drawn'; console.error('no'); missing();</script>"
        "<img src='https://elsewhere.invalid/x.png'>"
    )
    page = browser.open(broken)
    said = json.dumps(complaints(page))
    assert "no" in said and "missing" in said and "elsewhere.invalid" in said
    with pytest.raises(BrowserError):
        page.evaluate("missing()")
    page.close()


def test_where_temporary_files_have_no_room_the_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser fails in many ways then; here it does not answer at all."""
    page = tmp_path / "page.html"
    page.write_text("a page")
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(browser))
    for free, remedy in (
        (1 << 20, " has 1 MB free: make room, or name another folder with TMPDIR."),
        (1 << 30, "ended."),
    ):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        with pytest.raises(UserError, match=f"could not print it: .*{remedy}$"):
            print_pdf(page, tmp_path / "page.pdf")


def test_the_browser_keeps_temporary_files_where_python_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a folder that is full, or not there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$TMPDIR" >{tmp_path}/told\n')
    browser.chmod(0o755)
    with pytest.raises(BrowserError), Browser(str(browser)) as running:
        running.call("Browser.getVersion")
    assert (tmp_path / "told").read_text() == f"{tmp_path}\n"


def test_the_whole_report_draws_every_plot_and_fits_a_phone(browser: Browser, results: Path) -> None:
    for width, height, dark in ((1280, 900, False), (PHONE_WIDTH, PHONE_HEIGHT, True)):
        page = browser.open(results / "report.html", width=width, height=height, dark=dark)
        assert complaints(page) == []
        places, drawn = page.evaluate(
            "[document.querySelectorAll('.plot').length, document.querySelectorAll('.plot > .plot-container').length]"
        )
        assert places == drawn == 2 * 2 + 9
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(OVERFLOWS) == []
        cut = "[...document.querySelectorAll('.words')].filter(t => t.scrollWidth > t.parentElement.clientWidth).length"
        assert page.evaluate(cut) == 0, "a table of words is cut off"
        assert page.evaluate(CUT_TEXTS) == []
        claim = "document.querySelector('#abstract .words tbody th').getBoundingClientRect().width"
        assert page.evaluate(claim) >= 250, "the claim is squeezed"
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        lost = page.evaluate(
            "[...document.querySelectorAll('a[href^=\\'#\\']')].filter(a => !document.querySelector(a.hash)).length"
        )
        assert lost == 0
        page.close()


def test_markup_in_the_data_of_a_plot_is_data(browser: Browser, campaign: Path, tmp_path: Path) -> None:
    """`<!--<script>` inside of a script element would keep its end from being seen, up to the end of the page."""
    markup = "<!--<script>"
    made = exhibit_of(campaign, "fig13")
    plot = made.plots[0]
    named = plot.figure | {"data": [{**trace, "name": markup, "meta": markup} for trace in plot.figure["data"]]}
    made.model_copy(update={"plots": [plot.model_copy(update={"figure": named})]}).write(tmp_path / "fig13")
    page = browser.open(write_whole(tmp_path))
    assert complaints(page) == []
    assert page.evaluate("document.querySelectorAll('.plot').length") == 1
    assert page.evaluate("document.querySelectorAll('.plot > .plot-container').length") == 1
    assert page.evaluate("document.querySelector('.plot').data[0].meta") == markup
    page.close()


def test_the_whole_report_prints_with_its_long_tables_open(results: Path, tmp_path: Path) -> None:
    print_pdf(results / "report.html", tmp_path / "report.pdf")
    assert 5 <= pages_of(tmp_path / "report.pdf") <= 20


def test_a_replay_plays_and_reads_out_what_is_under_its_cursor(browser: Browser, campaign: Path) -> None:
    replayed = write_replay(next(campaign.glob("runs/*--xlink--*")))
    page = browser.open(replayed, width=PHONE_WIDTH, height=PHONE_HEIGHT)
    assert complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE_WIDTH
    assert page.evaluate(OVERFLOWS) == []
    at = "[document.getElementById('cursor').style.transform, document.getElementById('state').textContent]"
    page.evaluate("document.getElementById('time').focus()")
    begin = page.evaluate(at)
    for _ in range(50):
        press(page, "ArrowRight", 39)
    moved = page.evaluate(at)
    assert moved[0] != begin[0] and moved[1] != begin[1]
    assert page.evaluate("document.getElementById('now').textContent") == "1.00 s"
    page.evaluate("document.getElementById('play').click()")
    page.wait_until("Number(document.getElementById('time').value) > 1.1")
    page.evaluate("document.getElementById('play').click()")
    assert page.evaluate("document.getElementById('play').textContent") == "Play"
    page.close()


def test_a_click_on_a_chunk_says_why_it_took_so_long_and_what_the_oracle_would_have_done(
    browser: Browser, campaign: Path
) -> None:
    run = next(campaign.glob("runs/*--xlink--*"))
    page = browser.open(write_replay(run))
    click = (
        "(() => { const place = document.getElementById('figure-1');"
        " const of = place.data.find(trace => trace.meta && trace.meta.chunk && trace.customdata[1] === 2);"
        " place.emit('plotly_click', {points: [{x: of.x[1], data: of, customdata: of.customdata[1]}]});"
        " return document.getElementById('why').textContent; })()"
    )
    said = page.evaluate(click)
    for sentence in sentences(explain(run, 2)):
        assert sentence in said
    assert "With the links known in advance" in said
    page.evaluate("document.querySelector('#why a').click()")
    assert page.evaluate("document.querySelector('#chunk-2 details').open")
    page.close()


def test_an_exhibit_that_cannot_be_read_keeps_no_other_from_the_report(campaign: Path, tmp_path: Path) -> None:
    exhibit_of(campaign, "fig13").write(tmp_path / "fig13")
    (tmp_path / "fig8").mkdir()
    (tmp_path / "fig8" / "exhibit.json").write_text("{}")
    text = write_whole(tmp_path).read_text()
    assert 'id="exhibit-fig13"' in text and 'id="exhibit-fig8"' not in text
    assert "this is no exhibit of schema 1" in text and "<code>railyard run fig8</code>" in text


def test_tables_of_many_pairs_and_schemes_are_not_cut_off_at_a_desk(
    browser: Browser, make_campaign: Callable[..., Path]
) -> None:
    labels = ["sp", "vanilla-mp", "xlink", "xlink+", "a scheme with a rather long label"]
    runs = [
        FakeRun(
            pair=f"recorded_pair_{pair}",
            label=label,
            scheme=label if label in ("sp", "vanilla-mp", "xlink", "xlink+") else "xlink",
            seed=seed,
            start_offset_ms=60_000 * seed,
            rct_s=[0.5 + 0.01 * seed + 0.1 * pair] * 10,
        )
        for pair in range(6)
        for seed in range(1, 7)
        for label in labels
    ]
    out = make_campaign(*runs)
    page = browser.open(write_report(*load_campaign(out), out))
    cut = """[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)
        .map(e => e.getAttribute('aria-label'))"""
    assert page.evaluate(cut) == []
    page.close()
