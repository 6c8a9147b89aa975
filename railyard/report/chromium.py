"""Chromium without a window: prints a page as PDF, and lets tests look at a page as a reader would see it.

The browser is driven by the DevTools protocol over its debugging pipe: JSON messages that end with a zero byte, in on
its file descriptor 3, out on 4. Nothing listens on a port, the profile is a temporary folder, and the browser's
network is off except for the loopback interface, so that a page which needs a network fails.
"""

import base64
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from railyard.base.errors import UserError
from railyard.base.files import replacing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
READY = "document.documentElement.dataset.plots === 'drawn'"
ANSWER_LIMIT_S = 60.0
DRAW_LIMIT_S = 180.0
ROOM_MB = 100
A4_INCH = {"paperWidth": 8.27, "paperHeight": 11.69}
FOOTER = (
    '<div style="font-size:7px;color:#555;width:100%;padding:0 14mm;display:flex;justify-content:space-between">'
    '<span class="title"></span><span><span class="pageNumber"></span> / <span class="totalPages"></span></span></div>'
)


def find_chromium() -> str | None:
    """The browser: $CHROMIUM, else the first of its usual names. None: there is none."""
    given = os.environ.get("CHROMIUM")
    return given or next((program for name in PROGRAMS if (program := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser died, did not answer, or refused a command."""


class Browser:
    """A running browser. Use as a context manager; when it ends, the browser's processes and profile are gone.
    `options`: more options of Chromium, which override FLAGS."""

    def __init__(self, program: str, *options: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="railyard-chromium-", ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium's own sandbox refuses root
        # The shell moves the pipe's ends to the descriptors that Chromium expects, then becomes Chromium.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        arguments = (program, *FLAGS, *sandbox, f"--user-data-dir={self._profile.name}", *options, "about:blank")
        self._process = subprocess.Popen(
            ("bash", "-c", command, *arguments),
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": tempfile.gettempdir()},  # TMPDIR may name a folder that is full, or none
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = bytearray()
        self._number = 0
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError, BrowserError):
            self.call("Browser.close", limit_s=5)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for end in (self._write, self._read):
            os.close(end)
        self._profile.cleanup()

    def call(
        self, method: str, session: str | None = None, limit_s: float = ANSWER_LIMIT_S, **parameters: Any
    ) -> dict[str, Any]:
        """Sends a command and returns its answer. Keeps events that come before the answer for `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._write, data) :]
        except BrokenPipeError:
            raise BrowserError(f"{method}: the browser ended") from None
        deadline = time.monotonic() + limit_s
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == self._number:
                break
            self._events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self, deadline: float, method: str) -> dict[str, Any]:
        with selectors.DefaultSelector() as ready:
            ready.register(self._read, selectors.EVENT_READ)
            while (end := self._buffer.find(b"\0")) < 0:
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    raise BrowserError(f"{method}: the browser did not answer in time")
                data = os.read(self._read, 1 << 20)
                if not data:
                    raise BrowserError(f"{method}: the browser ended")
                self._buffer += data
        message: dict[str, Any] = json.loads(self._buffer[:end])
        del self._buffer[: end + 1]
        return message

    def events(self, session: str) -> list[dict[str, Any]]:
        """Returns the events of a session so far and forgets them."""
        mine = [event for event in self._events if event.get("sessionId") == session]
        self._events = [event for event in self._events if event.get("sessionId") != session]
        return mine

    def open(
        self, page: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False, plots: bool = True
    ) -> "Page":
        """Opens a file of this machine, or an address, in a new tab, and waits until it has loaded and every plot is
        drawn, if it has plots."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        there = "location.href !== 'about:blank' && document.readyState === 'complete'"
        tab.wait_until(f"{there} && {READY}" if plots else there)
        return tab


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def events(self) -> list[dict[str, Any]]:
        """The tab's events since the last call."""
        return self._browser.events(self._session)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression. Waits for a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait_until(self, condition: str, limit_s: float = DRAW_LIMIT_S) -> None:
        """Waits until a JavaScript condition holds."""
        deadline = time.monotonic() + limit_s
        asked = f"new Promise(done => {{ const ask = () => {condition} ? done(true) : setTimeout(ask, 20); ask(); }})"
        while True:
            # A navigation loses the question, so it is asked again in the new document.
            with suppress(BrowserError):
                if self.evaluate(asked):
                    return
            if time.monotonic() > deadline:
                raise BrowserError(f"the page did not come to: {condition}")

    def pdf(self, file: Path) -> None:
        """Writes the page on A4 as tagged PDF with an outline and page numbers, completely or not at all."""
        stream = self.call(
            "Page.printToPDF",
            printBackground=True,
            preferCSSPageSize=True,
            displayHeaderFooter=True,
            headerTemplate="<span></span>",
            footerTemplate=FOOTER,
            generateTaggedPDF=True,
            generateDocumentOutline=True,
            transferMode="ReturnAsStream",
            **A4_INCH,
        )["stream"]
        with replacing(file) as partial, partial.open("wb") as out:
            while True:
                part = self.call("IO.read", handle=stream, size=1 << 20)
                out.write(base64.b64decode(part["data"]) if part.get("base64Encoded") else part["data"].encode())
                if part["eof"]:
                    break

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


def _program() -> str:
    """The browser. Raises UserError if there is none."""
    program = find_chromium()
    if program is None:
        raise UserError("there is no Chromium, which PDF needs; `make setup EXTRAS=browser` installs it.")
    if shutil.which(program) is None:
        raise UserError(f"CHROMIUM is '{program}', and there is no such program; unset it, or name a Chromium.")
    return program


def print_pdf(page: Path, pdf: Path) -> None:
    """Prints a page of the report as PDF. Raises UserError if Chromium is missing or fails."""
    try:
        with Browser(_program()) as browser:
            browser.open(page).pdf(pdf)
    except BrowserError as error:
        raise UserError(f"{page}: Chromium could not print it: {error}{_if_full()}.") from None


def _if_full() -> str:
    """A remedy, if the folder of temporary files, where Chromium keeps what it prints, has little room."""
    folder = tempfile.gettempdir()
    free_mb = shutil.disk_usage(folder).free >> 20
    return (
        f"; {folder} has {free_mb} MB free: make room, or name another folder with TMPDIR" if free_mb < ROOM_MB else ""
    )
