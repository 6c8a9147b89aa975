"""The results of a population: Parquet parts, each whole or not there, named by their content.

A play is known by its identity, the SHA-256 over all that decides its outcome; since a play is exact, one that two
batches brought is the same twice, and is counted once. Batches are small; once there are PLAYS_A_PART plays in small
parts, these become one.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from railyard.base.errors import UserError
from railyard.run.folders import link_file
from railyard.studies.population.play import Row

PLAYS_A_PART = 10_000
SCHEMA_VERSION = 3  # 1 had no first_frames_s, 2 no watched_s and path_mbps
PLAYS_FILE = "plays.parquet"
_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
SCHEMA = pa.schema(
    [
        pa.field("identity", _TEXT, nullable=False),
        *(pa.field(name, _WHOLE, nullable=False) for name in ("day", "viewer")),
        *(pa.field(name, _TEXT, nullable=False) for name in ("arm", "scheme", "scene", "pair", "primary")),
        *(pa.field(name, _WHOLE) for name in ("start_offset_ms", "bitrate_bps")),
        pa.field("duration_s", _REAL),
        pa.field("first_frame_bytes", _WHOLE),
        pa.field("cross_isp_percent", _REAL),
        pa.field("watched_s", _REAL),
        pa.field("path_mbps", pa.list_(_REAL)),
        pa.field("base_rtt_ms", pa.list_(_REAL)),
        pa.field("queues", pa.list_(_TEXT)),
        pa.field("outcome", _TEXT),
        *(pa.field(name, _REAL) for name in ("handshake_s", "first_frame_s", "waited_s")),
        pa.field("first_frames_s", pa.list_(_REAL)),
        *(pa.field(name, _REAL) for name in ("play_time_s", "rebuffer_time_s")),
        pa.field("rebuffer_count", _WHOLE),
        *(pa.field(name, _WHOLE) for name in ("stream_bytes_sent", "reinjected_bytes", "retransmitted_bytes")),
        pa.field("srtt_us", pa.list_(_WHOLE)),
        pa.field("path_bytes", pa.list_(_WHOLE)),
        pa.field("rct_s", pa.list_(_REAL)),
        pa.field("completed", pa.list_(pa.bool_())),
        pa.field("play_time_left_ms", pa.list_(pa.float32())),
    ],
    metadata={b"railyard.table": b"plays", b"railyard.schema": str(SCHEMA_VERSION).encode()},
)


def _bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


class Parts:
    """The folder of parts of one campaign. `others`: folders of other campaigns, whose plays are as good."""

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self.folder, self._others = folder, others
        self._small: dict[Path, int] = {}  # plays of the parts that were added and not merged

    def borrow(self, wanted: set[str]) -> None:
        """Takes over the parts of other campaigns in which a wanted play is; by hard links where that is possible."""
        missing = wanted - self.known() if self._others else set()
        seen = {file.name for file in self._files()}
        for other in self._others:
            for file in sorted(other.glob("part-*.parquet")):
                if not missing or file.name in seen:
                    continue
                seen.add(file.name)
                try:
                    found = missing.intersection(_read(file, ["identity"]).column("identity").to_pylist())
                except UserError:
                    if file.exists():
                        raise
                    continue  # it was merged into another one
                if found:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    link_file(file, self.folder / file.name)
                    missing -= found

    def sweep(self) -> None:
        """Removes what a campaign that was killed was writing."""
        for partial in self.folder.glob(".*.partial"):
            partial.unlink(missing_ok=True)

    def add(self, rows: Sequence[Row]) -> Path:
        """Writes one batch. The same rows give the same file, so a batch that comes twice is there once."""
        file = self._write(_table(rows))
        self._small[file] = len(rows)
        if sum(self._small.values()) >= PLAYS_A_PART:
            self._merge(list(self._small))
        return file

    def merge(self) -> None:
        """Makes one part of all small ones."""
        self._merge([file for file in self._files() if pq.read_metadata(file).num_rows < PLAYS_A_PART])

    def _merge(self, files: Sequence[Path]) -> None:
        """A campaign that is killed in between has plays twice, which count once."""
        self._small = {}
        if len(files) < 2:
            return
        together = pa.concat_tables([_read(file).cast(SCHEMA) for file in files]).sort_by(
            [("day", "ascending"), ("viewer", "ascending"), ("identity", "ascending")]
        )
        merged = self._write(together)
        for file in files:
            if file != merged:
                file.unlink(missing_ok=True)

    def _write(self, table: pa.Table) -> Path:
        data = _bytes(table)
        name = f"part-{hashlib.sha256(data).hexdigest()[:24]}.parquet"
        partial = self.folder / f".{name}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(data)
            return partial.rename(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise UserError(
                f"{self.folder}: cannot write results there: {(error.strerror or str(error)).lower()}; what is whole "
                "is kept, and the same command goes on from there."
            ) from None

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))

    def known(self) -> set[str]:
        """The identities of all plays that are there."""
        found: set[str] = set()
        for file in self._files():
            found.update(_read(file, ["identity"]).column("identity").to_pylist())
        return found

    def rows(self, identities: Iterable[str]) -> list[Row]:
        """The plays of these identities, each once, ordered by day, viewer and arm."""
        wanted, rows = set(identities), {}
        for file in self._files():
            for row in _read(file).to_pylist():
                if row["identity"] in wanted:
                    rows[row["identity"]] = row
        return sorted(rows.values(), key=lambda row: (row["day"], row["viewer"], row["arm"], row["identity"]))


def _read(file: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(file, columns=columns)
    except (OSError, pa.ArrowException):
        raise UserError(f"{file}: this part cannot be read; remove it and run the same command again.") from None


def write_plays(rows: Sequence[Row], file: Path) -> None:
    """All plays of a campaign in one file, written beside and renamed."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_bytes(_bytes(_table(rows)))
    partial.rename(file)


def read_plays(file: Path) -> list[Row]:
    if not file.is_file():
        raise UserError(f"{file}: there is no such file; `railyard study population` or `railyard run` makes it.")
    rows: list[Row] = _read(file).to_pylist()
    return rows
