"""The contents of the folder of results. Files are read again only if they have changed.

The tables of a campaign are its Parquet files, which pages query by DuckDB. The runs of a campaign under way, or with
an older schema, are read from their folders, each run once.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from railyard.base.counting import left_words
from railyard.base.errors import UserError
from railyard.base.yamlfile import near_miss
from railyard.results import stored
from railyard.results.aggregate import tables_of
from railyard.results.campaigns import StoredCampaign, find_campaigns, moment, newest_of
from railyard.results.listing import revision_words
from railyard.results.records import RESULT_OUTCOMES, Run, load_run
from railyard.results.shapes import RUN, read_record
from railyard.results.upgrade import stored_tables
from railyard.serve.work import UnfinishedError, Work

FILES = ("campaign.json", "exhibit.json", "population.json", "folder.json", "answer.json")
TABLES = ("runs.parquet", "chunks.parquet", "links.parquet", "plays.parquet", "runs")
AT_ONCE = 4  # runs that a page reads itself; more are read in the background

Stamp = tuple[tuple[int, int], ...]
Written = tuple[str, tuple[int, int]]


class NotThereError(UserError):
    """There are no results of that name."""


@dataclass(frozen=True)
class Overview:
    """A campaign in the list."""

    name: str
    title: str
    description: str
    arena: str
    state: str
    asked: int
    whole: int
    void: int
    faults: int  # runs that a program's fault ended
    running: bool
    left: str
    started: datetime | None
    revision: str
    newest: bool
    has_runs: bool

    @property
    def share(self) -> float:
        return self.whole / self.asked if self.asked else 1.0


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def written(run: Path) -> Written:
    """A run's name and the state of its record, because a void run is replaced when it is repeated."""
    return run.name, _stamp(run / "run.json")


