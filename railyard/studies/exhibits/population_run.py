"""Carries out an exhibit of a population: its plays, then `exhibit.json`."""

from dataclasses import replace
from pathlib import Path

from railyard.base.yamlfile import YamlDocument
from railyard.report.exhibit import Exhibit
from railyard.studies.exhibits import registry
from railyard.studies.exhibits.run import write
from railyard.studies.population.campaign import Asked, Place, Tell
from railyard.studies.population.executors import LocalExecutor
from railyard.studies.population.model import load_exhibit_spec
from railyard.studies.population.run import carry_out, only_sim
from railyard.studies.request import RunRequest


def exhibit_of(
    document: YamlDocument, asked: Asked, out: Path | None, jobs: int | None, tell: Tell
) -> tuple[Exhibit, Path]:
    """The exhibit of a file of kind population-exhibit, and the folder of its plays. Takes plays from other folders
    that have them."""
    spec, population = load_exhibit_spec(document)
    asked = replace(asked, arms=tuple(spec.arms))
    outcome = carry_out(population, Place(spec.name, out), asked, LocalExecutor(jobs), tell)
    return registry.builder(spec.name)(outcome.folder, (spec, outcome)), outcome.folder


def run_exhibit_file(document: YamlDocument, request: RunRequest) -> None:
    """`railyard run` with such a file."""
    only_sim(request)
    asked = Asked(request.size, fresh=not request.resume)
    exhibit, folder = exhibit_of(document, asked, request.out, request.jobs, request.console.print)
    write(exhibit, folder, request)
