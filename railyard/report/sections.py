"""The sections of the page. A section is one function and one template; a new kind of experiment adds its own here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import plotly.graph_objects as go

from railyard.base.intervals import TOO_SMALL
from railyard.experiment.model import SCHEME_DESCRIPTION
from railyard.report import figures
from railyard.results import differences
from railyard.results.aggregate import Cell, cells
from railyard.results.findings import Compared, Findings, compared, find, over_all, replayed_traces, shown, shown_text
from railyard.results.oracle import PAYLOAD_BYTES
from railyard.results.records import Run
from railyard.results.tables import aligned, columns_of, megabytes, percent, same_in_words, seconds
from railyard.run import fidelity

SERIES_PADDING_S = 0.5


@dataclass
class Figure:
    """A figure of the page: its number, its caption, and the data that the page's script draws. `alt`: what it shows,
    for those who do not see it."""

    number: int
    caption: str
    json: str
    height: int
    alt: str


def embedded(text: str) -> str:
    """JSON as the content of a script element. Without `<` nothing in it can end the element (`</script`), nor keep its
    end from being seen (`<!--<script`); in JSON that letter stands in strings alone."""
    return text.replace("<", "\\u003c")


@dataclass
class Context:
    """All that a section may draw on."""

    campaign: dict[str, Any]
    runs: list[Run]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    # The campaign's folder, and the page's where that is another: runs that have a page of their own are linked.
    folder: Path | None = None
    page_folder: Path | None = None

    @property
    def experiment(self) -> dict[str, Any]:
        experiment: dict[str, Any] = self.campaign["experiment"]
        return experiment

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        return cells(self.runs, self.campaign.get("not_run", []))

    @cached_property
    def findings(self) -> Findings | None:
        rule = self.experiment.get("start_offset_ms")
        return find(self.runs, self.campaign.get("not_run", []), rule, self.compared)

    @cached_property
    def compared(self) -> Compared:
        return compared(self.runs)

    def replay_of(self, run: Run) -> str | None:
        """The address of the run's own page, as seen from this one; none where it has no page."""
        if self.folder is None or not (self.folder / "runs" / run.run_id / "replay.html").is_file():
            return None
        place = Path(os.path.relpath(self.folder, self.page_folder or self.folder))
        return quote((place / "runs" / run.run_id / "replay.html").as_posix())

    def figure(self, drawn: go.Figure, caption: str) -> Figure:
        return Figure(next(self.numbers), caption, embedded(drawn.to_json()), int(drawn.layout.height), caption)


@dataclass
class Section:
    anchor: str
    title: str
    template: str
    data: dict[str, Any]


def _change(cell: Cell, base: Cell | None, q: float) -> str:
    """The change against single path on the primary path, where both are exact."""
    mine, theirs = cell.rct(q), base.rct(q) if base else None
    if cell is base or mine is None or theirs is None or mine.at_least or theirs.at_least or theirs.value == 0:
        return ""
    return f"{(mine.value / theirs.value - 1) * 100:+.0f} %"


@dataclass(frozen=True)
class _Column:
    """One column of a pair in the abstract's table: its text under each label; best: which of them are in bold."""

    name: str
    texts: dict[str, str]
    best: frozenset[str] = frozenset()

    @property
    def equal(self) -> bool:
        texts = set(self.texts.values())
        return len(self.texts) > 1 and (len(texts) == 1 or texts - {"–"} == {TOO_SMALL})


def _rct_column(name: str, q: float, row: list[Cell]) -> _Column:
    """A quantile under each scheme, "n too small" where the scheme's chunks do not carry it. In bold: the smallest,
    unless that is a lower bound."""
    values = {cell.label: cell.rct(q) if q == 0.5 else shown(cell, q) for cell in row if cell.runs}
    known = {label: value for label, value in values.items() if value is not None}
    least = min((value.value for value in known.values()), default=0.0)
    first = [label for label, value in known.items() if value.value == least]
    best = first if not any(known[label].at_least for label in first) else []
    texts = {cell.label: seconds(cell.rct(q)) if q == 0.5 else shown_text(cell, q) for cell in row if cell.runs}
    return _Column(name, texts, frozenset(best))


def _abstract_columns(row: list[Cell]) -> list[_Column]:
    base = next((cell for cell in row if cell.label == "sp"), None)
    measured = [cell for cell in row if cell.runs]
    change = _Column("Δ", {cell.label: _change(cell, base, 0.5) for cell in measured})
    tail = _rct_column("p95", 0.95, row)
    return [
        _rct_column("median", 0.5, row),
        *([change] if any(change.texts.values()) else []),
        *([tail] if set(tail.texts.values()) - {"–"} else []),
        _rct_column("max", 1.0, row),
        _Column("rebuffer", {cell.label: percent(cell.rebuffer_rate) for cell in measured}),
    ]


