"""`railyard study evaluation`: its output for any campaign, also for one with failed plays."""

from dataclasses import replace
from pathlib import Path

import pytest

import in_process
from conftest import FakeRun, good, one_sentence
from railyard.base.page import Table, markdown_of
from railyard.results.records import Run, load_run
from railyard.studies import link_models, recorded
from railyard.studies.study import find_study


def plays(folder: Path, labels: tuple[str, str], factors: dict[str, float], seeds: int = 6) -> list[Run]:
    """The plays of two schemes on each pair; requests of the second take `factors[pair]` times as long."""
    runs = []
    for pair, factor in factors.items():
        for seed in range(1, seeds + 1):
            for label, times in zip(labels, (1.0, factor), strict=True):
                fake = FakeRun(pair=pair, label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed)
                fake.rct_s = [times * (1 + 0.01 * k) for k in range(12)]
                runs.append(load_run(fake.write(folder)))
    return runs


def study(folder: Path) -> tuple[str, ...]:
    """The command that plays own.yaml in this folder."""
    return "study", "evaluation", "--set", f"experiments=[{folder / 'own.yaml'}]", "--size", "small", *out(folder)


def out(folder: Path) -> tuple[str, str]:
    return "--set", f"out={folder / 'out'}"


INDEX = """\
schema: 1
pairs:
- name: dark
  scenario: metro
  licence: CC0-1.0
  source: test
  paths:
  - {name: wifi, technology: wifi, uplink: dark.down, downlink: dark.down, base_rtt_ms: 30, queue: infinite}
  - {name: lte, technology: lte, uplink: dark.down, downlink: dark.down, base_rtt_ms: 70, queue: infinite}
"""
EXPERIMENT = """\
name: own
arena: sim
pairs: [dark, subway-1]
schemes: [sp, xlink]
seeds: 1
player: {duration_s: 4, chunk_bytes: 262144}
time_limit_s: 12
qlog: false
link_logs: false
"""


def test_plays_that_failed_are_lower_bounds_in_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dark.down").write_text("60000\n")
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "own.yaml").write_text(EXPERIMENT)
    monkeypatch.setenv("RAILYARD_TRACE_PATH", str(tmp_path))
    done = good(in_process.railyard(*study(tmp_path)))
    rows = {line.split(" | ")[0].strip("| "): line for line in done.stdout.splitlines() if line.startswith("|")}
    assert rows["dark"].count("≥ 12.00") == 6, "median and p95 of sp, sp:best and xlink"
    assert "≥" not in rows["subway-1"]
    assert "xlink+ against" not in done.stdout, "it was not played"
    assert "\n2 plays a scheme" in done.stdout and "nan" not in done.stdout
    assert any(line.startswith("| xlink | 2 | 1 | 50.0 ") for line in done.stdout.splitlines())


def test_lines_of_prose_are_broken_for_a_page() -> None:
    text = markdown_of([Table(heads=["wide " * 40], align="l", rows=[]), f"- {'word ' * 40}\n- short"])
    lines = text.splitlines()
    assert len(lines[0]) > 120 and all(len(line) <= 120 for line in lines[1:])
    assert (lines[4].startswith("  word"), lines[-1]) == (True, "- short")


def test_the_pair_that_makes_the_tail_is_named_and_left_out_once(tmp_path: Path) -> None:
    runs = []
    for pair, worst_s in (("calm", 1.0), ("outage", 30.0), ("calmer", 0.9)):
        for seed in range(1, 7):
            for label in ("sp", "xlink+"):
                fake = FakeRun(pair=pair, label=label, scheme=label, seed=seed, start_offset_ms=60_000 * seed)
                fake.rct_s = [0.1 + 0.01 * k for k in range(11)] + [worst_s]
                runs.append(load_run(fake.write(tmp_path)))
    lines = markdown_of(recorded.samples(runs)).splitlines()
    [every] = [line for line in lines if line.startswith("| all | xlink+ | RCT |")]
    [without] = [line for line in lines if line.startswith("| without outage | xlink+ | RCT |")]
    assert "| 30.00 | 216 |" in every and "| 1.00 | 144 |" in without


