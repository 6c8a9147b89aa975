"""The models of populations, such as `experiments/population.yaml`, and of exhibits over a population.

The file has all distributions from which viewers are drawn; docs/reference/population.md has their sources.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from railyard.base.errors import UserError
from railyard.base.models import Positive, Share, StrictModel
from railyard.base.paths import EXPERIMENTS_DIR
from railyard.base.yamlfile import FieldError, YamlDocument, load_yaml, near_miss, parse
from railyard.experiment.model import TRANSPORT_OF_SCHEME, SchemeEntry, find_experiment
from railyard.figures.rows import RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE
from railyard.report.exhibit import SIZES, Size
from railyard.studies.claims import PaperClaim, PaperClaims
from railyard.traces.draws import Draws
from railyard.traces.names import Technology
from railyard.traces.parameters import Lengths, MobilityModel
from railyard.traces.presets import mobility_models

CLAIMED = tuple(figure.name for figure in (RCT_MEDIAN, RCT_P95, RCT_P99, REBUFFER_RATE))
ON_A_FIGURE = (
    f"it takes a `figure` ({', '.join(CLAIMED)}) of an arm `a` against `b: sp` and the rule `worse` or `within`."
)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class Lognormal(StrictModel):
    """A lognormal quantity, drawn values held within [least, most]."""

    median: Positive
    sigma: Annotated[float, Field(ge=0)]
    least: Positive
    most: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "Lognormal":
        if not self.least <= self.median <= self.most:
            raise FieldError("median", "least <= median <= most must hold.")
        return self

    def drawn(self, draws: Draws) -> float:
        return min(self.most, max(self.least, self.median * math.exp(self.sigma * draws.normal())))

    def scaled(self, factor: float) -> "Lognormal":
        changed = {name: getattr(self, name) * factor for name in ("median", "least", "most")}
        return self.model_copy(update=changed)


class Spread(StrictModel):
    """A lognormal quantity whose median is given elsewhere."""

    sigma: Annotated[float, Field(ge=0)]
    least: Positive
    most: Positive

    def around(self, median: float) -> Lognormal:
        held = min(self.most, max(self.least, median))
        return Lognormal(median=held, sigma=self.sigma, least=self.least, most=self.most)


class Choice(StrictModel):
    value: Annotated[int, Field(gt=0)]
    share: Positive


class PathDraw(StrictModel):
    """How one path differs from viewer to viewer; what is left out is the pair's own."""

    base_rtt_ms: Lognormal | None = None
    queue_ms: Lognormal | None = None  # of the path's mean downlink rate; droptail
    rate_factor: Lognormal | None = None  # generated pairs: of the model's median rate, drawn once a pair


class Fading(StrictModel):
    """ln(rate) of one path over time: an AR(1) process."""

    sigma: Annotated[float, Field(ge=0)]
    time_constant_s: Positive


class Spells(StrictModel):
    """Times in which a path has less of its rate, or none, as a Poisson process."""

    per_minute: Positive
    length: Lengths
    level: Share = 0.0
    """What is left of the rate."""


class Load(StrictModel):
    """What others offer to a path's bottleneck: lognormal from viewer to viewer, and over time."""

    sigma: Annotated[float, Field(ge=0)]
    """Between viewers, of ln(load)."""
    most: Share
    burst_sigma: Annotated[float, Field(ge=0)]
    """Over time, of ln(load)."""
    time_constant_s: Positive


class Radio(StrictModel):
    """The radio of a second path, which sleeps: settings of its links (docs/reference/links.md)."""

    asleep: Share
    """Share of the plays that find it asleep."""
    promotion: str
    """What the first packet waits for, on the way up."""
    drx: str
    """What the first packet after a pause waits for, on the way down."""


class PathAccess(StrictModel):
    """One path of the viewers who sit still. Medians of rate, load, base RTT and queue are parameters."""

    technology: Technology
    least_mbps: Positive
    most_mbps: Positive
    rtt: Spread
    queue: Spread
    """In ms of the path's rate; droptail. It bounds the queueing behind others, too."""
    load: Load
    fading: Fading
    dips: Spells
    silences: Spells
    uplink: Annotated[float, Field(gt=0, le=1)]
    """Its rate as a share of the downlink's."""
    radio: Radio | None = None


class Access(StrictModel):
    wifi: PathAccess
    lte: PathAccess


class PathPlace(StrictModel):
    """What a place makes of a path: factors of its median rate and of its load."""

    rate: Positive = 1.0
    load: Positive = 1.0


class Place(StrictModel):
    """A kind of place where viewers sit still."""

    wifi: PathPlace
    lte: PathPlace
    correlation: Annotated[float, Field(ge=-1, le=1)] = 0.0
    """Between viewers, of ln(rate) of both paths."""
    leaving: Annotated[float, Field(ge=0)] = 1.0
    """Factor of the share of plays in which Wi-Fi is left behind."""


