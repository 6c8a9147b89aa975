"""The sections of the page. A section is one function and one template; a new kind of experiment adds its own here."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import plotly.graph_objects as go

from railyard.base.lists import distinct, grouped
from railyard.base.units import size_in_words
from railyard.base.words import counted
from railyard.experiment.arenas import is_exact
from railyard.experiment.model import SCHEME_DESCRIPTION
from railyard.figures.figure import Figure
from railyard.figures.rows import (
    COMPARED,
    EFFICIENCY,
    FIGURES,
    FIRST_FRAME,
    RCT_MAX,
    RCT_MEDIAN,
    RCT_P95,
    RCT_P99,
)
from railyard.report import figures
from railyard.report.response import response_figures
from railyard.results import differences, resolution, shortage
from railyard.results.aggregate import Cell, cells, pooled
from railyard.results.causes import causes
from railyard.results.findings import Compared, Findings, compared, find, over_all, replayed_traces
from railyard.results.oracle import PAYLOAD_BYTES
from railyard.results.records import Run
from railyard.results.shortage import Shortage
from railyard.results.summary import Answer, fallback_words, read_answer
from railyard.results.tables import (
    TextColumn,
    aligned,
    columns_of,
    marks_in_words,
    megabytes,
    percent,
    same_in_words,
    seconds,
)
from railyard.results.twins import all_agreements, load_twins
from railyard.run import fidelity, lateness
from railyard.stats.bootstrap import FEWEST
from railyard.stats.intervals import TOO_SMALL, Interval
from railyard.traces.settings import members_of_record, of_way

SERIES_PADDING_S = 0.5
BAR = "bar-"  # prefix of the name of a figure that is shown as bars
QUANTILES = {"median": RCT_MEDIAN, "p95": RCT_P95, "p99": RCT_P99}


@dataclass
class Drawing:
    """A figure of the page: its number, its caption, and the data that the page's script draws. `alt`: its
    description for those who cannot see it."""

    number: int
    caption: str
    json: str
    height: int
    alt: str


def embedded(text: str) -> str:
    """JSON as the content of a script element. `<`, which JSON has only in strings, is escaped: so nothing can end the
    element (`</script`) or hide its end (`<!--<script`)."""
    return text.replace("<", "\\u003c")


@dataclass
class Context:
    """The data for sections."""

    campaign: dict[str, Any]
    runs: list[Run]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    # The campaign's folder, and the page's if that is another one, for links to pages of runs.
    folder: Path | None = None
    page_folder: Path | None = None
    _intervals: dict[tuple[tuple[str, ...], str], Interval | None] = field(default_factory=dict)
    _windows: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def experiment(self) -> dict[str, Any]:
        experiment: dict[str, Any] = self.campaign["experiment"]
        return experiment

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        return cells(self.runs, self.campaign.get("not_run", []), self.twins)

    @cached_property
    def twins(self) -> dict[str, list[Run]] | None:
        """The twins in virtual time of runs on the wall clock, by name. None: they were not asked for, or the campaign
        is in virtual time itself."""
        asked = self.experiment.get("twins") and any(not is_exact(run.config["arena"]) for run in self.runs)
        return load_twins(self.folder) if self.folder is not None and asked else None

    @cached_property
    def answer(self) -> tuple[str, Answer] | None:
        """The page's address and the answer of the campaign in `answer_of`. None: it is not in the same results."""
        name = self.experiment.get("answer_of")
        if not name or self.folder is None:
            return None
        other = (self.folder.resolve().parent / name).resolve()
        answer = read_answer(other)
        page = (self.page_folder or self.folder).resolve()
        return (quote(Path(os.path.relpath(other / "report.html", page)).as_posix()), answer) if answer else None

    @property
    def void_runs(self) -> list[Run]:
        return [run for run in self.runs if run.void]

    @cached_property
    def findings(self) -> Findings | None:
        rule = self.experiment.get("start_offset_ms")
        return find(self.runs, self.campaign.get("not_run", []), rule, self.compared)

    @cached_property
    def compared(self) -> Compared:
        return compared(self.runs)

    def interval(self, row: list[Cell], cell: Cell, figure: Figure) -> Interval | None:
        """The interval of a figure of the cell; None if no scheme of the row has enough plays for one. Tables and
        figures ask for the same intervals, so each is computed once."""
        if not any(one.runs and self._windows_of(one) >= FEWEST for one in row):
            return None
        key = (*(run.run_id for run in cell.runs),)
        if (key, figure.name) not in self._intervals:
            self._intervals[key, figure.name] = differences.level_of(cell.runs, figure)
        return self._intervals[key, figure.name]

    def _windows_of(self, cell: Cell) -> int:
        """The number of stretches of trace that do not overlap."""
        key = (*(run.run_id for run in cell.runs),)
        if key not in self._windows:
            self._windows[key] = differences.layout_of(cell.runs).windows
        return self._windows[key]

    def replay_of(self, run: Run) -> str | None:
        """The address of the run's page, relative to this one. None: it has no page."""
        if self.folder is None or not (self.folder / "runs" / run.run_id / "replay.html").is_file():
            return None
        place = Path(os.path.relpath(self.folder, self.page_folder or self.folder))
        return quote((place / "runs" / run.run_id / "replay.html").as_posix())

    def figure(self, drawn: go.Figure, caption: str) -> Drawing:
        return Drawing(next(self.numbers), caption, embedded(drawn.to_json()), int(drawn.layout.height), caption)


