"""From run folders to figures, Parquet files and the page."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import FakeRun, one_sentence
from in_process import railyard
from railyard.base.errors import UserError
from railyard.base.paper import Paper
from railyard.base.style import scheme_styles
from railyard.figures.figure import Figure, Point, point_of
from railyard.figures.rows import FIRST_FRAME, RCT_MAX, RCT_MEDIAN, REBUFFER_RATE, REDUNDANCY
from railyard.report import write_report
from railyard.report.chromium import print_pdf
from railyard.report.figures import Level, bars, forest, named_plainly, rct_cdf, rct_ranges
from railyard.report.sections import embedded
from railyard.results import differences
from railyard.results.aggregate import cells, write_parquet
from railyard.results.records import Chunk, Run, load_campaign, load_run
from railyard.results.tables import Value, aligned
from railyard.run.fidelity import judge
from railyard.stats.changes import Change
from railyard.stats.intervals import Interval

Make = Callable[..., Path]


def chunks(*done: float, waiting: tuple[float, ...] = ()) -> list[Chunk]:
    finished = [Chunk(i, 0.0, value, True, 1) for i, value in enumerate(done)]
    return finished + [Chunk(len(done) + i, 0.0, value, False, 1) for i, value in enumerate(waiting)]


def quantile(values: Sequence[Chunk], q: float) -> Point | None:
    return point_of([(chunk.rct_s, chunk.completed) for chunk in values], q)


def test_quantiles_are_nearest_rank() -> None:
    values = chunks(*[i / 10 for i in range(1, 11)])
    assert [quantile(values, q) for q in (0.5, 0.95, 0.99, 1.0)] == [Point(value) for value in (0.5, 1.0, 1.0, 1.0)]
    assert quantile([], 0.5) is None


def test_a_quantile_above_an_unfinished_chunk_is_a_lower_bound() -> None:
    values = chunks(0.1, 0.2, 0.3, waiting=(5.0,))
    median, top = quantile(values, 0.5), quantile(values, 1.0)
    assert median is not None and (median.value, median.at_least) == (0.2, False)
    assert top is not None and top.text(".3f") == "≥ 5.000"


def test_a_chunk_that_waited_briefly_makes_every_quantile_above_it_a_lower_bound() -> None:
    median = quantile(chunks(0.5, 0.6, 0.7, waiting=(0.1,)), 0.5)
    assert median is not None and (median.value, median.at_least) == (0.5, True)


@given(
    st.lists(st.floats(0.001, 100), min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0.001, 100), st.floats(0, 100)), max_size=10),
    st.sampled_from([0.5, 0.95, 0.99, 1.0]),
)
def test_the_true_quantile_is_never_below_the_reported_one(
    done: list[float], waiting: list[tuple[float, float]], q: float
) -> None:
    reported = quantile(chunks(*done, waiting=tuple(waited for waited, _ in waiting)), q)
    truth = quantile(chunks(*done, *(waited + more for waited, more in waiting)), q)
    assert reported is not None and truth is not None
    assert reported.value <= truth.value
    if not reported.at_least:
        assert reported.value == truth.value


def test_a_run_is_read_from_its_files(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(unfinished_s=[3.0], outcome="time_limit"))
    _, [run] = load_campaign(out)
    assert [chunk.completed for chunk in run.chunks] == [True] * 4 + [False]
    assert run.chunks[-1].rct_s == pytest.approx(3.0)
    assert run.redundancy == pytest.approx(0.05)
    assert [end - begin for begin, end in run.stalls] == [pytest.approx(0.5)]
    assert (run.first_frame_s, run.paths[1].down_bytes, run.outcome) == (0.4, 400_000, "time_limit")


def test_the_last_line_of_a_player_that_died_writing_is_left_out(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(outcome="crashed"))
    log = out / "runs" / FakeRun().run_id / "player.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[:5]) + '\n{"t": 3.0, "event": "chu')
    assert len(load_run(log.parent).chunks) == 2


def test_a_name_is_text_in_a_figure_and_a_bound_is_marked(make_campaign: Make) -> None:
    """Plotly takes `<b>` in a name as a tag."""
    never = FakeRun(label="2024-05-01", outcome="connection_lost", rct_s=[], unfinished_s=[30.0], first_frame_s=None)
    out = make_campaign(FakeRun(label="a<b>&c"), never, FakeRun(label="sp", scheme="sp"))
    page = write_report(*load_campaign(out), out).read_text()
    figures = [json.loads(text) for text in re.findall(r'data-figure="[^"]+">(.*?)</script>', page, re.DOTALL)]
    drawn = json.dumps(figures)
    assert "a&lt;b&gt;&amp;c" in drawn and "a<b>" not in drawn
    bars = [one for one in figures if one["data"][0]["type"] == "bar"]
    assert {one["layout"]["yaxis"]["type"] for one in bars} == {"category"}, "a label that reads as a date"
    starts = next(one for one in bars if one["layout"]["xaxis"]["title"]["text"] == "first-frame latency, s")
    assert [note["text"] for note in starts["layout"]["annotations"]] == ["0.40", "≥ 30.60", "0.40"]
    assert starts["data"][0]["hovertext"] == ["0.40", "≥ 30.60", "0.40"]


def drawn_on(page: str) -> dict[str, dict[str, Any]]:
    """The figures of a page with one pair, by what their last axis measures."""
    figures = [json.loads(text) for text in re.findall(r'data-figure="[^"]+">(.*?)</script>', page, re.DOTALL)]
    axes = [[axis for name, axis in one["layout"].items() if name.startswith("xaxis")] for one in figures]
    titles = [[axis["title"]["text"] for axis in of if axis.get("title", {}).get("text")] for of in axes]
    shares = [one["layout"]["yaxis"].get("title", {}).get("text") == "chunks completed" for one in figures]
    return {"cdf" if is_cdf else of[-1]: one for of, is_cdf, one in zip(titles, shares, figures, strict=True)}


def test_what_is_drawn_are_the_figures_of_the_runs(make_campaign: Make, tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("".join(f"{ms}\n" for ms in [*range(1, 1001), *range(1004, 2001, 4)]))
    link: dict[str, Any] = {"up": str(trace), "down": str(trace)}
    link |= dict.fromkeys(("up_sha256", "down_sha256"), hashlib.sha256(trace.read_bytes()).hexdigest())
    link |= {"technology": "lte", "delay_ms": 15.0, "queue": "infinite", "loss": 0.0}
    more: dict[str, Any] = {"paths": [{"name": name} | link for name in ("wifi", "lte")], "start_offset_ms": 1000}
    waits: dict[str, Any] = {"unfinished_s": [3.0], "outcome": "time_limit"}
    out = make_campaign(
        FakeRun(label="sp", scheme="sp", rct_s=[2.0] * 4, rebuffer_time_s=1.0, **more),
        FakeRun(rct_s=[0.5, 0.25, 0.75, 1.0], rebuffer_time_s=0.5, **more, **waits),
        FakeRun(seed=2, rct_s=[0.25], down_bytes=(100_000, 0), unfinished_s=[], **more),
    )
    drawn = drawn_on(write_report(*load_campaign(out), out).read_text())
    capacity = drawn["time since the start of the run, s"]["data"]
    assert [one["name"] for one in capacity] == ["wifi downlink", "lte downlink"]
    rates = dict(zip(capacity[0]["x"], capacity[0]["y"], strict=True))
    assert (rates[0.2], rates[0.8], rates[1.0], rates[2.0]) == (3.008, 3.008, 12.032, 3.008), "from the run's start on"
    ranges, cdf = drawn["request completion time, s (log scale)"], drawn["cdf"]
    marks = {one["name"]: one for one in ranges["data"] if one["mode"] == "markers"}
    assert [marks[name]["x"] for name in ("median", "max")] == [[2.0, 0.5], [2.0, 3.0]]
    assert marks["max"]["text"] == ["max 2.000 s", "max ≥ 3.000 s"]
    assert [one["x"] for one in cdf["data"]] == [[2.0] * 5, [0.25, 0.25, 0.25, 0.5, 0.75, 1.0]]
    assert cdf["data"][1]["y"] == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6]), "of all requests"
    rate = drawn["rebuffer rate, %"]
    assert rate["data"][0]["x"] == pytest.approx([10.0, 5.0]) and rate["data"][0]["y"] == ["sp", "xlink"]
    assert [one["text"] for one in rate["layout"]["annotations"]] == ["10.0 %", "5.0 %"]
    carried = {one["name"]: one["x"] for one in drawn["MB delivered downlink, mean per run"]["data"]}
    assert carried == {"wifi": [0.7, 0.4], "lte": [0.4, 0.2]}
    buffer = drawn["time since the player's start, s"]
    assert len(buffer["data"]) == 2, "a strip of seed 1 for each scheme"
    stalls = [(one["yref"], round(one["x0"], 3), round(one["x1"], 3)) for one in buffer["layout"]["shapes"]]
    assert stalls == [("y domain", 8.1, 9.1), ("y2 domain", 2.6, 3.1)]


def test_intervals_are_drawn_from_end_to_end(make_campaign: Make) -> None:
    row = cells(load_campaign(make_campaign(FakeRun(label="sp", scheme="sp"), FakeRun()))[1])["subway-1"]
    ends: dict[tuple[str, str], Interval | None] = {("sp", "median"): Interval(0.5, 0.4, 0.6)}
    ends |= {("sp", "p95"): Interval(1.0, 0.9, 1.1), ("xlink", "median"): Interval(0.5, 0.3, float("inf"))}
    lines = {one.name: one.x for one in rct_ranges(row, ends).data if one.name and "interval" in one.name}
    assert lines == {"median, 95 % interval": (0.4, 0.6, None)}, "the p95 is not carried, one end is unknown"
    levels = [Level(Point(0.05), Interval(0.05, 0.02, 0.09)), Level(Point(0.1))]
    drawn = bars(row, levels, "rebuffer rate, %", 1)
    assert [one.x for one in drawn.data if one.name == "95 % interval"] == [(2.0, 9.0, None)] * 2
    assert drawn.data[0].hovertext == ("5.0 % [2.0, 9.0]", "10.0 %")


def test_long_labels_beside_a_plot_have_two_lines_in_the_page_and_for_a_paper(make_campaign: Make) -> None:
    labels = ["xlink", "xlink-with-a-very-long-name-of-48-letters-in-all", 23 * "a" + "<b" + 23 * "c"]
    runs = load_campaign(make_campaign(*(FakeRun(label=label) for label in labels)))[1]
    row = named_plainly(cells(runs)["subway-1"])
    drawn = bars(row, [Level(Point(0.1))] * 3, "rebuffer rate, %", 1)
    lines = ["xlink", "xlink-with-a-very-long-<br>name-of-48-letters-in-all", 23 * "a" + "&lt;<br>b" + 23 * "c"]
    assert list(drawn.layout.yaxis.ticktext) == lines[::-1]
    assert list(drawn.layout.yaxis.tickvals) == [cell.label for cell in row][::-1] == list(drawn.data[0].y)[::-1]
    [axes] = Paper(drawn.to_dict(), 3.3).draw().axes
    said = [text.get_text() for text in axes.get_yticklabels()]
    assert said == [line.replace("&lt;", "<").replace("<br>", "\n") for line in lines[::-1]]


def test_long_labels_of_a_legend_are_shown_to_their_ends(make_campaign: Make) -> None:
    labels = ["xlink-with-a-very-long-name-of-48-letters-in-all", *(f"xlink,{'cc=lia,' * 8}{k}" for k in range(2))]
    runs = load_campaign(make_campaign(*(FakeRun(label=label) for label in labels)))[1]
    shown = [one.name for one in rct_cdf(cells(runs)["subway-1"]).data]
    assert [name.replace("<br>", "") for name in shown] == labels
    assert max(len(line) for name in shown for line in name.split("<br>")) <= 48


def test_a_forest_has_times_in_percent_and_rates_in_points() -> None:
    def one(figure: Figure, value: float, low: float, high: float) -> differences.Difference:
        ends = Interval(value, low, high)
        change = Change(ends, 0.001, 1.0, ends, 12, "runs")
        level = Interval(1.0, 0.9, 1.1)
        return differences.Difference("all", "xlink", "sp", figure, level, level, change, change, 12, None, 0.01, 0.01)

    drawn = forest([one(REBUFFER_RATE, -0.04, -0.06, -0.01), one(RCT_MEDIAN, -0.3, -0.5, -0.2)])
    assert [list(one.x) for one in drawn.data] == [[-50, -20], [-30], [-6, -1], [-4]]
    assert [drawn.layout.xaxis.title.text, drawn.layout.xaxis2.title.text] == ["difference, %", "difference, points"]
    assert drawn.data[1].hovertemplate == "xlink to sp, RCT median: −30 % [−50, −20], lower<extra></extra>"
    unknown = one(RCT_MEDIAN, -0.3, -1.0, math.inf)
    assert unknown.change is not None
    ends = replace(unknown.change.interval, at_least=True, at_most=True)
    drawn = forest([replace(unknown, change=replace(unknown.change, interval=ends))])
    assert list(drawn.data[1].x) == [None], "between two bounds there is no value"


def test_schemes_that_share_no_place_are_not_compared(make_campaign: Make) -> None:
    """sp was played on six pairs, vanilla-mp on five of them, xlink on a seventh only."""
    runs = [FakeRun(pair=f"p{n}", label="sp", scheme="sp") for n in range(6)]
    runs += [FakeRun(pair=f"p{n}", label="vanilla-mp", scheme="vanilla-mp") for n in range(5)]
    out = make_campaign(*runs, FakeRun(pair="p6"))
    page = write_report(*load_campaign(out), out).read_text()
    assert '<th scope="row">vanilla-mp</th><td>sp</td>' in page and '<th scope="row">xlink</th><td>sp</td>' not in page


def test_figures_pool_runs_and_leave_void_ones_out(make_campaign: Make) -> None:
    out = make_campaign(
        FakeRun(seed=1, rct_s=[0.1, 0.2], play_time_s=10, rebuffer_time_s=1),
        FakeRun(seed=2, rct_s=[0.3, 0.4], play_time_s=30, rebuffer_time_s=1, reinjected_bytes=150_000),
        FakeRun(seed=3, rct_s=[50.0], void=True, play_time_s=1, rebuffer_time_s=99),
    )
    [cell] = cells(load_campaign(out)[1])["subway-1"]
    assert (len(cell.runs), len(cell.void_runs), cell.outcomes) == (2, 1, "2 complete, 1 void")
    assert cell.point(RCT_MAX) == Point(0.4)
    assert cell.point(REBUFFER_RATE) == Point(2 / 40)
    assert cell.point(REDUNDANCY) == Point(200_000 / 1_900_000)
    assert cell.down_bytes == {"wifi": 700_000, "lte": 400_000}


@pytest.mark.parametrize(
    ("first_frames", "median"),
    [
        ((0.4, 0.9, 0.5), "0.500"),
        ((0.4, None, 0.5), "0.500"),  # whatever the one without took, it was longer
        ((0.4, None, None), "≥ 3.100"),  # as long as the log of a run
        ((None,), "≥ 3.100"),
    ],
)
def test_a_run_without_a_first_frame_makes_the_median_a_lower_bound(
    make_campaign: Make, first_frames: tuple[float | None, ...], median: str
) -> None:
    """Left out, it would make a scheme that shows nothing look fast."""
    runs = [FakeRun(seed=seed, first_frame_s=first) for seed, first in enumerate(first_frames, start=1)]
    _, found = load_campaign(make_campaign(*runs))
    assert FIRST_FRAME.text(cells(found)["subway-1"][0].runs) == median


def test_redundancy_is_known_of_mptcp_and_not_of_tcp(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(label="mptcp", scheme="mptcp"), FakeRun(label="tcp", scheme="tcp"))
    of_label = {run.label: run.redundancy for run in load_campaign(out)[1]}
    assert of_label == {"mptcp": pytest.approx(0.05, rel=0.1), "tcp": None}


def test_parquet_files_have_a_row_a_run_and_a_row_a_chunk(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(), FakeRun(label="sp", scheme="sp", unfinished_s=[2.0]), FakeRun(seed=9, void=True))
    write_parquet(load_campaign(out)[1], out)
    runs, rows = pq.read_table(out / "runs.parquet"), pq.read_table(out / "chunks.parquet")
    assert runs.schema.metadata[b"railyard_schema"] == rows.schema.metadata[b"railyard_schema"] == b"5"
    assert runs.column("void").to_pylist() == [False, False, True]
    assert runs.column("chunks_requested").to_pylist() == [4, 5, 4]
    assert runs.column("paths").to_pylist()[0][0]["down_bytes"] == 700_000
    censored = [row for row in rows.to_pylist() if not row["completed"]]
    assert [(row["label"], row["rct_s"]) for row in censored] == [("sp", pytest.approx(2.0))]
    assert rows.num_rows == 13


def test_the_page_is_self_contained_and_names_everything(make_campaign: Make) -> None:
    labels = [("sp", "sp"), ("sp:lte", "sp"), ("cm", "cm"), ("mptcp", "mptcp"), ("vanilla-mp", "vanilla-mp")]
    runs = [FakeRun(pair=pair, label=label, scheme=scheme) for pair in ("p1", "p2") for label, scheme in labels]
    cut = FakeRun(pair="p1", unfinished_s=[30.0], outcome="time_limit")
    void = FakeRun(pair="p2", void=True)
    out = make_campaign(*runs, cut, void)
    page = write_report(*load_campaign(out), out).read_text()
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "A &lt;campaign&gt; &amp; its figures." in own
    assert not re.search(r"""(src|href)=["'](?!#)""", own), "the page refers to something outside of it"
    parts = ("railyard run unit --seeds 2", "≥ 30.000", "time limit", "p99 lateness 2.50 ms", "a" * 64, "Linux 6.1")
    for part in parts:
        assert part in own, part
    figures = re.findall(r'<script type="application/json" data-figure="(figure-\d+)">(.*?)</script>', own, re.DOTALL)
    assert len(figures) == 2 * 7, "without the traces there is no efficiency to draw"
    assert len({number for number, _ in figures}) == len(figures)
    drawn = [json.loads(text) for _, text in figures]
    assert all(figure["data"] for figure in drawn)


