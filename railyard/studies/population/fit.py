"""Fits the free parameters of a population by simulated minimum distance (the method of simulated moments).

A moment is a figure that was measured in the deployment, with a tolerance. With parameters x its residual is

    r = ln(simulated(x) / measured) / tolerance        (of a share: r = (simulated - measured) / tolerance)

and the fit minimises the sum of r² (weights are 1 / tolerance²). A quantile of few viewers is no smooth function of x,
so no derivative is taken of it. Each round simulates the points of a scrambled Sobol sequence in a box around the best
parameters so far, each point with viewers of its own. A regression over them gives r as a linear function of ln(x)
with the noise of all viewers averaged (a response surface), and bounded linear least squares its minimum in the box,
which is the centre of the next one. Sequences and viewers follow from the seed: equal seeds give equal results.

Intervals are those of the sandwich formula (Gourieroux and Monfort, Simulation-Based Econometric Methods, 1996):

    V = (J'J)⁻¹ J' S J (J'J)⁻¹,    S = 1 + C

with J the slopes of the last regression, 1 the moments' tolerance, and C the covariance of its values at the minimum.
Held-out figures are predicted at n sets of parameters drawn from V, each with viewers of its own. So their interval
has both the parameters' uncertainty and that of a sample of so many viewers. With m and s the mean and the standard
deviation of the logarithms, it is that of one more draw: exp(m ± t(97.5 %, n − 1) · s · √(1 + 1 / n)).

In this file x are logarithms of the free parameters, in the order of the specification.
"""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from railyard.base.errors import UserError
from railyard.base.files import write_whole
from railyard.base.lists import grouped
from railyard.base.models import Positive, StrictModel
from railyard.base.provenance import sha256_of
from railyard.base.yamlfile import FieldError, near_miss
from railyard.figures.rows import reinjection_cost_of
from railyard.stats import distributions
from railyard.stats.bootstrap import Reals
from railyard.stats.intervals import Interval
from railyard.stats.statistics import nearest_rank
from railyard.studies.population.executors import Batch, Executor, Recipe
from railyard.studies.population.model import Name, Parameters, Population
from railyard.studies.population.parts import rows_of
from railyard.studies.population.play import Arm, Row, arm_of
from railyard.studies.population.scenes import Library

FIT_DAY = -1
"""The first day of a fit; later ones decrease. These days are in no comparison and have the mean mix of scenes."""
CHECK_DAY = -100_000
"""The first day of viewers on whom a fit is checked. None of them is in a fit."""
PLAYS_A_BATCH = 12
LEAST_SHARE = 1e-4
"""The value of a figure that is 0, so that its logarithm is finite."""
TAIL = 0.025
"""The probability beyond each end of an interval."""

What = Literal["rct", "primary_rtt", "second_rtt", "cost", "lte_faster"]


class Free(StrictModel):
    """A parameter to be fitted: where the search begins, and its bounds."""

    start: Positive
    least: Positive
    most: Positive

    @model_validator(mode="after")
    def _ordered(self) -> "Free":
        if not self.least < self.start < self.most:
            raise FieldError("start", "least < start < most must hold.")
        return self


class Moment(StrictModel):
    """A measured figure: of the RCT of whole requests, s; of a path's smoothed RTT, s; of the re-injection cost, a
    share; or of the viewers at places, the share whose LTE is the faster path."""

    what: What
    arm: str
    q: Annotated[float, Field(gt=0, lt=1)] | None = None
    measured: Positive
    tolerance: Positive
    source: str

    @model_validator(mode="after")
    def _quantile(self) -> "Moment":
        if (self.q is None) != (self.what in ("cost", "lte_faster")):
            raise FieldError("q", "RCT and RTT need a quantile, cost and lte_faster have none.")
        return self

    @property
    def name(self) -> str:
        return f"{self.arm} {self.what}" + (f" p{100 * self.q:g}" if self.q is not None else "")

    @property
    def is_share(self) -> bool:
        return self.what == "lte_faster"

    def figure(self, residual: float) -> float:
        """The figure that has this residual."""
        if self.is_share:
            return self.measured + residual * self.tolerance
        return self.measured * math.exp(residual * self.tolerance)

    def residual(self, simulated: float) -> float:
        if self.is_share:
            return (simulated - self.measured) / self.tolerance
        return math.log(max(simulated, LEAST_SHARE) / self.measured) / self.tolerance


class Round(StrictModel):
    """Points that are simulated, and the viewers of each."""

    points: Annotated[int, Field(ge=2, le=4096)]
    viewers: Annotated[int, Field(ge=2)]
    width: Annotated[float, Field(ge=0)] = 0.0
    """Half of the box's width, in ln of a parameter."""


