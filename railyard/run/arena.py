"""An arena: where runs are carried out. railyard/arenas/ has one module for each, whose `ARENA` is an instance."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from railyard.base.errors import UserError
from railyard.base.paths import PROGRAM_NAMES, program
from railyard.base.provenance import sha256_of
from railyard.experiment.arenas import load
from railyard.run import runspec
from railyard.run.runspec import KernelMachine, RunSpec


class Arena(ABC):
    """What is not overridden holds for real programs on the wall clock."""

    name: ClassVar[str]  # that of its module
    about: ClassVar[str]  # its clock in a few words, for reports
    exact: ClassVar[bool] = False  # time is virtual: the same run gives the same bytes
    same_with_qlogs: ClassVar[bool] = False  # a run that keeps qlogs comes out as one that does not
    counts_lateness: ClassVar[bool] = True  # the emulator does things at times of its own, which may be late
    starts_late: ClassVar[bool] = False  # the player may start after the links (RunSpec.player_start_ms)
    has_foresight: ClassVar[bool] = False  # schedulers may be told what the links will do
    notices_full_disk: ClassVar[bool] = False  # its programs fail where they cannot write
    s_per_video_mb: ClassVar[float] = 0.0  # exact ones: what a run takes, where no recorded run tells
    program_names: ClassVar[tuple[str, ...]] = PROGRAM_NAMES

    def programs(self) -> dict[str, str]:
        """What runs, by content: part of each run's identity."""
        return {name: sha256_of(program(name)) for name in self.program_names}

    def machine(self) -> KernelMachine | None:
        """What runs boot, by content: part of each run's identity."""
        return None

    def refuses(self, scheme: str) -> str | None:
        """Why a scheme cannot run here on any machine, as the rest of a sentence; None where it can."""
        del scheme
        return None

    def refuses_flow(self, cc: str) -> str | None:
        """Why TCP flows with a congestion controller cannot run here, as a sentence without its end; None where they
        can."""
        del cc
        return f"the {self.name} arena has no TCP flows; run them with --arena kernel or mpshell"

    @abstractmethod
    def check(self) -> None:
        """Prepares the machine for runs, which may take minutes and ends what killed ones left running. Raises
        UserError with the one thing that is missing."""

    def why_not(self) -> str | None:
        """Why runs cannot start on this machine as it is; None when they can."""
        try:
            self.check()
        except UserError as error:
            return str(error)
        return None

    def default_jobs(self) -> int:
        """How many runs go on side by side. In virtual time nothing can be late, so every core has its run. On the wall
        clock one emulated run keeps two cores honest: emulator and endpoints beside each other."""
        cores = len(os.sched_getaffinity(0))
        return cores if self.exact else max(1, cores // 2)

    @abstractmethod
    async def execute(self, spec: RunSpec, run_dir: Path) -> dict[str, Any]:
        """Carries one run out, once; leaves the logs in its folder, and returns its record, which who asked writes.
        Raises UserError when a program refuses to start."""

    def together(self) -> AbstractAsyncContextManager[None]:
        """Runs within it may share what is dear to start."""
        return nullcontext()

    # ---- to repeat a recorded run

    def with_program(self, spec: RunSpec, file: Path) -> RunSpec:
        """The run with another build of its one program. Raises UserError where it has several."""
        del spec, file
        raise UserError("--program is an xlink-sim for runs of the arena sim; RAILYARD_BIN names a folder of programs.")

    def own_programs(self, spec: RunSpec) -> dict[str, str]:
        """Those of a recorded run as they are in this installation, by content."""
        return {name: sha256_of(program(name)) for name in spec.programs_sha256}

    def planned(self, spec: RunSpec, out: Path) -> list[str]:
        """The programs that the run starts, one command a line."""
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
        """Lines for a shell that do a recorded run again by its programs alone, whose commands write into `out`; none
        where that takes more than a few words."""
        del record, commands, out
        return []


def arena_of(name: str) -> Arena:
    """Raises UserError where there is no such arena."""
    arena: Arena = load(name)
    return arena
