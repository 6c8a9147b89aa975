"""`railyard clean`: removes selected results, after showing them and asking. No other command removes results."""

import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import agreed, new_console, new_table, print_table
from railyard.base.words import counted
from railyard.cli.options import ResultsOption, YesOption
from railyard.results.campaigns import StoredCampaign, find_campaigns, moment
from railyard.results.listing import disk_bytes, size_words
from railyard.run import folders

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LEFTOVERS = ("runs/.partial-*", "parts/.*.partial", ".*.partial", "aside")


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([mhdw])", text)
    if match is None:
        raise UserError(f"--older-than takes a number with m, h, d or w, as 30d for 30 days, not '{text}'.")
    return timedelta(**{UNITS[match[2]]: float(match[1])})


def _outermost(results: Path) -> list[StoredCampaign]:
    """The folders of results, without those within others, which are part of them."""
    outermost: list[StoredCampaign] = []
    for campaign in find_campaigns(results):
        if not any(campaign.folder.is_relative_to(other.folder) for other in outermost):
            outermost.append(campaign)
    return outermost


def _meant(given: str, results: Path, known: Sequence[StoredCampaign]) -> list[StoredCampaign]:
    """The folders of a name, a pattern or a path. Raises UserError if there are none."""
    here = [campaign for campaign in known if fnmatchcase(campaign.name, given)]
    if here:
        return here
    named = results / given  # a link stands for its folder
    for path in (named, Path(given)):
        if path.exists():
            here = [campaign for campaign in known if campaign.folder == path.resolve()]
            if here:
                return here
    raise UserError(f"'{given}' is no folder of results in {results}; `railyard show` names them. Nothing is removed.")


def chosen(
    given: Sequence[str], results: Path, *, older_than: str | None = None, keep: int | None = None
) -> list[StoredCampaign]:
    """The folders that are named (all if no name is given), old enough, and not among the newest of their name."""
    known = _outermost(results)
    named = {campaign.folder: campaign for name in given for campaign in _meant(name, results.resolve(), known)}
    picked = list(named.values()) if given else known
    if older_than is not None:
        limit = datetime.now(UTC) - _age(older_than)
        picked = [campaign for campaign in picked if campaign.started is not None and campaign.started < limit]
    if keep is not None:
        kept: set[Path] = set()
        for name in {campaign.experiment_name for campaign in known}:
            group = [campaign for campaign in known if campaign.experiment_name == name]
            group.sort(key=moment, reverse=True)
            kept.update(campaign.folder for campaign in group[:keep])
        picked = [campaign for campaign in picked if campaign.folder not in kept]
    return picked


def _leftovers(results: Path) -> list[Path]:
    """The leftovers of killed commands, and folders that were set aside, except in folders in which a command works."""
    idle = [campaign.folder for campaign in find_campaigns(results) if not campaign.running]
    inner = [path for folder in idle for pattern in LEFTOVERS for path in folder.glob(pattern)]
    outer = [path for prefix in (folders.NEW, folders.REMOVED) for path in results.glob(f"{prefix}*")]
    return sorted(inner + outer)


def _named_anew(results: Path) -> None:
    """Makes links whose folder is gone lead to the newest remaining folder of that name, or removes them.

    A link to a place outside of the results is the user's. Its target may be on a disk that is not mounted.
    """
    links = [entry for entry in results.iterdir() if entry.is_symlink() and not entry.exists()]
    for name in [link for link in links if len(link.readlink().parts) == 1]:
        left = [campaign for campaign in _outermost(results) if campaign.folder.parent == results.resolve()]
        left = [campaign for campaign in left if campaign.experiment_name == name.name and campaign.started is not None]
        if left:
            newest = max(left, key=moment)
            folders.point(results.resolve(), name.name, newest.folder)
        else:
            name.unlink()


def _show(picked: Sequence[StoredCampaign], leftovers: Sequence[Path], results: Path) -> None:
    console = new_console()
    table = new_table("remove", "arena", "state", "started", "size")
    for campaign in picked:
        started = f"{campaign.started:%Y-%m-%d %H:%M}" if campaign.started else "–"
        size = size_words(disk_bytes([campaign.folder]))
        table.add_row(campaign.name, campaign.arena or "–", campaign.state, started, size)
    for path in leftovers:
        place = str(path.relative_to(results.resolve()))
        table.add_row(place, "", "left over", "", size_words(disk_bytes([path]) or path.lstat().st_blocks * 512))
    print_table(console, table)


def clean_command(
    folder: Annotated[
        list[str] | None,
        typer.Argument(metavar="FOLDER", help="Names as in `railyard show`, or patterns: 'demo-sim-*'."),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Only folders last started at least this long ago: 12h, 30d, 8w.")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=0, help="Keep the newest N of each name.", metavar="N")] = None,
    leftovers: Annotated[
        bool, typer.Option("--leftovers", help="Incomplete runs of killed commands, and files set aside.")
    ] = False,
    yes: YesOption = False,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Remove results, after listing them and asking. Without FOLDER the options select among all."""
    if not folder and older_than is None and keep is None and not leftovers:
        raise UserError("say what to remove: folders by name or pattern, --older-than, --keep, or --leftovers.")
    results = results.resolve()
    by_options = older_than is not None or keep is not None
    picked = chosen(folder or [], results, older_than=older_than, keep=keep) if folder or by_options else []
    for campaign in picked:
        if campaign.folder == results:
            raise UserError(
                f"{results}: this is the folder of a campaign, not of results; name the one above it with "
                f"--results {results.parent}. Nothing is removed."
            )
        if campaign.running:
            raise UserError(f"{campaign.name}: a campaign is running there; end it first. Nothing is removed.")
    gone = [campaign.folder for campaign in picked]
    rest = _leftovers(results) if leftovers else []
    rest = [path for path in rest if not any(path.is_relative_to(place) for place in gone)]
    if not picked and not rest:
        print("There is nothing to remove.")
        return
    _show(picked, rest, results)
    count = len(picked) + len(rest)
    question = f"Remove {'this' if count == 1 else f'these {count}'} for good?"
    if not agreed(question, yes, "nothing is removed without a terminal to ask on; --yes removes without asking."):
        print("Nothing is removed.")
        return
    before = disk_bytes([results])
    for place in gone:
        folders.remove_folder(place, results)
    for path in rest:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    _named_anew(results)
    number = counted(len(gone), "folder") if gone else counted(len(rest), "left-over")
    print(f"Removed {number}; {size_words(max(0, before - disk_bytes([results])))} are free again.")
