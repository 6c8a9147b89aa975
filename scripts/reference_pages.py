"""Writes the generated pages of docs from the code. `make docs` runs this.

python scripts/reference_pages.py           writes the pages
python scripts/reference_pages.py --check   names the pages that differ from the code; exit code 1 if there are any
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from railyard.base.declared import FILE as SETTINGS_FILE
from railyard.base.lists import grouped
from railyard.base.page import table_lines
from railyard.base.paths import EXPERIMENTS_DIR, ROOT, programs_dir
from railyard.base.units import UNITS, bare, suffix_of
from railyard.base.yamlfile import load_yaml
from railyard.cli.main import EXAMPLES, GROUPS, whole
from railyard.experiment.model import Experiment
from railyard.figures.figure import Figure
from railyard.figures.rows import FIGURES
from railyard.gate.suite import Suite
from railyard.report.exhibit import ORDER, Exhibit
from railyard.results.columns import CAMPAIGN, SCHEMA, TABLES
from railyard.stress.scenario import Scenario
from railyard.studies.exhibits.registry import PLAIN
from railyard.studies.exhibits.spec import ExhibitSpec
from railyard.studies.population.model import Population, PopulationExhibit
from railyard.traces.index import TraceIndex

FOLDER = ROOT / "docs" / "reference"
MAX_COLUMNS = 120
NOTE = "<!-- Written by `make docs` from the code; changes belong there. -->\n"
PROGRAMS = (
    *("mpshell", "mpshell-ctl", "vkernel", "xlink-sim", "xlink-player", "xlink-server", "xlink-get", "xlink-load"),
    *("xlink-balancer", "saturatr", "udp-flow"),
)


def _cell(text: object) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return [*table_lines(headings, *([_cell(cell) for cell in row] for row in rows)), ""]


VALUES: dict[Any, str] = {int: "N", float: "X", Path: "PATH"}

# --- the command line -------------------------------------------------------------------------------------------------


def _default(parameter: Any) -> str:
    shown, value = parameter.show_default, parameter.default
    if isinstance(shown, str):
        return shown
    if value is None or value == () or parameter.required or (isinstance(value, bool) and not parameter.secondary_opts):
        return ""
    if isinstance(value, bool):
        return str((parameter.opts if value else parameter.secondary_opts)[0])
    if isinstance(value, Path) and value.is_relative_to(ROOT):
        return str(value.relative_to(ROOT))
    return str(value.value if isinstance(value, Enum) else value)


def _usage(name: str, parameters: Sequence[Any]) -> str:
    parts = [name]
    if any(parameter.param_type_name == "option" for parameter in parameters):
        parts.append("[OPTIONS]")
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            word = _argument(parameter)
            parts.append(word if parameter.required else f"[{word}]")
    return " ".join(parts)


def _argument(parameter: Any) -> str:
    return f"{parameter.metavar or parameter.name.upper()}{'' if parameter.nargs == 1 else '…'}"


def _option(parameter: Any) -> str:
    names = "/".join([*parameter.opts, *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False):
        return f"`{names}`"
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    again = " …" if parameter.multiple else ""
    return f"`{names} {parameter.metavar or VALUES.get(kind, 'TEXT')}`{again}"


def _command(name: str, command: Any) -> list[str]:
    lines = [
        f"## {name}",
        "",
        str(command.help or "").strip(),
        "",
        f"`{_usage(name, command.params)}{' COMMAND' if hasattr(command, 'commands') else ''}`",
        "",
    ]
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    rows = [(f"`{_argument(p)}`", p.help or "", _default(p)) for p in arguments]
    rows += [(_option(p), p.help or "", _default(p)) for p in options if not p.hidden]
    return lines + (_table(("", "meaning", "default"), rows) if rows else [])


def _commands(prefix: str, group: Any) -> list[str]:
    lines: list[str] = []
    for name, command in sorted(group.commands.items()):
        full = f"{prefix} {name}"
        inner = hasattr(command, "commands")
        lines += _commands(full, command) if inner else _command(full, command)
    return lines


def command_line() -> str:
    lines = [
        "# The command line of railyard",
        NOTE,
        "An error that the user can correct ends with one sentence and exit code 2, Ctrl-C with exit code 130.",
        "",
    ]
    for name, commands in GROUPS.items():
        lines += [
            f"{name}: {', '.join(f'`railyard {command}`' for command in commands)}",
            "",
            "```sh",
            *EXAMPLES[name],
            "```",
            "",
        ]
    group = whole()
    return "\n".join([*lines, *_command("railyard", group), *_commands("railyard", group)])


# --- YAML and JSON ----------------------------------------------------------------------------------------------------

LIMITS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "pattern": "matches `{}`",
}
WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in words; models are links to their own section."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if values := schema.get("enum") or schema.get("examples"):
        return ", ".join(f"`{value}`" for value in values) + ("" if "enum" in schema else ", or what else is built")
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_kind(inner) for inner in schema[key] if inner.get("type") != "null"))
    kind = schema.get("type")
    limits = ", ".join(text.format(schema[key]) for key, text in LIMITS.items() if key in schema)
    if kind == "array":
        inner = schema.get("items") or {}
        fixed = schema.get("prefixItems")
        word = f"[{', '.join(_kind(item) for item in fixed)}]" if fixed else f"list of {_kind(inner)}"
        return word if fixed or not limits else f"{word}, {limits}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        word = f"mapping to {_kind(inner)}" if isinstance(inner, dict) and inner else "mapping"
    else:
        word = WORDS.get(str(kind), "anything")
    return f"{word}, {limits}" if limits else word


def _default_of(schema: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    value = schema.get("default")
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _rows(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    required = schema.get("required", [])
    fields = schema["properties"].items()
    return [(f"`{name}`", _kind(inner), _default_of(inner, required=name in required)) for name, inner in fields]


def _model(name: str, schema: dict[str, Any], parent: type[BaseModel] | None = None) -> list[str]:
    """The section of a model. Unchanged fields of its `parent` are listed in the parent's section."""
    lines = [f"### {name}", ""]
    if schema.get("description"):
        lines += [" ".join(schema["description"].split()), ""]
    if "properties" not in schema:
        return [*lines, _kind(schema), ""]
    rows = _rows(schema)
    if parent is not None:
        lines += [f"The fields of {_kind({'$ref': parent.__name__})}, with these changes and additions:", ""]
        same = _rows(parent.model_json_schema(by_alias=True))
        rows = [row for row in rows if row not in same]
    return lines + _table(("field", "type", "default"), rows)