@dataclass
class Section:
    anchor: str
    title: str
    template: str
    data: dict[str, Any]


IN_BOLD = (RCT_MEDIAN, RCT_P95, RCT_MAX)
AT_MOST = 2  # pairs side by side in the abstract's table; with more, the table is over all of them
SMALL_COLUMNS = ("RCT s median", "RCT s p95", "RCT s max", "rebuffer rate")


@dataclass(frozen=True)
class _Shown:
    """One column of a table: its text under each label, the interval below it, and which of them are in bold."""

    name: str
    texts: dict[str, str]
    ends: dict[str, str]
    best: frozenset[str] = frozenset()
    number: bool = True
    head: tuple[str, str] = ("", "")
    short: Shortage | None = None
    """Why a value or interval is "n too small", for the scheme that lacks the most."""
    late: dict[str, str] = field(default_factory=dict)
    """The most that lateness can have added to the value. Empty in virtual time."""

    @property
    def without_interval(self) -> bool:
        """Whether the column would have intervals if there were enough plays."""
        return any(self.ends.values()) and set(self.ends.values()) <= {"", f"[{TOO_SMALL}]"}


def _ends(context: Context, row: list[Cell], cell: Cell, figure: Figure | None) -> str:
    """The interval of a figure. Empty if there are too few plays for any."""
    bounds = context.interval(row, cell, figure) if figure and figure.has_interval else None
    if figure is None or bounds is None:
        return ""
    scale, form = (100.0, ".1f") if figure.unit == "%" else (1.0, ".3f")
    return f"[{bounds.mapped(lambda value: scale * value).ends(lambda end: format(end, form))}]"


def _late(cell: Cell, figure: Figure | None) -> str:
    """ "late ≤ 0.005": the most, in s, that lateness can have added to a quantile of the RCT or to the first frame."""
    first = [run.first_frame_late_s for run in cell.runs] if figure is FIRST_FRAME else []
    known = max((late_s for late_s in first if late_s is not None), default=None)
    is_rct = figure is RCT_MAX or figure in QUANTILES.values()
    bound_s = cell.late_bound_s(figure) if figure and is_rct else known if None not in first else None
    return f"late ≤ {bound_s:.3f}" if bound_s else ""


def _best(row: list[Cell], figure: Figure | None) -> frozenset[str]:
    """The labels with the smallest value of a quantile of the RCT, unless that value is a lower bound. Only schemes
    that ran on the largest number of pairs are compared."""
    values = {cell.label: figure.shown(cell.runs) for cell in row if cell.runs} if figure in IN_BOLD else {}
    pairs = {cell.label: len({run.pair for run in cell.runs}) for cell in row}
    known = {label: value for label, value in values.items() if value and pairs[label] == max(pairs.values())}
    least = min((value.value for value in known.values()), default=0.0)
    first = [label for label, value in known.items() if value.value == least]
    return frozenset(first if len(row) > 1 and not any(known[label].at_least for label in first) else [])


