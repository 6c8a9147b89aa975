"""Fits the free parameters of a population by simulated minimum distance (the method of simulated moments).

A moment is a figure that was measured in the deployment, with a tolerance. With parameters x its residual is

    r = ln(simulated(x) / measured) / tolerance        (of a share: r = (simulated - measured) / tolerance)

and the fit minimises the sum of r² (weights are 1 / tolerance²). The viewers' draws are the same for every x (common
random numbers), so the distance is a function of x and nothing else, and equal seeds give equal results. The optimiser
is scipy's trust-region least squares in ln(x), from the best of a scrambled Sobol sequence, with derivatives by
differences.

Intervals are those of the sandwich formula (Gourieroux and Monfort, Simulation-Based Econometric Methods, 1996):

    V = (J'J)⁻¹ J' S J (J'J)⁻¹,    S = 1 + C

with J the derivatives of the residuals, 1 the moments' tolerance, and C the covariance that the choice of viewers gives
the residuals, from a bootstrap over viewers. Held-out figures are predicted at parameters drawn from it, each with
viewers of its own, so the interval has both the parameters' uncertainty and that of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from railyard.base.errors import UserError
from railyard.base.intervals import Reals
from railyard.base.statistics import nearest_rank
from railyard.base.yamlfile import FieldError, YamlDocument, near_miss, parse
from railyard.studies.population.executors import Batch, Executor
from railyard.studies.population.model import Name, Parameters, Population, Positive, Strict
from railyard.studies.population.play import Arm, Row, arm_of, tasks_of
from railyard.studies.population.scenes import Library
from railyard.studies.population.viewers import Viewer, draw_viewers

FIT_DAY = -1
"""The day of the viewers of a fit, who are in no comparison; it has the mean mix of scenes."""
STEP = 0.12
"""Of ln(x), for derivatives: large against the steps in which a quantile of few viewers moves."""
PLAYS_A_BATCH = 12
RESAMPLES = 400
LEAST_SHARE = 1e-4
Z = 1.96
SCREEN_WIDTH = math.log(1.6)

What = Literal["rct", "primary_rtt", "second_rtt", "cost", "lte_faster"]


class Free(Strict):
    """A parameter to be fitted: where the search begins, and its bounds."""

    start: Positive
    least: Positive
    most: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Free:
        if not self.least < self.start < self.most:
            raise FieldError("start", "least < start < most must hold.")
        return self


class Moment(Strict):
    """A measured figure: of the RCT of whole requests, s; of a path's smoothed RTT, s; of all bytes sent twice, a
    share; or of the viewers at places, the share whose LTE is the faster path."""

    what: What
    arm: str
    q: Annotated[float, Field(gt=0, lt=1)] | None = None
    measured: Positive
    tolerance: Positive
    source: str

    @model_validator(mode="after")
    def _quantile(self) -> Moment:
        if (self.q is None) != (self.what in ("cost", "lte_faster")):
            raise FieldError("q", "RCT and RTT need a quantile, cost and lte_faster have none.")
        return self

    @property
    def name(self) -> str:
        return f"{self.arm} {self.what}" + (f" p{100 * self.q:g}" if self.q is not None else "")

    @property
    def is_share(self) -> bool:
        return self.what == "lte_faster"

    def residual(self, found: float) -> float:
        if self.is_share:
            return (found - self.measured) / self.tolerance
        return math.log(max(found, LEAST_SHARE) / self.measured) / self.tolerance


class FitSpec(Strict):
    """`experiments/fitted/population-fit.yaml`."""

    population: Name
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    viewers: Annotated[int, Field(ge=5)]
    screened: Annotated[int, Field(ge=0, le=1024)]
    """Points of the Sobol sequence to begin with, each with a third of the viewers."""
    iterations: Annotated[int, Field(ge=1, le=100)]
    predictions: Annotated[int, Field(ge=2, le=1000)]
    parameters: dict[str, Free]
    fixed: dict[str, float]
    """The other parameters: assumptions."""
    moments: list[Moment] = Field(min_length=1)
    held_out: list[Moment]

    @model_validator(mode="after")
    def _consistent(self) -> FitSpec:
        known = list(Parameters.model_fields)
        for name in [*self.parameters, *self.fixed]:
            if name not in known:
                raise FieldError("parameters", f"there is no parameter '{name}'; {near_miss(name, known)}")
        for name in known:
            if (name in self.parameters) == (name in self.fixed):
                raise FieldError("fixed", f"'{name}' must stand in 'parameters' or here; correct that.")
        if len(self.moments) < len(self.parameters):
            raise FieldError("moments", "there are fewer moments than parameters; fit fewer, or add moments.")
        return self


def load_fit(document: YamlDocument) -> FitSpec:
    return parse(document, FitSpec)


Tell = Callable[[str], None]


def _values(rows: Sequence[Row], moment: Moment, chunk_bytes: int) -> list[float]:
    """What the plays of an arm contribute to a quantile."""
    if moment.what == "rct":
        return [
            value
            for row in rows
            for value in row["rct_s"][: int(row["duration_s"] * row["bitrate_bps"] / 8) // chunk_bytes]
        ]
    number = 0 if moment.what == "primary_rtt" else 1
    return [row["srtt_us"][number] / 1e6 for row in rows if len(row["srtt_us"]) > number and row["srtt_us"][number]]


def figure_of(rows: Sequence[Row], moment: Moment, chunk_bytes: int, still: set[str]) -> float:
    """A moment of the plays of its arm; `still`: the scenes that are places."""
    if moment.q is not None:
        values = _values(rows, moment, chunk_bytes)
        return nearest_rank(sorted(values), moment.q) if values else math.nan
    if moment.what == "cost":
        twice = sum(int(row["reinjected_bytes"]) for row in rows)
        return twice / max(1, sum(int(row["stream_bytes_sent"]) for row in rows) - twice)
    rates = [row["path_mbps"] for row in rows if row["scene"] in still]
    return sum(bool(lte > wifi) for wifi, lte in rates) / max(1, len(rates))


@dataclass
class Simulator:
    """Plays the viewers of a fit with parameters."""

    population: Population
    arms: list[Arm]
    executor: Executor
    program: Path
    traces: Path
    plays: int = 0
    still: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.still = {scene.name for scene in self.population.scenes if scene.place is not None}

    def with_parameters(self, parameters: Parameters) -> Population:
        return self.population.model_copy(update={"parameters": parameters, "day_sigma": 0.0})

    def rows(self, parameters: Parameters, viewers: int, day: int) -> list[Row]:
        """In the order of viewers and arms."""
        population = self.with_parameters(parameters)
        library = Library(population, self.traces, recorded=False)
        drawn: list[Viewer] = draw_viewers(population, library, [day], viewers)
        tasks = tasks_of(population, drawn, self.arms, self.program)
        size = max(1, PLAYS_A_BATCH // len(self.arms))
        batches = [Batch(tuple(tasks[at : at + size])) for at in range(0, len(tasks), size)]
        found = [row for rows in self.executor.results(batches) for row in rows]
        self.plays += len(found)
        order = {arm.label: number for number, arm in enumerate(self.arms)}
        return sorted(found, key=lambda row: (row["viewer"], order[row["arm"]]))

    def figures(self, rows: Sequence[Row], moments: Sequence[Moment]) -> list[float]:
        of_arm: dict[str, list[Row]] = {}
        for row in rows:
            of_arm.setdefault(row["arm"], []).append(row)
        chunk = self.population.video.chunk_bytes
        return [figure_of(of_arm[moment.arm], moment, chunk, self.still) for moment in moments]

    def residuals(self, rows: Sequence[Row], moments: Sequence[Moment]) -> Reals:
        pairs = zip(moments, self.figures(rows, moments), strict=True)
        return np.array([moment.residual(found) for moment, found in pairs])


@dataclass(frozen=True)
class Interval95:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """What a fit came to."""

    parameters: dict[str, Interval95]
    distance: float
    simulated: list[float]  # of the moments
    predicted: list[Interval95]  # of the held-out figures
    plays: int


def _bounds(spec: FitSpec) -> tuple[Reals, Reals, Reals]:
    free = spec.parameters.values()
    return tuple(np.log([getattr(one, name) for one in free]) for name in ("start", "least", "most"))  # type: ignore[return-value]


def _parameters(spec: FitSpec, x: Reals) -> Parameters:
    found = {name: float(value) for name, value in zip(spec.parameters, np.exp(x), strict=True)}
    return Parameters.model_validate(spec.fixed | found)


def _screened(spec: FitSpec) -> list[Reals]:
    """Points around the start, by a scrambled Sobol sequence; the start itself first."""
    from scipy.stats import qmc  # noqa: PLC0415  slow to import

    start, least, most = _bounds(spec)
    points = qmc.Sobol(len(start), seed=spec.seed).random(spec.screened) if spec.screened else np.empty((0, len(start)))
    return [start, *(np.clip(start + SCREEN_WIDTH * (2 * point - 1), least, most) for point in points)]


def covariance(simulator: Simulator, rows: Sequence[Row], moments: Sequence[Moment], seed: int) -> Reals:
    """Of the residuals, over resamples of the viewers."""
    of_viewer: dict[int, list[Row]] = {}
    for row in rows:
        of_viewer.setdefault(row["viewer"], []).append(row)
    keys, draw = list(of_viewer), np.random.default_rng(seed)
    samples = []
    for _ in range(RESAMPLES):
        chosen = draw.integers(0, len(keys), len(keys))
        samples.append(simulator.residuals([row for at in chosen for row in of_viewer[keys[at]]], moments))
    found: Reals = np.cov(np.array(samples).T)
    return found


def sandwich(jacobian: Reals, noise: Reals) -> Reals:
    """V of the module's text."""
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    found: Reals = inverse @ jacobian.T @ (np.eye(len(noise)) + noise) @ jacobian @ inverse
    return found


