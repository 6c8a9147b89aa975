"""Figures and tables of the paper: their experiment files, builders, verdicts, and notebooks, at the small size."""

import io
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jupytext
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from rich.console import Console

from conftest import Done, good, one_sentence
from in_process import railyard
from plays_of_viewers import read_plays
from railyard.base.errors import UserError
from railyard.base.paths import ROOT, program
from railyard.base.yamlfile import YamlDocument, load_yaml, parse
from railyard.experiment.model import TRANSPORT_OF_SCHEME, find_experiment
from railyard.report.exhibit import FILE, ORDER, Claim, Exhibit, Provenance, Table, load_exhibit, newest_exhibits
from railyard.run.parts import merged
from railyard.stats import pooled, wording
from railyard.stats.bootstrap import FEWEST
from railyard.stats.intervals import Interval
from railyard.stats.statistics import nearest_rank
from railyard.studies.exhibits import energy, fig6, fig8, fig13, fig14, places, registry, run, table4
from railyard.studies.exhibits.frame import load_frame
from railyard.studies.exhibits.notebook import SEEN
from railyard.studies.exhibits.spec import ExhibitSpec, experiments
from railyard.studies.population.parts import PLAYS_FILE
from railyard.studies.request import RunRequest
from railyard.studies.study import SIZE, find_study
from railyard.traces.library import find_pair

OWN = ("fig1", "fig6", "fig7", "fig8", "fig13", "fig14", "fig15", "table4")
ALL = tuple(name for name in ORDER if name in registry.EXHIBITS)
OVER_A_POPULATION = {
    "fig1c": ["vanilla-worse-p99"],
    "table1": ["vanilla-rebuffers-more"],
    "fig10": [
        "cost-95-80",
        "cost-off-15",
        "cost-within-bounds",
        "reinjection-necessary",
        "diminishing-returns",
        "delivery-time-saves",
    ],
    "table2": ["danger-95-80"],
    "fig11": ["xlink-p99-better", "xlink-p95-better", "xlink-median-better"],
    "table3": ["rebuffer-better"],
    "fig12": [
        "first-frame-p99",
        "next-video-first-frame-p99",
        "acceleration-helps",
        "acceleration-gains-at-the-tail",
    ],
}
NOTEBOOK = ROOT / "notebooks" / "study.py"
NAME = 'name = "fig8"\n'
STUDY = "early-data"


def make(name: str, folder: Path) -> None:
    document = load_yaml(find_experiment(name))
    carry_out = registry.runner(document)
    assert carry_out is not None
    carry_out(document, RunRequest(Console(quiet=True), arena="sim", out=folder / name, size="small"))