class FitSpec(StrictModel):
    """`experiments/fitted/population-fit.yaml`."""

    population: Name
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    rounds: list[Round] = Field(min_length=1)
    predictions: Round
    parameters: dict[str, Free]
    fixed: dict[str, float]
    """The other parameters: assumptions."""
    moments: list[Moment] = Field(min_length=1)
    held_out: list[Moment]

    @model_validator(mode="after")
    def _consistent(self) -> "FitSpec":
        known = list(Parameters.model_fields)
        for name in [*self.parameters, *self.fixed]:
            if name not in known:
                raise FieldError("parameters", f"there is no parameter '{name}'; {near_miss(name, known)}")
        for name in known:
            if (name in self.parameters) == (name in self.fixed):
                raise FieldError("fixed", f"'{name}' must stand in 'parameters' or here; correct that.")
        for number, one in enumerate(self.rounds):
            if one.points < len(self.parameters) + 2 or one.width == 0:
                raise FieldError("rounds", f"round {number + 1} needs a width and two points more than parameters.")
        if len(self.moments) < len(self.parameters):
            raise FieldError("moments", "there are fewer moments than parameters; fit fewer, or add moments.")
        return self


Tell = Callable[[str], None]


def _values(rows: Sequence[Row], moment: Moment, chunk_bytes: int) -> list[float]:
    """The values of an arm's plays for a quantile."""
    if moment.what == "rct":
        return [
            value
            for row in rows
            for value in row["rct_s"][: int(row["duration_s"] * row["bitrate_bps"] / 8) // chunk_bytes]
        ]
    number = 0 if moment.what == "primary_rtt" else 1
    return [row["srtt_us"][number] / 1e6 for row in rows if len(row["srtt_us"]) > number and row["srtt_us"][number]]


def figure_of(rows: Sequence[Row], moment: Moment, chunk_bytes: int, still: set[str]) -> float:
    """A moment of the plays of its arm. `still`: the scenes that are places."""
    if moment.q is not None:
        values = _values(rows, moment, chunk_bytes)
        return nearest_rank(sorted(values), moment.q) if values else math.nan
    if moment.what == "cost":
        sent, copied = (sum(int(row[name]) for row in rows) for name in ("stream_bytes_sent", "reinjected_bytes"))
        return reinjection_cost_of(sent, copied)
    rates = [row["path_mbps"] for row in rows if row["scene"] in still]
    return sum(bool(lte > wifi) for wifi, lte in rates) / max(1, len(rates))


@dataclass
class Simulator:
    """Plays the viewers of a fit under given parameters. Results are kept in a folder, so that a fit can be resumed."""

    population: Population
    arms: list[Arm]
    executor: Executor
    program: Path
    folder: Path
    plays: int = 0

    def figures(self, parameters: Parameters, viewers: int, day: int, moments: Sequence[Moment]) -> list[float]:
        """The moments over the first `viewers` viewers of a day."""
        population = self.population.model_copy(update={"parameters": parameters, "day_sigma": 0.0})
        library = Library(population, self.folder / "traces", recorded=False)
        needed = {moment.arm for moment in moments}
        arms = [arm for arm in self.arms if arm.label in needed]
        self.plays += viewers * len(arms)
        kept = self._place(population, library, [viewers, day], arms, moments)
        if kept.is_file():
            known: list[float] = json.loads(kept.read_text(encoding="utf-8"))
            return known
        figures = _figures(self._rows(population, viewers, day, arms), moments, population)
        write_whole(kept, json.dumps(figures))
        return figures

    def _place(
        self, population: Population, library: Library, who: list[int], arms: list[Arm], moments: Sequence[Moment]
    ) -> Path:
        """The file of a point, named by the hash of all that decides its figures."""
        what = [moment.name for moment in moments]
        played = [arm.members() for arm in arms]
        facts = [population.model_dump(mode="json", exclude={"arms", "sizes"}), library.traces(), who, played, what]
        text = json.dumps([sha256_of(self.program), *facts], sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def residuals(self, parameters: Parameters, viewers: int, day: int, moments: Sequence[Moment]) -> Reals:
        figures = self.figures(parameters, viewers, day, moments)
        return np.array([moment.residual(value) for moment, value in zip(moments, figures, strict=True)])

    def _rows(self, population: Population, viewers: int, day: int, arms: Sequence[Arm]) -> list[Row]:
        traces, digest = str(self.folder / "traces"), sha256_of(self.program)
        recipe = Recipe(population, traces, False, tuple(arms), str(self.program), digest)
        wanted = [(number, tuple(range(len(arms)))) for number in range(1, viewers + 1)]
        size = max(1, PLAYS_A_BATCH // len(arms))
        batches = [Batch(recipe, day, tuple(wanted[at : at + size])) for at in range(0, viewers, size)]
        rows: list[Row] = []
        for played in self.executor.results(batches):
            for failed in played.failed:
                raise UserError(failed.why)
            rows += rows_of(played.part)
        return rows


def _figures(rows: Sequence[Row], moments: Sequence[Moment], population: Population) -> list[float]:
    still = {scene.name for scene in population.scenes if scene.place is not None}
    of_arm = grouped((str(row["arm"]), row) for row in rows)
    return [figure_of(of_arm[moment.arm], moment, population.video.chunk_bytes, still) for moment in moments]


@dataclass(frozen=True)
class Fit:
    """The result of a fit."""

    parameters: dict[str, Interval]
    distance: float
    simulated: list[float]  # of the moments, on the last surface
    predicted: list[Interval]  # of the held-out figures
    plays: int


def _bounds(spec: FitSpec) -> tuple[Reals, Reals, Reals]:
    """x at the start, and its bounds."""
    free = spec.parameters.values()
    start, least, most = (np.log([getattr(one, name) for one in free]) for name in ("start", "least", "most"))
    return start, least, most


def _parameters(spec: FitSpec, x: Reals) -> Parameters:
    free = {name: float(value) for name, value in zip(spec.parameters, np.exp(x), strict=True)}
    return Parameters.model_validate(spec.fixed | free)


def sandwich(jacobian: Reals, noise: Reals) -> Reals:
    """V of the module's text, [parameter, parameter]; `jacobian` [moment, parameter], `noise` [moment, moment]."""
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    covariance: Reals = inverse @ jacobian.T @ (np.eye(len(noise)) + noise) @ jacobian @ inverse
    return covariance


@dataclass(frozen=True)
class Surface:
    """Residuals as a linear function of x around a centre, from a regression over simulated points."""

    centre: Reals
    """[parameter]"""
    level: Reals
    """[moment], at the centre"""
    slopes: Reals
    """[moment, parameter]"""
    scatter: Reals
    """[moment, moment]: covariance of the residuals of one point around the surface"""
    inverse: Reals
    """[1 + parameter, 1 + parameter]: of the regression's normal matrix, its columns 1 and x − centre"""

    def at(self, x: Reals) -> Reals:
        values: Reals = self.level + self.slopes @ (x - self.centre)
        return values

    def noise(self, x: Reals) -> Reals:
        """Covariance of the surface's values at x."""
        row = np.concatenate([[1.0], x - self.centre])
        covariance: Reals = float(row @ self.inverse @ row) * self.scatter
        return covariance


def surface_of(points: Reals, residuals: Reals, centre: Reals) -> Surface:
    """The surface by regression. `points` [point, parameter], `residuals` [point, moment]."""
    design = np.column_stack([np.ones(len(points)), points - centre])
    coefficients, *_ = np.linalg.lstsq(design, residuals, rcond=None)
    errors = residuals - design @ coefficients
    scatter = (errors.T @ errors / max(1, len(points) - design.shape[1])).astype(np.float64)
    inverse = np.linalg.pinv(design.T @ design).astype(np.float64)
    level, slopes = coefficients[0].astype(np.float64), coefficients[1:].T.astype(np.float64)
    return Surface(centre, level, slopes, scatter, inverse)


def lowest(surface: Surface, least: Reals, most: Reals) -> Reals:
    """The parameters within bounds that minimise the surface's distance."""
    from scipy import optimize  # noqa: PLC0415  slow to import

    offset = surface.slopes @ surface.centre - surface.level
    parameters: Reals = optimize.lsq_linear(surface.slopes, offset, bounds=(least, most)).x
    return parameters


def _box(spec: FitSpec, one: Round, number: int, centre: Reals) -> tuple[Reals, Reals, Reals]:
    """Points of a round, [point, parameter], and the bounds of its box."""
    from scipy.stats import qmc  # noqa: PLC0415  slow to import

    _, least, most = _bounds(spec)
    low, high = np.maximum(least, centre - one.width), np.minimum(most, centre + one.width)
    sequence = qmc.Sobol(len(centre), seed=spec.seed + number)
    points: Reals = low + (high - low) * sequence.random_base2(math.ceil(math.log2(one.points)))[: one.points]
    return points, low, high


def _predict(spec: FitSpec, simulator: Simulator, x: Reals, spread: Reals, day: int) -> list[Interval]:
    """The held-out figures: the middle of those at parameters drawn around x, and the interval of one more draw."""
    _, least, most = _bounds(spec)
    draw, count = np.random.default_rng(spec.seed), spec.predictions.points
    drawn = []
    for number in range(count):
        point = np.clip(draw.multivariate_normal(x, spread, check_valid="ignore"), least, most)
        figures = simulator.figures(_parameters(spec, point), spec.predictions.viewers, day - number, spec.held_out)
        drawn.append(np.log(figures))
    wide = distributions.student_quantile(count - 1, 1 - TAIL) * math.sqrt(1 + 1 / count)
    middle, half = np.mean(drawn, axis=0), wide * np.std(drawn, axis=0, ddof=1)
    return [
        Interval(math.exp(value), math.exp(value - to_end), math.exp(value + to_end))
        for value, to_end in zip(middle, half, strict=True)
    ]


def arms_of(spec: FitSpec, population: Population) -> list[Arm]:
    """The arms of the moments and held-out figures. Raises UserError."""
    labels = list(dict.fromkeys(moment.arm for moment in [*spec.moments, *spec.held_out]))
    known = {entry.base_label(): entry for entry in population.arms}
    for label in labels:
        if label not in known:
            raise UserError(f"the population has no arm '{label}'; {near_miss(label, known)}")
        if known[label].thresholds is not None and known[label].thresholds != "off":
            raise UserError(f"the arm '{label}' needs thresholds, which a fit does not measure; take another one.")
    return [arm_of(known[label]) for label in labels]


def _round(
    spec: FitSpec, simulator: Simulator, number: int, centre: Reals, first_day: int, tell: Tell
) -> tuple[Surface, Reals]:
    """One round around a centre: its surface, and the minimum of that."""
    one = spec.rounds[number]
    points, low, high = _box(spec, one, number, centre)
    residuals = np.array([
        simulator.residuals(_parameters(spec, point), one.viewers, first_day - place, spec.moments)
        for place, point in enumerate(points)
    ])  # fmt: skip
    surface = surface_of(points, residuals, centre)
    x = lowest(surface, low, high)
    point = ", ".join(f"{name} {math.exp(value):.3g}" for name, value in zip(spec.parameters, x, strict=True))
    distances = [float(residual @ residual) for residual in residuals]
    tell(f"round {number + 1}: distances {min(distances):.0f} to {max(distances):.0f} at {len(points)} points")
    tell(f"    least on the surface: {float(surface.at(x) @ surface.at(x)):.1f} at {point}")
    return surface, x


def fit(spec: FitSpec, simulator: Simulator, tell: Tell) -> Fit:
    """Carries out the fit, which takes minutes, mostly for plays."""
    x, least, most = _bounds(spec)
    day = FIT_DAY
    for number, one in enumerate(spec.rounds):
        surface, x = _round(spec, simulator, number, x, day, tell)
        day -= one.points
    spread = sandwich(surface.slopes, surface.noise(x))
    error = distributions.normal_quantile(1 - TAIL) * np.sqrt(np.diag(spread))
    low, high = np.clip(x - error, least, most), np.clip(x + error, least, most)
    parameters = {
        name: Interval(math.exp(value), math.exp(begin), math.exp(end))
        for name, value, begin, end in zip(spec.parameters, x, low, high, strict=True)
    }
    residuals = surface.at(x)
    simulated = [moment.figure(float(value)) for moment, value in zip(spec.moments, residuals, strict=True)]
    predicted = _predict(spec, simulator, x, spread, day)
    return Fit(parameters, float(residuals @ residuals), simulated, predicted, simulator.plays)


def check(spec: FitSpec, simulator: Simulator, parameters: Parameters, viewers: int) -> list[float]:
    """The moments, then the held-out figures, of `viewers` viewers who are in no fit."""
    return simulator.figures(parameters, viewers, CHECK_DAY, [*spec.moments, *spec.held_out])


def as_document(spec: FitSpec, fitted: Fit) -> dict[str, Any]:
    """The file from which a population reads its parameters, with the results of the fit."""

    def digits(value: float) -> float:
        return float(f"{value:.4g}")

    def ends(interval: Interval) -> list[float]:
        return [digits(interval.low), digits(interval.high)]

    return {
        "parameters": {name: digits(one.value) for name, one in fitted.parameters.items()} | spec.fixed,
        "intervals": {name: ends(one) for name, one in fitted.parameters.items()},
        "fit": {
            "seed": spec.seed,
            "viewers": sum(one.points * one.viewers for one in spec.rounds),
            "plays": fitted.plays,
            "distance": digits(fitted.distance),
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
            for moment, value in zip(spec.moments, fitted.simulated, strict=True)
        ],
        "held_out": [
            {
                "name": moment.name,
                "measured": moment.measured,
                "predicted": digits(one.value),
                "interval": ends(one),
            }
            for moment, one in zip(spec.held_out, fitted.predicted, strict=True)
        ],
    }