def test_the_clairvoyant_scheduler_is_a_reference_and_none_of_the_schemes(tmp_path: Path) -> None:
    schemes = "[sp, vanilla-mp, xlink+, {scheme: xlink+, label: clairvoyant, scheduler: clairvoyant}]"
    text = EXPERIMENT.replace("[sp, xlink]", schemes).replace("dark, subway-1", "subway-1, subway-2")
    text = text.replace("seeds: 1", "seeds: 2")
    (tmp_path / "own.yaml").write_text(text)
    done = good(in_process.railyard(*study(tmp_path), "--set", "starts=2"))
    tables = [part.strip().splitlines() for part in done.stdout.split("\n\n") if part.strip().startswith("|")]
    heads = [table[0] for table in tables]
    schemes_of, pairs_of = tables[0], next(table for table in tables if table[0].startswith("| pair | oracle | sp"))
    assert schemes_of[-1].startswith("| clairvoyant |") and "clairvoyant" not in pairs_of[0]
    bounds = next(table for table in tables if table[0] == "|  | RCT median | RCT p95 |")
    rows = [row.split(" | ")[0].strip("| ") for row in bounds[2:]]
    assert rows == [
        "oracle",
        "oracle's play",
        "clairvoyant",
        "xlink+",
        "best other (vanilla-mp, vanilla-mp)",
        "sp:best",
    ]
    medians = [float(row.split(" | ")[1].split(" ")[0]) for row in bounds[2:]]
    assert medians[0] <= medians[2] and medians[1] <= medians[2]
    assert "| RCT median: xlink+ against | all pairs (2) | verdict |" in heads, "no pair of it is in a subset"
    shares = next(table for table in tables if table[0].endswith("| excess ms | a % | b % | c % |"))
    for row in shares[2:4]:
        assert sum(int(cell) for cell in row.strip("| ").split(" | ")[-3:]) in (99, 100, 101), row


def test_a_collection_of_five_pairs_or_more_is_a_subset(tmp_path: Path) -> None:
    factors = {f"maine_{k}": 1.0 for k in range(5)} | {f"walk_{k}": 1.0 for k in range(4)}
    runs = plays(tmp_path, ("sp", "xlink+"), factors, seeds=1)
    found = recorded.subsets_of(runs)
    assert list(found) == ["all pairs", "Maine"], "four walks have no interval, and none of the pairs is hsr"
    assert {run.pair for run in found["Maine"]} == {f"maine_{k}" for k in range(5)}


def test_an_experiment_of_the_command_line_is_played_without_the_buffers_of_the_size() -> None:
    def asked(**changes: object) -> list[int]:
        buffers: list[int] = find_study("evaluation").settings("default", changes).buffers_ms
        return buffers

    assert asked(starts=1) == [1200, 2000, 4000]
    assert asked(experiments=["own"]) == []
    assert asked(experiments=["own"], buffers_ms=[800]) == [800]


def test_an_experiment_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    done = in_process.railyard("study", "evaluation", "--set", "experiments=[nothing]")
    one_sentence(done, "there is no experiment 'nothing' in ")
    done = in_process.railyard("run", str(tmp_path))
    one_sentence(done, f"{tmp_path}: this is a folder; name a file of YAML, or one of ")


def test_headlines_are_told_for_the_pairs_that_chose_the_constants_and_for_the_others_apart(tmp_path: Path) -> None:
    """xlink+ takes half of the time on the pairs on which it was tuned, and twice as long on one that checks."""
    factors = {"hsr_0544": 0.5, "walk_sbu_7_5": 0.5, "hsr_2344": 2.0, "leo_me_42": 1.0}
    lines = markdown_of(recorded.headlines(plays(tmp_path, ("xlink", "xlink+"), factors))).splitlines()
    head = next(line for line in lines if line.startswith("| RCT median: xlink+ against"))
    cells = head.strip("| ").split(" | ")
    assert cells[1:] == ["all pairs (4)", "verdict", "constants chosen on (2)", "checked on (2)", "without hsr (2)"]
    row = lines[lines.index(head) + 2].strip("| ").split(" | ")
    assert row[0] == "xlink" and row[3].startswith("−50 % [−5")
    assert not row[4].startswith("−") and row[5].startswith("−")


def test_a_buffer_is_a_column_of_the_claims(tmp_path: Path) -> None:
    columns: dict[str, list[Run]] = {}
    thresholds = {"x": 95, "y": 80, "t_th1_ms": 267.4, "t_th2_ms": 1800.0, "pairs": ["other-1", "other-2"]}
    for head, gain in (("1.2 s", 0.5), ("10 s", 1.0)):
        runs = plays(tmp_path / head, ("sp", "xlink"), {f"p{pair}": gain for pair in range(6)}, seeds=2)
        columns[head] = [
            replace(run, record=run.record | {"config": run.config | {"thresholds": thresholds}}) for run in runs
        ]
    lines = markdown_of(recorded.where_claims_hold(columns, "buffer")).splitlines()
    measured = "th(95) = 267 ms, th(80) = 1800 ms, measured on 2 other pairs."
    assert f"- 1.2 s: Thresholds of `xlink`: {measured}" in lines
    assert "| RCT median | 1.2 s | 10 s |" in lines
    [row, *_] = [line for line in lines if line.startswith("| xlink against sp |")]
    assert row.startswith("| xlink against sp | −50 % [−5") and row.endswith("| ±0 % [±0, ±0] alike |")
    lines += markdown_of(recorded.levels(columns)).splitlines()
    assert not any("sp:best" in line for line in lines), "sp was played on one path"
    assert any(line.startswith("| 1.2 s | xlink | 0.5") for line in lines)
    assert any(
        line.startswith("n too small: ") and "RCT p99 (144 of 368 requests; 224 more: " in line for line in lines
    )