class Made:
    """Every exhibit at the small size in the sim arena, each made on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> Exhibit:
        if not (self.folder / name).exists():
            with environment(self.folder):
                make(name, self.folder)
        return load_exhibit(self.folder / name)


@contextmanager
def environment(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAILYARD_RESULTS", str(folder))
        patch.setenv("RAILYARD_ARENA", "sim")
        patch.setenv("RAILYARD_TRACE_PATH", "")
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def executed(made: Made) -> str:
    """The notebook with the name of each exhibit; fig15 is made by its own."""
    text = NOTEBOOK.read_text()
    assert NAME in text
    pages = [text.replace(NAME, f'name = "{name}"\n') for name in (*ALL, STUDY)]
    # One kernel for all, but nothing left of the page before.
    cells = [f"{page[page.index('# %%') :]}\n# %%\n# %reset -f\n\n" for page in pages]
    whole = jupytext.reads("".join(cells), fmt="py:percent")
    client = NotebookClient(whole, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    for name in ALL:
        assert name == "fig15" or made[name]
    with environment(made.folder):
        client.execute()
    return str(jupytext.writes(whole, fmt="ipynb"))


def test_every_exhibit_has_an_experiment_a_builder_and_words_on_what_is_to_be_seen() -> None:
    assert set(OWN) <= set(registry.EXHIBITS) == set(ALL)
    seen = re.findall(r"^## (\S+)\n\S", SEEN.read_text(), re.MULTILINE)
    assert seen == list(ALL)
    for name in registry.EXHIBITS:
        assert find_experiment(name).is_file()
        assert callable(registry.builder(name))


# Each is made here, one by one, so that no test waits for all of them.
@pytest.mark.parametrize("name", [name for name in ALL if name != "fig15"])
def test_an_exhibit_is_whole(name: str, made: Made) -> None:
    exhibit = made[name]
    assert exhibit.size == "small" and exhibit.provenance.created and exhibit.provenance.traces
    assert exhibit.plots and exhibit.tables and exhibit.paper and exhibit.confidence
    rows = load_yaml(find_experiment(name)).data.get("claims", [])
    assert [claim.id for claim in exhibit.claims] == [row["id"] for row in rows]
    assert all(claim.rule and claim.because for claim in exhibit.claims)
    for plot in exhibit.plots:
        assert plot.alt and plot.figure["layout"]["height"] > 0
        assert any(len(trace.get("y", [])) > 0 for trace in plot.figure["data"])
    for table in exhibit.tables:
        assert table.rows


@pytest.mark.parametrize("name", list(OVER_A_POPULATION))
def test_an_exhibit_over_a_population_makes_its_claims(name: str, made: Made) -> None:
    exhibit = made[name]
    assert [claim.id for claim in exhibit.claims] == OVER_A_POPULATION[name]
    for plot in exhibit.plots:
        assert all(len(trace["x"]) > 0 for trace in plot.figure["data"]), plot.id
        styles = [(t["line"]["color"], t["line"]["dash"], t["marker"]["symbol"]) for t in plot.figure["data"]]
        assert len({style[1:] for style in styles}) == len(styles), "no curve is told apart by its colour alone"
    assert exhibit.fidelity.exact and exhibit.provenance.programs_sha256


def test_exhibits_of_one_population_share_its_plays(made: Made) -> None:
    before, _ = made["fig1c"], made["table1"]
    parts = sorted((made.folder / "fig1c" / "parts").iterdir())
    plays = [read_plays(made.folder / name / PLAYS_FILE) for name in ("fig1c", "table1")]
    assert plays[0] == plays[1] != [], "the same arms"
    with environment(made.folder):
        make("fig1c", made.folder)
    assert sorted((made.folder / "fig1c" / "parts").iterdir()) == parts, "what is there was played again"
    after = made["fig1c"]
    assert after.tables == before.tables
    assert after.claims == before.claims


def test_notebooks_show_every_plot_and_verdict(executed: str, made: Made) -> None:
    drawn = executed.count("application/vnd.plotly.v1+json")
    exhibits = [made[name] for name in ALL]
    assert drawn == sum(len(exhibit.plots) for exhibit in exhibits) >= len(ALL)
    assert executed.count('"image/png": "iVBOR') == drawn
    assert executed.count("## What is to be seen") == len(ALL)
    for exhibit in exhibits:
        for claim in exhibit.claims:
            assert f"**{claim.id}: {claim.verdict}.**" in executed
    for _, text in find_study(STUDY).kept(SIZE).parts():
        assert json.dumps(text, ensure_ascii=False)[1:-1].split("\\n")[-1] in executed


def test_the_notebook_of_fig15_makes_a_whole_exhibit(executed: str, made: Made) -> None:
    test_an_exhibit_is_whole("fig15", made)


def test_exhibits_are_found_in_the_order_of_the_paper(executed: str, made: Made) -> None:
    assert [exhibit.name for exhibit, _ in newest_exhibits(made.folder)[0]] == list(ALL)


def test_the_same_files_give_the_same_exhibit(made: Made, tmp_path: Path) -> None:
    done = good(railyard("run", "fig8", "--size", "small", "--out", str(tmp_path / "fig8")))
    again, before = load_exhibit(tmp_path / "fig8"), made["fig8"]
    assert again.tables == before.tables and again.claims == before.claims and again.plots == before.plots
    assert "fastest-ack-wins-more" in done.stdout
    assert again.command == f"railyard run fig8 --out {tmp_path / 'fig8'} --size small"
    said = io.StringIO()
    document = load_yaml(find_experiment("fig8"))
    run.run(document, RunRequest(Console(file=said, width=200), out=tmp_path / "fig8", size="small"))
    assert "12 of 12 runs are there already" in said.getvalue()


def test_a_fast_acknowledgement_path_changes_nothing_where_the_paths_are_equal(made: Made) -> None:
    gains = {row[0]: row[3] for row in made["fig8"].tables[0].rows}
    assert abs(float(str(gains[1.0]))) < 1 < float(str(gains[8.0]))


def test_the_place_of_fig1_is_an_outage_of_the_trace(made: Made) -> None:
    capacity = made["fig1"].tables[0].rows[0]
    assert float(str(capacity[2])) < 0.1 * float(str(capacity[1]))


def test_fig13_in_sim_says_that_mptcp_is_missing_and_does_not_claim_five(made: Made) -> None:
    exhibit = made["fig13"]
    assert "mptcp" in exhibit.settings["left out"] and exhibit.fidelity.exact
    best, _, mixed = exhibit.claims
    assert best.id == "xlink-best-of-five" and best.verdict != "holds"
    assert mixed.verdict != "holds" and "mptcp" not in mixed.ours
    assert exhibit.settings["thresholds"].startswith("T_th1 500 ms, T_th2 2000 ms;")
    costs = {row[0]: row[-1] for row in exhibit.tables[0].rows}
    assert costs["sp"] == costs["vanilla-mp"] == 0 and float(str(costs["xlink"])) > 0


def test_modelled_energy_is_labelled_and_cites_its_sources(made: Made) -> None:
    exhibit = made["fig14"]
    assert exhibit.modelled and "MobiSys 2012" in exhibit.settings["power of Wi-Fi and LTE"]
    assert "SIGCOMM 2020" in exhibit.settings["power of NR"]


def test_energy_is_power_times_time_and_a_tail() -> None:
    radio = energy.Radio(base_mw=1000, uplink_mw_per_mbps=100, downlink_mw_per_mbps=50, tail_mw=500, tail_s=2)
    # 4 s at 1 W, 80 Mbit down at 50 mJ each, 1 Mbit up at 100 mJ, 1 J of tail
    assert radio.energy_j(4, 1, 80, tail=True) == pytest.approx(4 + 4 + 0.1 + 1)
    carried = (energy.Carried("a", 125_000, 10_000_000), energy.Carried("b", 0, 0))
    transfer = energy.Transfer(10_000_000, 4.0, carried)
    assert transfer.mbps == pytest.approx(20)
    assert transfer.nj_per_bit({"a": radio, "b": radio}) == pytest.approx(9.1 / 80e6 * 1e9)  # b is off


def test_an_exhibit_that_cannot_be_shown_is_refused(tmp_path: Path, made: Made) -> None:
    with pytest.raises(ValueError, match="a missing value is None"):
        Table(title="t", columns=[{"name": "a"}], rows=[[math.nan]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(title="t", columns=[{"name": "a"}], rows=[[1, 2]])  # type: ignore[list-item]
    with pytest.raises(UserError, match="railyard run fig8` makes it"):
        load_exhibit(tmp_path / "fig8")
    assert made["fig8"]
    data: dict[str, Any] = json.loads((made.folder / "fig8" / FILE).read_text())
    data["claims"][0]["verdict"] = "surely"
    (tmp_path / "fig8").mkdir()
    (tmp_path / "fig8" / FILE).write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"no exhibit of schema 1 \(claims.0.verdict"):
        load_exhibit(tmp_path / "fig8")


def test_an_exhibit_whose_programs_failed_in_every_run_is_refused_in_one_sentence(tmp_path: Path, made: Made) -> None:
    assert made["fig8"]
    folder = tmp_path / "fig8"
    shutil.copytree((made.folder / "fig8").resolve(), folder)
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps(record | {"outcome": "crashed", "message": "the kernel panicked"}))
    with pytest.raises(UserError, match=r"a program failed in every run.* crashed: the kernel panicked"):
        load_frame(folder, parse(load_yaml(find_experiment("fig8")), ExhibitSpec))


CLAIM = "  - {id: ID, claim: c, theirs: t, figure: FIGURE, a: xlink+, b: sp, rule: RULE}\n"


def of_fig11(folder: Path, made: Made, **words: str) -> Done:
    """fig11 with a claim more, of the plays that there are."""
    assert made["fig11"]
    shutil.copytree(made.folder / "fig11" / "parts", folder / "made" / "parts")
    row = CLAIM
    for name, word in {"ID": "own-claim", "FIGURE": "rct_p99", "RULE": "worse", **words}.items():
        row = row.replace(name, word)
    (folder / "fig11.yaml").write_text(find_experiment("fig11").read_text() + row)
    with environment(folder):
        return railyard("run", str(folder / "fig11.yaml"), "--size", "small", "--out", str(folder / "out"))


def test_a_claim_more_in_an_exhibits_file_is_judged(tmp_path: Path, made: Made) -> None:
    good(of_fig11(tmp_path, made))
    exhibit = load_exhibit(tmp_path / "out")
    assert [claim.id for claim in exhibit.claims][-2:] == ["xlink-median-better", "own-claim"]
    own = exhibit.claims[-1]
    assert own.verdict in ("does not hold", "not decided") and "wholly on the worse side" in own.rule


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"ID": "xlink-p99-better"}, "there are two claims 'xlink-p99-better'"),
        ({"FIGURE": "first_frame"}, "it takes a `figure` (rct_median, rct_p95, rct_p99, rebuffer_rate)"),
        ({"RULE": "within"}, "claim 'own-claim': the rule 'within' takes `numbers: {least, most}`"),
        ({"xlink+": "xlink++"}, "claim 'own-claim': there is no arm 'xlink++'"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_before_the_plays(
    words: dict[str, str], says: str, tmp_path: Path, made: Made
) -> None:
    one_sentence(of_fig11(tmp_path, made, **words), says)
    assert not (tmp_path / "out").exists()


def test_a_claim_that_an_exhibit_does_not_judge_is_refused(tmp_path: Path, made: Made) -> None:
    assert made["fig8"]
    text = find_experiment("fig8").read_text().replace("id: fastest-ack-wins-more", "id: other")
    (tmp_path / "fig8.yaml").write_text(text)
    with pytest.raises(UserError, match="has no claim 'fastest-ack-wins-more'"):
        registry.builder("fig8")(
            (made.folder / "fig8").resolve(), parse(load_yaml(tmp_path / "fig8.yaml"), ExhibitSpec)
        )
    (tmp_path / "fig8.yaml").write_text(find_experiment("fig8").read_text() + CLAIM.replace("ID", "further"))
    with pytest.raises(UserError, match=r"fig8: it does not judge the claim 'further' .* judges fastest-ack"):
        registry.builder("fig8")(
            (made.folder / "fig8").resolve(), parse(load_yaml(tmp_path / "fig8.yaml"), ExhibitSpec)
        )


def interval(low: float, value: float, high: float) -> Interval:
    return Interval(value, low, high)


def test_the_verdict_on_acknowledgements_follows_the_figures() -> None:
    def points(*gains: Interval) -> list[dict[str, Any]]:
        return [{"ratio": float(ratio), "gain": gain} for ratio, gain in enumerate(gains, start=1)]

    rising = points(interval(-1, 0, 1), interval(1, 2, 3), interval(4, 5, 6))
    assert fig8.verdict(rising, 0.8)[0] == "holds"
    assert fig8.verdict(points(interval(4, 5, 6), interval(1, 2, 3), interval(1, 1.5, 3)), 0.8)[0] == "partly"
    assert fig8.verdict(points(interval(-1, 0, 1), interval(-1, 2, 3)), 0.8)[0] == "not decided"
    assert fig8.verdict(points(interval(-1, 0, 1), interval(-3, -2, -1)), 0.8)[0] == "does not hold"


def test_the_verdict_on_the_five_schemes_follows_the_figures() -> None:
    def results_of(xlink: float) -> fig13.Results:
        row = {name: fig13.Figures(1.0, 4.0, at_least=False) for name in fig13.FIVE}
        return {f"pair-{n}": row | {"xlink": fig13.Figures(xlink, 4 * xlink, at_least=False)} for n in range(10)}

    assert fig13.best_of_five(results_of(0.5), fig13.FIVE, 0.01)[0] == "holds"
    assert fig13.best_of_five(results_of(1.5), fig13.FIVE, 0.01)[0] == "does not hold"
    mixed = results_of(0.5)
    for number, row in enumerate(mixed.values()):
        row["mptcp"] = fig13.Figures(0.2 if number % 2 else 1.3, 4.0, at_least=False)
    assert fig13.best_of_five(mixed, fig13.FIVE, 0.01)[0] == "partly"
    assert fig13.cm_no_answer(results_of(0.5), 0.01)[0] == "holds"
    assert fig13.cm_no_answer(results_of(1.5), 0.01)[0] == "partly"
    assert fig13.mixed_without_copies(results_of(0.5), 0.01, 0.25)[0] == "does not hold"
    for number, row in enumerate(mixed.values()):
        for name in fig13.WITHOUT_COPIES:
            row[name] = fig13.Figures(0.5 if number < 5 else 1.5, 4.0, at_least=False)
    assert fig13.mixed_without_copies(mixed, 0.01, 0.25)[0] == "holds"
    assert fig13.mixed_without_copies(mixed, 0.01, 0.26)[0] == "partly"


def test_the_verdict_on_head_of_line_blocking_needs_all_its_parts() -> None:
    def found(stalled: tuple[int, int, int], copies: Interval) -> fig6.Findings:
        labels = (fig6.VANILLA, fig6.ALWAYS, fig6.GATED)
        cells = dict.fromkeys(labels, interval(0, 1, 2))
        saved = {fig6.ALWAYS: interval(10, 20, 30), fig6.GATED: interval(10, 20, 30)}
        places_of = dict(zip(labels, stalled, strict=True))
        starved = dict.fromkeys(labels, 2)
        return fig6.Findings(10, places_of, starved, cells, cells, dict.fromkeys(labels, 0.1), saved, copies)

    assert fig6.verdict(found((8, 2, 3), interval(5, 10, 20)))[0] == "holds"
    word, why = fig6.verdict(found((8, 7, 3), interval(5, 10, 20)))
    assert word == "partly" and "without control the buffer falls to zero" in why
    assert "In 2 of the 3 places where it stalls with control the other path carries less" in why
    word, why = fig6.verdict(found((8, 2, 3), interval(-5, 10, 20)))
    assert word == "not decided" and why.startswith("Not decided by so few places: the control re-injects less")
    assert fig6.verdict(found((8, 2, 3), interval(-20, -10, -5)))[0] == "partly"


def test_a_delay_matters_where_median_and_tail_are_slower_beyond_chance() -> None:
    slower, unsure = interval(1, 2, 3), interval(-1, 2, 5)
    assert table4.verdict({"median": slower, "p99": slower}) == "holds"
    assert table4.verdict({"median": slower, "p99": unsure}) == "partly"
    assert table4.verdict({"median": unsure, "p99": unsure}) == "not decided"
    assert table4.verdict({}) == "not decided"
    assert table4.verdict(dict.fromkeys(("median", "p99"), interval(-3, -2, -1))) == "does not hold"


def test_the_verdict_on_energy_counts_loads() -> None:
    assert fig14.verdict({"a": (5, 5), "b": (5, 5)})[0] == "holds"
    assert fig14.verdict({"a": (5, 5), "b": (4, 5)})[0] == "partly"
    assert fig14.verdict({"a": (0, 5), "b": (4, 5)})[0] == "does not hold"
    assert fig14.verdict({"a": (0, 5)}, parts=2)[0] == "not decided"


@settings(max_examples=25)
@given(st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=5), min_size=1, max_size=8))
def test_a_bootstrap_interval_holds_its_value_and_is_reproducible(groups: list[list[float]]) -> None:
    found = pooled.bootstrap(groups, pooled.quantile_of(0.5))
    assert found is not None and found == pooled.bootstrap(groups, pooled.quantile_of(0.5))
    values = [value for group in groups for value in group]
    assert not found.known or min(values) <= found.low <= found.high <= max(values)
    assert len(groups) >= FEWEST or not found.known, "few runs carry no interval"
    assert found.value == nearest_rank(values, 0.5)
    assert Interval(-0.3, -11.2, 9).text(".0f") == "0 [-11, 9]"


def test_an_interval_without_ends_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    claim = Claim(
        id="one", claim="c", theirs="t", ours=f"gain {Interval.alone(5).text('.0f')}", verdict="not decided",
        because="b", needs="[more] runs",
    )  # fmt: skip
    made = Exhibit(
        name="unit", title="Unit", paper_ref="none", summary="s", command="c", arena="sim", size="small",
        claims=[claim], provenance=Provenance(git={}, kernel="", created="2026-01-02"),
    )  # fmt: skip
    run.print_exhibit(Console(width=200), made)
    shown = capsys.readouterr().out
    assert "one: not decided. gain 5 [n too small]" in shown and "to decide it: [more] runs" in shown


def test_a_difference_is_said_without_a_sign() -> None:
    words = ("faster", "slower")
    assert Interval(52.84, 28.6, 58.7).words(*words) == "52.8 % faster [28.6, 58.7]"
    assert Interval(-52.84, -58.7, -28.6).words(*words) == "52.8 % slower [28.6, 58.7]"
    assert Interval(-1.6, -5.4, 2.4).words(*words) == "1.6 % slower [5.4 slower to 2.4 faster]"
    assert Interval(-0.02, -11.2, 9).words(*words, digits=0) == "0 % faster [11 slower to 9 faster]"
    assert Interval(98.7, 95.3, 100).words(*words) == "98.7 % faster [95.3, 100]"
    assert wording.range_words([3, -6.5, 9.5], *words) == "6.5 % slower to 9.5 % faster"
    assert wording.range_words([-6.5, -9.5, 0.01], *words) == "0.0 to 9.5 % slower"
    assert wording.range_words([11.2, 31.9], *words, digits=0) == "11 to 32 % faster"


def test_a_paired_interval_sees_what_pools_hide() -> None:
    before = [[float(n)] for n in range(1, 40)]
    after = [[0.9 * value for value in group] for group in before]
    saved = pooled.paired(after, before, pooled.mean, pooled.improvement)
    assert saved is not None and saved.low == pytest.approx(10) == pytest.approx(saved.high)
    assert pooled.bootstrap([], pooled.mean) is None
    assert pooled.paired([[]], [[]], pooled.mean, pooled.improvement) is None


def test_places_obey_their_rule() -> None:
    pair = find_pair("walking-2")
    rule = places.PlaceRule(
        path="wifi",
        below_mbps=2,
        shortest_ms=300,
        longest_ms=700,
        lead_ms=1700,
        before_mbps=8,
        others_mbps=5,
        room_ms=2500,
    )
    (place,) = places.find_places(pair, rule)
    assert (place.begin_ms, place.end_ms) == (1700, 2200)
    assert places.find_places(pair, rule.model_copy(update={"before_mbps": 500})) == []
    assert places.find_places(pair, rule.model_copy(update={"path": "5g"})) == []


def test_parts_change_fields_and_mistakes_name_their_line(tmp_path: Path) -> None:
    assert merged({"a": {"b": 1, "c": [1]}}, {"a": {"c": [2]}}) == {"a": {"b": 1, "c": [2]}}
    document = load_yaml(find_experiment("fig8"))
    parts = experiments(parse(document, ExhibitSpec), document)
    assert [experiment.links["lte"]["delay_ms"] for _, experiment, _ in parts] == [10 * ratio for ratio in range(1, 9)]
    assert all(experiment.name == "fig8" for _, experiment, _ in parts)
    file = tmp_path / "mine.yaml"
    file.write_text("kind: exhibit\nname: fig8\nexperiment:\n  arena: sim\n  pairs: [hsr-1]\n  schemes: [xlnk]\n")
    wrong = load_yaml(file)
    with pytest.raises(UserError, match=r"mine.yaml:6: schemes\[0\].*did you mean 'xlink'"):
        experiments(parse(wrong, ExhibitSpec), wrong)


def test_a_kind_or_size_that_is_not_known_ends_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown kind 'exibit'; did you mean 'exhibit'"):
        registry.runner(YamlDocument(tmp_path / "x.yaml", {"kind": "exibit"}, {}))
    one_sentence(railyard("run", "fig8", "--size", "smal"), "unknown size 'smal'; did you mean 'small'?")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("fig15 --seeds 3 --qlog all", "fig15 runs nothing: it reads traces; leave out --seeds and --qlog."),
        ("fig7 --arena sim --keep-awake off", "virtual time, where nothing is late; leave out --keep-awake."),
        ("fig11 --qlog all", "plays of a population keep no qlogs; leave out --qlog."),
        ("fig11 --no-real-time", "virtual time, where nothing is late; leave out --real-time."),
        ("demo --size small", "--size is for figures and tables of the paper; demo.yaml has 'seeds'"),
        ("demo --repeat-budget 9", "virtual time, where nothing is late; leave out --repeat-budget."),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(words: str, sentence: str, tmp_path: Path) -> None:
    one_sentence(railyard("run", *words.split(), "--out", str(tmp_path / "out")), sentence)
    assert not (tmp_path / "out").exists()


def test_options_of_the_wall_clock_reach_the_runs_of_an_exhibit() -> None:
    document = load_yaml(find_experiment("fig13"))
    request = RunRequest(Console(quiet=True), arena="mpshell", keep_awake="off", real_time=False)
    spec = run.requested(document, request)
    assert {(each.keep_awake, each.real_time) for _, each, _ in experiments(spec, document)} == {("off", False)}
    assert spec.command == "railyard run fig13 --arena mpshell --keep-awake off --no-real-time"


@pytest.mark.parametrize("scheme", [name for name, transport in TRANSPORT_OF_SCHEME.items() if transport == "quic"])
def test_the_server_takes_every_scheme_of_the_orchestrator(scheme: str) -> None:
    command = [str(program("xlink-server")), "--quic", "127.0.0.1:0", "--scheme", scheme]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and '"listening"' in server.stdout.readline()
        server.terminate()
        assert server.wait(20) == 0
