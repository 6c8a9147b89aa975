"""The leaderboard: the schemes of each campaign in the order of a figure, with intervals, over the places that all of
them played. It is a page of the application, or a folder that any web server can serve."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from railyard.base.errors import UserError
from railyard.base.files import write_whole, writing
from railyard.base.forms import csv_text
from railyard.base.lists import grouped
from railyard.base.words import counted
from railyard.base.yamlfile import near_miss
from railyard.experiment.arenas import is_exact
from railyard.figures.figure import Figure
from railyard.figures.rows import COMPARED
from railyard.results import differences
from railyard.results.differences import Difference
from railyard.results.listing import revision_words
from railyard.results.records import Run
from railyard.serve.html import environment, style
from railyard.serve.store import Known, Store
from railyard.stats.intervals import Interval

FIGURES = {figure.name: figure for figure in COMPARED}
DEFAULT = "rct_p95"
PAGE, DATA, TABLE = "index.html", "leaderboard.json", "leaderboard.csv"
WIDTH = 160  # of the picture of an interval, in its units


@dataclass(frozen=True)
class Row:
    """One scheme under one figure."""

    place: int
    label: str
    level: Interval
    figure: Figure
    behind: Difference | None
    """The difference to the first scheme of the table. None for the first one."""
    scale: float = 1.0

    @property
    def words(self) -> str:
        return differences.level_in_unit(self.level, self.figure).partition(" [")[0]

    @property
    def ends(self) -> str:
        return "".join(differences.level_in_unit(self.level, self.figure).partition("[")[1:])

    @property
    def verdict(self) -> str:
        if self.behind is None:
            return "first"
        return "behind" if self.behind.verdict.split(" ")[0] == "higher" else "not decided"

    @property
    def picture(self) -> tuple[float, float, float] | None:
        """Low end, value and high end as places in a picture. None: there is no interval."""
        ends = (self.level.low, self.level.value, self.level.high)
        if not all(map(math.isfinite, ends)) or self.scale <= 0:
            return None
        low, value, high = (min(WIDTH, WIDTH * max(0.0, end) / self.scale) for end in ends)
        return low, value, high

    def record(self) -> dict[str, Any]:
        both = {"low": self.level.low, "high": self.level.high}
        ends = {name: end if math.isfinite(end) else None for name, end in both.items()}
        value = {"value": self.level.value, "at_least": self.level.at_least}
        which = {"figure": self.figure.name, "place": self.place, "scheme": self.label}
        return which | value | ends | {"verdict": self.verdict}


@dataclass(frozen=True)
class Ranking:
    figure: Figure
    rows: list[Row]
    without: list[str]  # schemes whose plays do not carry the figure


@dataclass(frozen=True)
class Board:
    """One campaign on the leaderboard. It may be public, so it has no paths, no machine and no user."""

    name: str
    description: str
    arena: str
    exact: bool
    pairs: list[str]
    plays: int
    left_out: list[str]  # schemes that did not play at all places
    measured: datetime
    revision: str
    rankings: list[Ranking]

    @property
    def about(self) -> str:
        return f"{counted(self.plays, 'play')} of each scheme over {counted(len(self.pairs), 'pair')} of traces"


def at_common_places(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs of the schemes with the most places, at places that all of these played, and the labels of other
    schemes."""
    places: dict[str, set[tuple[str, int]]] = {}
    for run in runs:
        places.setdefault(run.label, set()).add((run.pair, run.seed))
    most = max(map(len, places.values()), default=0)
    kept = [label for label, of in places.items() if len(of) == most]
    common = set.intersection(*(places[label] for label in kept)) if kept else set[tuple[str, int]]()
    return (
        [run for run in runs if run.label in kept and (run.pair, run.seed) in common],
        [label for label in places if label not in kept],
    )


def places_of(levels: Sequence[Interval]) -> list[int]:
    """The places of sorted values. Equal values share one. A lower bound shares its place with all values after it,
    because its own value may be above them."""
    places: list[int] = []
    for number, level in enumerate(levels):
        is_shared = number > 0 and (
            level.value == levels[number - 1].value or any(before.at_least for before in levels[:number])
        )
        places.append(places[-1] if is_shared else number + 1)
    return places


