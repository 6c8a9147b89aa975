"""The results of a population: complete Parquet parts, named by their contents.

Within a campaign the key of a play is day, viewer and the arm's parameters. Elsewhere it is the play's identity, the
SHA-256 over all that decides its outcome. A play is exact, so the same play from two batches counts once. Batches are
small; once small parts have PLAYS_A_PART plays, they are merged. Plays are never all Python objects: DuckDB selects and
sorts them.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from railyard.base.errors import UserError
from railyard.results.columns import CAMPAIGN, PLAYS
from railyard.run.folders import resume_words
from railyard.studies.population.play import Row
from railyard.studies.population.table import connect

PLAYS_A_PART = 10_000
SCHEMA_VERSION = 4  # 1 had no first_frames_s, 2 no watched_s and path_mbps, 3 no parameters
PLAYS_FILE = "plays.parquet"
_REQUIRED = {"identity", "day", "viewer", "arm", "scheme", "parameters", "scene", "pair", "primary"}
SCHEMA = pa.schema(
    [pa.field(one.name, one.type, nullable=one.name not in _REQUIRED) for one in PLAYS.columns if one is not CAMPAIGN],
    metadata={b"railyard.table": b"plays", b"railyard.schema": str(SCHEMA_VERSION).encode()},
)


def _bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def part_of(rows: Sequence[Row]) -> bytes:
    """The file of a part with these plays."""
    return _bytes(pa.Table.from_pylist(list(rows), schema=SCHEMA))


def rows_of(part: bytes) -> list[Row]:
    """The plays in the file of a part."""
    rows: list[Row] = pq.read_table(io.BytesIO(part)).to_pylist()
    return rows


class Parts:
    """The folder of parts of one campaign."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._small: dict[Path, int] = {}  # number of plays in each part that was not merged yet

    def sweep(self) -> None:
        """Removes incomplete files of a campaign that was killed."""
        for partial in self.folder.glob(".*.partial"):
            partial.unlink(missing_ok=True)

    def add(self, part: bytes, plays: int) -> Path:
        """Writes one batch. The same plays give the same file, so a repeated batch is stored once."""
        file = self._write(part)
        self._small[file] = plays
        if sum(self._small.values()) >= PLAYS_A_PART:
            self._merge(list(self._small))
        return file

    def merge(self) -> None:
        """Merges all small parts."""
        self._merge([file for file in self._files() if pq.read_metadata(file).num_rows < PLAYS_A_PART])

    def _merge(self, files: Sequence[Path]) -> None:
        """Merges parts. If this is interrupted, plays may be stored twice, but count once."""
        self._small = {}
        if len(files) < 2:
            return
        together = pa.concat_tables([_read(file).cast(SCHEMA) for file in files]).sort_by(
            [("day", "ascending"), ("viewer", "ascending"), ("identity", "ascending")]
        )
        merged = self._write(_bytes(together))
        for file in files:
            if file != merged:
                file.unlink(missing_ok=True)

    def _write(self, data: bytes) -> Path:
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
                f"{self.folder}: cannot write results there: {(error.strerror or str(error)).lower()}. "
                f"Completed plays are kept; {resume_words()}."
            ) from None

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))

    def done(self, arms: Sequence[str], days: Sequence[int], viewers: int) -> npt.NDArray[np.bool_]:
        """Which plays exist, [arm, day, viewer − 1]. `arms`: the parameters of each arm."""
        present = np.zeros((len(arms), len(days), viewers), dtype=bool)
        for file in self._files():
            table = _read(file, ["parameters", "day", "viewer"])
            for arm, text in enumerate(arms):
                own = table.filter(pc.equal(table["parameters"], text))
                day, viewer = (own[name].to_numpy() for name in ("day", "viewer"))
                for place, number in enumerate(days):
                    those = viewer[(day == number) & (viewer <= viewers)]
                    present[arm, place, those - 1] = True
        return present

    def play_time_left(self, arm: str, day: int, viewers: int) -> list[float]:
        """The samples of play-time left of an arm's first `viewers` viewers of a day, ascending."""
        samples: list[float] = []
        for file in self._files():
            table = _read(file, ["parameters", "day", "viewer", "play_time_left_ms"])
            wanted = (pc.field("parameters") == arm) & (pc.field("day") == day) & (pc.field("viewer") <= viewers)
            samples += pc.list_flatten(table.filter(wanted)["play_time_left_ms"]).to_pylist()
        return sorted(samples)

    def pairs(self, day: int, viewers: int) -> list[str]:
        """The pairs of the first `viewers` viewers of a day."""
        pairs: set[str] = set()
        for file in self._files():
            wanted = (pc.field("day") == day) & (pc.field("viewer") <= viewers)
            pairs.update(_read(file, ["day", "viewer", "pair"]).filter(wanted)["pair"].to_pylist())
        return sorted(pairs)

    def write_plays(
        self, file: Path, arms: Mapping[str, str], days: Sequence[int], viewers: int, without: Sequence[tuple[int, int]]
    ) -> int:
        """Writes the plays in one file, each once, by day, viewer and arm, completely or not at all. `arms`: labels by
        parameters. `without`: days and numbers of left-out viewers. Returns the number of plays.
        """
        plays, partial = 0, file.with_name(f".{file.name}.partial")
        with connect() as database, pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
            database.register("arms", pa.table({"parameters": list(arms), "label": list(arms.values())}))
            left_out = pa.table({"day": [day for day, _ in without], "viewer": [viewer for _, viewer in without]})
            database.register("left_out", left_out.cast(pa.schema([("day", pa.int64()), ("viewer", pa.int64())])))
            chosen = database.sql(
                "SELECT parts.* EXCLUDE (arm), label AS arm FROM read_parquet(?) AS parts JOIN arms USING (parameters) "
                "WHERE day = ANY(?) AND viewer <= ? "
                "AND NOT EXISTS (FROM left_out WHERE left_out.day = parts.day AND left_out.viewer = parts.viewer) "
                "QUALIFY row_number() OVER (PARTITION BY parts.day, parts.viewer, parts.parameters) = 1 "
                "ORDER BY parts.day, parts.viewer, label, identity",
                params=[[str(part) for part in self._files()], list(days), viewers],
            )
            reader: pa.RecordBatchReader = chosen.to_arrow_reader(PLAYS_A_PART)
            for batch in reader:
                writer.write_table(pa.Table.from_batches([batch]).select(SCHEMA.names).cast(SCHEMA))
                plays += batch.num_rows
        partial.rename(file)
        return plays


