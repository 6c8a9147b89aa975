"""A study: one question, the tables that answer it, and the verdicts on its claims.

studies/NAME/study.yaml says what is measured, studies/NAME/study.py how, and studies/NAME/SIZE.json has the results.
Pages of docs/results/ have tables of these results between markers; `make docs` writes them.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from railyard.base.errors import UserError, reported_by
from railyard.base.models import StrictModel
from railyard.base.page import Table, markdown_of
from railyard.base.paths import ROOT, STUDIES_DIR, program
from railyard.base.provenance import version_words
from railyard.base.yamlfile import YamlDocument, field_name, load_yaml, near_miss, parse
from railyard.experiment.model import Experiment, Strict, find_experiment, load_experiment
from railyard.studies.claims import Claim, verdicts

FILE, CODE = "study.yaml", "study.py"
SIZE = "default"
CLAIMS = "claims"
"""The name of the part with the verdicts on the study's claims."""
PAGES = ROOT / "docs" / "results"
MARKED = re.compile(
    r"(?P<begin><!-- study: (?P<name>\S+) (?P<size>\S+) (?P<part>\S+) -->)\n.*?(?P<end><!-- end -->)", re.DOTALL
)


class Data(StrictModel):
    """What a study measured, as it is kept. An end of an interval that is not known is infinite."""

    model_config = ConfigDict(ser_json_inf_nan="strings")


class Declared(Strict):
    """`study.yaml`."""

    title: str
    # Values for the class `Settings` in study.py; those of a size override them.
    settings: dict[str, Any] = Field(default={})
    sizes: dict[str, dict[str, Any]] = Field(min_length=1)
    # Judged on what `compared(measured)` in study.py returns.
    claims: list[Claim] = Field(default=[])


class Kept(Strict):
    """`SIZE.json`."""

    railyard: str
    settings: dict[str, Any]
    measured: dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A study's settings and results."""

    study: "Study"
    settings: Any
    data: Any
    by: str
    """The version of Railyard that measured."""

    def parts(self) -> Iterator[tuple[str, str]]:
        """Each table, or paragraph, as its name and Markdown."""
        yield from self.study.code.tables(self.data)
        if machine := getattr(self.data, "machine", None):
            yield "machine", machine.markdown(self.by)
        if claims := self.study.declared.claims:
            yield CLAIMS, markdown_of(verdicts(claims, self.study.code.compared(self.data)))

    def write(self, file: Path) -> None:
        settings, measured = (json.loads(part.model_dump_json()) for part in (self.settings, self.data))
        kept = {"railyard": self.by, "settings": settings, "measured": measured}
        file.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Study:
    name: str
    folder: Path
    declared: Declared

    @cached_property
    def code(self) -> Any:
        file = self.folder / CODE
        name = f"railyard_study_{self.folder.name}"
        spec = spec_from_file_location(name, file)
        if not file.is_file() or spec is None or spec.loader is None:
            raise UserError(f"{file}: there is no such file; a study has its code there.")
        module = sys.modules[name] = module_from_spec(spec)  # because dataclasses look up their module
        spec.loader.exec_module(module)
        return module

    def file(self, size: str) -> Path:
        """The file of a measurement."""
        return self.folder / f"{size}.json"

    def settings(self, size: str, changes: dict[str, Any]) -> Any:
        """The settings of a size, with the changes of the command line. If a setting is changed, those of the size that
        belong to it (`beside` of the study's Settings) are left out. Raises UserError."""
        if size not in self.declared.sizes:
            raise UserError(f"{self.name} has no size '{size}'; {near_miss(size, self.declared.sizes)}")
        known = self.code.Settings.model_fields
        for name in changes:
            if name not in known:
                raise UserError(f"{self.name} has no setting '{name}'; {near_miss(name, known)}")
        beside = getattr(self.code.Settings, "beside", {})
        left_out = {other for name in changes for other in beside.get(name, ())}
        of_size = {name: value for name, value in self.declared.sizes[size].items() if name not in left_out}
        try:
            # Later mappings override earlier ones.
            return self.code.Settings.model_validate(self.declared.settings | of_size | changes)
        except ValidationError as error:
            mistake = error.errors()[0]
            name = field_name(mistake["loc"])
            where = "--set" if name.split(".")[0].split("[")[0] in changes else f"{self.folder / FILE}: size {size}:"
            raise UserError(f"{where} {name}: {mistake['msg'].removeprefix('Value error, ')}.") from None

    def measure(self, size: str, changes: dict[str, Any]) -> Measured:
        """Carries the study out. Raises UserError."""
        settings = self.settings(size, changes)
        return Measured(self, settings, self.code.measure(settings), version_words())

    def kept(self, size: str) -> Measured:
        """The kept measurement. Raises UserError if there is none or it is not of this study."""
        file = self.file(size)
        try:
            kept = Kept.model_validate_json(file.read_text(encoding="utf-8"))
            settings = self.code.Settings.model_validate(kept.settings)
            return Measured(self, settings, self.code.Measured.model_validate(kept.measured), kept.railyard)
        except FileNotFoundError:
            again = f"railyard study {self.name} --size {size} --save"
            raise UserError(f"{file}: there is no such file; measure with `{again}`.") from None
        except ValidationError as error:
            mistake = error.errors()[0]
            again = f"railyard study {self.name} --size {size} --save"
            raise UserError(
                f"{file}: {field_name(mistake['loc'])}: {mistake['msg']}; measure again with `{again}`."
            ) from None