def _shown_columns(context: Context, row: list[Cell], keep: str = "") -> tuple[list[_Shown], list[TextColumn]]:
    """The columns that tell schemes apart with their intervals, and those that are equal in all rows. `keep`: a column
    that is always shown."""
    shown_columns, same = columns_of(row)
    row = [cell.measured for cell in row]
    shown_columns = [*(column for column in same if column.name == keep), *shown_columns]
    same = [column for column in same if column.name != keep]
    return [
        _Shown(
            column.name,
            {cell.label: text for cell, text in zip(row, column.texts, strict=True)},
            {cell.label: _ends(context, row, cell, column.figure) for cell in row},
            _best(row, column.figure),
            column.number,
            column.head,
            _short(context, row, column),
            {cell.label: _late(cell, column.figure) for cell in row},
        )
        for column in shown_columns
    ], same


def _short(context: Context, row: list[Cell], column: TextColumn) -> Shortage | None:
    shortages = [column.short] if TOO_SMALL in column.texts else []
    if column.figure and column.figure.has_interval:
        levels = [(cell, context.interval(row, cell, column.figure)) for cell in row]
        shortages += [differences.shortage_of(cell.runs, column.figure, level) for cell, level in levels]
    return shortage.worst(shortages)


def _pooled(context: Context) -> list[Cell]:
    """Each scheme over all pairs on which it ran."""
    ran = grouped((cell.label, cell) for row in context.cells.values() for cell in row if cell.runs)
    return [replace(pooled("all", label, row), void_runs=[]) for label, row in ran.items()]


def answered(context: Context) -> Iterator[Section]:
    """The answer of another, larger campaign to the same questions."""
    if context.answer is not None:
        address, answer = context.answer
        word_columns = ("scheme", "pair", "virtual time", "emulator")
        data = {"address": address, "answer": answer, "words": word_columns}
        yield Section("answer", "Answer", "answer.html.j2", data)


def abstract(context: Context) -> Iterator[Section]:
    """What was compared, and the answer in one table. A column that is equal in all rows becomes a note with its value,
    except for the median."""
    many = len(context.cells) > AT_MOST
    rows = {f"over all {len(context.cells)} pairs": _pooled(context)} if many else context.cells
    columns: dict[str, list[_Shown]] = {}
    same: list[str] = []
    short: list[tuple[str, Shortage | None]] = []  # of figures without a value or an interval, by name
    for pair, row in rows.items():
        measured = [cell for cell in row if cell.shown.runs]
        varying, equal = _shown_columns(context, measured, keep=SMALL_COLUMNS[0])
        wanted = (*SMALL_COLUMNS, "first frame s", "redundancy") if many else SMALL_COLUMNS
        shown_here = [column for column in varying if column.name in wanted]
        short += [(column.name.replace("RCT s", "RCT"), column.short) for column in shown_here]
        columns[pair] = [replace(column, ends={}) if column.without_interval else column for column in shown_here]
        shared = same_in_words([column for column in equal if column.name in SMALL_COLUMNS])
        same += [f"{pair}: {shared}"] if shared else []
    absent = {
        (pair, cell.label): cell.not_run or ("a program failed" if cell.faulty else "void")
        for pair, row in [*context.cells.items(), *rows.items()]
        for cell in row
        if not cell.shown.runs
    }
    measured_runs = [run for row in rows.values() for cell in row for run in cell.measured.runs]
    valid = [run for run in context.runs if not run.void]
    data = {
        "labels": list(dict.fromkeys(cell.label for row in context.cells.values() for cell in row)),
        "columns": columns,
        "absent": absent,
        "same": "; ".join(same),
        "many": many,
        "plays": len(measured_runs),
        "short": shortage.note(shortage.gather(short)),
        "with_ends": any(any(column.ends.values()) for of_pair in columns.values() for column in of_pair),
        "resolution": resolution.note(context.runs),
        "void": _void(context.runs),
        "all_void": all(run.void for run in context.runs),
        "nothing": not any(cell.shown.runs for row in rows.values() for cell in row),
        "marks": marks_in_words([cell for row in rows.values() for cell in row]),
        "broken": [f"{run.run_id}: {run.outcome}: {run.record['message']}" for run in valid if run.is_fault],
        "fallen": fallback_words(valid),
        "cut": _cut([run for run in valid if run.outcome != "complete" and not run.is_fault]),
    }
    yield Section("abstract", "Abstract", "abstract.html.j2", data)