@pytest.mark.parametrize("markup", ["</script>", "<!--<script>", "<!--", "<SCRIPT"])
def test_no_markup_is_left_in_the_data_embedded_in_a_page(markup: str) -> None:
    text = embedded(json.dumps({"title": markup, markup: [markup]}))
    assert "<" not in text
    assert json.loads(text) == {"title": markup, markup: [markup]}


def test_a_pair_without_a_valid_run_still_has_its_section(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(void=True))
    page = write_report(*load_campaign(out), out).read_text()
    assert "1 of 1 run void, and in no figure" in page


def test_what_lateness_can_have_added_stands_beside_the_figures(make_campaign: Make) -> None:
    """0.5, 0.25, 0.75 and 1 s, of which 10 ms of the second, the median, may be lateness."""
    out = make_campaign(FakeRun())
    file = out / "runs" / FakeRun().run_id / "run.json"
    record = json.loads(file.read_text())
    figures = {"first frame": {"value_s": 0.4, "added_s": 0.006}}
    bounds = {"0": 0.01, "1": 0.002, "2": 0.0, "3": 0.004}
    record["fidelity"]["added"] = {"share": 0.015, "figures": figures, "chunk_s": bounds}
    file.write_text(json.dumps(record))
    campaign, runs = load_campaign(out)
    assert [chunk.late_bound_s for chunk in runs[0].chunks] == [0.01, 0.002, 0.0, 0.004]
    [[cell]] = cells(runs).values()
    assert cell.late_bound_s(RCT_MEDIAN) == pytest.approx(0.01) and cell.late_bound_s(RCT_MAX) == pytest.approx(0.004)
    assert cell.fidelity == "ok, late ≤ 1.5 %"
    write_parquet(runs, out)
    assert pq.read_table(out / "chunks.parquet").column("late_bound_s").to_pylist() == [0.01, 0.002, 0.0, 0.004]
    [row] = pq.read_table(out / "runs.parquet").to_pylist()
    assert (row["late_share"], row["first_frame_late_s"]) == (0.015, 0.006)
    page = write_report(campaign, runs, out).read_text()
    assert {"late ≤ 0.010", "late ≤ 0.004", "late ≤ 0.006"} <= set(re.findall(r"late ≤ [0-9.]+", page))