@dataclass
class _Search:
    """The distance and its derivatives, each point simulated once."""

    spec: FitSpec
    simulator: Simulator
    tell: Tell
    known: dict[tuple[float, ...], tuple[Reals, list[Row]]] = field(default_factory=dict)

    def at(self, x: Reals, viewers: int) -> Reals:
        key = (viewers, *(float(value) for value in x))
        if key not in self.known:
            parameters = _parameters(self.spec, x)
            rows = self.simulator.rows(parameters, viewers, FIT_DAY)
            self.known[key] = (self.simulator.residuals(rows, self.spec.moments), rows)
        return self.known[key][0]

    def rows_at(self, x: Reals) -> list[Row]:
        self.at(x, self.spec.viewers)
        return self.known[self.spec.viewers, *(float(value) for value in x)][1]

    def residuals(self, x: Reals) -> Reals:
        found = self.at(x, self.spec.viewers)
        shown = ", ".join(f"{name} {math.exp(v):.3g}" for name, v in zip(self.spec.parameters, x, strict=True))
        self.tell(f"distance {float(found @ found):8.2f} at {shown}")
        return found

    def jacobian(self, x: Reals) -> Reals:
        """Differences away from the nearer bound."""
        _, least, most = _bounds(self.spec)
        base, columns = self.at(x, self.spec.viewers), []
        for number, value in enumerate(x):
            step = STEP if most[number] - value > value - least[number] else -STEP
            moved = x.copy()
            moved[number] = value + step
            columns.append((self.at(moved, self.spec.viewers) - base) / step)
        found: Reals = np.array(columns).T
        return found


