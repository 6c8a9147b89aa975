"""Figures per pair and scheme from runs, and the campaign's Parquet files. Void runs do not count in figures."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from railyard.base.errors import UserError
from railyard.base.files import check_regular, replacing
from railyard.base.jsonl import NOT_AS_WRITTEN
from railyard.experiment.arenas import is_exact
from railyard.figures.figure import Figure, Point
from railyard.figures.rows import EFFICIENCY
from railyard.results import columns
from railyard.results.records import Chunk, Run
from railyard.traces.settings import members_of_record, of_way

VIRTUAL, LATE = "°", "†"
"""Marks of values that stand in for those of a void run: the value is of its twin in virtual time; of the void run."""


@dataclass(frozen=True)
class Cell:
    """The runs of one pair under one scheme, and their sums."""

    pair: str
    label: str
    runs: list[Run]  # those that are not void
    void_runs: list[Run]
    not_run: str = ""  # why the arena could not run it; empty if it could
    stand_ins: tuple[Run, ...] = ()
    """If the cell has only void runs: their twins in virtual time, else the void runs. Tables show their values with a
    mark. Figures and comparisons do not use them."""

    @property
    def measured(self) -> "Cell":
        """The cell, without its runs if a program failed in one of them: they do not measure the scheme."""
        return replace(self, runs=[], stand_ins=()) if self.faulty else self

    @property
    def shown(self) -> "Cell":
        """The cell that a table shows: with the stand-ins if no run counts."""
        return replace(self, runs=list(self.stand_ins)) if self.stand_ins and not self.runs else self.measured

    @property
    def mark(self) -> str:
        """The mark of values of stand-ins."""
        if self.runs or not self.stand_ins:
            return ""
        return VIRTUAL if not self.stand_ins[0].void else LATE

    @property
    def chunks(self) -> list[Chunk]:
        return [chunk for run in self.runs for chunk in run.chunks]

    def point(self, figure: Figure) -> Point | None:
        return figure.point(self.runs)

    @property
    def censored(self) -> int:
        return sum(not chunk.completed for chunk in self.chunks)

    def path_bytes(self, direction: Callable[[Any], int]) -> dict[str, float]:
        """Mean bytes per run that left each path's link in one direction."""
        names = [path.name for path in self.runs[0].paths] if self.runs else []
        return {
            name: sum(direction(path) for run in self.runs for path in run.paths if path.name == name) / len(self.runs)
            for name in names
        }

    @property
    def down_bytes(self) -> dict[str, float]:
        return self.path_bytes(lambda path: path.down_bytes)

    @property
    def outcomes(self) -> str:
        """The outcomes as a table has them: 'complete', or '2 complete, 1 time limit'."""
        counts = Counter(run.outcome for run in self.runs)
        counts_text = [
            (name if total == len(self.runs) and total == 1 else f"{total} {name}").replace("_", " ")
            for name, total in counts.most_common()
        ]
        if self.void_runs:
            counts_text.append(f"{len(self.void_runs)} void")
        return ", ".join(counts_text) or self.not_run or "none"

    @property
    def all_complete(self) -> bool:
        """Whether every run played to the end and counts."""
        return bool(self.runs) and not self.void_runs and all(run.outcome == "complete" for run in self.runs)

    @property
    def faulty(self) -> bool:
        """Whether a program failed in one of the runs. The cell's figures then do not measure the scheme."""
        return any(run.is_fault for run in self.runs)

    @property
    def lateness_p99_us(self) -> float:
        """The worst p99 lateness of any link, over the runs."""
        runs = self.runs or self.void_runs
        return max((run.record["fidelity"]["lateness_p99_us"] for run in runs), default=0.0)

    @property
    def late_share(self) -> float | None:
        """The most that lateness can have added to a figure of one of the runs, as a share. None: unknown."""
        known = [run.late_share for run in self.runs or self.void_runs]
        return None if not known or None in known else max(share for share in known if share is not None)

    def late_bound_s(self, figure: Figure) -> float | None:
        """The most that lateness can have added to a quantile of the RCT, in seconds. None: not recorded."""
        if not self.chunks or any(chunk.late_bound_s is None for chunk in self.chunks):
            return None
        if not any(chunk.late_bound_s for chunk in self.chunks):
            return 0.0
        on_time = [replace(run, chunks=[chunk.on_time for chunk in run.chunks]) for run in self.runs]
        return figure.value(self.runs) - figure.value(on_time)

    @property
    def fidelity(self) -> str:
        if self.not_run and not self.runs and not self.void_runs:
            return "–"
        if self.runs and all(is_exact(run.config["arena"]) for run in self.runs):
            return "exact"
        word = "ok" if self.runs else "void"
        if self.late_share is None:
            return f"{word}, p99 {self.lateness_p99_us / 1000:.2f} ms"
        return f"{word}, late ≤ {self.late_share * 100:.1f} %"


