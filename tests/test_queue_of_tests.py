"""`make test`: processes share the files of tests; each file is run by one of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import IN_THE_TREE, Queue


@dataclass
class Item:
    """A test as the queue sees it."""

    path: Path
    on_the_wall: bool = False

    def get_closest_marker(self, name: str) -> bool:
        return self.on_the_wall and name == "wall_clock"


def test_each_file_is_run_by_one_process_and_the_wall_clock_comes_first(tmp_path: Path) -> None:
    files = [Path(f"test_{letter}.py") for letter in "abcd"]
    others: list[Any] = [Item(file) for file in files for _ in range(2)]
    first: list[Any] = [*others[:3], Item(files[1], on_the_wall=True), *others[3:]]
    queues = [Queue(tmp_path, has_the_tree=False) for _ in range(2)]
    queues[0].order(first)
    assert first[0].on_the_wall
    assert [item.path.stem[-1] for item in first[1:]] == list("ddccbbaa")
    second = list(others)
    queues[1].order(second)
    assert second == others
    run: list[list[str]] = [[], []]
    for own in zip(first[1:], second, strict=True):
        for number, item in enumerate(own):
            if queues[number].pytest_runtest_protocol(item) is None:
                run[number].append(item.path.stem[-1])
    assert run == [list("ddcc"), list("aabb")]
    assert queues[1].pytest_runtest_protocol(first[0]) is None, "those on the wall clock are not in the queue"


def test_files_that_build_in_the_tree_are_run_by_one_process(tmp_path: Path) -> None:
    files = {name: Path(__file__).with_name(f"test_{name}.py") for name in IN_THE_TREE}
    assert all(file.is_file() for file in files.values())
    items: list[Any] = [Item(Path("test_another.py")), *(Item(file) for file in files.values())]
    builder, second = Queue(tmp_path, has_the_tree=True), Queue(tmp_path, has_the_tree=False)
    assert all(second.pytest_runtest_protocol(item) for item in items[1:])
    assert all(builder.pytest_runtest_protocol(item) is None for item in items)
    assert second.pytest_runtest_protocol(items[0]), "the other one has begun it"
    builder.order(items)
    assert items[-1].path.name == "test_another.py", "what only it may run comes first"
