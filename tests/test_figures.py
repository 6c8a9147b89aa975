"""Figures: their values over plays, and that no other code computes one."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import FakeRun
from railyard.base.paths import ROOT
from railyard.figures.figure import Figure, Point, Quantile, point_of
from railyard.figures.rows import EFFICIENCY, FIGURES, REBUFFER_RATE, REDUNDANCY, REINJECTION_COST
from railyard.results.records import Chunk, load_run
from railyard.stats.bootstrap import Layout

# What only a figure may divide by, or subtract from, another quantity; and what only a figure may take a quantile of.
PARTS = {"reinjected_bytes", "given_up_bytes", "rebuffer_time_s", "rebuffer_counted_s"}
SAMPLES = {"rct_s"}
QUANTILES = {"nearest_rank", "nearest_rank_of", "quantile", "percentile", "median"}


def names_in(node: ast.AST) -> set[str]:
    """Names, attributes and keys that an expression reads."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.Attribute):
            found.add(one.attr)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.add(one.value)
    return found


def is_ratio(value: ast.AST) -> bool:
    """A ratio of two quantities of the same kind, such as one chunk's RCT in two arenas."""
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) for one in ast.walk(value))


def is_count(value: ast.AST) -> bool:
    """Whether a divisor is a constant or the number of plays. The quotient then is the same quantity, in another unit
    or per play."""
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and ast.unparse(value.func) == "len")


def made_of(body: ast.AST, parts: set[str]) -> set[str]:
    """The parts, and the variables of a function that are computed from them."""
    known = set(parts)
    while True:
        before = len(known)
        for node in ast.walk(body):
            if isinstance(node, ast.Assign) and names_in(node.value) & known and not is_ratio(node.value):
                known |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        if len(known) == before:
            return known


def formulas(text: str) -> Iterator[str]:
    """The expressions that compute a figure."""
    if not any(name in text for name in PARTS | SAMPLES):
        return
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        parts, samples = made_of(function, PARTS), made_of(function, SAMPLES)
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Sub):
                sides = [names_in(side) & parts for side in (node.left, node.right)]
                if any(sides) and not is_count(node.right):
                    yield f"{node.lineno}: {ast.unparse(node)}"
            elif isinstance(node, ast.Call) and node.args:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in QUANTILES and names_in(node.args[0]) & samples:
                    yield f"{node.lineno}: {ast.unparse(node)}"


def files() -> Iterator[Path]:
    folders = ("railyard", "studies", "bench", "scripts")
    for file in (file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))):
        if (ROOT / "railyard" / "figures") not in file.parents:
            yield file


def test_no_other_code_computes_a_figure() -> None:
    found = {str(file.relative_to(ROOT)): list(formulas(file.read_text(encoding="utf-8"))) for file in files()}
    assert not {file: lines for file, lines in found.items() if lines}


@pytest.mark.parametrize(
    "body",
    [
        "twice = sum(run.reinjected_bytes for run in runs)\n    return twice / once",
        "return sent - (run.reinjected_bytes or 0)",
        'twice = self.sums(arm, "reinjected_bytes")\n    return Sums(twice, sent - twice)',
        "return run.rebuffer_counted_s / run.play_time_s",
        'stalled = sum(row["rebuffer_time_s"] for row in rows)\n    share = stalled / played\n    return share',
        "return nearest_rank(sorted(chunk.rct_s for chunk in chunks), 0.5)",
        "values = [chunk.rct_s for chunk in run.chunks]\n    return np.percentile(values, [50, 95])",
    ],
)
def test_a_formula_is_found_wherever_it_stands(body: str) -> None:
    assert len(list(formulas(f"def of(runs):\n    {body}\n"))) == 1


def test_a_quantity_in_another_unit_is_no_formula() -> None:
    assert not list(formulas("def of(run):\n    return run.reinjected_bytes / 1e6\n"))


def test_what_is_sent_again_after_a_path_was_given_up_is_redundancy_and_no_cost_of_reinjection(tmp_path: Path) -> None:
    run = load_run(FakeRun(stream_bytes_sent=12_000_000, reinjected_bytes=1_500_000).write(tmp_path))
    run = replace(run, given_up_bytes=500_000)
    assert REDUNDANCY.text([run]) == "20.0 %", "the example of docs/reference/metrics.md"
    assert REINJECTION_COST.value([run]) == 1.5 / 10.5
    silent = replace(run, stream_bytes_sent=None, reinjected_bytes=None)
    assert REDUNDANCY.text([silent]) == "–" and REDUNDANCY.of(silent) == 0.0


