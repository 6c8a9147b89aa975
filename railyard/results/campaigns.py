"""What lies in a folder of results: its campaigns, how far each has come, and where a run is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from railyard.base.errors import UserError
from railyard.base.words import printable
from railyard.base.yamlfile import near_miss
from railyard.results.records import RESULT_OUTCOMES, are_runs, time_of
from railyard.results.shapes import CAMPAIGN, EXHIBIT, FACTS, POPULATION, RUN, read_record
from railyard.run.folders import FILE, LOCK, MARKS

MAX_DEPTH = 4
ENDS = ("agreement.html", "runs.parquet")  # written at the end of what writes no record
PARTS = "parts/part-*.parquet"  # what a population under way has played so far


def _rows(file: Path) -> int | None:
    import pyarrow.parquet as pq  # noqa: PLC0415  slow to load

    try:
        return int(pq.read_metadata(file).num_rows) if file.is_file() else None
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class StoredCampaign:
    """One campaign of a folder of results."""

    name: str  # relative to that folder
    folder: Path

    @property
    def name_problem(self) -> str | None:
        """A sentence where tables and pages cannot have its name."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return f"{printable(str(self.folder))}: the name of this folder is not UTF-8; rename it."
        return None

    @cached_property
    def record(self) -> dict[str, Any]:
        """`campaign.json`, or what a population's record says in its place; empty where neither can be read."""
        written = read_record(self.folder / "campaign.json", CAMPAIGN)
        population = read_record(self.folder / "population.json", POPULATION) if written is None else None
        if population is not None:
            name = population.get("population", {}).get("name")
            kept = {key: population.get(key) for key in ("command", "git")}
            return kept | {"experiment": {"name": name, "arena": "sim"}, "started": population.get("created")}
        return written or {}

    @cached_property
    def exhibit(self) -> dict[str, Any]:
        return read_record(self.folder / "exhibit.json", EXHIBIT) or {}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """`folder.json`: what the results depend on."""
        return read_record(self.folder / FILE, FACTS) or {}

    @cached_property
    def experiment(self) -> dict[str, Any]:
        experiment = self.record.get("experiment")
        return experiment if isinstance(experiment, dict) else {}

    @property
    def experiment_name(self) -> str:
        """Under which name the results are known: of folders of one name the newest is what the name stands for."""
        name = self.facts.get("name") or self.exhibit.get("name") or self.experiment.get("name")
        return str(name or "")

    @property
    def git(self) -> dict[str, Any]:
        git = self.record.get("git") or self.exhibit.get("provenance", {}).get("git")
        return git if isinstance(git, dict) else {}

    @cached_property
    def asked(self) -> list[str]:
        runs = self.record.get("runs", [])
        return runs if are_runs(runs) else []

    @cached_property
    def whole(self) -> list[Path]:
        """The folders of completed runs, in the order of the experiment."""
        folders = (self.folder / "runs" / run_id for run_id in self.asked)
        return [folder for folder in folders if (folder / "run.json").is_file()]

    @cached_property
    def in_parquet(self) -> int | None:
        """Rows of runs.parquet; none where there is no such file."""
        return _rows(self.folder / "runs.parquet")

    @cached_property
    def plays(self) -> int | None:
        """Plays of a population; none where it is none."""
        return _rows(self.folder / "plays.parquet")

    @property
    def runs_whole(self) -> int:
        """Runs done. Those in the Parquet file if the campaign is kept without its runs' folders."""
        if self.plays is not None:
            return self.plays
        if not self.record:
            return sum(_rows(file) or 0 for file in self.folder.glob(PARTS)) or self.in_parquet or 0
        return len(self.whole) if (self.folder / "runs").is_dir() else (self.in_parquet or 0)

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return [read_record(folder / "run.json", RUN) or {} for folder in self.whole]

    @cached_property
    def runs_void(self) -> int:
        return sum(bool(record.get("fidelity", {}).get("void")) for record in self._records)

    @cached_property
    def runs_failed(self) -> int:
        """Runs that a program's fault ended."""
        return sum(record.get("outcome") not in RESULT_OUTCOMES for record in self._records)

    @property
    def running(self) -> bool:
        """Whether a campaign holds the folder's lock now. Only looked at: to try it would keep a campaign from it."""
        try:
            status = (self.folder / LOCK).stat()
            locks = Path("/proc/locks").read_text()
        except OSError:
            return False
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        return any(place in line.split() for line in locks.splitlines())

    @property
    def state(self) -> str:
        if self.record:
            if self.running:
                return f"running {self.runs_whole}/{len(self.asked)}"
            return f"partial {self.runs_whole}/{len(self.asked)}" if self.runs_whole < len(self.asked) else "complete"
        if self.running:
            return "running"
        if not self.exhibit and any(self.folder.glob(PARTS)):
            return "partial"
        if self.exhibit or any((self.folder / file).is_file() for file in ENDS):
            return "complete"
        return "partial" if self.facts else "unreadable"

    @property
    def started(self) -> datetime | None:
        """When it was last started; of an exhibit alone, when it was made."""
        texts = (
            self.record.get("started"),
            self.exhibit.get("provenance", {}).get("created"),
            self.facts.get("created"),
        )
        text = next((text for text in texts if text), "")
        try:
            return time_of(text)
        except (TypeError, ValueError):
            return None

    @property
    def arena(self) -> str | None:
        return self.experiment.get("arena") or self.exhibit.get("arena") or self.facts.get("arena")


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """Without those that are closed to this user."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return
    if any((folder / mark).is_file() for mark in MARKS) or any(folder.glob(PARTS)):
        yield folder
    if depth == 0:
        return
    try:
        inner = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in inner:
        if name != "runs" and not name.startswith("."):
            yield from _folders(folder / name, depth - 1)


def find_campaigns(results: Path, depth: int = MAX_DEPTH) -> list[StoredCampaign]:
    """Every campaign in the folder, which may be one itself, and in folders `depth` levels below. None where there
    is no such folder."""
    root = results.resolve()
    return [
        StoredCampaign(str(folder.relative_to(root)) if folder != root else root.name, folder)
        for folder in _folders(root, depth)
    ]


def campaigns_or_error(results: Path) -> list[StoredCampaign]:
    campaigns = find_campaigns(results)
    if not campaigns:
        raise UserError(f"{results}: there are no results; `railyard run EXPERIMENT` makes some.")
    for problem in filter(None, (campaign.name_problem for campaign in campaigns)):
        raise UserError(problem)
    return campaigns


def newest_of(campaigns: list[StoredCampaign]) -> dict[str, StoredCampaign]:
    """The campaign that was started last, for each name in each folder."""
    newest: dict[str, StoredCampaign] = {}
    for campaign in campaigns:
        key = f"{Path(campaign.name).parent}/{campaign.experiment_name}"
        if key not in newest or moment(campaign) >= moment(newest[key]):
            newest[key] = campaign
    for campaign in campaigns:  # where there is a link, it says so
        if _is_named(campaign):
            newest[f"{Path(campaign.name).parent}/{campaign.experiment_name}"] = campaign
    return newest


def _is_named(campaign: StoredCampaign) -> bool:
    """Whether its name is a link to it."""
    named = campaign.folder.parent / campaign.experiment_name
    return bool(campaign.experiment_name) and named.is_symlink() and named.resolve() == campaign.folder


def moment(campaign: StoredCampaign) -> float:
    """When it was started, to sort by; 0 where its record does not tell."""
    return campaign.started.timestamp() if campaign.started else 0.0


FILES = (".zip", ".qlog", ".sqlog")
"""Commands that take a run take these, too: an archive, qlogs of any stack."""


def find_run(name: str, results: Path) -> Path:
    """A run's folder, given as find_run_or_campaign() takes it. Raises UserError where that is a campaign."""
    folder = find_run_or_campaign(name, results)
    if not (folder / "run.json").is_file() and (folder / "campaign.json").is_file():
        raise UserError(f"'{name}' is a campaign; name one of its runs, {name}/RUN: `railyard show {name}` lists them.")
    return folder