FORMATS: tuple[tuple[str, type[BaseModel], str], ...] = (
    (
        "An experiment",
        Experiment,
        "`experiments/*.yaml` without `kind`. [experiments.md](experiments.md) says what each field means; "
        "[experiment.schema.json](experiment.schema.json) is the same as a JSON schema, for editors.",
    ),
    ("An exhibit's experiment", ExhibitSpec, "`experiments/*.yaml` with `kind: exhibit`."),
    (
        "A population",
        Population,
        "`experiments/*.yaml` with `kind: population`: [population.md](population.md).",
    ),
    ("An exhibit over a population", PopulationExhibit, "`experiments/*.yaml` with `kind: population-exhibit`."),
    ("A suite of the gate", Suite, "`experiments/suites/*.yaml`: [gate.md](gate.md)."),
    ("A scenario of the stress corpus", Scenario, "`experiments/stress/*.yaml`: [stress.md](stress.md)."),
    ("An index of traces", TraceIndex, "`index.yaml` of a trace library: [traces.md](traces.md#pairs)."),
    ("An exhibit", Exhibit, "`exhibit.json` in the results of an exhibit."),
)


def formats() -> str:
    lines = ["# Fields of YAML and JSON files", NOTE]
    lines += ["A field that is not listed is an error. Every error names file, line and field.", ""]
    listed: set[str] = set()
    for title, model, about in FORMATS:
        schema = model.model_json_schema(by_alias=True)
        parent = next((other for _, other, _ in FORMATS if other in model.__mro__[1:]), None)
        lines += [f"## {title}", "", about, "", *_model(model.__name__, schema, parent)]
        for name, inner in schema.get("$defs", {}).items():
            if name not in listed:
                listed.add(name)
                lines += _model(name, inner)
    return "\n".join(lines)


def _allow_units(part: dict[str, Any]) -> None:
    """Adds to the schema that fields with a unit also take a text with a unit, and the name without it."""
    fields = part.get("properties", {})
    for name, field in list(fields.items()):
        suffix = suffix_of(name)
        if suffix is None:
            continue
        text = {"type": "string", "pattern": rf"^[0-9]+(\.[0-9]+)? ?({'|'.join(UNITS[suffix])})$"}
        fields[name] = {"anyOf": [{key: value for key, value in field.items() if key != "default"}, text]} | {
            key: field[key] for key in ("default", "title") if key in field
        }
        fields.setdefault(bare(name), text)