def studies() -> list[Study]:
    return [_load(file.parent) for file in sorted(STUDIES_DIR.glob(f"*/{FILE}"))]


def find_study(name: str) -> Study:
    """The study of that name, with `-` or `_` between the words. Raises UserError."""
    folder = STUDIES_DIR / name.replace("-", "_")
    if not (folder / FILE).is_file():
        known = [file.parent.name.replace("_", "-") for file in STUDIES_DIR.glob(f"*/{FILE}")]
        raise UserError(f"there is no study '{name}' in {STUDIES_DIR}; {near_miss(name, known)}")
    return _load(folder)


def _load(folder: Path) -> Study:
    return Study(folder.name.replace("_", "-"), folder, parse(load_yaml(folder / FILE), Declared))


def changed(name: str, changes: dict[str, Any]) -> tuple[Experiment, YamlDocument]:
    """An experiment (a YAML file or its name in experiments/) with changed fields. None leaves a field as it is. Fields
    of its player are replaced one by one."""
    file = find_experiment(name)
    data: dict[str, Any] = load_experiment(file)[1].data
    given = {field: value for field, value in changes.items() if value is not None}
    if "player" in given:
        given["player"] = data.get("player", {}) | given["player"]
    document = YamlDocument(file, data | given, {})
    return parse(document, Experiment), document


@contextmanager
def simulated(job: dict[str, Any]) -> Iterator[Path]:
    """A context with the folder of xlink-sim's output for a job (docs/reference/sim.md). Raises UserError if it
    fails."""
    with tempfile.TemporaryDirectory(prefix="railyard-") as temporary:
        file, out = Path(temporary) / "job.json", Path(temporary) / "out"
        file.write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run([program("xlink-sim"), str(file), "--out", str(out)], check=False, capture_output=True)
        if not (out / "mpshell.json").is_file():
            raise UserError(
                f"the simulator ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[-200:]}"
            )
        yield out


def check_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """For a validator: raises ValueError for the first of the names that is not known."""
    choice = list(known)
    for name in names:
        if name not in choice:
            raise ValueError(f"'{name}' is no {what}; known are {', '.join(choice)}")


def tell(sentence: str) -> None:
    """Reports progress on standard error, as the tables are the output."""
    print(sentence, file=sys.stderr, flush=True)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table. The first `left` columns are aligned left, the others, which are numbers, right."""
    align = "l" * left + "r" * (len(heads) - left)
    return Table(heads=[*heads], align=align, rows=[[*cells] for cells in rows]).markdown


# --- pages ------------------------------------------------------------------------------------------------------------


def as_kept(page: str) -> str:
    """A page's text with each marked part from the kept results. A new part may be empty. Raises UserError."""

    def part(marked: re.Match[str]) -> str:
        name, size, wanted = (marked[group] for group in ("name", "size", "part"))
        parts = dict(find_study(name).kept(size).parts())
        if wanted not in parts:
            raise UserError(f"the study {name} has no part '{wanted}'; {near_miss(wanted, parts)}")
        return f"{marked['begin']}\n\n{parts[wanted]}\n\n{marked['end']}"

    return MARKED.sub(part, page)


def write_pages() -> list[Path]:
    """Writes the marked parts of all pages anew. Returns the pages that changed."""
    changed = []
    for page in sorted(PAGES.glob("*.md")):
        old = page.read_text(encoding="utf-8")
        try:
            new = as_kept(old)
        except UserError as error:
            raise UserError(f"{page.relative_to(ROOT)}: {error}") from None
        if new != old:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


if __name__ == "__main__":
    with reported_by("results"):
        for written in write_pages():
            print(f"written: {written.relative_to(ROOT)}")
