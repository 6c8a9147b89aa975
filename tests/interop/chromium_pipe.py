"""Chromium by the DevTools protocol over a pipe: it reads from descriptor 3 and writes to 4; records end with NUL."""

import json
import os
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any

BASIC = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-pipe")


class Browser:
    """One browser with one page."""

    def __init__(self, options: Sequence[str]) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        words = ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", "chromium", *BASIC, *options]
        self._process = subprocess.Popen(words, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._stream = os.fdopen(self._in, "rb")
        self._held = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._out)
        self._stream.close()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise OSError("Chromium closed its pipe")
            self._held += piece
        record, self._held = self._held.split(b"\0", 1)
        result: dict[str, Any] = json.loads(record)
        return result

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._number:
                continue  # an event
            if "error" in answer:
                raise OSError(f"{method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise OSError(f"the page: {done['exceptionDetails'].get('exception', {}).get('description')}")
        return done["result"].get("value")
