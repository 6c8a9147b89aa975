"""Arenas of real programs on the wall clock. Each run has its own worker process (worker.py), at the arena's site."""

import asyncio
import json
import sys
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, cast

from railyard.run import children
from railyard.run.arena import Arena
from railyard.run.outcome import RunRefusedError
from railyard.run.runspec import HANG_GRACE_S, RunSpec
from railyard.run.site import Site

STOP_LIMIT_S = 25.0  # a worker needs less to stop its children
SLACK_S = 60.0  # for set-up and collection around a run


class WallClock(Arena):
    started_by: ClassVar[tuple[str, ...]] = ()  # words before the worker's command

    @abstractmethod
    def site(self, spec: RunSpec, run_dir: Path) -> Site:
        """The site of the run. Called in the worker."""

    async def execute(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        """Does the run in a worker. Afterwards, whatever happens, the worker and its children have ended."""
        (run_dir / "spec.json").write_text(spec.model_dump_json(indent=1))
        command = (*self.started_by, sys.executable, "-m", "railyard.run.worker", str(run_dir))
        worker = await children.started(command, run_dir / "worker.stderr", start_new_session=True)
        try:
            status = await asyncio.wait_for(worker.wait(), spec.time_limit_s + HANG_GRACE_S + SLACK_S)
        except TimeoutError:
            raise RunRefusedError(f"{spec.run_id}: the run did not end; see {run_dir.name}/worker.stderr.") from None
        finally:
            await children.stop(worker, STOP_LIMIT_S)
        if status != 0:
            said = (run_dir / "worker.stderr").read_text(errors="replace").splitlines()
            lines = [line for line in said if line.strip()]
            raise RunRefusedError(
                f"the run {spec.run_id} could not be done: {lines[-1] if lines else f'exit status {status}'}"
            )
        (run_dir / "worker.stderr").unlink()
        (run_dir / "spec.json").unlink()
        return cast(dict[str, Any], json.loads((run_dir / "run.json").read_text()))
