"""Carries out an exhibit of a population: its plays, then `exhibit.json`."""

from railyard.base.yamlfile import YamlDocument
from railyard.report.exhibit import Exhibit
from railyard.studies.exhibits import registry
from railyard.studies.exhibits.run import write
from railyard.studies.population.campaign import Asked, Place
from railyard.studies.population.executors import LocalExecutor
from railyard.studies.population.model import load_exhibit_spec
from railyard.studies.population.run import carry_out, only_sim
from railyard.studies.request import RunRequest


def run_exhibit_file(document: YamlDocument, request: RunRequest) -> None:
    """`railyard run` with a file of kind population-exhibit. Takes plays from other folders that have
    them."""
    spec, population = load_exhibit_spec(document)
    only_sim(request)
    asked = Asked(request.size, arms=tuple(spec.arms), fresh=not request.resume)
    place = Place(spec.name, request.out)
    outcome = carry_out(population, place, asked, LocalExecutor(request.jobs), request.console.print)
    exhibit: Exhibit = registry.builder(spec.name)(outcome.folder, (spec, outcome))
    write(exhibit, outcome.folder, request)
