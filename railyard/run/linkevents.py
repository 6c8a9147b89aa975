"""`link_events` of a wall-clock run: a thread sends each change to mpshell's control socket at its time.

In virtual time the simulator makes the changes itself, at their microsecond. Here each is sent at its time after t0,
when mpshell's command starts. mpshell answers with the time of its effect; the difference is part of the verdict.
"""

import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from railyard.experiment.model import LinkEvent

_CONNECT_TRY_S = 0.002
_PRIORITY = 1  # real-time, if permitted; mpshell's own loop has a higher one


@dataclass(frozen=True)
class DoneEvent:
    """One command of an event. `done_s`: when it took effect, in s since t0. None: the run ended before."""

    t_s: float
    command: str
    done_s: float | None = None

    @property
    def late_us(self) -> float:
        return 0.0 if self.done_s is None else (self.done_s - self.t_s) * 1e6

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _text(value: str | float) -> str:
    """A value as text without an exponent, which neither mpshell nor the simulator reads."""
    return value if isinstance(value, str) else f"{value:.9f}".rstrip("0").rstrip(".")


def commands(event: LinkEvent) -> list[str]:
    """The commands to mpshell: one for each changed property, in the simulator's order."""
    target = event.path if event.direction == "both" else f"{event.path}:{event.direction}"
    said = [f"{event.state} {target}"] if event.state is not None else []
    for word, *values in (
        ("delay", event.delay_ms),
        ("loss", event.loss),
        ("rate", event.rate),
        ("mtu", event.mtu),
        ("reorder", event.reorder, event.reorder_delay_ms),
        ("duplicate", event.duplicate),
        ("cross", event.cross),
    ):
        if values[0] is not None:
            said.append(" ".join([word, target, *(_text(value) for value in values if value is not None)]))
    if event.nat is not None:
        said.append(f"{event.nat} {event.path}")
    if event.interface is not None:
        said.append(f"interface {event.path} {event.interface}")
    return said


class Conductor(threading.Thread):
    """Sends the events of a run. Ends with the last event, when the command has ended, or by `finish`."""

    def __init__(self, events: tuple[LinkEvent, ...], folder: Path) -> None:
        super().__init__(name="link events", daemon=True)
        self.done = [DoneEvent(event.t_s, command) for event in events for command in commands(event)]
        self.refusal: str | None = None
        # A socket's path has at most 107 bytes, and a folder's may be longer: mpshell inherits the folder instead.
        self.folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        self.control = f"/proc/self/fd/{self.folder_fd}/control"
        self._ended = threading.Event()

    def finish(self) -> list[DoneEvent]:
        """Ends the thread, once mpshell has ended, and returns the events."""
        self._ended.set()
        if self.ident is not None:
            self.join()
        os.close(self.folder_fd)
        return self.done

    def run(self) -> None:
        with suppress(OSError):  # if it is not permitted, events may be late
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
        with suppress(OSError), socket.socket(socket.AF_UNIX) as control:  # the command has ended
            if self._connect(control):
                self._conduct(control)

    def _connect(self, control: socket.socket) -> bool:
        """Connects once mpshell listens. False: it never did."""
        while not self._ended.is_set():
            with suppress(FileNotFoundError, ConnectionRefusedError):
                control.connect(self.control)
                return True
            self._ended.wait(_CONNECT_TRY_S)
        return False

    def _conduct(self, control: socket.socket) -> None:
        answers = control.makefile("rb")
        control.sendall(b"stats\n")  # answered once the links run
        t0_us = json.loads(answers.readline() or "{}").get("t0_monotonic_us")
        for number, event in enumerate(self.done):
            if t0_us is None or self._ended.wait(max(0.0, t0_us / 1e6 + event.t_s - time.monotonic())):
                return
            control.sendall(f"{event.command}\n".encode())
            answer = json.loads(answers.readline() or "{}")
            if not answer.get("ok"):
                # If the command has ended, there is no answer, or this one: the event is after the run.
                error = answer.get("error", "the command has ended")
                self.refusal = None if error == "the command has ended" else f"'{event.command}': {error}"
                return
            self.done[number] = DoneEvent(event.t_s, event.command, answer["t_s"])
