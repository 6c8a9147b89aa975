"""A suite: an experiment in virtual time, and the floors below which a difference does not matter."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, create_model, field_validator, model_validator

from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.yamlfile import FieldError, YamlDocument, find_yaml, load_yaml, parse
from railyard.experiment.arenas import ARENAS, is_exact
from railyard.experiment.model import Experiment, Qlog, Strict
from railyard.figures.rows import GATED
from railyard.run.arena import arena_of
from railyard.run.parts import Part, labelled, merged, refuse_twins
from railyard.run.resolve import resolve
from railyard.run.runspec import RunSpec

SUITES_DIR = EXPERIMENTS_DIR / "suites"
DEFAULT_SUITE = "mobility"
FEWEST_PLAYS = 5  # 2^-5 is the largest power of 1/2 below 0.05: with fewer plays no test could ever be significant

Share = Annotated[float, Field(ge=0, le=10)]


if TYPE_CHECKING:

    class Floors(Strict):
        """The smallest change for the worse that counts, by the name of a figure."""
else:
    Floors = create_model(
        "Floors",
        __base__=Strict,
        __doc__="The smallest change for the worse that counts.",
        **{figure.name: (Share, figure.gate.floor) for figure in GATED},
    )


class Suite(Experiment):
    """The experiment that the gate runs on both versions."""

    arena: str = "sim"
    qlog: Qlog | None = "none"
    link_logs: bool = False
    floors: Floors = Floors()
    # Seeds of each pair that every row runs. A row with identical outputs in all of them runs no further seeds.
    first_look: Annotated[int, Field(ge=1)] = 20
    # The probability of even one false alarm among all comparisons of the suite.
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    # What is varied: every scheme has a row for each part, named SCHEME--KEY.
    parts: list[Part] = Field(default=[])

    @field_validator("arena")
    @classmethod
    def _exact(cls, value: str) -> str:
        if not is_exact(value):
            exact = " or ".join(name for name in ARENAS if is_exact(name))
            raise ValueError(f"a suite runs in virtual time ({exact}), not in '{value}'; leave the field out.")
        return value

    @model_validator(mode="after")
    def _can_be_compared(self) -> "Suite":
        if len(self.seeds) * len(self.pairs) < FEWEST_PLAYS:
            raise FieldError(
                "seeds",
                f"{len(self.seeds)} seeds can show no significant difference; a suite needs {FEWEST_PLAYS} plays or "
                "more of each scheme.",
            )
        refuse_twins(self.parts)
        for entry in self.schemes:
            if reason := arena_of(self.arena).refuses(entry.scheme):
                raise FieldError(
                    "schemes", f"'{entry.scheme}' {reason}; leave it out, or give the suite 'arena: kernel'."
                )
        return self


def find_suite(name: str) -> Path:
    """A path as given, or `experiments/suites/NAME.yaml`; `default` is the one that runs if none is named."""
    return find_yaml(DEFAULT_SUITE if name == "default" else name, SUITES_DIR, "suite")


def load_suite(path: Path) -> tuple[Suite, YamlDocument]:
    document = load_yaml(path)
    return parse(document, Suite), document


def runs_of(suite: Suite, document: YamlDocument, programs: dict[str, str] | None = None) -> list[RunSpec]:
    """The runs of a suite, of each of its parts. `programs` as for resolve()."""
    if not suite.parts:
        return resolve(suite, document, programs)
    given = suite.model_dump(mode="json", exclude_unset=True, exclude={"parts"})
    runs: list[RunSpec] = []
    for part in suite.parts:
        inner = YamlDocument(document.path, merged(given, part.set), document.lines)
        runs += labelled(resolve(parse(inner, Suite), inner, programs), part)
    return runs