def pooled(pair: str, label: str, row: Sequence[Cell]) -> Cell:
    """The runs of a scheme over all pairs as one cell. Pairs on which a program failed are left out, unless there are
    no others."""
    runs = [run for cell in row if not cell.faulty for run in cell.runs] or [run for cell in row for run in cell.runs]
    stand_ins = () if runs else tuple(run for cell in row for run in cell.stand_ins)
    return Cell(pair, label, runs, [run for cell in row for run in cell.void_runs], row[0].not_run, stand_ins)


def _stand_ins(cell: Cell, twins: Mapping[str, Sequence[Run]]) -> tuple[Run, ...]:
    twin_runs = tuple(twins[run.run_id][0] for run in cell.void_runs if run.run_id in twins)
    return () if cell.runs else twin_runs or tuple(run for run in cell.void_runs if run.chunks)


def cells(
    runs: Sequence[Run],
    not_run: Sequence[dict[str, str]] = (),
    twins: Mapping[str, Sequence[Run]] | None = None,
) -> dict[str, list[Cell]]:
    """The cells of each pair: one per scheme, then those that were not run. Pairs and schemes are in order of
    appearance. `twins`: the runs in virtual time, by the name of the run. If given, cells that have only void runs have
    stand-ins."""
    table: dict[str, list[Cell]] = {}
    for run in runs:
        row = table.setdefault(run.pair, [])
        cell = next((cell for cell in row if cell.label == run.label), None)
        if cell is None:
            cell = Cell(run.pair, run.label, [], [])
            row.append(cell)
        (cell.void_runs if run.void else cell.runs).append(run)
    if twins is not None:
        table = {
            pair: [replace(cell, stand_ins=_stand_ins(cell, twins)) for cell in row] for pair, row in table.items()
        }
    for absent in not_run:
        if absent["pair"] in table and all(cell.label != absent["label"] for cell in table[absent["pair"]]):
            table[absent["pair"]].append(Cell(absent["pair"], absent["label"], [], [], absent["reason"]))
    return table


def _run_row(run: Run) -> dict[str, Any]:
    record, config = run.record, run.config
    fidelity, player = record["fidelity"], config.get("player", {})
    efficiency = EFFICIENCY.point([run])
    own = {column.name: getattr(run, column.name, None) for column in columns.RUNS.columns}
    named = ("experiment", "arena", "scheme", "primary", "start_offset_ms", "congestion")
    return (
        own
        | {name: config.get(name) for name in named}
        | {
            "message": record["message"],
            "tries": len(record["tries"]),
            "efficiency": efficiency.value if efficiency else None,
            "chunks_requested": sum(chunk.requested for chunk in run.chunks),
            "chunks_completed": sum(chunk.completed for chunk in run.chunks),
            "lateness_p99_us": fidelity["lateness_p99_us"],
            "lateness_max_us": fidelity["lateness_max_us"],
            "wall_s": record["wall_s"],
            "git_revision": record["git"]["revision"],
            "git_dirty": record["git"]["dirty"],
            "identity": record["identity"],
            "started": run.started,
            "bitrate_bps": player.get("bitrate_bps"),
            "duration_s": player.get("duration_s"),
            "parameters": list(config.get("parameters", {}).items()),
            "paths": [
                {"name": path.name, "up_bytes": path.up_bytes, "down_bytes": path.down_bytes}
                | {"queue_drops": path.queue_drops}
                for path in run.paths
            ],
        }
    )


