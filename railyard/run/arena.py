"""The base of arenas, which carry out runs. railyard/arenas/ has a module for each; its `ARENA` is an instance."""

import os
import shlex
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from railyard.base.errors import UserError
from railyard.base.paths import PROGRAM_NAMES, program
from railyard.base.provenance import sha256_of, sha256_once
from railyard.experiment.arenas import load
from railyard.run import runspec
from railyard.run.runspec import KernelMachine, RunSpec


class Arena(ABC):
    """The defaults are those of real programs on the wall clock."""

    name: ClassVar[str]  # the name of its module
    about: ClassVar[str]  # its clock in a few words, for reports
    exact: ClassVar[bool] = False  # time is virtual: the same run gives the same bytes
    same_with_qlogs: ClassVar[bool] = False  # writing qlogs does not change a run
    counts_lateness: ClassVar[bool] = True  # the emulator acts at times that it may miss
    starts_late: ClassVar[bool] = False  # the player may start after the links (RunSpec.player_start_ms)
    has_foresight: ClassVar[bool] = False  # schedulers may know the links' future
    notices_full_disk: ClassVar[bool] = False  # its programs fail if they cannot write
    s_per_run: ClassVar[float] = 0.0  # in virtual time: the time of a run of a video without bytes,
    s_per_video_mb: ClassVar[float] = 0.0  # … and of each MB of its video, on another machine
    program_names: ClassVar[tuple[str, ...]] = PROGRAM_NAMES

    def programs(self) -> dict[str, str]:
        """The SHA-256 of each program of a run, which is part of the run's identity."""
        return {name: sha256_of(program(name)) for name in self.program_names}

    def machine(self) -> KernelMachine | None:
        """The kernel that runs boot, which is part of their identity. None: they boot none."""
        return None

    def refuses(self, scheme: str) -> str | None:
        """Why a scheme cannot run in this arena on any machine, as the rest of a sentence. None: it can."""
        del scheme
        return None

    def refuses_flow(self, cc: str) -> str | None:
        """Why TCP flows with a congestion controller cannot run here, as a sentence without its period. None: they
        can."""
        del cc
        return f"the {self.name} arena has no TCP flows; run them with --arena kernel or mpshell"

    @abstractmethod
    def check(self) -> None:
        """Prepares the machine for runs and ends processes that killed runs left. May take minutes. Raises UserError
        with the requirement that is missing."""

    def look(self) -> str | None:
        """As check(), but changes nothing. Returns a sentence about what check() would build. None: nothing."""
        self.check()
        return None

    def why_not(self) -> str | None:
        """Why runs cannot start on this machine. None: they can."""
        try:
            self.look()
        except UserError as error:
            return str(error)
        return None

    def default_jobs(self) -> int:
        """The number of runs side by side. In virtual time nothing can be late, so every core has a run. On the wall
        clock a run needs two cores: one for the emulator and one for the endpoints."""
        cores = len(os.sched_getaffinity(0))
        return cores if self.exact else max(1, cores // 2)

    @abstractmethod
    async def execute(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        """Carries out one try of a run. Leaves the logs in the folder and returns the record, which the caller writes.
        Raises UserError if a program refuses to start."""

    def together(self) -> AbstractAsyncContextManager[None]:
        """A context in which runs may share processes that are slow to start."""
        return nullcontext()

    # ---- to repeat a recorded run

    def with_program(self, spec: RunSpec, file: Path) -> RunSpec:
        """The run with another build of its program. Raises UserError if it has several programs."""
        del spec, file
        raise UserError("--program is an xlink-sim for runs of the arena sim; RAILYARD_BIN names a folder of programs.")

    def own_programs(self, spec: RunSpec) -> dict[str, str]:
        """The SHA-256 of the programs of a recorded run, as they are in this installation."""
        return {name: sha256_once(program(name)) for name in spec.programs_sha256}

    def planned(self, spec: RunSpec, out: Path) -> list[str]:
        """The commands of the programs that the run starts, one a line."""
        player = runspec.player_command(spec, program("xlink-player"), out)
        commands = [[str(spec.kernel.file)]] if spec.kernel else []
        commands.append(runspec.server_command(spec, program("xlink-server"), out))
        if spec.stack:
            commands.append(runspec.relay_server_command(spec.stack))
            player = runspec.relay_command(spec, spec.stack, program("relay-run"), out, player)
        settings = runspec.sysctls(spec)
        commands.append(runspec.mpshell_command(spec, program("mpshell"), out, player, settings=settings))
        return [shlex.join(command) for command in commands]

    def by_hand(self, record: dict[str, Any], commands: dict[str, list[str]], out: str) -> list[str]:
        """Lines for a shell that repeat a recorded run with its programs alone, which write into `out`. Empty if a few
        words do not suffice."""
        del record, commands, out
        return []


def arena_of(name: str) -> Arena:
    """The arena of that name. Raises UserError if there is none."""
    arena: Arena = load(name)
    return arena
