"""Schemes over recorded pairs of traces. railyard/studies/recorded.py compares them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.page import Table, markdown_of
from railyard.base.plotfile import DRAWN, check_format, write_drawn
from railyard.base.provenance import version_words
from railyard.experiment.model import Strict
from railyard.results.records import Run
from railyard.run.arena import arena_of
from railyard.studies import link_models, recorded
from railyard.studies.claims import Compared, Comparisons
from railyard.studies.study import Data, tell


class Settings(Strict):
    beside: ClassVar = {"experiments": ("buffers_ms",)}
    """If `experiments` is changed, the buffers of a size are left out."""
    experiments: list[str]  # YAML files, or their names in experiments/
    buffers_ms: list[Annotated[int, Field(ge=1)]] = Field(default=[])
    """Player buffers, ms: `buffers` is played with each of them, beside the first experiment."""
    buffers: str = "evaluation-buffer"
    models: dict[str, dict[str, Any]] = Field(default={})
    """Models of links, by name: fields that override those of `modelled`, which is played with each of them."""
    modelled: str = "evaluation-buffer"
    modelled_with: dict[str, Any] = Field(default={})  # fields that hold under all models
    starts: int | None = Field(default=None, ge=1)  # of each pair, instead of the experiment's
    jobs: int | None = Field(default=None, ge=1)  # None: one for each core
    out: Path | None = None  # folder of the campaigns' folders; None: results/
    plot: Path | None = None  # the first experiment's pairs: .svg, .png, .pdf


class Measured(Data):
    tables: dict[str, list[Table | Comparisons | str]]  # by experiment


def measure(settings: Settings) -> Measured:
    if not (settings.experiments or settings.buffers_ms or settings.models):
        raise UserError("there is nothing to play; name some of --set experiments=, buffers_ms= and models=.")
    if settings.plot is not None:
        check_format(settings.plot, DRAWN)
    jobs = settings.jobs or arena_of("sim").default_jobs()

    def carried_out(name: str, changes: dict[str, Any] | None = None, called: str = "") -> list[Run]:
        fewer = {} if settings.starts is None else {"seeds": settings.starts}
        suffixes = [*([] if settings.starts is None else [f"{settings.starts}"]), *([called] if called else [])]
        return recorded.campaign(name, settings.out, jobs, tell, (changes or {}) | fewer, "-".join(suffixes))

    tables_by_name: dict[str, list[Table | Comparisons | str]] = {}
    every = {Path(name).stem: carried_out(name) for name in settings.experiments}
    by = f"Runs of {version_words()}."

    def compare(name: str, columns: Mapping[str, Sequence[Run]], kind: str) -> None:
        tables_by_name[name] = [by, *recorded.where_claims_hold(columns, kind)]
        tables_by_name[f"{name}-levels"] = [*recorded.levels(columns)]

    for name, runs in every.items():
        if forms := recorded.forms(runs):
            compare(name, forms, "form")
            continue
        tables_by_name[name] = [by, *recorded.evaluate(runs)]
        tables_by_name |= {f"{name}-{part}": blocks for part, blocks in recorded.in_detail(runs).items() if blocks}
    first = next(iter(every.values()), [])
    if settings.plot is not None and first and not recorded.forms(first):
        write_drawn(settings.plot, partial(recorded.drawn, first))
    if settings.buffers_ms:
        by_buffer = {
            ms: carried_out(settings.buffers, {"player": {"max_buffer_ms": ms}}, f"{ms}ms")
            for ms in settings.buffers_ms
        }
        compare(Path(settings.buffers).stem, recorded.with_light(by_buffer, first), "buffer")
    if settings.models:
        by_model = {
            name: carried_out(settings.modelled, settings.modelled_with | changes, name.replace(" ", "-"))
            for name, changes in settings.models.items()
        }
        compare("models", by_model, "links")
        tables_by_name["dependence"] = [*link_models.dependence(by_model)]
    return Measured(tables=tables_by_name)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    for name, blocks in measured.tables.items():
        yield name, markdown_of(blocks)


def compared(measured: Measured) -> Iterator[Compared]:
    for name, blocks in measured.tables.items():
        for block in blocks:
            if isinstance(block, Comparisons):
                for one in block.compared():
                    yield one.model_copy(update={"where": {"experiment": name} | one.where})