def abstract(context: Context) -> Iterator[Section]:
    """What was compared, and the answer in one table. Of a column that is equal in all rows a note tells the value; the
    median stays."""
    every = {pair: _abstract_columns(row) for pair, row in context.cells.items()}
    columns = {
        pair: [column for column in of_pair if column.name == "median" or not column.equal]
        for pair, of_pair in every.items()
    }
    same = [
        f"{pair}: {column.name} {next((text for text in column.texts.values() if text != '–'), '–')}"
        for pair, of_pair in every.items()
        for column in of_pair
        if column not in columns[pair] and column.name != "Δ"
    ]
    absent = {
        (pair, cell.label): cell.not_run or "void"
        for pair, row in context.cells.items()
        for cell in row
        if not cell.runs
    }
    data = {
        "labels": list(dict.fromkeys(cell.label for row in context.cells.values() for cell in row)),
        "columns": columns,
        "absent": absent,
        "same": "; ".join(same),
        "changed": any(column.name == "Δ" for of_pair in columns.values() for column in of_pair),
        "void": [run for run in context.runs if run.void],
        "cut": [run for run in context.runs if not run.void and run.outcome != "complete"],
    }
    yield Section("abstract", "Abstract", "abstract.html.j2", data)


def pairs(context: Context) -> Iterator[Section]:
    """One section per pair: traces, completion times, start, interruptions, cost, buffer."""
    for index, (pair, row) in enumerate(context.cells.items(), start=1):
        measured = [run for cell in row for run in cell.runs]
        runs = measured or [run for cell in row for run in cell.void_runs]
        first = runs[0]
        duration_s = max((run.buffer_s[-1][0] for run in measured if run.buffer_s), default=1.0) + SERIES_PADDING_S
        seed = first.seed
        traces = replayed_traces(first)
        drawn: dict[str, Figure] = {}
        if traces:
            drawn["capacity"] = context.figure(
                figures.capacity(first, traces, duration_s),
                f"Capacity of the emulated links of {pair} during the runs of seed {seed}, in bins of "
                f"{figures.CAPACITY_BIN_MS} ms, from {first.config['start_offset_ms'] / 1000:.1f} s into the traces. "
                "Filled: downlink; dotted: uplink, where it has a trace of its own.",
            )
        if measured:
            drawn |= _pair_figures(context, pair, row, seed, duration_s)
        told, same = columns_of(row)
        pages = [(run, context.replay_of(run)) for cell in row for run in (*cell.runs, *cell.void_runs)]
        data = {
            "pair": pair,
            "caveat": first.config.get("pair_caveat", ""),
            "row": row,
            "columns": told,
            "same": same_in_words(same),
            "paths": _described_paths(runs),
            "figures": drawn,
            "has_traces": bool(traces),
            "replays": [(run, page) for run, page in pages if page is not None],
        }
        yield Section(f"pair-{index}", pair, "pair.html.j2", data)


def _described_paths(runs: list[Run]) -> list[str]:
    # A single path scheme runs on each path in turn; the others say which one is the primary path.
    chosen = next((run for run in runs if run.config["scheme"] not in ("sp", "tcp")), runs[0]).config
    return [
        f"{path['name']} ({path['technology']}{', primary' if path['name'] == chosen['primary'] else ''}): "
        f"base RTT {path['delay_ms'] * 2:g} ms, queue {path['queue']}"
        + (f", loss {path['loss']:g}" if path["loss"] else "")
        + "".join(f", {name} {value}" for name, value in path.get("settings", {}).items())
        + "".join(f", {name} {Path(file).name}" for name, file in path.get("delay_traces", {}).items())
        for path in chosen["paths"]
    ]


