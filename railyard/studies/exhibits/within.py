"""Makes the whole report within a time: decides as many claims as possible, and says what the others need.

First come the exhibits with a fixed number of runs (size `brief`), then a pilot: the exhibits over the population with
few viewers of another seed. The needs of the pilot's claims and the time left determine the numbers of viewers
(railyard/stats/design.py). They are written down before the report's own viewers are played. The verdicts use none of
the pilot's viewers.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from railyard.base.errors import UserError
from railyard.base.yamlfile import load_yaml
from railyard.experiment.model import find_experiment
from railyard.report.exhibit import Claim, Exhibit, load_exhibit
from railyard.run.folders import write_json
from railyard.stats.design import Offer, Wish, cost_s, sizes_within
from railyard.studies.exhibits import registry
from railyard.studies.population.campaign import Asked, Pace, Place, run_population
from railyard.studies.population.executors import LocalExecutor
from railyard.studies.population.model import Population, PopulationExhibit, load_exhibit_spec
from railyard.studies.request import RunRequest

Tell = Callable[[str], None]

PILOT_SEED = 1_000_000
"""The pilot's seed − the population's seed."""
PILOT_VIEWERS_A_DAY = 12
DAYS = 2
MARGIN = 0.85
"""The share of the time left that is planned. Pages, and plays that take longer than the pilot's, need the rest."""
PLAN_FILE = "plan.json"
# Their arena. None: their own. The simulator has all schemes except for the kernel's.
FIXED: dict[str, str | None] = {"fig1": None, "fig6": None, "fig7": None, "fig8": None, "fig13": "sim", "fig14": None}
FIXED |= {"fig15": None, "table4": None}
# Exhibits over the same plays are one part.
PARTS = (("fig10", "table2"), ("fig1c", "table1"), ("fig11", "table3"), ("fig12",))


@dataclass(frozen=True)
class Piloted:
    """The result of a part in the pilot."""

    offer: Offer
    viewer_s: float
    """The time of one more viewer of this part, in s."""


@contextmanager
def _no_exhibit(name: str, failed: list[str], tell: Tell) -> Iterator[None]:
    """A context in which a failed exhibit is reported, so that the others go on."""
    try:
        yield
    except UserError as error:
        tell(f"{name}: {error}")
        failed.append(name)


def _of(name: str) -> tuple[PopulationExhibit, Population]:
    return load_exhibit_spec(load_yaml(find_experiment(name)))


def _made(
    name: str, population: Population, out: Path, viewers_per_day: int, jobs: int | None
) -> tuple[Exhibit, float, Pace]:
    """An exhibit over a number of viewers, the time to compute its figures, and the time of its plays."""
    spec, _ = _of(name)
    asked = Asked("brief", arms=tuple(spec.arms), viewers_per_day=viewers_per_day, days=DAYS)
    outcome = run_population(population, Place(name, out), asked, LocalExecutor(jobs), lambda _: None, lambda *_: None)
    begin = time.monotonic()
    exhibit: Exhibit = registry.builder(name)(outcome.folder, (spec, outcome))
    return exhibit, time.monotonic() - begin, outcome.pace


def _pilot(names: tuple[str, ...], folder: Path, jobs: int | None) -> Piloted:
    claims: list[Claim] = []
    pace, figures_s, videos = Pace(), 0.0, 1
    arms: list[str] = []
    for name in names:
        spec, population = _of(name)
        arms, videos = spec.arms, spec.videos
        other = population.model_copy(update={"seed": population.seed + PILOT_SEED})
        exhibit, seconds, own = _made(name, other, folder / name, PILOT_VIEWERS_A_DAY, jobs)
        pace = Pace(pace.plays + own.plays, pace.seconds + own.seconds)
        claims += exhibit.claims
        figures_s += seconds
    viewers = DAYS * PILOT_VIEWERS_A_DAY
    pieces = {f"{arm}, {videos} videos": pace.play_s for arm in arms}
    pieces[f"figures of {names[0]}"] = figures_s / viewers
    wishes = [Wish(claim.wants.units, claim.wants.sure) for claim in claims if claim.wants is not None]
    return Piloted(Offer(names[0], viewers, pieces, wishes), sum(pieces.values()))


