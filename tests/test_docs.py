"""The documentation: links have targets, generated pages are up to date, examples are valid."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import reference_pages as reference
from conftest import good, run_program
from railyard import __version__
from railyard.base.declared import FILE as SETTINGS_FILE
from railyard.base.paths import ROOT, programs_dir
from railyard.cli.main import whole
from railyard.experiment.model import Experiment, load_experiment
from railyard.results import columns
from railyard.results.aggregate import write_parquet
from railyard.results.query import connect, run_query
from railyard.results.records import load_campaign
from railyard.traces.index import TraceIndex
from railyard.traces.names import TECHNOLOGY_ORDER

DOCS = ROOT / "docs"
TOP = ("README", "CONTRIBUTING", "CHANGELOG", "RELEASING", "SECURITY")
PAGES = [*(ROOT / f"{name}.md" for name in TOP), *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"<!-- test: (?P<what>[^>]*?) -->\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block: `test` is what the comment before it asks for."""

    page: Path
    language: str
    text: str
    test: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text.splitlines()[0] if self.text else ''}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        asked = TEST.search(text[: match.start()])
        indent = len(match["indent"])
        inner = "".join(line[indent:] for line in match["text"].splitlines(keepends=True))
        yield Block(page, match["language"], inner, asked["what"] if asked else "")


ALL_BLOCKS = [block for page in PAGES for block in blocks(page)]


def blocks_for(what: str) -> list[Block]:
    return [block for block in ALL_BLOCKS if block.test == what]


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as repositories' web pages make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    names = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings]
    return {f"{name}-{names[:i].count(name)}" if name in names[:i] else name for i, name in enumerate(names)}