def _void(runs: Sequence[Run]) -> dict[str, dict[tuple[str, str], list[int]]]:
    """The seeds of void runs by cause, then by pair and scheme. The table of fidelity has what was late in each."""
    of_cause = causes(runs).items()
    return {cause: grouped(((run.pair, run.label), run.seed) for run in late) for cause, late in of_cause}


def _cut(runs: list[Run]) -> dict[tuple[str, str], dict[str, list[int]]]:
    """The seeds of runs that did not play to the end, by pair and scheme, then by outcome."""
    by_place = grouped(((run.pair, run.label), run) for run in runs)
    return {
        place: grouped((run.outcome.replace("_", " "), run.seed) for run in here) for place, here in by_place.items()
    }


def pairs(context: Context) -> Iterator[Section]:
    """One section per pair: traces, completion times, start, interruptions, cost, buffer."""
    for index, (pair, row) in enumerate(context.cells.items(), start=1):
        measured = [run for cell in row for run in cell.runs]
        runs = measured or [run for cell in row for run in cell.void_runs]
        first = runs[0]
        drawings = {one.name: context.figure(one.figure, one.caption) for one in pair_figures(context, pair, row)}
        columns, same = _shown_columns(context, row)
        pages = [(run, context.replay_of(run)) for cell in row for run in (*cell.runs, *cell.void_runs)]
        data = {
            "pair": pair,
            "caveat": first.config.get("pair_caveat", ""),
            "row": row,
            "columns": columns,
            "told": _told(context, pair),
            "same": same_in_words(same),
            "marks": marks_in_words(row),
            "short": shortage.note(shortage.gather([(column.name, column.short) for column in columns])),
            "paths": _described_paths(runs),
            "figures": drawings,
            "bars": [drawing for name, drawing in drawings.items() if name.startswith(BAR)],
            "has_traces": "capacity" in drawings,
            "measured": bool(measured),
            "has_rows": any(cell.shown.runs or cell.faulty for cell in row),
            "replays": [(run, page) for run, page in pages if page is not None],
        }
        yield Section(f"pair-{index}", pair, "pair.html.j2", data)


def _told(context: Context, pair: str) -> list[str]:
    """The findings for this pair, unless the abstract has them."""
    many = len(context.cells) > AT_MOST and context.findings is not None
    return context.findings.of_pair.get(pair, []) if many and context.findings else []


def _described_paths(runs: list[Run]) -> list[str]:
    # A single path scheme runs on each path in turn; the others name the primary path.
    chosen = next((run for run in runs if run.config["scheme"] not in ("sp", "tcp")), runs[0]).config
    described = grouped(
        ((path["name"], ", ".join(_described_settings(path))), run.label)
        for run in runs
        for path in run.config["paths"]
    )
    return [
        f"{path['name']} ({path['technology']}{', primary' if path['name'] == chosen['primary'] else ''}): "
        + _of_schemes({words: distinct(labels) for (name, words), labels in described.items() if name == path["name"]})
        for path in chosen["paths"]
    ]


def _of_schemes(described: dict[str, list[str]]) -> str:
    """The description of all schemes, or each description with its schemes, as parts of an exhibit may change links."""
    if len(described) == 1:
        return "".join(described)
    return "; ".join(f"{words} ({', '.join(labels)})" for words, labels in described.items())


def _described_settings(path: dict[str, Any]) -> Iterator[str]:
    """Each setting with the value that the link had. An experiment's `links` override the pair's settings."""
    settings = members_of_record(path)
    delays = [of_way(settings, way, "delay_ms", None) for way in ("up", "down")]
    files = path.get("delay_traces", {})
    if None not in delays:
        yield f"base RTT {float(delays[0]) + float(delays[1]):g} ms"
    for name, value in settings.items():
        is_of_rtt = None not in delays and name.removeprefix("up_").removeprefix("down_") == "delay_ms"
        is_replaced = {f"up_{name}", f"down_{name}"} <= settings.keys()
        if not is_of_rtt and not is_replaced and (name != "loss" or value):
            yield f"{name} {Path(files[name]).name if name in files else value}"