def test_a_page_of_void_runs_says_so_and_tells_each_reason_once(make_campaign: Make) -> None:
    runs = [FakeRun(label=label, void=True) for label in ("sp", "xlink")]
    page = write_report(*load_campaign(out := make_campaign(*runs)), out).read_text()
    assert "Every run is void: there is no figure" in page and "No run of this pair is valid" in page
    assert "<b>0 of 2 runs count</b>, 2 void" in page, "in the masthead"
    listed = page.split('<aside class="void"')[1].split("</aside>")[0]
    assert "2 of 2 runs void, and in no figure" in listed and listed.count("The emulator was late.") == 1
    assert "<code>railyard run unit --seeds 2</code> repeats them" in listed, "the command that helps"
    assert "sp (seed 1)" in listed and "xlink (seed 1)" in listed
    assert '<table class="abstract"' not in page and "all schemes</caption>" not in page


def test_the_capacity_is_drawn_only_from_the_traces_that_were_replayed(make_campaign: Make, tmp_path: Path) -> None:
    trace = tmp_path / "t.down"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 30_000, 5)))
    from railyard.traces.trace import read_trace  # noqa: PLC0415

    right = {"name": "wifi", "technology": "wifi", "up": str(trace), "down": str(trace), "delay_ms": 15.0}
    right |= {"queue": "infinite", "loss": 0.0, "up_sha256": read_trace(trace).sha256}
    right |= {"down_sha256": read_trace(trace).sha256}
    out = make_campaign(FakeRun(pair="same", paths=[right]), FakeRun(pair="other", paths=[right | {"up_sha256": "0"}]))
    page = write_report(*load_campaign(out), out).read_text()
    assert "Capacity of the emulated links of same" in page
    assert "Resolution: 0 of 2 pairs (0%) are coarser than silences of 200 ms" in page
    assert "Capacity of the emulated links of other" not in page


