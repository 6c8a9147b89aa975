"""Helpers for tests of traces: the pairs of the project's library, files, and `railyard traces` in this process."""

from pathlib import Path

import numpy as np

from in_process import railyard
from railyard.traces.index import INDEX_FILE
from railyard.traces.library import PROJECT_LIBRARY
from railyard.traces.trace import Trace

# The pairs of the project's library that the generator made: each has its parameters beside its traces.
GENERATED = tuple(sorted(file.stem for file in PROJECT_LIBRARY.glob("*.yaml") if file.name != INDEX_FILE))


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def in_memory(times: list[int]) -> Trace:
    return Trace(Path("memory"), np.array(times, dtype=np.int64), "")


def railyard_traces(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `railyard traces`."""
    done = railyard("traces", *map(str, arguments), COLUMNS="160")
    return done.returncode, done.stdout, done.stderr