def experiment_schema() -> str:
    """The JSON schema by which editors check experiments. Schemes and pairs may also be names, and seeds a number."""
    schema = Experiment.model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        _allow_units(part)
    for name in ("SchemeEntry", "PairChoice"):
        schema["$defs"][name] = {"anyOf": [{"type": "string"}, schema["$defs"][name]]}
    seeds = schema["properties"]["seeds"]
    whole_number = {"type": "integer", "minimum": 1, "maximum": 10000}
    schema["properties"]["seeds"] = {"anyOf": [whole_number, seeds], "default": seeds.get("default")}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"


KIND_ABOUT = {
    PLAIN: "Comparisons: trace pairs × schemes × seeds",
    "exhibit": "Figures and tables of the paper, over trace pairs",
    "population-exhibit": "Figures and tables of the paper, over a population of viewers",
    "population": "Populations of viewers",
}


def experiments() -> str:
    """The page on experiments with its last section, the names for `railyard run NAME`, written anew."""
    lines = [
        "`railyard run NAME` runs `experiments/NAME.yaml`. `railyard show` prints the same list. Figures and tables of",
        "the paper take `--size small`, `brief`, `default` or `full`. They write `results/NAME/exhibit.json`, which",
        "holds their tables and plots, the paper's values beside ours, and the checked claims with verdicts. `make",
        "report` runs all of them.",
        "",
    ]
    files = [load_yaml(file).data for file in sorted(EXPERIMENTS_DIR.glob("*.yaml"))]
    place = {name: number for number, name in enumerate(ORDER)}
    files.sort(key=lambda data: (place.get(data["name"], len(place)), data["name"]))
    kinds = dict.fromkeys([*KIND_ABOUT, *(str(data.get("kind", PLAIN)) for data in files)])
    for kind in kinds:
        rows = [
            (f"`railyard run {data['name']}`", data.get("description", ""))
            for data in files
            if data.get("kind", PLAIN) == kind
        ]
        if rows:
            lines += [f"### {KIND_ABOUT.get(kind, kind)}", "", *_table(("command", "what"), rows)]
    written_by_hand = (FOLDER / "experiments.md").read_text(encoding="utf-8").partition(NOTE)[0]
    return written_by_hand + NOTE + "\n" + "\n".join(lines)


# --- figures ----------------------------------------------------------------------------------------------------------


def metrics() -> str:
    """The page on metrics with its last section, the figures of railyard/figures/rows.py, written anew."""

    def size(share: float, figure: Figure) -> str:
        return f"{100 * share:g} {'%' if figure.is_relative else 'points'}"

    def definition(figure: Figure) -> str:
        return f"{figure.meaning} Example: {figure.example}" if figure.example else figure.meaning

    rows = [
        (
            figure.title,
            definition(figure),
            figure.where,
            figure.pool.rule,
            size(figure.margin, figure) if figure.is_compared else "",
            size(figure.gate.floor, figure) if figure.gate else "",
        )
        for figure in FIGURES
    ]
    lines = [
        "Over many runs, a quantile is that of all their values, and a ratio is one of sums. *Interval*: the rule",
        'of [statistics.md](statistics.md). *Margin*: what "no worse" allows in a comparison of schemes. *Floor*: the',
        "smallest change for the worse that counts in the [gate](gate.md). A figure without a margin or a floor is not",
        "compared there.",
        "",
        *_table(("figure", "definition", "from", "interval", "margin", "floor"), rows),
    ]
    written_by_hand = (FOLDER / "metrics.md").read_text(encoding="utf-8").partition(NOTE)[0]
    return written_by_hand + NOTE + "\n" + "\n".join(lines)


# --- the results store ------------------------------------------------------------------------------------------------


def tables() -> str:
    lines = ["# Tables of the results store", NOTE]
    lines += [f"The views of `railyard query` ([how to ask](../howto/query.md)), schema {SCHEMA}."]
    lines += ["Tables marked *File* are Parquet files of each campaign, without the column `campaign`."]
    lines += ["Other Parquet files of a campaign are views under their names.", ""]
    for table in TABLES:
        columns = table.columns if table.columns[0] is CAMPAIGN else (CAMPAIGN, *table.columns)
        lines += [f"## {table.name}", "", f"{table.about}{' *File.*' if table.stored else ''}", ""]
        rows = [
            (f"`{c.name}`", f"`{c.type}`", c.meaning + (f" (since schema {c.since})" if c.since > 1 else ""))
            for c in columns
        ]
        lines += _table(("column", "type", "meaning"), rows)
    return "\n".join(lines)