class Known:
    """A campaign with everything that was read of it so far."""

    def __init__(self, campaign: StoredCampaign, work: Work | None) -> None:
        self.name, self.folder = campaign.name, campaign.folder
        self._work = work
        self._campaign = campaign
        self._seen = self.stamp()
        self._ends: dict[Written, tuple[bool, bool]] = {}  # by run: void, ended by a program's fault
        self._runs: dict[Written, Run] = {}
        self._tables: tuple[Stamp, dict[str, pa.Table]] | None = None
        self._compared: tuple[Stamp, list[Run]] | None = None
        self._database: tuple[Stamp, duckdb.DuckDBPyConnection] | None = None
        self._lock = threading.RLock()

    def stamp(self) -> Stamp:
        """A value that changes when a run is added, a table is written or the campaign is started again."""
        return tuple(_stamp(self.folder / name) for name in (*FILES, *TABLES))

    @property
    def campaign(self) -> StoredCampaign:
        """The campaign in its present state."""
        with self._lock:
            if self._seen != (now := self.stamp()):
                self._seen, self._campaign = now, StoredCampaign(self.name, self.folder)
            return self._campaign

    @property
    def has_runs(self) -> bool:
        return bool(self.campaign.record) and (bool(self.campaign.asked) or self.campaign.in_parquet is not None)

    @property
    def is_gathered(self) -> bool:
        """Whether its tables have all of its runs."""
        campaign = self.campaign
        return campaign.in_parquet is not None and campaign.in_parquet == campaign.runs_whole

    # --- counts -------------------------------------------------------------------------------------------------------

    def _count_ends(self) -> tuple[int, int]:
        """The numbers of void runs and of runs that ended with a program's fault."""
        campaign = self.campaign
        if campaign.plays is not None or not campaign.record:
            return 0, 0
        if self.is_gathered:
            columns = pq.read_table(self.folder / "runs.parquet", columns=["void", "outcome"])
            void, outcomes = columns.column("void").to_pylist(), columns.column("outcome").to_pylist()
            return sum(map(bool, void)), sum(outcome not in RESULT_OUTCOMES for outcome in outcomes)
        ends = [self._end(folder) for folder in campaign.whole]
        return sum(void for void, _ in ends), sum(fault for _, fault in ends)

    def _end(self, folder: Path) -> tuple[bool, bool]:
        key = written(folder)
        if key not in self._ends:
            record = read_record(folder / "run.json", RUN) or {}
            void = bool((record.get("fidelity") or {}).get("void"))
            self._ends[key] = void, record.get("outcome") not in RESULT_OUTCOMES
        return self._ends[key]

    def _left(self) -> str:
        """The time left, in words, by the pace since the campaign was last started."""
        campaign = self.campaign
        begin, missing = moment(campaign), len(campaign.asked) - campaign.runs_whole
        ends = [_stamp(folder / "run.json")[0] / 1e9 for folder in campaign.whole]
        recent = [end for end in ends if end >= begin]
        return left_words(max(recent) - begin, len(recent), missing).removeprefix(", ") if recent else ""

    def overview(self, *, newest: bool = False) -> Overview:
        """The campaign's row in the list. Raises UserError if its tables cannot be read."""
        with self._lock:
            campaign = self.campaign
            try:
                void, faults = self._count_ends()
            except (OSError, ValueError, pa.ArrowException) as error:
                cause = " ".join(str(error).split()).rstrip(".")
                raise UserError(f"{self.folder}: its tables cannot be read: {cause}.") from None
            running = campaign.running
            return Overview(
                name=self.name,
                title=campaign.experiment_name or self.name,
                description=str(campaign.experiment.get("description") or ""),
                arena=campaign.arena or "–",
                state=campaign.state,
                asked=len(campaign.asked),
                whole=campaign.runs_whole,
                void=void,
                faults=faults,
                running=running,
                left=self._left() if running else "",
                started=campaign.started,
                revision=revision_words(campaign.git),
                newest=newest,
                has_runs=self.has_runs,
            )

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _loaded(self) -> list[Run]:
        """All completed runs, each read once. Raises UnfinishedError while many are being read."""
        folders = {written(folder): folder for folder in self.campaign.whole}
        missing = {key: folder for key, folder in folders.items() if key not in self._runs}
        if self._work is not None and len(missing) > AT_ONCE:
            future = self._work.begin((self.folder, "read", tuple(folders)), lambda: self._read(missing))
            if not future.done():
                raise UnfinishedError(f"Reading the runs: {len(folders) - len(missing)} of {len(folders)}.")
            future.result()  # raises the error of reading, if any
        else:
            self._read(missing)
        return [self._runs[key] for key in folders]

    def _read(self, folders: Mapping[Written, Path]) -> None:
        for key, folder in folders.items():
            self._runs[key] = load_run(folder)

    def tables(self) -> dict[str, pa.Table]:
        """Its stored tables. Raises UnfinishedError while its runs are read."""
        with self._lock:
            now = self.stamp()
            if self._tables is None or self._tables[0] != now:
                tables = stored_tables(self.campaign) if self.is_gathered else tables_of(self._loaded())
                self._tables = now, tables
            return self._tables[1]

    def runs(self) -> list[Run]:
        """The runs, for comparisons. Raises UnfinishedError while they are read."""
        with self._lock:
            now = self.stamp()
            if self._compared is None or self._compared[0] != now:
                tables = self.tables()
                enough = stored.can_be_compared(tables)
                self._compared = now, stored.runs_of(tables) if enough else self._loaded()
            return self._compared[1]

    def ask(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """DuckDB's answer over the tables `runs`, `chunks` and `links`. A query can read nothing else."""
        return [tuple(row.values()) for row in self.rows(sql, parameters)]

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """The answer as mappings by the names of columns."""
        with self._lock:
            now = self.stamp()
            if self._database is None or self._database[0] != now:
                tables = self.tables()
                made = duckdb.connect(":memory:", config={"python_enable_replacements": "false", "threads": "1"})
                for name, table in tables.items():
                    made.register(name, table)
                made.execute("SET enable_external_access = false")
                self._database = now, made
            answer = self._database[1].execute(sql, list(parameters))
            names = [column[0] for column in answer.description or ()]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def run_folder(self, run_id: str) -> Path | None:
        """The folder of a completed run within the campaign. Its name comes from the results, never from a request.
        None: the campaign is kept without its runs' folders."""
        folder = self.folder / "runs" / run_id
        inside = folder.resolve() == (self.folder / "runs").resolve() / run_id
        return folder if run_id in self.run_ids() and inside and (folder / "run.json").is_file() else None

    def run_ids(self) -> set[str]:
        if (self.folder / "runs").is_dir():
            return {folder.name for folder in self.campaign.whole}
        return set(self.tables()["runs"].column("run_id").to_pylist())


class Store:
    """The campaigns of a folder. `work`: reads many runs in the background. None: pages wait."""

    def __init__(self, results: Path, work: Work | None = None) -> None:
        self.results, self._work = results, work
        self._known: dict[tuple[str, Path], Known] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Known]:
        """All present campaigns, except for those whose name cannot be in an address."""
        with self._lock:
            campaigns = [one for one in self._found() if one.name_problem is None]
            known = self._known
            self._known = {
                (one.name, one.folder): known.get((one.name, one.folder)) or Known(one, self._work) for one in campaigns
            }
            return list(self._known.values())

    def _found(self) -> list[StoredCampaign]:
        return find_campaigns(self.results) if self.results.is_dir() else []

    def overviews(self) -> tuple[list[Overview], list[str]]:
        """The list, the last started first, and a sentence for each campaign that cannot be read."""
        known, rows = self.all(), list[Overview]()
        broken = list(filter(None, (one.name_problem for one in self._found())))
        newest = {campaign.folder for campaign in newest_of([one.campaign for one in known]).values()}
        for one in known:
            try:
                rows.append(one.overview(newest=one.folder in newest))
            except UserError as error:
                broken.append(str(error))
        begun = {row.name: row.started.timestamp() if row.started else 0.0 for row in rows}
        return sorted(rows, key=lambda row: (not row.running, -begun[row.name])), broken

    def find(self, name: str) -> Known:
        """The campaign of that name. Raises NotThereError."""
        known = {one.name: one for one in self.all()}
        if name not in known:
            raise NotThereError(f"there is no campaign '{name}' in {self.results}; {near_miss(name, known)}")
        return known[name]

    def newest(self) -> list[Known]:
        """The campaign that was started last, for each name."""
        known = {one.folder: one for one in self.all()}
        newest = newest_of([one.campaign for one in known.values()])
        return [known[campaign.folder] for campaign in newest.values()]