def links(page: Path) -> list[str]:
    return [match[1] or match[2] for match in LINK.finditer(prose(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"https?://", link):
            assert re.fullmatch(r"https?://[\w.-]+(/[^\s]*)?", link), link
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}; there are {sorted(anchors(target))}"


def test_every_page_can_be_reached_from_the_index() -> None:
    seen, waiting = set(), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            names = [link.partition("#")[0] for link in links(page) if "://" not in link]
            waiting += [(page.parent / name).resolve() for name in names if name]
    assert {page for page in PAGES if DOCS in page.parents} <= seen, "not in docs/README.md, nor in what it links to"
    assert DOCS / "README.md" in {(ROOT / link.partition("#")[0]).resolve() for link in links(ROOT / "README.md")}


def test_every_page_lies_in_one_of_the_five_folders() -> None:
    folders = ("tutorial", "howto", "reference", "explanation", "results")
    assert sorted(entry.name for entry in DOCS.iterdir()) == sorted(["README.md", *folders])
    flat = [path for path in DOCS.rglob("*") if path.is_dir() and path.parent != DOCS]
    assert not flat, "folders within folders"


def test_the_readme_says_what_is_in_every_folder() -> None:
    done = good(run_program(["git", "ls-files"], cwd=ROOT, timeout=20))
    folders = {name.split("/")[0] for name in done.stdout.splitlines() if "/" in name and not name.startswith(".")}
    layout = (ROOT / "README.md").read_text(encoding="utf-8").split("## Layout")[1]
    assert folders <= set(re.findall(r"`(\w+)/`", layout))


def test_pages_that_code_and_messages_name_exist() -> None:
    done = good(run_program(["git", "ls-files", "-z"], cwd=ROOT, timeout=20))
    for name in filter(None, done.stdout.split("\0")):
        file = ROOT / name
        if not file.is_file() or file.suffix not in (".c", ".h", ".py", ".sh", ".yaml", ".yml", ".toml"):
            continue
        for page in re.findall(r"\bdocs/[\w/+-]+\.(?:md|png)\b", file.read_text(encoding="utf-8", errors="ignore")):
            assert (ROOT / page).is_file(), f"{name} names {page}"


def test_test_programs_that_pages_name_have_a_source() -> None:
    """But widest, the scheduler that the reader of a how-to writes."""
    named = re.compile(r"build/(?:release|asan|tsan|fuzz)/([a-z0-9_/]+_(?:test|fuzz))\b")
    programs = {name for page in PAGES for name in named.findall(page.read_text(encoding="utf-8"))}
    assert {name for name in programs if not (ROOT / f"{name}.c").is_file()} == {"transport/scheduler/widest_test"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_have_at_most_120_columns(page: Path) -> None:
    """A table's row is one line, and an address cannot be broken."""
    lines = FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    long = [line for line in lines if len(line) > 120 and " " in line.strip() and not line.lstrip().startswith("|")]
    assert not long, "\n".join(long)


def test_every_test_that_the_page_on_conformance_names_exists() -> None:
    page = (DOCS / "reference" / "conformance.md").read_text(encoding="utf-8").split("\n## RFC 10069\n")[0]
    named = {name for row in page.splitlines() if row.startswith("| ") for name in re.findall(r"`(\w+)`", row)}
    files = [path for room in ("transport/**", "lib/http", "player") for path in ROOT.glob(f"{room}/*_test.c")]
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(files))
    existing = set(re.findall(r"^\w*TEST(?:_[A-Z]+)?\((\w+)", sources, re.MULTILINE))
    assert len(named) > 50
    assert named <= existing, named - existing


@pytest.mark.usefixtures("built")
def test_the_settings_that_python_knows_are_those_of_the_programs() -> None:
    known, built = (json.loads(text) for text in (SETTINGS_FILE.read_text(encoding="utf-8"), reference.settings()))
    for setting, row in zip(built["settings"], known["settings"], strict=True):
        if setting.get("open"):  # a scheduler of one's own is known to the program alone
            setting["words"] = [word for word in setting["words"] if word in row["words"]]
    assert known == built, "old: `make docs` writes it again"
    assert tuple(built["technologies"]) == TECHNOLOGY_ORDER


def test_libraries_and_package_have_one_version() -> None:
    header = (ROOT / "transport" / "include" / "xlink" / "xlink.h").read_text(encoding="utf-8")
    assert re.findall(r'^#define XL_VERSION +"(.*)"$', header, re.MULTILINE) == [__version__]


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_pages_are_what_the_code_says(name: str) -> None:
    """`make docs` writes them."""
    if name == "programs.md" and not (programs_dir() / reference.PROGRAMS[0]).is_file():
        pytest.skip("needs the programs: run `make build`")
    written = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert written == reference.page(name), f"docs/reference/{name} is old: `make docs` writes it again"


def test_every_event_of_the_qlog_is_documented() -> None:
    text = (DOCS / "reference" / "results.md").read_text() + (DOCS / "reference" / "wire.md").read_text()
    source = (ROOT / "transport" / "qlog" / "qlog.c").read_text()
    events = re.findall(r'begin_(?:path_)?event\([^";{]*"(\w+)", (?:sent \? )?"(\w+)"(?: : "(\w+)")?', source)
    assert len(events) > 10
    for category, *names in events:
        for name in filter(None, names):
            assert f"`{category}:{name}`" in text, f"{category}:{name}"


# --- command lines ----------------------------------------------------------------------------------------------------


def command_lines(program: str) -> list[tuple[Block, list[str]]]:
    """The words of every line of a block without a language that begins with the program."""
    found = []
    for block in ALL_BLOCKS:
        if block.language not in ("", "sh"):
            continue
        for line in re.sub(r"\\\n", " ", block.text).splitlines():
            words = re.sub(r" #.*", "", line).split()
            words = words[1:] if words[:1] == ["sudo"] else words
            if words and Path(words[0]).name == program and "…" not in words[1:2]:
                found.append((block, words[1:]))
    return found


def find_command(command: Any, words: list[str]) -> tuple[Any, list[str]]:
    while hasattr(command, "commands") and not (words and words[0].startswith(("-", "["))):
        assert words and words[0] in command.commands, f"no such command: railyard {' '.join(words)}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_the_schema_of_the_tables_is_the_present_one() -> None:
    assert f"`{columns.METADATA_KEY}`, now {columns.SCHEMA}." in (DOCS / "reference" / "results.md").read_text()


def test_runs_that_pages_name_are_named_with_their_campaign() -> None:
    """A run's name alone is that of each campaign over the pair, and `railyard` asks which one is meant."""
    alone = re.compile(r"railyard (?:show|diff|explain|qlog|repeat)(?: \S+)*? (?![\w./-]*/)\S+--s[0-9]+\b")
    assert {page.name: alone.findall(page.read_text()) for page in PAGES if alone.search(page.read_text())} == {}


def test_command_lines_of_railyard_exist() -> None:
    lines = command_lines("railyard")
    assert len(lines) > 30
    everything = whole()
    for block, words in lines:
        command, rest = find_command(everything, words)
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for word in " ".join(rest).replace("[", " ").replace("]", " ").replace("|", " ").split():
            if word.startswith("--"):
                assert word.partition("=")[0] in known | {"--help"}, f"{block}: {word} of {words[0]}"


@pytest.mark.parametrize("program", reference.PROGRAMS)
def test_options_of_programs_exist(program: str) -> None:
    text = (reference.FOLDER / "programs.md").read_text()
    section = text.split(f"## {program}\n")[1].split("\n## ")[0]
    for block, words in command_lines(program):
        for word in words[: words.index("--")] if "--" in words else words:
            option = word.strip("[]|").partition("=")[0]
            if option.startswith("--"):
                assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", section), f"{block}: {option}"


# --- examples ---------------------------------------------------------------------------------------------------------


def test_yaml_examples_are_valid(tmp_path: Path) -> None:
    found = 0
    for block in ALL_BLOCKS:
        if block.language != "yaml" or block.test.startswith("howto"):  # test_one_file.py follows these
            continue
        data = yaml.safe_load(block.text)
        if not isinstance(data, dict) or {"floors", "alpha"} & data.keys():
            continue
        if {"name", "pairs", "schemes"} <= data.keys():
            (tmp_path / "example.yaml").write_text(block.text)
            assert isinstance(load_experiment(tmp_path / "example.yaml")[0], Experiment)
            found += 1
    assert found >= 3
    [index] = blocks_for("file mine/index.yaml")
    assert TraceIndex.model_validate(yaml.safe_load(index.text)).pairs[0].name == "my-drive"


def test_a_setting_that_a_page_gives_a_scheme_is_not_the_default() -> None:
    """A reader who tries it would see no difference."""
    rows = json.loads(SETTINGS_FILE.read_text(encoding="utf-8"))["settings"]
    default = {row["name"]: row["default"] for row in rows if "default" in row}
    given = [
        (page.name, name, str(value))
        for page in PAGES
        for text in re.findall(r"\{scheme: [a-z+-]+, [^{}]*\}", page.read_text(encoding="utf-8"))
        for name, value in yaml.safe_load(text).items()
    ]
    assert len(given) > 20
    assert [entry for entry in given if default.get(entry[1]) == entry[2]] == []


def test_queries_are_valid(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent / "data" / "results-schema-1", tmp_path / "c")
    write_parquet(load_campaign(tmp_path / "c")[1], tmp_path / "c")
    queries = blocks_for("query")
    assert len(queries) >= 4
    database = connect(tmp_path)
    for block in queries:
        run_query(database, block.text)


def test_the_tests_of_the_conformance_table_exist_and_run() -> None:
    """Each row of RFC 10069 in docs/reference/conformance.md names a test and the file that it is in."""
    rows = re.findall(
        r"^\| [\d., ]+ \|.*\| `(\w+)` \| `([\w/.]+)` \|$",
        (ROOT / "docs/reference/conformance.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 30
    for name, file in rows:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^\w*TEST(_[A-Z]+)?\({name}[,)]", source, re.MULTILINE), f"{file} has no test {name}"
