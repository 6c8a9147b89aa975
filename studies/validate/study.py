"""Emulated MPTCP downloads in the kernel arena against live ones, by model of the links; docs/results/live.md has the
protocol."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.page import markdown_of
from railyard.base.paths import RESULTS_DIR
from railyard.base.provenance import version_words
from railyard.base.yamlfile import near_miss
from railyard.experiment.model import Strict
from railyard.run.arena import arena_of
from railyard.run.campaign import identity_of
from railyard.run.folders import results_folder, shown
from railyard.studies.claims import Compared
from railyard.studies.study import Data, tell
from railyard.studies.validation import models, page
from railyard.studies.validation.distances import QUANTILES
from railyard.studies.validation.downloads import even, live_archive, read_downloads

TRACES = ".validate-traces"  # in the folder of results: traces of constant rates, delay traces


class Settings(Strict):
    repeats: int = Field(ge=1)  # emulated downloads for each live one
    seed: int = Field(ge=0)  # of pairs, places and intervals
    live: Path | None = None  # folder, tar or zip archive of the downloads; None: on RAILYARD_TRACE_PATH
    models: list[str] | None = Field(default=None, min_length=1)  # only these, and the reference
    jobs: int | None = Field(default=None, ge=1)  # None: one for each core
    out: Path | None = None  # folder of the results; None: results/validate


class Measured(Data):
    found: page.Analysis
    runs: int
    repeats: int
    by: str


def measure(settings: Settings) -> Measured:
    file = live_archive(settings.live)
    downloads = read_downloads(file)
    unconditional, conditional = models.models(downloads)
    names = [one.name for one in (*unconditional, *conditional)]
    for name in settings.models or []:
        if name not in names:
            raise UserError(f"unknown model '{name}'; {near_miss(name, names)}")
    compared_with = len(unconditional) - 1
    if settings.models:
        unconditional = [one for one in unconditional if one.name in (*settings.models, models.REFERENCE)]
        conditional = [one for one in conditional if one.name in settings.models]
    arena_of(models.ARENA).check()
    here = models.stage(file, settings.seed, settings.out / "traces" if settings.out else RESULTS_DIR / TRACES)
    runs = models.plan(here, unconditional, conditional, even(downloads), settings.repeats)
    about = {
        "seed": settings.seed,
        "repeats": settings.repeats,
        "live": hashlib.sha256(repr(downloads).encode()).hexdigest(),
    }
    identity = identity_of(models.experiment(settings.seed), [run.spec for run in runs], about)
    with results_folder(identity, tell, out=settings.out) as folder:
        took = models.carry_out(runs, settings.seed, folder, settings.jobs)
        pairs = {(run.download, run.repeat): run.spec.pair for run in runs if run.model == models.PREDICATES}
        analysis = page.analyse(
            downloads,
            [one.name for one in unconditional],
            [one.name for one in conditional],
            took,
            pairs,
            settings.seed,
            compared_with,
        )
        tell(f"written: {shown(page.write(folder, analysis, took))}")
    return Measured(found=analysis, runs=len(runs), repeats=settings.repeats, by=version_words())


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    repeats = f"{measured.repeats} emulated for each of them" if measured.repeats > 1 else "one emulated for each"
    yield "live", markdown_of(page.blocks(measured.found, f"{repeats}: {measured.runs} runs of {measured.by}."))


def compared(measured: Measured) -> Iterator[Compared]:
    for row in measured.found.rows:
        if row.size_bytes is None:
            for q, ratio in zip(QUANTILES, row.ratios, strict=True):
                yield Compared(figure=f"ratio_p{100 * q:.0f}", a=row.model, found=ratio, unit="", digits=2)
            if row.verdict is not None:
                yield Compared(
                    figure="ks_distance", a=row.model, b=models.REFERENCE, found=row.verdict.ks, unit="", digits=2
                )
    for one in measured.found.findings:
        if one.size_bytes is None:
            share = one.faster.mapped(lambda share: 100 * share)
            where = {"against": f"TCP on the {one.against}" + ("" if " " in one.against else " path")}
            yield Compared(figure="faster_runs", a="mptcp", where=where, found=share)