def _start(search: _Search) -> Reals:
    """The best of the points to begin with."""
    spec = search.spec
    points = _screened(spec)
    few = max(5, spec.viewers // 3)
    sums = [float(search.at(point, few) @ search.at(point, few)) for point in points]
    best = int(np.argmin(sums))
    search.tell(f"{len(points)} points to begin with, distances {min(sums):.1f} to {max(sums):.1f} over {few} viewers")
    return points[best]


def _predict(search: _Search, x: Reals, spread: Reals) -> list[Interval95]:
    """The held-out figures at x, and their intervals."""
    spec, simulator = search.spec, search.simulator
    _, least, most = _bounds(spec)
    draw = np.random.default_rng(spec.seed + 1)
    drawn = []
    for number in range(spec.predictions):
        point = np.clip(draw.multivariate_normal(x, spread, check_valid="ignore"), least, most)
        rows = simulator.rows(_parameters(spec, point), spec.viewers, FIT_DAY - 1 - number)
        drawn.append(simulator.figures(rows, spec.held_out))
    at_x = simulator.figures(search.rows_at(x), spec.held_out)
    deviation = np.log(np.array(drawn)).std(axis=0, ddof=1)
    return [
        Interval95(value, value * math.exp(-Z * sd), value * math.exp(Z * sd))
        for value, sd in zip(at_x, deviation, strict=True)
    ]


def arms_of(spec: FitSpec, population: Population) -> list[Arm]:
    """The arms that moments and held-out figures are of. Raises UserError."""
    labels = list(dict.fromkeys(moment.arm for moment in [*spec.moments, *spec.held_out]))
    known = {entry.base_label(): entry for entry in population.arms}
    for label in labels:
        if label not in known:
            raise UserError(f"the population has no arm '{label}'; {near_miss(label, known)}")
        if known[label].thresholds is not None and known[label].thresholds != "off":
            raise UserError(f"the arm '{label}' needs thresholds, which a fit does not measure; take another one.")
    return [arm_of(known[label]) for label in labels]


def fit(spec: FitSpec, simulator: Simulator, tell: Tell) -> Fit:
    """Carries the fit out: minutes, most of them in plays."""
    from scipy import optimize  # noqa: PLC0415  slow to import

    search = _Search(spec, simulator, tell)
    _, least, most = _bounds(spec)
    found = optimize.least_squares(
        search.residuals,
        np.clip(_start(search), least + 1e-6, most - 1e-6),
        jac=search.jacobian,
        bounds=(least, most),
        max_nfev=spec.iterations,
        x_scale=1.0,
        xtol=1e-2,
        ftol=1e-2,
    )
    x: Reals = found.x
    noise = covariance(simulator, search.rows_at(x), spec.moments, spec.seed)
    spread = sandwich(search.jacobian(x), noise)
    error = np.sqrt(np.diag(spread))
    parameters = {
        name: Interval95(
            math.exp(value),
            max(free.least, math.exp(value - Z * sd)),
            min(free.most, math.exp(value + Z * sd)),
        )
        for (name, free), value, sd in zip(spec.parameters.items(), x, error, strict=True)
    }
    simulated = simulator.figures(search.rows_at(x), spec.moments)
    predicted = _predict(search, x, spread)
    return Fit(parameters, float(2 * found.cost), simulated, predicted, simulator.plays)


def as_document(spec: FitSpec, found: Fit) -> dict[str, Any]:
    """The file that a population reads its parameters from, with what the fit came to."""

    def digits(value: float) -> float:
        return float(f"{value:.4g}")

    def ends(interval: Interval95) -> list[float]:
        return [digits(interval.low), digits(interval.high)]

    return {
        "parameters": {name: digits(one.value) for name, one in found.parameters.items()} | spec.fixed,
        "intervals": {name: ends(one) for name, one in found.parameters.items()},
        "fit": {
            "seed": spec.seed,
            "viewers": spec.viewers,
            "plays": found.plays,
            "distance": digits(found.distance),
            "degrees_of_freedom": len(spec.moments) - len(spec.parameters),
        },
        "moments": [
            {
                "name": moment.name,
                "measured": moment.measured,
                "simulated": digits(value),
                "residual": digits(moment.residual(value)),
                "weight": digits(1 / moment.tolerance**2),
            }
            for moment, value in zip(spec.moments, found.simulated, strict=True)
        ],
        "held_out": [
            {
                "name": moment.name,
                "measured": moment.measured,
                "predicted": digits(one.value),
                "interval": ends(one),
            }
            for moment, one in zip(spec.held_out, found.predicted, strict=True)
        ],
    }