def find_run_or_campaign(name: str, results: Path) -> Path:
    """A run's or a campaign's folder: a path, a campaign's name, or a run's name or CAMPAIGN/RUN in the results. A
    folder here without results does not hide a campaign of its name."""
    given = Path(name)
    if any((given / mark).is_file() for mark in ("run.json", *MARKS)):
        return given
    campaigns = find_campaigns(results)
    by_name = {campaign.name: campaign.folder for campaign in campaigns}
    if name in by_name:
        return by_name[name]
    first, _, run_id = name.partition("/")
    if (results / first).is_symlink():  # NAME or NAME/RUN: of the folder that the name stands for
        folder = (results / first).resolve()
        folder = folder / "runs" / run_id if run_id else folder
        if folder.is_dir():
            return folder
    runs = [
        (campaign, folder)
        for campaign in campaigns
        for folder in [campaign.folder / "runs" / given.name]
        if name in (given.name, f"{campaign.name}/{given.name}") and (folder / "run.json").is_file()
    ]
    runs = [(campaign, folder) for campaign, folder in runs if _is_named(campaign)] or runs
    if len(runs) == 1:
        return runs[0][1]
    if runs:
        places = ", ".join(f"{campaign.name}/{given.name}" for campaign, _ in runs)
        raise UserError(f"'{name}' is in more than one campaign; say which: {places}.")
    if given.is_dir():
        return given  # what is missing there is for the caller to say
    if given.suffix in FILES:
        raise UserError(f"{name}: there is no such file; check the path.")
    by_link = {campaign.experiment_name: campaign for campaign in campaigns if _is_named(campaign)}
    named = {campaign.name: campaign for campaign in campaigns} | by_link
    if run_id and first in named:
        known = [f"{first}/{folder.name}" for folder in named[first].whole]
        listed = f"`railyard show {first}` lists its runs."
        raise UserError(f"{named[first].name} has no run '{run_id}'; {_nearest(name, known, listed)}")
    known = [*named, *(folder.name for campaign in campaigns for folder in campaign.whole)]
    listed = "`railyard list` names the campaigns, `railyard show CAMPAIGN` its runs."
    raise UserError(f"there is no run or campaign '{name}' in {results}; {_nearest(name, known, listed)}")


def _nearest(name: str, known: Sequence[str], listed: str) -> str:
    """The known name that is meant, else all where they are few, else where they are `listed`."""
    hint = near_miss(name, known)
    return listed if len(known) >= 20 and hint.startswith("known") else hint
