"""Arenas: each is one module, which everything else finds by its name and asks for what it can do."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from railyard.base.errors import UserError
from railyard.base.paths import ROOT
from railyard.experiment.arenas import ARENAS, is_exact
from railyard.run.arena import arena_of
from test_one_file import follow, said_by, tree

__all__ = ["follow", "tree"]

Follow = Callable[..., str]


def names_an_arena(node: ast.AST) -> bool:
    """Matches an arena's name, alone or among several. Members of records or programs may have such names too."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return any(isinstance(one, ast.Constant) and one.value in ARENAS for one in parts)


def comparisons(text: str) -> Iterator[str]:
    """Comparisons with an arena's name, and tables by several of their names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            found = any(map(names_an_arena, (node.left, *node.comparators)))
        elif isinstance(node, ast.MatchValue):
            found = names_an_arena(node.value)
        elif isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            found = "sim" in keys and len(keys & {*ARENAS}) > 1
        else:
            found = False
        if found:
            yield f"{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def test_no_other_code_compares_with_an_arenas_name() -> None:
    found = {}
    for folder in ("railyard", "bench", "scripts", "notebooks", "studies"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ROOT / "railyard" / "arenas" not in file.parents:
                found[str(file.relative_to(ROOT))] = list(comparisons(file.read_text(encoding="utf-8")))
    assert len(found) > 100 and not {file: lines for file, lines in found.items() if lines}


@pytest.mark.parametrize(
    "line",
    [
        'found = spec.arena == "sim"',
        'found = "kernel" in jobs',
        'found = arena not in ("sim", "kernel")',
        'words = {"sim": "virtual time", "mpshell": "real time"}',
        'match arena:\n    case "docker":\n        pass',
    ],
)
def test_a_comparison_is_found_whatever_its_form(line: str) -> None:
    assert len(list(comparisons(line))) == 1


def test_what_only_has_such_a_name_is_no_comparison() -> None:
    assert not list(comparisons('found = record["kernel"]\njobs = arena_of("sim").default_jobs()\nx = {"kernel": 1}'))


def test_an_arena_has_the_name_of_its_module_and_a_row_of_the_docs() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| (\w+) \| ", page, re.MULTILINE)
    clocks = {name: "virtual" if is_exact(name) else "wall" for name in ARENAS}
    assert {name: clock for name, clock in table if name in ARENAS} == clocks
    for name in ARENAS:
        assert arena_of(name).name == name and arena_of(name).about


def test_a_name_that_no_arena_has() -> None:
    with pytest.raises(UserError, match="unknown arena 'simm'; did you mean 'sim'"):
        arena_of("simm")
    assert not is_exact("none") and not is_exact(None) and not is_exact(["sim"])


SLOW = '''
"""The slow arena: the simulator, one run at a time."""
from railyard.arenas.sim import Sim


class Slow(Sim):
    name = "slow"
    about = "virtual time, run by run"

    def default_jobs(self) -> int:
        return 1


ARENA = Slow()
'''
EXPERIMENT = """
name: walk
pairs: [subway-1]
schemes: [vanilla-mp, mptcp]
player: {bitrate_bps: 3000000, duration_s: 3}
seeds: 2
"""


def test_an_arena_is_one_module(tree: Path, follow: Follow) -> None:
    """All properties of the arena follow from its module: schemes, qlogs, repetitions, figures, schema, options,
    tables."""
    (tree / "railyard" / "arenas" / "slow.py").write_text(SLOW, encoding="utf-8")
    (tree / "walk.yaml").write_text(EXPERIMENT)
    run = "out/runs/subway-1--vanilla-mp--s1"
    played, shown, again, found, wrong = said_by(
        follow,
        "run walk.yaml --arena slow --out out",
        f"show {run}",
        f"repeat {run} --out again --yes",
        "query 'select distinct arena from runs' --results .",
        "run walk.yaml --arena slov",
    )
    assert played[0] == 0 and "mptcp: needs a kernel" in played[1]
    assert "fidelity: exact, in virtual time" in shown[1]
    assert again[0] == 0, again
    assert (tree / "again" / "player.jsonl").read_bytes() == (tree / run / "player.jsonl").read_bytes()
    assert "slow" in found[1]
    assert wrong[0] == 2 and "unknown arena 'slov'; did you mean 'slow'" in " ".join(wrong[1].split())
    for page, words in (("experiment.schema.json", '"slow"'), ("cli.md", "slow"), ("tables.md", "`slow`")):
        assert words in (tree / "docs" / "reference" / page).read_text(encoding="utf-8"), page