def test_schemes_keep_their_colours_and_no_two_look_alike() -> None:
    labels = ["sp", "sp:lte", "cm", "mptcp", "vanilla-mp", "xlink", "xlink,t_th1_ms=10", "a", "b", "c", "d"]
    styles = scheme_styles(labels)
    assert len({(style.colour, style.dash) for style in styles.values()}) == len(labels)
    assert scheme_styles(["xlink"])["xlink"] == styles["xlink"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lateness_us": {"p50": 1, "p99": 1001, "max": 1200, "over_1ms": 1, "count": 900}}, "p99 lateness"),
        ({"lateness_us": {"p50": 1, "p99": 900, "max": 1200, "over_1ms": 10, "count": 900}}, "over 1 ms late"),
        ({"missed": 6}, "opportunities missed"),
    ],
)
def test_a_late_link_makes_the_run_void(change: dict[str, object], reason: str) -> None:
    summary = FakeRun().emulator()
    assert not judge(summary).void
    summary["paths"][1]["down"] = summary["paths"][1]["down"] | change
    verdict = judge(summary)
    assert verdict.void and reason in verdict.reasons[0] and "lte down" in verdict.reasons[0]


def test_a_packet_dropped_by_a_device_makes_the_run_void() -> None:
    summary = FakeRun().emulator()
    summary["paths"][0]["device_drops"] = {"inside_rx": 0, "inside_tx": 0, "outside_rx": 0, "outside_tx": 1}
    assert judge(summary).reasons == ["wifi outside tx: 1 packet dropped by the device"]


