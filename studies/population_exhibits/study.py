"""Carries out the exhibits over a population as `railyard run` does, and keeps their tables and verdicts."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from railyard.base.yamlfile import load_yaml
from railyard.experiment.model import Strict, find_experiment
from railyard.report.exhibit import Claim, Size, Table
from railyard.studies.exhibits.population_run import exhibit_of
from railyard.studies.population.campaign import Asked
from railyard.studies.study import CLAIMS, Data, markdown, tell


class Settings(Strict):
    exhibits: list[str] = Field(min_length=1)
    scale: Size  # selects the population's numbers of days and viewers
    jobs: int | None = Field(default=None, ge=1)  # processes; None: one for each core
    out: Path | None = None  # folder of the results, one in it for each exhibit; results/ where it is not set


class Found(Data):
    tables: list[Table]
    claims: list[Claim]


class Measured(Data):
    exhibits: dict[str, Found]


def measure(settings: Settings) -> Measured:
    return Measured(exhibits={name: _found(name, settings) for name in settings.exhibits})


def _found(name: str, settings: Settings) -> Found:
    out = settings.out and settings.out / name
    exhibit, _ = exhibit_of(load_yaml(find_experiment(name)), Asked(settings.scale), out, settings.jobs, tell)
    return Found(tables=exhibit.tables, claims=exhibit.claims)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    """The tables of an exhibit by its name and their numbers, and one of all claims."""
    for name, found in measured.exhibits.items():
        yield from ((f"{name}-{number}", table.markdown) for number, table in enumerate(found.tables, 1))
    rows = [
        [f"`{name}`: {claim.claim}", claim.theirs, claim.ours, f"**{claim.verdict}**"]
        for name, found in measured.exhibits.items()
        for claim in found.claims
    ]
    yield CLAIMS, markdown(["claim", "the paper", "here", "verdict"], rows, left=4)