def _ranking(figure: Figure, by_label: dict[str, list[Run]]) -> Ranking:
    levels = {label: differences.level_of(of, figure) for label, of in by_label.items() if figure.shown(of) is not None}
    # As in tables, a value without an interval is shown.
    known = {label: replace(one, carried=True) for label, one in levels.items() if one and math.isfinite(one.value)}
    order = sorted(known, key=lambda label: (known[label].value, known[label].at_least))
    runs = [run for label in order for run in by_label[label]]
    compared = differences.differences(runs, [(label, order[0]) for label in order[1:]], [figure]) if order else []
    behind = {one.label: one for one in compared}
    ends = [end for one in known.values() for end in (one.value, one.high) if math.isfinite(end)]
    scale = max(ends, default=0.0)
    places = places_of([known[label] for label in order])
    rows = [
        Row(place, label, known[label], figure, behind.get(label), scale)
        for place, label in zip(places, order, strict=True)
    ]
    return Ranking(figure, rows, [label for label in by_label if label not in known])


def board_of(known: Known, first: Figure) -> Board | None:
    """The campaign's board, sorted by `first` and by every other figure. None: there are less than two schemes to rank.
    Raises UnfinishedError while its runs are read."""
    runs, left_out = at_common_places(differences.sound(known.runs()))
    by_label = grouped((run.label, run) for run in runs)
    if len(by_label) < 2:
        return None
    figures = [first, *(figure for figure in COMPARED if figure is not first)]
    campaign = known.campaign
    return Board(
        name=campaign.experiment_name or known.name,
        description=str(campaign.experiment.get("description") or ""),
        arena=campaign.arena or "–",
        exact=is_exact(campaign.arena),
        pairs=list(dict.fromkeys(run.pair for run in runs)),
        plays=len(runs) // len(by_label),
        left_out=left_out,
        measured=max(run.started for run in runs),
        revision=revision_words(campaign.git),
        rankings=[_ranking(figure, by_label) for figure in figures],
    )


def chosen(store: Store, names: Sequence[str]) -> list[Known]:
    """The campaigns of the board: the named ones, else the newest complete one of each name. Raises UserError."""
    newest = store.newest()
    known = {one.campaign.experiment_name: one for one in newest} | {one.name: one for one in store.all()}
    for name in names:
        if name not in known:
            raise UserError(f"there is no campaign '{name}'; {near_miss(name, known)}")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [one for one in newest if one.has_runs and one.campaign.state == "complete"]


def figure_named(name: str) -> Figure:
    if name not in FIGURES:
        raise UserError(f"there is no figure '{name}' to sort by; {near_miss(name, FIGURES)}")
    return FIGURES[name]


# --- export -----------------------------------------------------------------------------------------------------------


def _records(boards: Sequence[Board]) -> list[dict[str, Any]]:
    return [
        {"campaign": board.name, "arena": board.arena, "plays": board.plays, "revision": board.revision} | row.record()
        for board in boards
        for ranking in board.rankings
        for row in ranking.rows
    ]


def page_of(boards: Sequence[Board]) -> str:
    """The page, without scripts and external files."""
    return str(
        environment()
        .get_template("public.html.j2")
        .render(boards=boards, style=Markup(style()), made=datetime.now(UTC), width=WIDTH, json=DATA, csv=TABLE)  # noqa: S704
    )


def export(boards: Sequence[Board], folder: Path) -> Path:
    """Writes the page and its figures as JSON and CSV into the folder. Raises UserError."""
    if not boards:
        raise UserError("there is no complete campaign with two schemes to rank; `railyard run EXPERIMENT` makes one.")
    records = _records(boards)
    texts = {
        DATA: json.dumps(records, indent=1, ensure_ascii=False) + "\n",
        TABLE: csv_text(records[0], [record.values() for record in records]),
        PAGE: page_of(boards),
    }
    with writing(folder / PAGE):
        for name, text in texts.items():
            write_whole(folder / name, text)
    return folder / PAGE