class Elsewhere:
    """The plays of other campaigns, by identity. Only their places in files are in memory."""

    def __init__(self, folders: Sequence[Path]) -> None:
        names, places = [np.zeros(0, dtype="S32")], [np.zeros((0, 2), dtype=np.int32)]
        self._files = [file for folder in folders for file in sorted(folder.glob("part-*.parquet"))]
        for number, file in enumerate(self._files):
            try:
                own = _read(file, ["identity"])["identity"].to_numpy().astype("S32")
            except UserError:
                if file.exists():
                    raise
                continue  # it has been merged into another one
            names.append(own)
            places.append(np.stack([np.full(len(own), number), np.arange(len(own))], axis=1).astype(np.int32))
        together = np.concatenate(names)
        order = np.argsort(together, kind="stable")
        self._names, self._places = together[order], np.concatenate(places)[order]

    def find(self, identity: str) -> Row | None:
        wanted = np.bytes_(identity)
        at = int(np.searchsorted(self._names, wanted))
        if at == len(self._names) or self._names[at] != wanted:
            return None
        number, place = self._places[at]
        try:
            row: Row = _kept(self._files[number]).slice(int(place), 1).to_pylist()[0]
        except UserError:
            return None  # it has been merged since
        return row if row["identity"] == identity else None


@lru_cache(maxsize=2)
def _kept(file: Path) -> pa.Table:
    return _read(file)


@lru_cache(maxsize=1)
def elsewhere(folders: tuple[str, ...]) -> Elsewhere:
    return Elsewhere([Path(folder) for folder in folders])


def _read(file: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(file, columns=columns)
    except (OSError, pa.ArrowException):
        raise UserError(f"{file}: this part cannot be read; remove it and run the same command again.") from None