def test_a_claim_whose_sign_turns_over_a_subset_is_called_so(tmp_path: Path) -> None:
    factors = {"walk": 1.2, "drive": 1.2} | {f"hsr_{number}": 0.5 for number in range(8)}
    runs = plays(tmp_path, ("sp", "xlink"), factors)
    lines = markdown_of(recorded.where_claims_hold({"own": runs}, "buffer")).splitlines()
    assert "- own: RCT median, xlink against sp, without hsr" in lines
    assert not any(line.startswith("- own: first frame median") for line in lines), "nothing is established of it"


def test_restored_pairs_stand_beside_those_they_were_made_from(tmp_path: Path) -> None:
    factors = {"a": 0.9, "a_restored": 0.5, "b": 0.9, "b_restored": 0.5, "only": 0.9}
    columns = recorded.forms(plays(tmp_path, ("sp", "xlink"), factors))
    lines = markdown_of(recorded.where_claims_hold(columns, "form")).splitlines()
    assert "| RCT median | as recorded | restored |" in lines
    [row, *_] = [line for line in lines if line.startswith("| xlink against sp |")]
    assert "| −10 % [" in row and "| −50 % [" in row


def test_a_difference_that_depends_on_the_model_of_the_links_is_told(tmp_path: Path) -> None:
    """Under one model xlink gains what it gains under the first one, on different levels; under the other nothing."""
    pairs = [f"p{number}" for number in range(16)]
    gains = {"default": dict.fromkeys(pairs, 0.5), "same": dict.fromkeys(pairs, 0.5), "none": dict.fromkeys(pairs, 1.0)}
    columns = {head: plays(tmp_path / head, ("sp", "xlink"), factors, seeds=2) for head, factors in gains.items()}
    del columns["same"][-2:], columns["default"][:2]  # places that one of two models alone has are left out
    median, p95 = markdown_of(link_models.dependence(columns)).split("\n\n")
    assert median.splitlines()[0] == "| RCT median, to default | same | none |"
    for table in (median, p95):
        [row] = [line for line in table.splitlines() if line.startswith("| xlink against sp |")]
        same, none = row.strip("| ").split(" | ")[1:]
        assert same == "±0 % [±0, ±0] alike"
        assert none.startswith("+100 % [+") and none.endswith("] higher")


def test_a_ratio_that_plays_cut_short_leave_open_is_not_compared(tmp_path: Path) -> None:
    cut = [
        replace(run, record=run.record | {"outcome": "time_limit"}, chunks=[]) if run.label == "sp" else run
        for run in plays(tmp_path / "cut", ("sp", "xlink"), {f"p{number}": 0.5 for number in range(8)}, seeds=2)
    ]
    whole = plays(tmp_path / "whole", ("sp", "xlink"), {f"p{number}": 0.5 for number in range(8)}, seeds=2)
    [row, *_] = [
        line
        for line in markdown_of(link_models.dependence({"default": whole, "cut": cut})).splitlines()
        if line.startswith("| xlink against sp |")
    ]
    assert row == "| xlink against sp | – |"


def test_models_of_the_links_are_columns_of_one_study(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(EXPERIMENT.replace("dark, subway-1", "subway-1"))
    models = "models={default: {}, lossy: {links: {all: {loss: 0.1}}}}"
    own = f"modelled={tmp_path / 'own.yaml'}", "experiments=[]", models
    sets = [word for change in own for word in ("--set", change)]
    done = good(in_process.railyard("study", "evaluation", "--size", "small", *sets, *out(tmp_path)))
    assert "| RCT median | default | lossy |" in done.stdout
    levels = {
        line.split(" | ")[0].removeprefix("| "): float(line.split(" | ")[2].removeprefix("≥ ").split(" ")[0])
        for line in done.stdout.splitlines()
        if line.startswith(("| default | sp", "| lossy | sp"))
    }
    assert levels["lossy"] > 1.5 * levels["default"], "the loss was played"