@dataclass(frozen=True)
class PairFigure:
    """A figure of a pair, without its number on a page."""

    name: str  # unique among those of the pair
    figure: go.Figure
    caption: str


def pair_figures(context: Context, pair: str, row: list[Cell]) -> Iterator[PairFigure]:
    """The figures of a pair, in the order of the page."""
    row = figures.named_plainly([cell.measured for cell in row])
    measured = [run for cell in row for run in cell.runs]
    runs = measured or [run for run in context.runs if run.pair == pair]
    duration_s = max((run.buffer_s[-1][0] for run in runs if run.buffer_s), default=1.0) + SERIES_PADDING_S
    seed = runs[0].seed
    if traces := replayed_traces(runs[0]):
        yield PairFigure(
            "capacity",
            figures.capacity(runs[0], traces, duration_s),
            f"Capacity of the emulated links of {pair} during the runs of seed {seed}, in bins of "
            f"{figures.CAPACITY_BIN_MS} ms, from {runs[0].config['start_offset_ms'] / 1000:.1f} s into the traces. "
            "Filled: downlink; dotted: uplink, where it has a trace of its own.",
        )
    if not measured:
        return
    quantiles = {(cell.label, word): context.interval(row, cell, of) for cell in row for word, of in QUANTILES.items()}
    yield PairFigure(
        "ranges",
        figures.rct_ranges(row, quantiles),
        f"Request completion time on {pair}: {figures.quantile_words(row)}."
        + _with_intervals(list(quantiles.values())),
    )
    yield PairFigure(
        "cdf",
        figures.rct_cdf(row),
        f"Distribution of the request completion time on {pair}, over all chunks of all runs. "
        "A curve that ends below 100 % left requested chunks unfinished.",
    )
    for of in FIGURES:
        if of.bar_digits is not None and _has(row, of):
            yield _bars(context, row, of)
    yield PairFigure(
        "bytes",
        figures.path_bytes(row),
        "Bytes that each path delivered downlink, headers included, mean of these runs.",
    )
    yield PairFigure(
        "buffer",
        figures.buffer_levels(row, seed, duration_s),
        f"Buffer level in seconds of video, seed {seed}. Shaded: the player was stalled.",
    )


def _has(row: list[Cell], of: Figure) -> bool:
    """Whether the figure is shown. An efficiency is not, if it is unknown without the traces; others show an en
    dash."""
    return of is not EFFICIENCY or any(cell.point(of) for cell in row)


def _bars(context: Context, row: list[Cell], of: Figure) -> PairFigure:
    levels = [figures.Level(cell.point(of), context.interval(row, cell, of)) for cell in row]
    name, ends = of.name_in_definition, _with_intervals([one.ends for one in levels])
    drawn = figures.bars(row, levels, f"{name}, {of.unit}", of.bar_digits or 0)
    return PairFigure(f"{BAR}{of.name}", drawn, f"{name[0].upper()}{name[1:]}: {of.meaning}{ends}")


def _with_intervals(intervals: list[Interval | None]) -> str:
    return " Thin lines: 95 % intervals for these traces." if any(one and one.known for one in intervals) else ""


def on_time(context: Context) -> Iterator[Section]:
    """Whether the emulator was on time, for each run."""
    limits = {
        "added": lateness.MAX_ADDED,
        "p99_ms": fidelity.MAX_P99_LATENESS_US / 1000,
        "share_late": fidelity.MAX_SHARE_OVER_1MS,
        "share_missed": fidelity.MAX_SHARE_MISSED,
        "missed_floor": fidelity.MISSED_FLOOR,
        "device_drops": fidelity.MAX_DEVICE_DROPS,
        "event_ms": fidelity.MAX_EVENT_LATENESS_US / 1000,
        "tries": fidelity.MAX_TRIES,
    }
    apart = None if context.twins is None else all_agreements(context.runs, context.twins)
    yield Section("fidelity", "Fidelity", "fidelity.html.j2", {"limits": limits, "apart": apart})


