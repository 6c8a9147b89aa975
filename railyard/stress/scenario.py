"""Scenarios of the corpus: an experiment over one pair, the expectations of each run, and their sources."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.yamlfile import FieldError, YamlDocument, find_yaml, load_yaml, parse
from railyard.experiment.model import PATH_EVENTS, Experiment, Qlog, SchemeEntry, Strict

STRESS_DIR = EXPERIMENTS_DIR / "stress"
RATE_BPS = 1_000_000_000  # of a load: a video of this rate always lacks data
WAIT_MS = 600_000
BULK = {
    "bitrate_bps": RATE_BPS,
    "first_frame_bytes": 65_536,
    "startup_buffer_ms": WAIT_MS,
    "max_buffer_ms": WAIT_MS,
}

Seconds = Annotated[float, Field(ge=0)]


class Window(Strict):
    """Seconds on the clock of the links. Without `to_s` it ends with the load."""

    from_s: Seconds = 0.0
    to_s: Seconds | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "Window":
        if self.to_s is not None and self.to_s <= self.from_s:
            raise FieldError("to_s", f"to_s ({self.to_s:g}) must be after from_s ({self.from_s:g}).")
        return self


class Gap(Window):
    """The longest time without progress."""

    max: Annotated[float, Field(gt=0)]


class Ratio(Window):
    """Goodput, divided by that of the same stack over the path `of` alone."""

    of: str
    min: Annotated[float, Field(gt=0)]


class Share(Window):
    """Share of the bytes that the downlinks delivered."""

    path: str
    max: Annotated[float, Field(ge=0, le=1)] | None = None
    min: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> "Share":
        if (self.max is None) == (self.min is None):
            raise ValueError("a path_share has a 'max' or a 'min'; give one of them.")
        return self


class Expect(Strict):
    """What must be true of every run. docs/reference/stress.md says how each is measured."""

    outcome: list[str] = Field(default=["complete"], min_length=1)
    complete: Annotated[float, Field(gt=0)] | None = None
    progress_gap_ms: Gap | None = None
    goodput_ratio: Ratio | None = None
    path_share: Share | None = None

    @field_validator("outcome", mode="before")
    @classmethod
    def _from_word(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


class Scenario(Experiment):
    """A file of experiments/stress/."""

    arena: str = "sim"
    schemes: list[SchemeEntry] = Field(default=[SchemeEntry(scheme="vanilla-mp")], min_length=1)
    start_offset_ms: Literal["drawn", "spread", "worst_of_primary"] | Annotated[int, Field(ge=0)] = 0
    qlog: Qlog | None = "none"
    # The RFCs and threads from which the scenario and its thresholds come.
    sources: list[str] = Field(min_length=1)
    expect: Expect
    # What a stack must be able to do, so that the scenario says something of it.
    needs: list[Literal["multipath"]] = Field(default=[])
    # Changes of paths by the client: schemes of libxlink alone have an interface for them.
    path_events: Annotated[str, Field(pattern=PATH_EVENTS)] | None = None

    # Bytes of a single request, in place of a video: nothing is played before all of it has arrived.
    load_bytes: Annotated[int, Field(ge=100_000, le=1 << 30)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_load(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("load_bytes"), int):
            if "player" in value:
                raise FieldError("load_bytes", "a load and a video are both given; leave out load_bytes or player.")
            size = value["load_bytes"]
            return value | {"player": BULK | {"duration_s": 8 * size / RATE_BPS, "chunk_bytes": size}}
        return value

    @field_validator("path_events", mode="before")
    @classmethod
    def _joined(cls, value: object) -> object:
        return ",".join(map(str, value)) if isinstance(value, list) else value

    @property
    def event_s(self) -> float:
        """The time of the first link event, in s. Without one, the start: 0."""
        return self.link_events[0].t_s if self.link_events else 0.0

    @model_validator(mode="after")
    def _can_be_judged(self) -> "Scenario":
        if len(self.pairs) != 1:
            raise FieldError("pairs", "a scenario has one pair; write each other one as a scenario of its own.")
        if not self.link_logs:
            raise FieldError("link_logs", "a scenario is judged by its link logs; leave the field out.")
        return self


def find_scenario(name: str) -> Path:
    """A path as given, `experiments/stress/NAME.yaml`, or the only scenario whose name begins with it, such as `03`."""
    beginning = sorted(STRESS_DIR.glob(f"{name}-*.yaml")) if name.isdigit() else []
    return beginning[0] if len(beginning) == 1 else find_yaml(name, STRESS_DIR, "scenario")


def load_scenario(path: Path) -> tuple[Scenario, YamlDocument]:
    document = load_yaml(path)
    return parse(document, Scenario), document


def all_scenarios() -> list[Path]:
    return sorted(STRESS_DIR.glob("*.yaml"))