class Parameters(StrictModel):
    """What no publication gives; `experiments/fitted/population-fit.yaml` says how it is fitted, or what is assumed."""

    wifi_mbps: Positive
    """Median rate of Wi-Fi at home."""
    wifi_spread: Annotated[float, Field(ge=0)]
    """Standard deviation of ln(rate) between viewers."""
    lte_mbps: Positive
    lte_spread: Annotated[float, Field(ge=0)]
    wifi_rtt_ms: Positive
    """Median base RTT."""
    lte_rtt_ms: Positive
    wifi_queue_ms: Positive
    """Median length of the bottleneck's queue."""
    lte_queue_ms: Positive
    wifi_load: Annotated[float, Field(ge=0, lt=1)]
    """Median load at home."""
    lte_load: Annotated[float, Field(ge=0, lt=1)]
    leaving: Share
    """Share of plays at home in which Wi-Fi is left behind."""


class Scene(StrictModel):
    """Where viewers are: a place where they sit still, pairs of the trace library by scenario, or pairs generated from
    a model."""

    name: Name
    share: Positive
    scenarios: list[str] = Field(default=[])
    model: MobilityModel | None = None
    pairs: Annotated[int, Field(ge=1, le=1000)] = 1  # generated ones
    duration_s: Annotated[int, Field(ge=10, le=600)] = 60
    paths: dict[str, PathDraw] = Field(default={})
    place: Place | None = None

    @field_validator("model", mode="before")
    @classmethod
    def _preset(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in mobility_models():
                raise ValueError(f"unknown model '{value}'; {near_miss(value, mobility_models())}")
            return mobility_models()[value]
        return value

    @model_validator(mode="after")
    def _one_source(self) -> "Scene":
        if [bool(self.scenarios), self.model is not None, self.place is not None].count(True) != 1:
            raise ValueError("a scene has 'scenarios' of the trace library, a 'model' or a 'place'; give one of them.")
        if self.place is not None and self.paths:
            raise FieldError("paths", "a place says what its paths are; leave this out.")
        if self.model is None:
            for name, draw in self.paths.items():
                if draw.rate_factor is not None:
                    raise FieldError("paths", f"'{name}' has a rate_factor, but only generated pairs can be scaled.")
            return self
        known = [path.name for path in self.model.paths]
        for name in self.paths:
            if name not in known:
                raise FieldError("paths", f"the model has no path '{name}'; {near_miss(name, known)}")
        return self

    def with_rate(self, path: str, factor: float) -> "Scene":
        if self.place is not None:
            own: PathPlace = getattr(self.place, path)
            changed = own.model_copy(update={"rate": own.rate * factor})
            return self.model_copy(update={"place": self.place.model_copy(update={path: changed})})
        draw = self.paths.get(path)
        if draw is None or draw.rate_factor is None:
            return self
        scaled = draw.model_copy(update={"rate_factor": draw.rate_factor.scaled(factor)})
        return self.model_copy(update={"paths": self.paths | {path: scaled}})


class CrossIsp(StrictModel):
    """The secondary path's operator is another one than the server's: its delay grows (paper, table 4)."""

    operators: dict[str, Positive]  # shares of the viewers
    increase_percent: dict[str, dict[str, Annotated[float, Field(ge=0, le=1000)]]]  # [server's][viewer's]

    @model_validator(mode="after")
    def _whole(self) -> "CrossIsp":
        for server in self.operators:
            for own in self.operators:
                if own != server and own not in self.increase_percent.get(server, {}):
                    raise FieldError("increase_percent", f"the increase from {server} to {own} is missing; add it.")
        return self


class Watching(StrictModel):
    """How much of a video a viewer sees before the next one: all of it, or the share u ** early, u uniform."""

    to_the_end: Share
    early: Positive


class Video(StrictModel):
    bitrate_bps: list[Choice] = Field(min_length=1)
    duration_s: Lognormal
    first_frame_bytes: Lognormal
    chunk_bytes: Annotated[int, Field(ge=1024, le=1 << 30)]
    fps: Annotated[float, Field(ge=1, le=240)] = 30
    rebuffer_target_ms: Annotated[int, Field(ge=1, le=600_000)] = 500
    max_buffer_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000
    watching: Watching = Watching(to_the_end=1.0, early=1.0)
    videos: Annotated[int, Field(ge=1, le=100)] = 1
    """The number of equal videos, one after the other over one connection. Play-time left and thresholds are of the
    first."""

    def with_videos(self, videos: int) -> "Video":
        return self.model_copy(update={"videos": videos})


class Scale(StrictModel):
    days: Annotated[int, Field(ge=1, le=366)]
    viewers_per_day: Annotated[int, Field(ge=1, le=1_000_000)]
    pilot_viewers: Annotated[int, Field(ge=1, le=100_000)]


class Population(StrictModel):
    kind: Literal["population"]
    name: Name
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    # Standard deviation of ln(share) of a scene from day to day: a day is a mix of traces.
    day_sigma: Annotated[float, Field(ge=0, le=3)]
    sizes: dict[Size, Scale]
    scenes: list[Scene] = Field(min_length=1)
    access: Access | None = None  # of the scenes that are places
    parameters: Parameters | None = None
    fitted: str | None = None
    """The file with the parameters, beside this one or in experiments/."""
    cross_isp: CrossIsp
    video: Video
    time_limit_factor: Annotated[float, Field(ge=1)] = 3
    arms: list[SchemeEntry] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "Population":
        for size in SIZES:
            if size != "brief" and size not in self.sizes:
                raise FieldError("sizes", f"the size '{size}' is missing; add it.")
        labels = [arm.base_label() for arm in self.arms]
        for label in labels:
            if labels.count(label) > 1:
                raise FieldError("arms", f"two arms are both called '{label}'; give one a 'label'.")
        for arm in self.arms:
            if TRANSPORT_OF_SCHEME[arm.scheme] != "quic":
                raise FieldError("arms", f"{arm.scheme} runs in the kernel, and a population in virtual time.")
            if arm.scheme == "sp" and arm.path not in ("each", "primary"):
                raise FieldError("arms", "sp is on the primary path here, since the paths' names differ.")
            if arm.path_events or arm.path_management:
                raise FieldError("arms", "path_events and path_management are not for populations; leave them out.")
        if self.access is None and any(scene.place is not None for scene in self.scenes):
            raise FieldError("scenes", "a scene is a place, and 'access' is missing; add that.")
        if len({scene.name for scene in self.scenes}) != len(self.scenes):
            raise FieldError("scenes", "two scenes have one name; rename one.")
        return self

    def with_rate(self, path: str, factor: float) -> "Population":
        """The same viewers with this path's rate in generated pairs multiplied by a factor. The name has the factor
        too, because these are other plays. Raises UserError if no generated pair has such a path."""
        known = sorted(
            {name for scene in self.scenes for name, draw in scene.paths.items() if draw.rate_factor}
            | ({"wifi", "lte"} if any(scene.place is not None for scene in self.scenes) else set())
        )
        if path not in known:
            raise UserError(f"no scene draws the rate of a path '{path}'; {near_miss(path, known)}")
        scenes = [scene.with_rate(path, factor) for scene in self.scenes]
        return self.model_copy(update={"scenes": scenes, "name": f"{self.name}-{path}-{factor:g}"})

    def arm(self, label: str) -> SchemeEntry:
        return next(arm for arm in self.arms if arm.base_label() == label)


class PopulationExhibit(PaperClaims):
    """A figure or table over a population: which one, and which of its arms."""

    kind: Literal["population-exhibit"]
    name: Name
    description: str = ""
    population: Name = "population"
    arms: list[str] = Field(min_length=2)
    videos: Annotated[int, Field(ge=1, le=100)] = 1
    """The number of videos over one connection."""


class Fitted(StrictModel):
    """The file that a fit leaves, as far as a population reads it."""

    model_config = ConfigDict(extra="ignore")

    parameters: Parameters


def load_population(document: YamlDocument) -> Population:
    """A population with its fitted parameters."""
    population = parse(document, Population)
    if population.parameters is None and population.fitted is not None:
        beside = document.path.parent / population.fitted
        file = beside if beside.is_file() else EXPERIMENTS_DIR / population.fitted
        fitted = parse(load_yaml(file), Fitted)
        population = population.model_copy(update={"parameters": fitted.parameters})
    if population.parameters is None and population.access is not None:
        raise document.error(("access",), "places need parameters; name the file of a fit as 'fitted'.")
    return population


def load_exhibit_spec(document: YamlDocument) -> tuple[PopulationExhibit, Population]:
    """An exhibit's file and its population. The exhibit's arms must be arms of it."""
    spec = parse(document, PopulationExhibit)
    beside = document.path.parent / f"{spec.population}.yaml"
    file = beside if beside.is_file() else find_experiment(spec.population)
    population = load_population(load_yaml(file))
    if spec.videos > 1:
        population = population.model_copy(update={"video": population.video.with_videos(spec.videos)})
    known = [arm.base_label() for arm in population.arms]
    for index, label in enumerate(spec.arms):
        if label not in known:
            raise document.error(("arms", index), f"the population has no arm '{label}'; {near_miss(label, known)}")
    for index, claim in enumerate(spec.claims):
        for arm in (claim.a, claim.b):
            if arm is not None and arm not in spec.arms:
                message = f"claim '{claim.id}': there is no arm '{arm}'; {near_miss(arm, spec.arms)}"
                raise document.error(("claims", index), message)
        if claim.figure is not None and not is_on_a_figure(claim):
            raise document.error(("claims", index), f"claim '{claim.id}': {ON_A_FIGURE}")
    return spec, population


def is_on_a_figure(claim: PaperClaim) -> bool:
    """Whether the claim is on one figure of an arm against single path's."""
    return claim.figure in CLAIMED and claim.a is not None and claim.b == "sp" and claim.rule in ("worse", "within")
