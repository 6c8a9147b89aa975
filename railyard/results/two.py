"""Two campaigns at the same places, as one list of runs: each scheme of the first against itself in the second."""

from __future__ import annotations

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
    runs: list[Run]  # of both; labels say of which campaign
    comparisons: list[tuple[str, str]]  # first, second
    notes: list[str]


def _played(run: Run) -> object:
    """Where in which traces the run played: what both must have in common."""
    config = run.config
    traces = [(path["name"], path["up_sha256"], path["down_sha256"]) for path in config["paths"]]
    return config["start_offset_ms"], traces


def _named(run: Run, campaign: str) -> Run:
    """The run under a label, and an ID, that say of which campaign it is."""
    config = run.config | {"label": f"{run.label} ({campaign})"}
    return replace(run, run_id=f"{campaign}/{run.run_id}", record=run.record | {"config": config})


def names_of(folders: Sequence[Path], given: Sequence[str]) -> list[str]:
    """As they were given; by the folders where both end alike."""
    short = [Path(name).name for name in given]
    return short if short[0] != short[1] else [folder.resolve().name for folder in folders]


def two_campaigns(folders: tuple[Path, Path], names: Sequence[str]) -> Two:
    """Raises UserError where no scheme has runs of both at the same place."""
    if folders[0].resolve() == folders[1].resolve():
        raise UserError(f"{names[0]} and {names[1]} are the same campaign; name two.")
    first, second = (load_campaign(folder)[1] for folder in folders)
    return two_lists((first, second), folders, names)


def two_lists(sides: tuple[Sequence[Run], Sequence[Run]], folders: tuple[Path, Path], names: Sequence[str]) -> Two:
    """The same of runs that are read already."""
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
