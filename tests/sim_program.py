"""`xlink-sim` with a job."""

import json
import subprocess
from pathlib import Path
from typing import Any

from conftest import good
from railyard.base.paths import program


def simulate(out: Path, job: dict[str, Any]) -> Path:
    """Plays a job, whose traces have absolute paths. Returns the folder of its outputs."""
    command: list[str | Path] = [program("xlink-sim"), "-", "--out", out]
    good(subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False, timeout=120))
    return out
