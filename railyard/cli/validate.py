"""`railyard validate`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import typer

from railyard.base.errors import UserError
from railyard.base.page import check, fill
from railyard.base.paths import RESULTS_DIR
from railyard.base.provenance import version_words
from railyard.base.terminal import new_console
from railyard.base.yamlfile import near_miss
from railyard.results.pending import stopped
from railyard.run.arena import arena_of
from railyard.run.campaign import identity_of
from railyard.run.folders import OUT_HELP, results_folder, shown
from railyard.studies.validation import campaign, models, page
from railyard.studies.validation.downloads import even, read_downloads

LIVE = Path("live", "hsr_mptcp.tar.xz")  # in a folder of RAILYARD_TRACE_PATH
INTERRUPTED = 130
TRACES = ".validate-traces"  # in the folder of results: traces of constant rates, delay traces


def _live(named: Path | None) -> Path:
    if named is not None:
        return named
    folders = [Path(name) for name in os.environ.get("RAILYARD_TRACE_PATH", "").split(":") if name]
    found = next((folder / LIVE for folder in folders if (folder / LIVE).is_file()), None)
    if found is None:
        raise UserError(
            "the live downloads are not at hand; get them by `railyard traces fetch hsr-mptcp`, and name the archive "
            "with --live."
        )
    return found


def validate_command(
    size: Annotated[
        str, typer.Option(help="Emulated downloads for each live one: small (1), default (3), full (6).")
    ] = "default",
    seed: Annotated[int, typer.Option(min=0, help="Seed of pairs, places and intervals.")] = 1,
    live: Annotated[
        Path | None,
        typer.Option(
            help="Folder, tar or zip archive of the downloads. Default: live/hsr_mptcp.tar.xz on RAILYARD_TRACE_PATH."
        ),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model, and `connected`. May be repeated.")] = None,
    page_file: Annotated[
        Path | None, typer.Option("--page", help="Write the tables between the markers of FILE.", metavar="FILE")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of parallel runs. Default: one for each core.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
) -> None:
    """Compare emulated MPTCP downloads with live ones, by model of the links, in the kernel arena.

    Example: railyard validate --live hsr_mptcp.zip --size small --model radio
    """
    if size not in models.REPEATS:
        raise UserError(f"unknown size '{size}'; {near_miss(size, models.REPEATS)}")
    file = _live(live)
    downloads = read_downloads(file)
    unconditional, conditional = models.models(downloads)
    names = [one.name for one in (*unconditional, *conditional)]
    for name in model or []:
        if name not in names:
            raise UserError(f"unknown model '{name}'; {near_miss(name, names)}")
    compared = len(unconditional) - 1
    if model:
        unconditional = [one for one in unconditional if one.name in (*model, models.REFERENCE)]
        conditional = [one for one in conditional if one.name in model]
    if page_file is not None:
        check(page_file, page.MARKED)
    arena_of(models.ARENA).check()
    console = new_console()

    def tell(sentence: str) -> None:
        console.print(sentence, soft_wrap=True, markup=False)

    here = models.stage(file, seed, out / "traces" if out else RESULTS_DIR / TRACES)
    runs = models.plan(here, unconditional, conditional, even(downloads), models.REPEATS[size])
    about = {"seed": seed, "size": size, "live": hashlib.sha256(repr(downloads).encode()).hexdigest()}
    identity = identity_of(models.experiment(seed), [run.spec for run in runs], about)
    with results_folder(identity, tell, out=out) as folder:
        try:
            took = campaign.carry_out(runs, seed, folder, jobs, console)
        except KeyboardInterrupt:
            stopped()
            raise typer.Exit(INTERRUPTED) from None
        pairs = {(run.download, run.repeat): run.spec.pair for run in runs if run.model == models.PREDICATES}
        found = page.analyse(
            downloads,
            [one.name for one in unconditional],
            [one.name for one in conditional],
            took,
            pairs,
            seed,
            compared,
        )
        tables = page.markdown(found, [f"`--size {size}`, {len(runs)} runs of {version_words()}."])
        result = page.write(folder, found, took)
    if page_file is not None:
        fill(page_file, page.MARKED, tables)
        tell(f"written: {shown(page_file)}")
    print(tables)
    tell(f"written: {shown(result)}")