def _pair_figures(context: Context, pair: str, row: list[Cell], seed: int, duration_s: float) -> dict[str, Figure]:
    figure = context.figure
    return {
        "ranges": figure(figures.rct_ranges(row), f"Request completion time on {pair}: {figures.quantile_words(row)}."),
        "cdf": figure(
            figures.rct_cdf(row),
            f"Distribution of the request completion time on {pair}, over all chunks of all runs. "
            "A curve that ends below 100 % left requested chunks unfinished.",
        ),
        "first_frame": figure(
            figures.bars(
                row, lambda cell: cell.first_frame.value if cell.first_frame else None, "first-frame latency, s", ".2f"
            ),
            "First-frame latency, median over the runs. A run that never showed a frame counts with its whole length.",
        ),
        "rebuffer": figure(
            figures.bars(row, lambda cell: cell.rebuffer_rate, "rebuffer rate", ".1%"),
            "Rebuffer rate: time stalled / time played. Start-up is not counted.",
        ),
        "redundancy": figure(
            figures.bars(row, lambda cell: cell.redundancy, "redundancy", ".1%"),
            "Redundancy: re-injected bytes / other stream bytes sent. The kernel's MPTCP does not tell it (–).",
        ),
        "efficiency": figure(
            figures.bars(row, lambda cell: cell.efficiency.value if cell.efficiency else None, "efficiency", ".0%"),
            "Efficiency: oracle completion time / RCT, median over the chunks. 100 % is what the traces, delays and "
            "headers of all paths allow.",
        ),
        "bytes": figure(figures.path_bytes(row), "Bytes that each path delivered downlink, headers included."),
        "buffer": figure(
            figures.buffer_levels(row, seed, duration_s),
            f"Buffer level in seconds of video, seed {seed}. Shaded: the player was stalled.",
        ),
    }


def on_time(context: Context) -> Iterator[Section]:
    """Was the emulator on time, run by run?"""
    limits = {
        "p99_ms": fidelity.MAX_P99_LATENESS_US / 1000,
        "share_late": fidelity.MAX_SHARE_OVER_1MS,
        "share_missed": fidelity.MAX_SHARE_MISSED,
        "missed_floor": fidelity.MISSED_FLOOR,
        "device_drops": fidelity.MAX_DEVICE_DROPS,
        "event_ms": fidelity.MAX_EVENT_LATENESS_US / 1000,
        "tries": fidelity.MAX_TRIES,
    }
    yield Section("fidelity", "Fidelity", "fidelity.html.j2", {"limits": limits})


def provenance(context: Context) -> Iterator[Section]:
    """Where the figures come from, and how to make them again."""
    records = [run.record for run in context.runs]

    def distinct(value: Callable[[dict[str, Any]], Any]) -> list[Any]:
        found: list[Any] = []
        for record in records:
            if value(record) not in found:
                found.append(value(record))
        return found

    traces = sorted(
        {
            (config["pair"], path["name"], direction, path[direction], path[f"{direction}_sha256"])
            for config in (run.config for run in context.runs)
            for path in config["paths"]
            for direction in ("up", "down")
        }
    )
    data = {
        "revisions": distinct(lambda record: record["git"]),
        "kernels": distinct(lambda record: record["kernel"]),
        "cpus": distinct(lambda record: (record["cpu"]["model"], record["cpu"]["cores"])),
        "versions": distinct(lambda record: record["versions"]),
        "sysctls": _by_value([(run.config["scheme"], run.record["sysctls"]) for run in context.runs]),
        "programs": distinct(lambda record: record["config"]["programs_sha256"]),
        "traces": traces,
        "buffers": context.experiment["buffers"],
        "joins": [run for run in context.runs if run.config["scheme"] == "mptcp"],
    }
    yield Section("provenance", "Provenance", "provenance.html.j2", data)


def _by_value(settings: list[tuple[str, dict[str, str]]]) -> dict[str, dict[str, list[str]]]:
    """Per sysctl, per value: the schemes that ran under it."""
    table: dict[str, dict[str, list[str]]] = {}
    for scheme, values in settings:
        for name, value in values.items():
            schemes = table.setdefault(name, {}).setdefault(value, [])
            if scheme not in schemes:
                schemes.append(scheme)
    return table


def definitions(context: Context) -> Iterator[Section]:
    """What exactly each figure means."""
    schemes = {run.label: run.config["scheme"] for run in context.runs}
    described = [(label, SCHEME_DESCRIPTION[scheme]) for label, scheme in schemes.items()]
    data = {"schemes": described, "payload_bytes": PAYLOAD_BYTES}
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
        found = over_all(context.compared, usual)
        layout = differences.layout_of(differences.sides(runs, *played[0])[0])
        data |= {
            "rows": [rows[names] for names in played],
            "figures": differences.COMPARED,
            "established": differences.sentences(found),
            "plays": layout.plays,
            "windows": layout.windows,
            "beyond": layout.by_cluster,
        }
    yield Section("differences", "Differences between schemes", "differences.html.j2", data)


SECTIONS: list[Callable[[Context], Iterator[Section]]] = [
    abstract,
    established,
    pairs,
    definitions,
    on_time,
    provenance,
]


FILTERS: dict[str, Callable[..., Any]] = {"seconds": seconds, "percent": percent, "megabytes": megabytes}
FILTERS["aligned"] = aligned