def test_report_of_a_directory_without_a_campaign_is_one_sentence(tmp_path: Path) -> None:
    one_sentence(railyard("report", str(tmp_path)), "there is no campaign in this directory")
    (tmp_path / "exhibit.json").write_text("{}")
    with pytest.raises(UserError, match=f"no campaign; `railyard show .*`railyard report --all {tmp_path.parent}`"):
        load_campaign(tmp_path)


def test_a_damaged_run_is_named(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    (out / "runs" / FakeRun().run_id / "mpshell.json").write_text("{}")
    with pytest.raises(UserError, match="cannot be read"):
        load_campaign(out)


def test_a_run_that_played_and_has_no_log_is_no_measurement(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    [log] = out.glob("runs/*/player.jsonl")
    log.unlink()
    with pytest.raises(UserError, match=r"player\.jsonl: it is missing, though the run played; remove"):
        load_campaign(out)


@pytest.mark.parametrize("damage", ["cut", "a line"])
def test_a_log_that_was_cut_off_or_damaged_is_no_measurement(make_campaign: Make, damage: str) -> None:
    out = make_campaign(FakeRun())
    [log] = out.glob("runs/*/player.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    lines[4:] = [] if damage == "cut" else ["{\0}\n", *lines[5:]]
    log.write_text("".join(lines))
    with pytest.raises(
        UserError, match=r"player\.jsonl:5: the log is cut off or damaged here: .* remove the run's folder"
    ):
        load_campaign(out)


def test_a_report_in_a_folder_that_cannot_be_written_says_what_helps(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    (out / ".runs.parquet.partial").mkdir()  # root writes anywhere else
    one_sentence(railyard("report", str(out)), f"{out}: its report cannot be written there: ", "copy the folder")


def test_a_damaged_record_of_a_campaign_is_named_with_its_line_and_the_remedy(make_campaign: Make) -> None:
    out = make_campaign(FakeRun())
    (out / "campaign.json").write_text("{\n")
    with pytest.raises(UserError, match=r"campaign\.json:2: this is not the JSON of a campaign .* --out .* again"):
        load_campaign(out)


def test_only_runs_that_did_not_play_to_the_end_are_flagged(make_campaign: Make) -> None:
    out = make_campaign(FakeRun(seed=1), FakeRun(seed=2))
    record, runs = load_campaign(out)
    assert '<td class="flag">' not in write_report(record, runs, out).read_text()
    run = json.loads((out / "runs" / FakeRun(seed=2).run_id / "run.json").read_text())
    (out / "runs" / FakeRun(seed=2).run_id / "run.json").write_text(json.dumps(run | {"outcome": "time_limit"}))
    page = write_report(*load_campaign(out), out).read_text()
    assert '<td class="flag">1 complete, 1 time limit' in page


def test_figures_of_a_column_have_as_many_decimals_as_each_other() -> None:
    rows: list[list[Value]] = [
        ["1", 0.1614, 57.0, 10733.0, None, 3],
        ["2", 0.0, 45.6, 12.0, 0.000012, True],
        ["3", 1.259, 100.0, 3.5, 2.0, 0],
    ]
    assert aligned(rows) == [
        ["1", "0.1614", "57.0", "10733.0", "–", "3"],
        ["2", "0", "45.6", "12.0", "1.2e-05", "yes"],
        ["3", "1.2590", "100.0", "3.5", "2", "0"],
    ]
    assert aligned([]) == []


def test_no_two_schemes_of_a_figure_have_the_same_bar() -> None:
    labels = ["sp", "sp:lte", "sp:os", "cm", "vanilla-mp", "vanilla-mp-2021", "xlink", "xlink-lean", "xlink+"]
    styles = scheme_styles([*labels, *(f"xlink {number}" for number in range(11))])
    assert len({(style.colour, style.pattern) for style in styles.values()}) == 20
    assert len({(style.colour, style.dash) for style in styles.values()}) == 20


def twelve_plays() -> list[FakeRun]:
    return [
        FakeRun(label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed, rct_s=[base + 0.01 * seed] * 20)
        for seed in range(1, 13)
        for label, base in (("vanilla-mp", 1.0), ("xlink", 0.5))
    ]


def test_tables_and_figures_of_a_page_make_each_interval_once(
    make_campaign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, str]] = []
    of = differences.level_of

    def level_of(runs: Sequence[Run], figure: Figure) -> Interval | None:
        made.append((runs[0].label, figure.name))
        return of(runs, figure)

    monkeypatch.setattr(differences, "level_of", level_of)
    write_report(*load_campaign(out := make_campaign(*twelve_plays())), out)
    asked = {label: [name for of_label, name in made if of_label == label] for label, _ in made}
    for label in ("vanilla-mp", "xlink"):
        names = [name for name in asked[label] if name != "redundancy"]  # the findings tell the redundancy too
        assert {"rct_median", "rct_p95", "first_frame", "rebuffer_rate"} <= set(names)
        assert len(names) == len(set(names))


def abstract_of(make_campaign: Make, *runs: FakeRun) -> str:
    page = write_report(*load_campaign(out := make_campaign(*runs)), out).read_text()
    return page.split('id="abstract"')[1].split("</section>")[0]


def one_play_of_each_pair(pairs: int) -> list[FakeRun]:
    return [
        FakeRun(pair=f"subway-{k}", label=label, scheme=label, rct_s=[base + 0.01 * k] * 20)
        for k in range(1, pairs + 1)
        for label, base in (("vanilla-mp", 1.0), ("xlink", 0.5))
    ]


def test_with_one_play_of_each_pair_the_abstract_has_the_intervals_for_pairs_like_these(make_campaign: Make) -> None:
    text = abstract_of(make_campaign, *one_play_of_each_pair(20))
    assert re.search(r'<b>0\.600</b><br><span class="ends">\[0\.5\d\d, 0\.6\d\d\]</span>', text)
    assert "for pairs of traces like these; maxima" in text
    assert re.search(r"with its interval for pairs of traces like these: (xlink|vanilla-mp) 5\.0 \[\d", text)


def test_a_pair_of_which_nothing_is_said_has_no_heading_in_the_abstract(make_campaign: Make) -> None:
    runs = [
        FakeRun(label=label, scheme="xlink", seed=seed, start_offset_ms=60_000 * seed)
        for label in ("early", "late")
        for seed in range(1, 7)
    ]
    assert "<dt>" not in abstract_of(make_campaign, *runs)


def test_what_no_plays_carry_is_said_once(make_campaign: Make) -> None:
    calm = [replace(run, rebuffer_time_s=0.5 * (run.pair == "subway-1")) for run in one_play_of_each_pair(8)]
    changed = [
        replace(run, rebuffer_time_s=0.2) if run.pair == "subway-2" and run.label == "xlink" else run for run in calm
    ]
    text = abstract_of(make_campaign, *changed)
    assert "Rebuffer rate in %, without an interval, n too small (" in text
    assert "[n too small]" not in text.split("<tbody>")[1]


def test_a_scheme_of_few_pairs_is_not_the_smallest_of_a_column(make_campaign: Make) -> None:
    few = FakeRun(pair="subway-1", label="sp:starlink", scheme="sp", rct_s=[0.1] * 20)
    table = abstract_of(make_campaign, *one_play_of_each_pair(6), few).split("<tbody>")[1].split("</tbody>")[0]
    row = table.split('<th scope="row">sp:starlink</th>')[1]
    assert "0.100" in row and "<b>" not in row
    assert "<b>0.530</b>" in table.split('<th scope="row">xlink</th>')[1]


def test_figures_have_their_intervals_where_the_plays_are_enough(make_campaign: Make) -> None:
    page = write_report(*load_campaign(out := make_campaign(*twelve_plays())), out).read_text()
    table = page.split('<table class="abstract"')[1].split("</table>")[0]
    row = table.split('<th scope="row">xlink</th>')[1]
    assert re.search(r'<b>0\.560</b><br><span class="ends">\[0\.5\d\d, 0\.6\d\d\]</span>', row)
    assert "Thin lines: 95 % intervals for these traces." in page and '"name":"95 % interval"' in page
    assert page.count("bytes in flight on a path when it was given up") == 3, "caption, alternative text, definition"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [("/no/chromium", "CHROMIUM is '/no/chromium', and there is no such program"), ("true", "the browser ended")],
)
def test_a_browser_that_is_missing_or_ends_at_once_is_one_sentence(
    program: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM", program)
    with pytest.raises(UserError, match=sentence):
        print_pdf(tmp_path / "report.html", tmp_path / "report.pdf")