def provenance(context: Context) -> Iterator[Section]:
    """The origin of the figures, and how to make them again."""
    records = [run.record for run in context.runs]

    traces = sorted({(run.config["pair"], *file) for run in context.runs for file in _files_of_links(run.config)})
    data = {
        "revisions": distinct(record["git"] for record in records),
        "kernels": distinct(record["kernel"] for record in records),
        "cpus": distinct((record["cpu"]["model"], record["cpu"]["cores"]) for record in records),
        "versions": distinct(record["versions"] for record in records),
        "sysctls": _by_value([(run.config["scheme"], run.record["sysctls"]) for run in context.runs]),
        "programs": distinct(record["config"]["programs_sha256"] for record in records),
        "traces": traces,
        "buffers": context.experiment["buffers"],
        "joins": [run for run in context.runs if run.config["scheme"] == "mptcp"],
    }
    yield Section("provenance", "Provenance", "provenance.html.j2", data)


def _files_of_links(config: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Of each file that the links of a run read: the link, what it is of it, its name and its SHA-256."""
    for path in config["paths"]:
        yield from ((path["name"], way, path[way], path[f"{way}_sha256"]) for way in ("up", "down"))
        files = path.get("delay_traces", {})
        yield from ((path["name"], name, file, path["delay_traces_sha256"][name]) for name, file in files.items())
    for link in config.get("bottlenecks", ()):
        files = link.get("files", {})
        yield from ((link["name"], name, file, link["files_sha256"][name]) for name, file in files.items())


def _by_value(settings: list[tuple[str, dict[str, str]]]) -> dict[str, dict[str, list[str]]]:
    """The schemes that ran under each value of each sysctl."""
    of_name = grouped((name, (value, scheme)) for scheme, values in settings for name, value in values.items())
    return {name: grouped(distinct(pairs)) for name, pairs in of_name.items()}


def definitions(context: Context) -> Iterator[Section]:
    """The definitions of the figures."""
    schemes = {run.label: run.config["scheme"] for run in context.runs}
    described = [(label, SCHEME_DESCRIPTION[scheme]) for label, scheme in schemes.items()]
    data = {"schemes": described, "payload_bytes": PAYLOAD_BYTES, "figures": [of for of in FIGURES if of.head]}
    yield Section("definitions", "Schemes and metrics", "definitions.html.j2", data)


def established(context: Context) -> Iterator[Section]:
    """Which differences between schemes are established, and which are not."""
    runs = differences.sound(context.runs)
    usual = differences.usual(runs)
    if not usual:
        return
    data: dict[str, Any] = {"rows": [], "too_small": differences.too_small(runs)}
    if not data["too_small"]:
        rows = {names: over_all(context.compared, [names]) for names in usual}
        played = [names for names, row in rows.items() if row]  # schemes that share no place have no row
        if not played:
            return
        findings_of_all = over_all(context.compared, usual)
        carried = {one.figure for one in findings_of_all if one.words != one.verdict}
        figures_carried = [figure for figure in COMPARED if figure in carried]
        layouts = [differences.layout_of(differences.sides(runs, *names)[0]) for names in played]
        layout = max(layouts, key=lambda one: one.plays)
        data |= {
            "rows": [[one for one in rows[names] if one.figure in figures_carried] for names in played],
            "figures": figures_carried,
            "short": shortage.note(differences.shortages(runs, findings_of_all)),
            "established": differences.sentences(findings_of_all),
            "plays": layout.plays,
            "windows": layout.windows,
            "fewer": any(one.plays < layout.plays for one in layouts),
            "beyond": layout.by_cluster,
        }
    yield Section("differences", "Differences between schemes", "differences.html.j2", data)


def responses(context: Context) -> Iterator[Section]:
    """Figures over the parameters that the campaign varies."""
    if drawn := [context.figure(figure, caption) for _, figure, caption in response_figures(context.runs)]:
        yield Section("responses", "Response to parameters", "responses.html.j2", {"figures": drawn})


SECTIONS: list[Callable[[Context], Iterator[Section]]] = [
    answered,
    abstract,
    established,
    responses,
    pairs,
    definitions,
    on_time,
    provenance,
]


FILTERS: dict[str, Callable[..., Any]] = {"seconds": seconds, "percent": percent, "megabytes": megabytes}
FILTERS |= {"aligned": aligned, "counted": counted, "size": size_in_words}
