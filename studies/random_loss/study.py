"""Seconds for 10 MB over 40 Mbps, 100 ms and random loss in both directions, by server: docs/results/transport.md. Each
transfer is in virtual time. The client is quic-go's, but kernel TCP's of the row of kernel TCP; tests/interop/loss.py
carries them out."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from railyard.base.errors import UserError
from railyard.base.paths import IN_CHECKOUT, ROOT
from railyard.experiment.model import Strict
from railyard.run import vkernel
from railyard.studies.study import Data, markdown


class Settings(Strict):
    servers: dict[str, str] = Field(min_length=1)  # by the name of tests/interop/peers.py: the head of the row
    seeds: int = Field(ge=1)  # of the losses and of all else
    jobs: int = Field(default=1, ge=1)  # transfers at a time


class Measured(Data):
    seconds: dict[str, dict[str, list[float | None]]]  # by head and loss, of each seed; None: the transfer failed


def measure(settings: Settings) -> Measured:
    if not IN_CHECKOUT:
        raise UserError("the other stacks are built in the repository: use a checkout and its .venv.")
    if vkernel.at_hand() is None:
        raise UserError(f"{vkernel.why_not()}.")
    with tempfile.TemporaryDirectory(prefix="railyard-") as folder:
        out = Path(folder) / "loss.json"
        command = [sys.executable, "-m", "interop.loss", *settings.servers, "--out", str(out)]
        command += ["--seeds", str(settings.seeds), "--jobs", str(settings.jobs)]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"{done.stdout.strip() or 'the transfers could not be carried out (see above)'}.")
        seconds = json.loads(out.read_text(encoding="utf-8"))
    return Measured(seconds={head: seconds[name] for name, head in settings.servers.items()})


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    rates = next(iter(measured.seconds.values()))
    rows = [[head, *map(words, of_rates.values())] for head, of_rates in measured.seconds.items()]
    yield "seconds", markdown(["server", *rates], rows)


def words(seconds: list[float | None]) -> str:
    return ", ".join("failed" if value is None else f"{value:.1f}" for value in seconds)