# --- the programs -----------------------------------------------------------------------------------------------------


def _output(program: Path, option: str) -> str:
    return subprocess.run([str(program), option], capture_output=True, text=True, check=True, timeout=20).stdout


_OPTION = re.compile(r"^  (--[\w-]+).*\n(?: {20,}.*\n)*", re.MULTILINE)
"""An option in the output of --help."""


def programs() -> str:
    lines = ["# The C programs", NOTE]
    lines += ["What `--help` prints. Options that a program has in the same words as one above are only named.", ""]
    lines += ["Exit status: 0; 1 if it ran and failed; 2, with one sentence, if it could not start.", ""]
    known: dict[str, str] = {}  # the first program with an option, by its text
    for program in PROGRAMS:
        text = _output(programs_dir() / program, "--help")
        options = {option[0]: option[1] for option in _OPTION.finditer(text)}
        same = grouped((known[words], f"`{name}`") for words, name in options.items() if words in known)
        for words in options.keys() & known.keys():
            text = text.replace(words, "")
        known = dict.fromkeys(options, program) | known
        lines += [f"## {program}", "", "```", text.rstrip(), "```", ""]
        lines += [f"As [{first}](#{first}): {', '.join(names)}.\n" for first, names in same.items()]
    return "\n".join(lines)


def settings() -> str:
    """The file that `railyard.base.declared` reads: all declarations of the programs."""
    return _output(programs_dir() / "xlink-sim", "--describe-settings")


# --- what setup installs ----------------------------------------------------------------------------------------------

# The command that needs each of scripts/setup.sh's sets of packages.
SETS = {
    "base": "all targets",
    "browser": "`make test`, `make test-long`, `make report`",
    "test": "`make test`, `make test-long`",
    "kernel": "`make kernel`, `make test-long`, `make report`",
    "docker": "`make test PART=docker`",
    "fuzz": "`make fuzz`, `make coverage COVER=corpora`",
    "tidy": "`make lint TIDY=1`",
    "peers": "`make peers`, `make interop`, `make test PART=peers`",
    "machine": "`make fresh-machine`, `make test-long`",
}


def installing() -> str:
    """The page on installing with its last section, the rows of scripts/setup.sh, written anew."""
    lines = (line.split("\t") for line in _output(ROOT / "scripts" / "setup.sh", "--rows").splitlines())
    reasons = grouped(((SETS[name], f"`{package}`"), why) for name, package, why in lines)
    rows = grouped(((who, "; ".join(why)), package) for (who, package), why in reasons.items())
    cells = [(who, ", ".join(names), why) for (who, why), names in rows.items()]
    table = _table(("for", "Debian packages", "why"), cells)
    page = FOLDER / "../howto/install.md"
    written_by_hand = page.read_text(encoding="utf-8").partition(NOTE)[0]
    return written_by_hand + NOTE + "\n" + "\n".join(table)


PAGES = {
    "../howto/install.md": installing,
    "cli.md": command_line,
    "formats.md": formats,
    "experiment.schema.json": experiment_schema,
    "experiments.md": experiments,
    "metrics.md": metrics,
    "tables.md": tables,
    "programs.md": programs,
}


def page(name: str) -> str:
    """The present text of a page: prose of at most 120 columns, no trailing blanks, one newline at the end."""
    text = PAGES[name]()
    text = _wrap(text) if name.endswith(".md") else text
    return re.sub(r"[ \t]+\n", "\n", text).rstrip("\n") + "\n"


def _wrap(text: str) -> str:
    """Breaks long lines of prose. Lines of tables and of code stay as they are."""
    lines: list[str] = []
    code = False
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if code or line.startswith("|") or len(line) <= MAX_COLUMNS:
            lines.append(line)
        else:
            lines += textwrap.wrap(line, MAX_COLUMNS, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def main() -> int:
    stale = []
    # The settings come first: pages are made from them, by a new process that reads the new ones.
    texts = {SETTINGS_FILE: settings()} if "--pages" not in sys.argv else {}
    if "--check" in sys.argv or "--pages" in sys.argv:
        texts |= {FOLDER / name: page(name) for name in PAGES}
    for file, text in texts.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            stale.append(str(file.resolve().relative_to(ROOT)))
            if "--check" not in sys.argv:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    if "--check" not in sys.argv and "--pages" not in sys.argv:
        return subprocess.run([sys.executable, __file__, "--pages"], check=False).returncode
    if "--check" in sys.argv and stale:
        print(f"not what the code says: {', '.join(stale)}; `make docs` writes them again.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