def test_of_many_plays_a_ratio_is_one_of_sums(tmp_path: Path) -> None:
    runs = [
        load_run(FakeRun(seed=seed, play_time_s=played, rebuffer_time_s=1).write(tmp_path))
        for seed, played in enumerate((10, 30), start=1)
    ]
    assert REBUFFER_RATE.value(runs) == 2 / 40
    assert [REBUFFER_RATE.of(run) for run in runs] == [1 / 10, 1 / 30]


def test_a_play_that_failed_makes_the_rebuffer_rate_of_all_a_lower_bound(tmp_path: Path) -> None:
    runs = [
        load_run(FakeRun(seed=1).write(tmp_path)),
        load_run(FakeRun(seed=2, outcome="connection_lost").write(tmp_path)),
    ]
    assert not REBUFFER_RATE.text(runs[:1]).startswith("≥")
    assert REBUFFER_RATE.text(runs).startswith("≥")


def test_a_quantile_is_a_bound_if_a_bound_could_move_it() -> None:
    low, high = (1.0, False), (2.0, False)  # of each, the value is a bound
    assert point_of([low, (2.0, True)], 1) == Point(2.0, at_least=True)
    assert point_of([(1.0, True), high], 0.5) == Point(1.0)
    assert point_of([low, (2.0, True)], 1, upper=True) == Point(2.0)
    assert point_of([(1.0, True), high], 0.5, upper=True) == Point(1.0, at_most=True)
    assert point_of([high, (3.0, True)], 1, upper=True) == Point(3.0)
    assert point_of([(1.0, True), high], 1, upper=True) == Point(2.0, at_most=True)
    assert point_of([high, (2.03, True)], 0.5) == Point(2.0)  # it moves by 1.5 %
    assert point_of([high, (2.05, True)], 0.5) == Point(2.0, at_least=True)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("count", [20, 21])
def test_a_quantile_its_interval_and_its_difference_have_the_same_value_and_sign(
    tmp_path: Path, upper: bool, count: int
) -> None:
    """Plays have the values 1, 2, …. One of them is a bound, on the side from which it can move the median."""
    run = load_run(FakeRun().write(tmp_path))
    censored = count - 1 if upper else 0
    values = [(float(1 + number), number != censored) for number in range(count)]
    figure = Figure("unit", "unit", "%", Quantile(lambda play: [values[play.chunks[0].index]], 0.5, upper=upper))
    runs = [replace(run, chunks=[replace(run.chunks[0], index=number)]) for number in range(count)]
    layout = Layout.of_independent(count)
    point, level = figure.point(runs), figure.level(runs, layout)
    assert point is not None and level is not None
    assert (level.value, level.at_least, level.at_most) == (point.value, point.at_least, point.at_most)
    assert (point.value, point.at_least, point.at_most) == ((count + 1) // 2, not upper, upper)
    lows, highs = figure.bounds(runs, layout)
    assert (lows[0], highs[0]) == (point.value - upper, point.value + (not upper)) and (lows <= highs).all()


def test_the_efficiency_of_requests_that_never_completed_is_an_upper_bound(tmp_path: Path) -> None:
    waited = Chunk(0, 0.0, 9.0, completed=False, bytes=1, oracle_s=1.0)
    runs = [replace(load_run(FakeRun(seed=seed).write(tmp_path)), chunks=[waited]) for seed in range(6)]
    level = EFFICIENCY.level(runs, Layout.of_independent(6))
    assert level is not None and level.text().startswith("≤ 0.11 [")


def test_the_interval_of_a_share_that_is_bounded_above_is_that_of_what_lacks_to_one(tmp_path: Path) -> None:
    """The 40th and the 61st of a hundred independent values enclose the median (tests/test_intervals.py)."""
    run = load_run(FakeRun().write(tmp_path))
    runs = [replace(run, chunks=[replace(run.chunks[0], rct_s=1.0, oracle_s=k / 100)]) for k in range(1, 101)]
    level = EFFICIENCY.level(runs, Layout.of_independent(100))
    assert level is not None and (level.low, level.high) == (0.40, 0.61) and level.value == 0.5
    unknown = [replace(run, chunks=[replace(run.chunks[0], oracle_s=None)]), *runs]
    assert EFFICIENCY.text(unknown) == "–" and EFFICIENCY.text(runs) == "50.0 %"


def test_a_play_has_stalled_after_more_than_a_tenth_of_a_second(tmp_path: Path) -> None:
    stalled = next(figure for figure in FIGURES if figure.name == "stalled")
    runs = [
        load_run(FakeRun(seed=seed, rebuffer_time_s=time_s).write(tmp_path))
        for seed, time_s in enumerate((0.0, 0.1, 0.11, 1.0), start=1)
    ]
    assert [stalled.of(run) for run in runs] == [0, 0, 1, 1]


def test_every_figure_is_defined() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    for figure in FIGURES:
        assert figure.meaning.endswith(".") and figure.where, figure.name
