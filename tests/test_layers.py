"""The Python package is in layers: each imports only itself and those before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from railyard.base.paths import ROOT
from railyard.studies.exhibits.registry import EXHIBITS, KINDS

PACKAGE = ROOT / "railyard"
LAYERS = (
    "base",
    "stats",
    "traces",
    "experiment",
    "run",
    "arenas",
    "figures",
    "results",
    "report",
    "studies",
    "gate",
    "stress",
    "serve",
    "api",
    "lab",
    "cli",
)
# Within the studies likewise: what they share, then each.
STUDIES = (
    "request",
    "claims",
    "study",
    "machine",
    "agreement",
    "coverage",
    "thresholds",
    "recorded",
    "link_models",
    "cost",
    "crowd",
    "population",
    "exhibits",
    "validation",
)
OUTSIDE = {"__init__", "__main__"}  # the version; `python -m railyard`


def imported(text: str) -> Iterator[str]:
    """Every module or name of the package that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def upward(layers: tuple[str, ...], here: str, text: str, prefix: str = "railyard.") -> list[str]:
    """The imports of a file in the layer `here` from later or unknown layers."""
    before = layers[: layers.index(here) + 1]
    names = [name.removeprefix(prefix) for name in imported(text) if name.startswith(prefix)]
    return [name for name in names if name.partition(".")[0] not in (*before, "__version__")]


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each module with the name of its layer."""
    for file in sorted(folder.rglob("*.py")):
        yield file.relative_to(folder).parts[0].removesuffix(".py"), file


def test_each_module_is_in_a_layer() -> None:
    assert {layer for layer, _ in files(PACKAGE)} == {*LAYERS, *OUTSIDE}
    assert {study for study, _ in files(PACKAGE / "studies")} == {*STUDIES, "__init__"}


def test_a_layer_imports_only_those_before_it() -> None:
    wrong = {
        str(file.relative_to(ROOT)): found
        for layer, file in files(PACKAGE)
        if layer in LAYERS and (found := upward(LAYERS, layer, file.read_text()))
    }
    assert not wrong


def test_a_study_imports_only_those_before_it() -> None:
    wrong = {
        str(file.relative_to(ROOT)): found
        for study, file in files(PACKAGE / "studies")
        if study in STUDIES and (found := upward(STUDIES, study, file.read_text(), "railyard.studies."))
    }
    assert not wrong


def test_what_studies_load_by_name_is_a_study() -> None:
    for reference in (*EXHIBITS.values(), *KINDS.values()):
        assert reference.startswith("railyard.studies.")


def test_an_import_from_a_later_layer_is_found_wherever_it_stands() -> None:
    assert upward(LAYERS, "run", "from railyard.results.records import Run\n") == ["results.records.Run"]
    assert upward(LAYERS, "run", "def late():\n    import railyard.gate.run\n") == ["gate.run"]
    assert upward(LAYERS, "run", "from railyard import cli, run\n") == ["cli"]
    assert upward(LAYERS, "results", "from railyard.arenas import sim\nfrom railyard import __version__\n") == []
