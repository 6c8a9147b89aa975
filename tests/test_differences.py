"""Which differences between the schemes of a campaign are established: places, windows, families, censored plays."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import FakeRun, good, one_sentence
from in_process import railyard
from railyard.results import differences
from railyard.results.differences import Difference
from railyard.results.records import Run, load_run

PLACES = 12


def runs_of(
    folder: Path, change: Callable[[FakeRun, random.Random], None], pairs: int = 6, step_ms: int = 30_000
) -> list[Run]:
    """Plays of vanilla-mp, and of xlink+ after `change`, at the same places; pairs differ by a factor of four."""
    runs: list[Run] = []
    for pair in range(pairs):
        for seed in range(1, PLACES + 1):
            drawn = random.Random(f"{pair} {seed}")
            fake = FakeRun(
                pair=f"pair-{pair}",
                label="vanilla-mp",
                scheme="vanilla-mp",
                seed=seed,
                start_offset_ms=step_ms * seed,
                rct_s=[drawn.lognormvariate(-1 + pair / 4, 0.5) for _ in range(15)],
                first_frame_s=drawn.uniform(0.3, 0.6),
            )
            runs.append(load_run(fake.write(folder)))
            other = replace(fake, label="xlink+", scheme="xlink+", rct_s=list(fake.rct_s))
            change(other, drawn)
            runs.append(load_run(other.write(folder)))
    return runs


def found(runs: list[Run]) -> dict[str, Difference]:
    return {one.figure.name: one for one in differences.differences(runs, [("xlink+", "vanilla-mp")])}


def test_a_scheme_that_is_faster_at_every_place_is_established(tmp_path: Path) -> None:
    def faster(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [0.7 * rct * drawn.uniform(0.95, 1.05) for rct in run.rct_s]

    of = found(runs_of(tmp_path, faster))
    median = of["rct_median"]
    assert median.verdict == "lower" and median.change is not None and median.change.interval.high < 0
    assert median.change.interval.value == pytest.approx(-0.3, abs=0.04)
    assert (median.change.units, median.change.unit_words) == (6, "pairs of traces")
    assert of["first_frame"].verdict == "alike" and of["rebuffer_rate"].verdict == "alike"
    assert differences.sentences([median])[0].startswith("xlink+ against vanilla-mp: RCT median −")


def test_the_better_single_path_is_chosen_by_pair_and_by_figure(tmp_path: Path) -> None:
    """On pair-0, lte has shorter requests but a later first frame. On the others, wifi is better in both."""
    for pair in range(5):
        for seed in range(1, 7):
            place: dict[str, Any] = {"pair": f"pair-{pair}", "seed": seed, "start_offset_ms": 30_000 * seed}
            for label, rct, frame in (("sp", 1.0, 0.4), ("sp:lte", 0.5 if pair == 0 else 2.0, 0.8)):
                times = [rct + 0.01 * k for k in range(10)]
                FakeRun(label=label, scheme="sp", rct_s=times, first_frame_s=frame, **place).write(tmp_path)
            FakeRun(label="xlink", rct_s=[0.7 + 0.01 * k for k in range(10)], first_frame_s=0.4, **place).write(
                tmp_path
            )
    runs = [load_run(folder) for folder in sorted(tmp_path.iterdir())]
    assert ("xlink", "sp:best") in differences.usual(runs)
    by_pair = {
        (one.pair, one.figure.name): one for one in differences.differences(runs, [("xlink", "sp:best")], by_pair=True)
    }
    slower, faster = (by_pair[pair, "rct_median"] for pair in ("pair-0", "pair-1"))
    assert slower.theirs is not None and slower.theirs.value == pytest.approx(0.54)
    assert faster.theirs is not None and faster.theirs.value == pytest.approx(1.04)
    assert all(by_pair[f"pair-{k}", "first_frame"].theirs.value == 0.4 for k in range(5))  # type: ignore[union-attr]
    one_path = [run for run in runs if run.label != "sp:lte"]
    assert all(against != "sp:best" for _, against in differences.usual(one_path))


def test_a_scheme_that_helps_on_one_pair_is_not_established_for_others(tmp_path: Path) -> None:
    def faster_there(run: FakeRun, drawn: random.Random) -> None:
        factor = 0.3 if run.pair in ("pair-3", "pair-4") else 1.0
        run.rct_s = [factor * rct * drawn.uniform(0.99, 1.01) for rct in run.rct_s]

    median = found(runs_of(tmp_path, faster_there))["rct_median"]
    assert median.verdict == "lower here"
    assert median.adjusted > 0.05 > median.adjusted_here
    assert median.change is not None and median.here is not None
    assert median.change.interval.high > 0 > median.here.interval.high, "the sentence has the interval of its claim"
    assert differences.sentences([median]) == [
        f"xlink+ against vanilla-mp: RCT median {median.words_here} for these traces."
    ]
    assert median.words_here.split(" [")[0] == median.words.split(" [")[0] and median.words_here != median.words


def test_what_holds_for_these_traces_alone_says_so(tmp_path: Path) -> None:
    """Each pair has its own difference, known to the percent: lower on all but one, where it is a little higher."""
    factors = {f"pair-{k}": factor for k, factor in enumerate((0.6, 0.99, 0.98, 0.97, 0.99, 1.09))}

    def by_pair(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [factors[run.pair] * rct for rct in run.rct_s]

    median = found(runs_of(tmp_path, by_pair))["rct_median"]
    assert median.change is not None and median.here is not None
    assert median.here.no_worse(0.02) and not median.change.no_worse(0.02)
    assert median.verdict in ("lower here", "no worse here")
    closed = replace(median, adjusted_here=1.0)
    assert closed.verdict == "no worse here", "the interval that tables print spans more than the margin"
    assert replace(closed, change=closed.here).verdict == "no worse"


def test_one_play_of_each_of_many_pairs_is_compared_over_pairs(tmp_path: Path) -> None:
    for pair in range(12):
        for label, factor in (("vanilla-mp", 1.0), ("xlink+", 0.6 + 0.01 * pair)):
            FakeRun(pair=f"pair-{pair}", label=label, rct_s=[factor * (1 + pair % 3)] * 9).write(tmp_path)
    median = found([load_run(folder) for folder in sorted(tmp_path.iterdir())])["rct_median"]
    assert median.change is not None and median.change.units == 12 and median.verdict == "lower"
    assert median.words == median.words_here == "−36 % [−39, −30]"


def test_noise_is_not_decided(tmp_path: Path) -> None:
    def noisy(run: FakeRun, drawn: random.Random) -> None:
        run.rct_s = [rct * drawn.lognormvariate(0, 0.6) for rct in run.rct_s]

    of = found(runs_of(tmp_path, noisy))
    assert of["rct_median"].verdict == "not decided" and "pairs of traces instead of 6" in of["rct_median"].needs


def test_plays_that_overlap_count_as_one_window(tmp_path: Path) -> None:
    """Twelve starts, half a second apart: the plays take ten seconds."""
    runs = runs_of(tmp_path, lambda run, drawn: None, pairs=1, step_ms=500)
    ours, _ = differences.common(runs, "xlink+", "vanilla-mp")
    assert differences.layout_of(ours).windows == 1
    assert differences.too_small(runs).startswith("n too small (1 of 5 windows of trace; 4 more: more pairs")
    assert {one.verdict for one in found(runs).values()} == {"n too small"}
    assert differences.neighbours([0, 3.3, 6.6, 10, 13.3, 16.6, 20, 23.3], 20) == 6


def test_plays_that_fail_make_a_bound_and_not_a_gap(tmp_path: Path) -> None:
    def fails(run: FakeRun, drawn: random.Random) -> None:
        if run.seed % 2:
            run.outcome, run.unfinished_s, run.first_frame_s = "connection_lost", [60.0] * len(run.rct_s), None

    of = found(runs_of(tmp_path, fails, pairs=8))
    frames = of["first_frame_p95"].ours
    assert frames is not None and frames.at_least
    assert of["rct_p95"].ours is not None and of["rct_p95"].ours.at_least
    assert of["rct_p95"].verdict == "higher" and of["rct_p95"].words.startswith("≥ +")
    record = differences.record_of(of["rct_p95"])
    assert [record[name] for name in ("at_least", "at_most", "scheme_at_least", "against_at_least", "high")] == [
        *(True, False, True, False, None)
    ]
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_difference_that_is_a_bound_says_so_and_between_two_bounds_has_no_value(tmp_path: Path) -> None:
    of = found(runs_of(tmp_path, lambda run, drawn: None, pairs=8))["rct_p95"]
    assert of.change is not None

    def bounded(at_least: bool, at_most: bool) -> differences.Difference:
        change = of.change
        assert change is not None
        return replace(
            of, change=replace(change, interval=replace(change.interval, at_least=at_least, at_most=at_most))
        )

    assert bounded(False, True).words.startswith("≤ ±0 % [") and bounded(True, False).words.startswith("≥ ±0 % [")
    unknown = bounded(True, True)
    assert unknown.words.startswith("– [") and differences.record_of(unknown)["difference"] is None


def test_the_tail_of_few_plays_is_too_small(tmp_path: Path) -> None:
    of = found(runs_of(tmp_path, lambda run, drawn: None, pairs=1))
    assert of["rct_p99"].verdict == "n too small" and of["rct_median"].verdict == "alike"


def test_a_difference_of_tails_is_told_where_the_tails_themselves_are_not(tmp_path: Path) -> None:
    """The longest requests belong to one outage: no p99 is carried. Every request is 15 % shorter: that is."""
    runs: list[Run] = []
    for pair in range(6):
        for seed in range(1, 9):
            outage = (pair, seed) == (0, 1)
            times = [20.0 + k if outage else 0.1 * (seed + pair) + 0.01 * k for k in range(15)]
            for label, factor in (("vanilla-mp", 1.0), ("xlink+", 0.85)):
                fake = FakeRun(pair=f"pair-{pair}", label=label, seed=seed, start_offset_ms=300_000 * seed)
                runs.append(load_run(replace(fake, rct_s=[factor * rct for rct in times]).write(tmp_path)))
    p99 = found(runs)["rct_p99"]
    assert p99.ours is not None and not p99.ours.known and not p99.has_levels
    assert p99.words == "−15 % [−15, −15]" and p99.verdict == "lower"


def test_every_scheme_is_compared_with_single_path_and_multipath_with_plain_multipath(tmp_path: Path) -> None:
    names = ("sp", "cm", "vanilla-mp", "xlink")
    runs = [load_run(FakeRun(label=name, scheme=name).write(tmp_path)) for name in names]
    assert differences.usual(runs) == [("cm", "sp"), ("vanilla-mp", "sp"), ("xlink", "sp"), ("xlink", "vanilla-mp")]
    others = [run for run in runs if run.label in ("cm", "xlink")]
    assert differences.usual(others) == [("xlink", "cm")], "without any of these the first one is the reference"


def test_the_command_says_how_many_plays_would_decide(make_campaign: Callable[..., Path]) -> None:
    draw = random.Random(16)
    runs = [
        FakeRun(
            label=label, scheme=label, seed=seed, start_offset_ms=20_000 * seed,
            rct_s=[factor * draw.lognormvariate(0, 0.6)] * 12,
        )
        for label, factor in (("sp", 1.0), ("xlink", 0.8))
        for seed in range(1, 17)
    ]  # fmt: skip
    done = railyard("compare", str(make_campaign(*runs)))
    [row] = [line for line in done.stdout.splitlines() if "RCT median" in line and "not decided" in line]
    assert re.search(r"not decided +\d+ (runs|windows of trace)", row), row


def test_the_command_compares_a_campaign(make_campaign: Callable[..., Path]) -> None:
    folder = make_campaign(
        *(
            FakeRun(
                label=label, scheme=label, seed=seed, start_offset_ms=20_000 * seed, rct_s=[factor * 0.1 * seed] * 12
            )
            for label, factor in (("sp", 2.0), ("xlink", 1.0))
            for seed in range(1, 13)
        )
    )
    done = good(railyard("compare", str(folder)))
    assert "with fewer than five pairs for these traces" in done.stdout
    assert "−50 % [−50, −50]" in done.stdout and "lower" in done.stdout
    rows = {line.split(", s")[0].split()[-1]: line for line in done.stdout.splitlines() if "RCT p9" in line}
    assert "−50 % [−50, −50]" in rows["p95"], "the difference has an interval though the levels have none"
    assert "−50 % [n too small]" in rows["p99"], "144 requests would not carry it if they were independent"
    assert "n too small: RCT p99 (144 of 368 requests; 224 more: seeds: 31)" in " ".join(done.stdout.split())
    assert "Resolution: 0 of 1 pairs (0%) are coarser than silences of 200 ms" in done.stdout
    assert "; of 1 it is not known (subway-1)." in done.stdout
    one_sentence(railyard("compare", str(folder), "--against", "xlnk"), "did you mean 'xlink'?")


def test_a_forest_plot_has_a_line_for_each_difference_with_an_interval(make_campaign: Callable[..., Path]) -> None:
    folder = make_campaign(
        *(
            FakeRun(
                label=label, scheme=scheme, seed=seed, start_offset_ms=20_000 * seed, rct_s=[factor * 0.1 * seed] * 12
            )
            for label, scheme, factor in (("sp", "sp", 2.0), ("<b>mine</b>", "xlink", 1.0))
            for seed in range(1, 13)
        )
    )
    good(railyard("compare", str(folder), "--plot", str(folder / "f.svg"), "--width", "5in"))
    drawn = (folder / "f.svg").read_text()
    assert "sp, RCT median" in drawn and "lower" in drawn and "RCT p99" not in drawn, "p99 has no interval"
    assert 'width="360pt"' in drawn
    assert railyard("compare", str(folder), "--plot", str(folder / "f.html"), "--format", "csv").returncode == 0
    page = (folder / "f.html").read_text()
    assert '"mode":"lines"' not in page, "both ends of an interval are marks, for which the axis leaves room"
    caption = page.split("<figcaption>")[1]
    assert "left of the line is better" in caption
    assert "&lt;b&gt;mine&lt;/b&gt; against sp: RCT median −50 %" in caption and "<b>mine" not in caption


def test_a_plot_that_cannot_be_is_said(make_campaign: Callable[..., Path]) -> None:
    folder = make_campaign(*(FakeRun(label=label, scheme=label) for label in ("sp", "xlink")))
    for words, sentence in (
        (("--plot", str(folder / "f.png")), "ends in .html, .pdf, .svg, .pgf"),
        (("--plot", str(folder / "f.svg")), "nothing to plot"),
        (("--plot", str(folder / "f.html"), "--width", "5in"), "leave out --width"),
        (("--width", "5in"), "give --plot FILE too"),
    ):
        one_sentence(railyard("compare", str(folder), *words), sentence)
