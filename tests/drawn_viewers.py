"""Viewers of a population and their tasks, for tests that look at single plays."""

from collections.abc import Sequence
from pathlib import Path

from railyard.base.provenance import sha256_of
from railyard.studies.population.model import Population
from railyard.studies.population.play import Arm, Task, task_of
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import Viewer, draw_viewer


def draw_viewers(population: Population, library: Library, days: Sequence[int], per_day: int) -> list[Viewer]:
    return [draw_viewer(population, library, day, number) for day in days for number in range(1, per_day + 1)]


def tasks_of(population: Population, viewers: Sequence[Viewer], arms: Sequence[Arm], program: Path) -> list[Task]:
    digest = sha256_of(program)
    return [task_of(population, viewer, arms, str(program), digest) for viewer in viewers]
