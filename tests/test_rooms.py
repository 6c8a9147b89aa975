"""The rooms of the C tree: who includes whom, who calls whom."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from railyard.base.paths import ROOT

TRANSPORT = ROOT / "transport"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
XL_NAME = re.compile(r"\b(?:xl|XL)_\w+")
FUNCTION = re.compile(r"^(?!static\b)\w[\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)


def code(file: Path) -> str:
    return COMMENT.sub("", file.read_text(encoding="utf-8"))


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.[ch]"))


def sources(room: Path) -> list[Path]:
    return [file for file in sorted(room.glob("*.c")) if not file.name.endswith("_test.c")]


def calls(room: Path) -> dict[str, set[str]]:
    """For each source file, the other files whose functions it names."""
    texts = {file.name: code(file) for file in sources(room)}
    owner = {name: file for file, text in texts.items() for name in FUNCTION.findall(text)}
    assert len(owner) > len(texts)
    return {
        file: {owner[word] for word in set(re.findall(r"\w+", text)) & owner.keys()} - {file}
        for file, text in texts.items()
    }


@pytest.mark.parametrize("room", ["transport/connection", "emulator/mpshell"])
def test_no_two_files_of_a_room_call_each_other(room: str) -> None:
    """Neither directly nor by way of further files."""
    try:
        TopologicalSorter(calls(ROOT / room)).prepare()
    except CycleError as error:
        pytest.fail(f"{room}: these call each other: {' <- '.join(error.args[1])}")


def test_only_connection_and_endpoint_know_connection() -> None:
    for file in sorted(TRANSPORT.glob("*/*.[ch]")):
        if file.parent.name in ("connection", "endpoint", "testing") or file.name.endswith("_test.c"):
            continue
        assert not re.search(r'#include "(connection|endpoint)/', file.read_text(encoding="utf-8")), file


def test_the_prefix_xl_is_libxlinks_alone() -> None:
    """Definitions of other rooms have other prefixes: link_, mp_, player_ and so on."""
    rooms = ("apps", "emulator", "lib/base", "lib/http", "lib/schemes", "lib/video", "player", "server")
    library = (*files("transport"), *files("lib/driver"))
    ours = {name for file in library for name in XL_NAME.findall(code(file))}
    assert len(ours) > 500
    for room in rooms:
        for file in files(room):
            foreign = set(XL_NAME.findall(code(file))) - ours
            assert not foreign, f"{file.relative_to(ROOT)}: {sorted(foreign)}"


def test_only_the_simulator_includes_private_headers_of_the_transport() -> None:
    """These two: with them it makes endpoints that know what its network will do."""
    private = re.compile(r'#include "(transport/[^"]+)"')
    rooms = ("apps", "emulator", "examples", "lib", "peers", "player", "server")
    products = [file for room in rooms for file in files(room) if not file.name.endswith("_test.c")]
    including = {(file.parent, name) for file in products for name in private.findall(file.read_text(encoding="utf-8"))}
    assert including == {
        (ROOT / "emulator" / "sim", "transport/scheduler/foresight.h"),
        (ROOT / "emulator" / "sim", "transport/endpoint/foresight.h"),
    }
    assert "foresight" not in (TRANSPORT / "include" / "xlink" / "xlink.h").read_text(encoding="utf-8")