def _plan(results: Path, budget_s: float, begin: float, jobs: int | None, tell: Tell) -> dict[str, dict[str, float]]:
    """The number of viewers of each part and the time of each: from a pilot, or as written down before."""
    file = results / PLAN_FILE
    if file.is_file():
        known: dict[str, dict[str, float]] = json.loads(file.read_text())["parts"]
        return known
    with TemporaryDirectory(prefix="railyard-pilot-") as folder:
        pilots = [_pilot(names, Path(folder), jobs) for names in PARTS]
    offers = [each.offer for each in pilots]
    left_s = MARGIN * (budget_s - (time.monotonic() - begin))
    sizes = sizes_within(offers, left_s)
    tell(
        f"pilot: {DAYS * PILOT_VIEWERS_A_DAY} other viewers; {left_s:.0f} s are left, planned are "
        f"{cost_s(offers, sizes):.0f} s: " + ", ".join(f"{name} {size} viewers" for name, size in sizes.items())
    )
    parts = {each.offer.name: {"viewers": sizes[each.offer.name], "viewer_s": each.viewer_s} for each in pilots}
    write_json(file, {"budget_s": budget_s, "pilot_seed_added": PILOT_SEED, "parts": parts})
    return parts


def with_time(exhibit: Exhibit, viewer_s: float) -> Exhibit:
    """The exhibit with the needs of open claims also in minutes, and with the rule for the number of viewers."""
    claims = []
    for claim in exhibit.claims:
        if claim.verdict == "not decided" and claim.wants is not None:
            minutes = claim.wants.units * viewer_s / 60
            needs = f"{claim.needs}; that many take about {max(1, round(minutes))} min here"
            claims.append(claim.model_copy(update={"needs": needs}))
        else:
            claims.append(claim)
    chosen = (
        f"; the number of viewers was chosen before they were played, from the time and a pilot of "
        f"{DAYS * PILOT_VIEWERS_A_DAY} viewers of another seed, who count in no figure"
    )
    return exhibit.model_copy(update={"claims": claims, "confidence": exhibit.confidence + chosen})


def _fixed(name: str, arena: str | None, results: Path, jobs: int | None) -> Exhibit:
    document = load_yaml(find_experiment(name))
    runner = registry.runner(document)
    if runner is None:
        raise UserError(f"{document.path}: this is no exhibit.")
    out = results / name
    runner(document, RunRequest(Console(quiet=True), arena=arena, jobs=jobs if arena else None, out=out, size="brief"))
    return load_exhibit(out)


def exhibits_within(budget_s: float, results: Path, jobs: int | None, tell: Tell) -> list[str]:
    """Makes all exhibits below a folder within a time. Returns the names of those that failed."""
    begin = time.monotonic()
    failed: list[str] = []
    made: list[Exhibit] = []
    for name, arena in FIXED.items():
        with _no_exhibit(name, failed, tell):
            made.append(_fixed(name, arena, results, jobs))
            _say(made[-1], begin, tell)
    parts = _plan(results, budget_s, begin, jobs, tell)
    for names in PARTS:
        size = parts[names[0]]
        for name in names:
            with _no_exhibit(name, failed, tell):
                _, population = _of(name)
                a_day = -(-int(size["viewers"]) // DAYS)
                exhibit, _, _ = _made(name, population, results / name, a_day, jobs)
                exhibit = with_time(exhibit, size["viewer_s"])
                exhibit.write(results / name)
                made.append(exhibit)
                _say(exhibit, begin, tell)
    tell(summary(made, time.monotonic() - begin, budget_s))
    return failed


def summary(made: Sequence[Exhibit], took_s: float, budget_s: float) -> str:
    """The number of decided claims and, if the report took too long, by how much, in words."""
    claims = [claim for exhibit in made for claim in exhibit.claims]
    decided = sum(claim.verdict != "not decided" for claim in claims)
    over_s = took_s - budget_s
    late = f", {over_s:.0f} s more than asked for: this machine is busy, or the time is short" if over_s > 1 else ""
    return f"{decided} of {len(claims)} claims decided in {took_s:.0f} s{late}"


def _say(exhibit: Exhibit, begin: float, tell: Tell) -> None:
    said = ", ".join(f"{claim.id} {claim.verdict}" for claim in exhibit.claims) or "no claims"
    tell(f"{time.monotonic() - begin:4.0f} s  {exhibit.name}: {said}")
