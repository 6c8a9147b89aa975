"""The campaigns in a folder of results, the progress of each, and the search for a run by its name."""

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
ENDS = ("agreement.html", "runs.parquet")  # the last files of commands that write no campaign.json
PARTS = "parts/part-*.parquet"  # the plays so far of a population that is not complete


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
        """A sentence if its name cannot be in tables and pages. None: it can."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return f"{printable(str(self.folder))}: the name of this folder is not UTF-8; rename it."
        return None

    @cached_property
    def record(self) -> dict[str, Any]:
        """`campaign.json`, or the same members from a population's record. Empty if neither can be read."""
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
        """`folder.json`, which has everything that the results depend on."""
        return read_record(self.folder / FILE, FACTS) or {}

    @cached_property
    def experiment(self) -> dict[str, Any]:
        experiment = self.record.get("experiment")
        return experiment if isinstance(experiment, dict) else {}

    @property
    def experiment_name(self) -> str:
        """The name of the results. Several folders may have it; the name then stands for the newest."""
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
        """The number of rows of runs.parquet. None: no such file."""
        return _rows(self.folder / "runs.parquet")

    @cached_property
    def plays(self) -> int | None:
        """The number of plays of a population. None: it is no population."""
        return _rows(self.folder / "plays.parquet")

    @property
    def runs_whole(self) -> int:
        """The number of completed runs or plays. If the runs' folders are not kept, the rows of the Parquet file
        count."""
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
        """The number of runs that ended with a program's fault."""
        return sum(record.get("outcome") not in RESULT_OUTCOMES for record in self._records)

    @property
    def running(self) -> bool:
        """Whether a process holds the folder's lock, read from /proc/locks: trying the lock could make a campaign
        fail."""
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
        """When it was last started, or when an exhibit without a campaign was made. None: unknown."""
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
    """The folders with results, to `depth` levels below. Leaves out those that this user cannot read."""
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
    """Every campaign in the folder, which may be one itself, and in folders to `depth` levels below. Empty if the
    folder does not exist."""
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
    for campaign in campaigns:  # a link of that name decides
        if _is_named(campaign):
            newest[f"{Path(campaign.name).parent}/{campaign.experiment_name}"] = campaign
    return newest


def _is_named(campaign: StoredCampaign) -> bool:
    """Whether the link `experiment_name` beside the folder leads to it."""
    named = campaign.folder.parent / campaign.experiment_name
    return bool(campaign.experiment_name) and named.is_symlink() and named.resolve() == campaign.folder


def moment(campaign: StoredCampaign) -> float:
    """When it was started, as a key to sort by. 0: unknown."""
    return campaign.started.timestamp() if campaign.started else 0.0


FILES = (".zip", ".qlog", ".sqlog")
"""Files that commands take in place of a run: an archive, qlogs of any stack."""


def find_run(name: str, results: Path) -> Path:
    """A run's folder, given as find_run_or_campaign() takes it. Raises UserError if that is a campaign."""
    folder = find_run_or_campaign(name, results)
    if not (folder / "run.json").is_file() and (folder / "campaign.json").is_file():
        raise UserError(f"'{name}' is a campaign; name one of its runs, {name}/RUN: `railyard show {name}` lists them.")
    return folder


def find_run_or_campaign(name: str, results: Path) -> Path:
    """The folder of a run or campaign, given as a path, a campaign's name, a run's name or CAMPAIGN/RUN. A folder
    without results in the current folder does not hide a campaign of that name."""
    given = Path(name)
    if any((given / mark).is_file() for mark in ("run.json", *MARKS)):
        return given
    campaigns = find_campaigns(results)
    by_name = {campaign.name: campaign.folder for campaign in campaigns}
    if name in by_name:
        return by_name[name]
    first, _, run_id = name.partition("/")
    if (results / first).is_symlink():  # NAME or NAME/RUN, where NAME is a link
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
    listed = "`railyard show` names the campaigns, `railyard show CAMPAIGN` its runs."
    raise UserError(f"there is no run or campaign '{name}' in {results}; {_nearest(name, known, listed)}")


def _nearest(name: str, known: Sequence[str], listed: str) -> str:
    """The known name that is probably meant. Without one: all names if there are less than 20, else `listed`."""
    hint = near_miss(name, known)
    return listed if len(known) >= 20 and hint.startswith("known") else hint
