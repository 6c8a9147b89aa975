"""`xlink-sim` with a job."""

import json
from pathlib import Path
from typing import Any

from conftest import good, run_program
from railyard.base.paths import program


def simulate(out: Path, job: dict[str, Any]) -> Path:
    """Plays a job, whose traces have absolute paths. Returns the folder of its outputs."""
    command: list[str | Path] = [program("xlink-sim"), "-", "--out", out]
    good(run_program(command, input=json.dumps(job), timeout=120))
    return out
