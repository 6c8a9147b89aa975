"""Fits the population's free parameters and writes the file that the population reads them from.

    python scripts/fit-population.py [--spec FILE] [--out FILE] [--jobs N] [--folder DIR]
    python scripts/fit-population.py --check VIEWERS

Default: experiments/fitted/population-fit.yaml, and experiments/fitted/population.yaml. It prints every step, the
residuals, the parameters' intervals and the prediction of what was held out. What was simulated stays in DIR, by
default results/population-fit; a fit that was stopped goes on from there. docs/reference/population.md says how.

--check fits nothing: it plays so many viewers, none of whom is in a fit, with the parameters of the population, and
prints the moments and the held-out figures.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import yaml

from railyard.arenas.sim import PROGRAM
from railyard.base.errors import UserError
from railyard.base.paths import EXPERIMENTS_DIR, RESULTS_DIR, program
from railyard.base.yamlfile import load_yaml
from railyard.results.shortage import Shortage
from railyard.stats import intervals
from railyard.studies.population.executors import LocalExecutor
from railyard.studies.population.fit import Fit, FitSpec, Simulator, arms_of, as_document, check, fit, load_fit
from railyard.studies.population.model import load_population

FOLDER = EXPERIMENTS_DIR / "fitted"
HEADER = "# Written by scripts/fit-population.py; the figures follow from population-fit.yaml and the programs.\n"


def tell(text: str) -> None:
    print(text, flush=True)


def report_check(spec: FitSpec, figures: list[float], viewers: int, wall_s: float) -> None:
    """A table: what was measured, and what so many viewers have, without the quantiles that they do not carry."""
    print(f"\n{wall_s / 60:.1f} minutes\n\n| figure | measured | {viewers} other viewers | residual |")
    print("| --- | ---: | ---: | ---: |")
    for moment, value in zip([*spec.moments, *spec.held_out], figures, strict=True):
        needed = intervals.values_for(moment.q) if moment.q else 0
        few = Shortage(needed, viewers, "viewers", f"--check {needed}")
        cells = f"{few} |" if viewers < needed else f"{value:.4g} | {moment.residual(value):+.1f}"
        print(f"| {moment.name} | {moment.measured:g} | {cells} |")


def report(spec: FitSpec, found: Fit, wall_s: float) -> None:
    """Three tables: parameters, moments, and what was held out."""
    print(f"\n{found.plays} plays in {wall_s / 60:.1f} minutes; distance {found.distance:.1f}\n")
    print("| parameter | fitted | 95 % interval |\n| --- | ---: | ---: |")
    for name, one in found.parameters.items():
        print(f"| `{name}` | {one.value:.3g} | {one.low:.3g} to {one.high:.3g} |")
    print("\n| moment | measured | simulated | residual | weight |\n| --- | ---: | ---: | ---: | ---: |")
    for moment, value in zip(spec.moments, found.simulated, strict=True):
        weight = 1 / moment.tolerance**2
        print(f"| {moment.name} | {moment.measured:g} | {value:.4g} | {moment.residual(value):+.1f} | {weight:.0f} |")
    print("\n| held out | measured | predicted | 95 % interval |\n| --- | ---: | ---: | ---: |")
    for moment, one in zip(spec.held_out, found.predicted, strict=True):
        print(f"| {moment.name} | {moment.measured:g} | {one.value:.4g} | {one.low:.4g} to {one.high:.4g} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=FOLDER / "population-fit.yaml")
    parser.add_argument("--out", type=Path, default=FOLDER / "population.yaml")
    parser.add_argument("--jobs", type=int, default=None, help="processes; default: one for each core")
    parser.add_argument("--folder", type=Path, default=RESULTS_DIR / "population-fit")
    parser.add_argument("--check", type=int, metavar="VIEWERS", help="fit nothing; play other viewers, at least 20")
    options = parser.parse_args()
    if options.check is not None and options.check < 20:
        parser.error("--check takes at least 20 viewers")
    try:
        spec = load_fit(load_yaml(options.spec))
        population = load_population(load_yaml(EXPERIMENTS_DIR / f"{spec.population}.yaml"))
        begin = time.monotonic()
        options.folder.mkdir(parents=True, exist_ok=True)
        executor = LocalExecutor(options.jobs)
        simulator = Simulator(population, arms_of(spec, population), executor, program(PROGRAM), options.folder)
        if options.check is not None:
            if population.parameters is None:
                raise UserError(f"the population {population.name} has no parameters; run without --check first.")
            figures = check(spec, simulator, population.parameters, options.check)
            report_check(spec, figures, options.check, time.monotonic() - begin)
            return 0
        found = fit(spec, simulator, tell)
    except UserError as error:
        print(f"fit-population: {error}")
        return 2
    report(spec, found, time.monotonic() - begin)
    text = HEADER + yaml.safe_dump(as_document(spec, found), sort_keys=False, width=120)
    options.out.write_text(text, encoding="utf-8")
    print(f"\nwritten: {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
