"""Makes runs from the tables of a campaign, for comparisons, without reading the files of each run.

A thousand runs are read in a fraction of a second. Series over time, link counters and the machine's record are only in
the runs' folders, which `railyard.results.records` reads.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from railyard.results.records import Chunk, Run

CONFIG = ("experiment", "arena", "pair", "label", "scheme", "primary", "seed", "start_offset_ms", "congestion")
OF_A_RUN = (
    *("first_frame_s", "handshake_s", "stream_bytes_sent", "reinjected_bytes", "retransmitted_bytes", "migrations"),
    *("play_time_s", "rebuffer_time_s", "rebuffer_count", "received_bytes", "given_up_bytes", "ended_s"),
)


def can_be_compared(tables: Mapping[str, pa.Table]) -> bool:
    """Whether the tables have all columns that a comparison needs. If not, the runs must be read."""
    return not any(tables["runs"].column(name).null_count for name in ("failed", "ended_s", "given_up_bytes"))


def runs_of(tables: Mapping[str, pa.Table]) -> list[Run]:
    """The runs of `railyard.results.aggregate.tables_of()` and its files, in their order."""
    chunks, paths = _chunks(tables["chunks"]), _paths(tables["links"])
    return [
        _run(row, chunks.get(row["run_id"], []), paths.get(row["run_id"], {})) for row in tables["runs"].to_pylist()
    ]


def _chunks(table: pa.Table) -> dict[str, list[Chunk]]:
    names = ("chunk", "request_s", "rct_s", "completed", "bytes", "oracle_s", "late_bound_s", "oracle_play_s")
    chunks: dict[str, list[Chunk]] = {}
    columns = [table.column(name).to_pylist() for name in names]
    for run_id, index, request_s, rct_s, completed, size, oracle_s, late_s, play_s in zip(
        table.column("run_id").to_pylist(), *columns, strict=True
    ):
        chunk = Chunk(
            index, request_s, rct_s, completed, size, oracle_s=oracle_s, late_bound_s=late_s, oracle_play_s=play_s
        )
        chunks.setdefault(run_id, []).append(chunk)
    return chunks


def _paths(links: pa.Table) -> dict[str, dict[str, dict[str, Any]]]:
    """The hashes of the traces by run and path, in the form of a run's settings."""
    names = ("run_id", "path", "direction", "trace_sha256")
    paths: dict[str, dict[str, dict[str, Any]]] = {}
    for run_id, path, direction, sha256 in zip(*(links.column(name).to_pylist() for name in names), strict=True):
        of_run = paths.setdefault(run_id, {})
        of_run.setdefault(path, {"name": path})[f"{direction}_sha256"] = sha256
    return paths


def _limit_s(row: Mapping[str, Any]) -> float | None:
    """The time limit of a play that showed no frame or failed, from the values that count with it. None: neither."""
    if row["first_frame_s"] is None:
        return float(row["first_frame_counted_s"])
    return float(row["rebuffer_counted_s"] + row["play_time_s"]) if row["failed"] else None


def _run(row: Mapping[str, Any], chunks: list[Chunk], paths: Mapping[str, dict[str, Any]]) -> Run:
    config = {name: row[name] for name in CONFIG} | {"paths": list(paths.values()), "time_limit_s": _limit_s(row)}
    record = {"config": config, "outcome": row["outcome"], "message": row["message"]}
    record |= {"fidelity": {"void": row["void"], "lateness_p99_us": row["lateness_p99_us"]}}
    started = row["started"] or datetime.fromtimestamp(0, UTC)
    own = {name: row[name] for name in OF_A_RUN}
    return Run(row["run_id"], record, started, chunks, [], buffer_s=[], stalls=[], **own)