def _chunk_rows(run: Run) -> list[dict[str, Any]]:
    """`rct_s` of a chunk that is not `completed` is a lower bound: docs/reference/metrics.md."""
    return [
        {"run_id": run.run_id, "pair": run.pair, "label": run.label, "seed": run.seed, "void": run.void}
        | {"chunk": chunk.index, "request_s": chunk.request_s, "rct_s": chunk.rct_s}
        | {"completed": chunk.completed, "bytes": chunk.bytes}
        | {"oracle_s": chunk.oracle_s, "efficiency": chunk.efficiency, "oracle_play_s": chunk.oracle_play_s}
        | {"late_bound_s": chunk.late_bound_s}
        for chunk in run.chunks
    ]


def _link_rows(run: Run) -> list[dict[str, Any]]:
    """The emulator's counters of each link; null if the run does not have one."""
    rows: list[dict[str, Any]] = []
    settings = {path["name"]: path for path in run.config["paths"]}
    for path in run.paths:
        for direction, link in (("up", path.up), ("down", path.down)):
            late, path_settings = link["lateness_us"], settings.get(path.name, {})
            effects = members_of_record(path_settings) if path_settings else {}
            counted = {
                column.name: link.get(column.name)
                for column in columns.LINKS.columns
                if column.name not in ("run_id", "path", "direction")
            }
            rows.append(
                counted
                | {"run_id": run.run_id, "path": path.name, "direction": direction}
                | {name: of_way(effects, direction, name, None) for name in ("delay_ms", "queue")}
                | {"technology": path_settings.get("technology")}
                | {"trace_sha256": path_settings.get(f"{direction}_sha256")}
                | {f"lateness_{name}_us": late[name] for name in ("p50", "p99", "max")}
            )
    return rows


def tables_of(runs: Sequence[Run]) -> dict[str, pa.Table]:
    """The stored tables of a campaign's runs. Void runs are included and marked."""
    try:
        rows = {
            "runs": [_run_row(run) for run in runs],
            "chunks": [row for run in runs for row in _chunk_rows(run)],
            "links": [row for run in runs for row in _link_rows(run)],
        }
        return {one.name: pa.Table.from_pylist(rows[one.name], schema=one.arrow_schema()) for one in columns.STORED}
    except (*NOT_AS_WRITTEN, pa.ArrowException) as error:
        raise UserError(
            f"a run's record has not what the tables take ({type(error).__name__}: {error}); "
            "`railyard show RUN` says of which run, remove it and run it again."
        ) from None


def with_stored_oracles(runs: Sequence[Run], out: Path) -> list[Run]:
    """The runs; chunks without the oracle's times take those of the campaign's `chunks.parquet`. The traces from which
    these were computed may be on another machine."""
    import pyarrow.parquet as pq  # noqa: PLC0415  slow to load

    file, names = out / "chunks.parquet", ["run_id", "chunk", "request_s", "oracle_s", "oracle_play_s"]
    if all(chunk.oracle_s is not None for run in runs for chunk in run.chunks):
        return list(runs)
    try:
        check_regular(file)
        rows = pq.read_table(file, columns=names).to_pylist()
    except (OSError, pa.ArrowException):  # none yet, damaged, or of a schema without the oracle's play
        return list(runs)
    known = {tuple(row[name] for name in names[:3]): row for row in rows if row["oracle_s"] is not None}

    def told(run: Run, chunk: Chunk) -> Chunk:
        row = known.get((run.run_id, chunk.index, chunk.request_s)) if chunk.oracle_s is None else None
        return chunk if row is None else replace(chunk, **{name: row[name] for name in names[3:]})

    return [replace(run, chunks=[told(run, chunk) for chunk in run.chunks]) for run in runs]


def write_parquet(runs: Sequence[Run], out: Path) -> None:
    """Writes `runs.parquet`, `chunks.parquet` and `links.parquet`, each with the schema's version in its metadata."""
    import pyarrow.parquet as pq  # noqa: PLC0415  slow to load

    for name, table in tables_of(runs).items():
        with replacing(out / f"{name}.parquet") as partial:
            pq.write_table(table, partial)
