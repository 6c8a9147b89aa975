"""Two campaigns at the same places, as one list of runs: each scheme of the first against itself in the second."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from railyard.base.errors import UserError
from railyard.base.words import counted
from railyard.results.campaigns import StoredCampaign
from railyard.results.differences import sound
from railyard.results.listing import settings_apart
from railyard.results.records import Run, load_campaign

Place = tuple[str, str, int]  # pair, label, seed


@dataclass(frozen=True)
class Two:
    runs: list[Run]  # of both campaigns, whose names are in the labels
    comparisons: list[tuple[str, str]]  # first, second
    notes: list[str]


def _played(run: Run) -> object:
    """The start offset and the traces of a run, which must be the same in both campaigns."""
    config = run.config
    traces = [(path["name"], path["up_sha256"], path["down_sha256"]) for path in config["paths"]]
    return config["start_offset_ms"], traces


def _named(run: Run, campaign: str) -> Run:
    """The run with the campaign's name in its label and ID."""
    config = run.config | {"label": f"{run.label} ({campaign})"}
    return replace(run, run_id=f"{campaign}/{run.run_id}", record=run.record | {"config": config})


def names_of(folders: Sequence[Path], given: Sequence[str]) -> list[str]:
    """The last parts of the given names; if they are the same, the names of the folders."""
    short = [Path(name).name for name in given]
    return short if short[0] != short[1] else [folder.resolve().name for folder in folders]


def two_campaigns(folders: tuple[Path, Path], names: Sequence[str]) -> Two:
    """Reads and joins two campaigns. Raises UserError if they have no place in common."""
    if folders[0].resolve() == folders[1].resolve():
        raise UserError(f"{names[0]} and {names[1]} are the same campaign; name two.")
    first, second = (load_campaign(folder)[1] for folder in folders)
    return two_lists((first, second), folders, names)


def two_lists(sides: tuple[Sequence[Run], Sequence[Run]], folders: tuple[Path, Path], names: Sequence[str]) -> Two:
    """Joins the runs of two campaigns. Raises UserError if they have no place in common."""
    first, second = ({(run.pair, run.label, run.seed): run for run in sound(runs)} for runs in sides)
    both = [place for place in first if place in second]
    same = [place for place in both if _played(first[place]) == _played(second[place])]
    if not same:
        reason = "they play other traces or start elsewhere" if both else "no pair, scheme and seed is in both"
        raise UserError(f"{names[0]} and {names[1]} have no place in common: {reason}.")
    runs = [_named(runs[place], name) for runs, name in ((first, names[0]), (second, names[1])) for place in same]
    labels = dict.fromkeys(label for _, label, _ in same)
    notes = []
    if left_out := len(first) + len(second) - 2 * len(same):
        notes.append(f"{counted(left_out, 'run')} without a counterpart at the same place left out.")
    if apart := settings_apart(*(StoredCampaign(folder.name, folder) for folder in folders)):
        notes.append(f"What differs ({names[0]}, {names[1]}): {'; '.join(apart)}.")
    return Two(runs, [(f"{label} ({names[0]})", f"{label} ({names[1]})") for label in labels], notes)
