"""The web application in a thread of the tests, and a campaign for it to show."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

from conftest import FakeRun
from railyard.results.aggregate import write_parquet
from railyard.results.records import load_campaign
from railyard.serve.app import application
from railyard.serve.connections import listening, server_of
from railyard.serve.job import Job
from railyard.serve.store import Store
from railyard.serve.web import Site
from railyard.serve.work import Work

Make = Callable[..., Path]
WAIT_S = 240.0  # on a busy machine; nothing here is about speed


@dataclass
class Answer:
    status: int
    text: str
    headers: dict[str, str]

    @property
    def problem(self) -> str:
        found = re.search(r'role="alert">([^<]*)<', self.text)
        return found[1] if found else ""


@dataclass
class Server:
    """The application in a thread of its own."""

    results: Path
    limit_s: float = 2 * WAIT_S
    port: int = 0
    _ready: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Server":
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        sockets = listening(0)
        self.port = sockets[0].getsockname()[1]
        work, self.job = Work(), Job(self.results, self.limit_s)
        server = server_of(application(Site(Store(self.results, work), work, self.job, self.port)))
        server.accept_from(sockets)
        self._ready.set()
        await self._end.wait()
        server.stop_accepting()
        await self.job.stop()
        work.end()

    def ask(self, path: str, method: str = "GET", body: str = "", **headers: str) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body or None, sent)
        answer = connection.getresponse()
        found = Answer(answer.status, answer.read().decode(), dict(answer.getheaders()))
        connection.close()
        return found

    def get(self, path: str) -> Answer:
        """The page, once it is ready."""
        until = time.monotonic() + WAIT_S
        while (answer := self.ask(path)).status == 202 or 'id="live" data-every="1"' in answer.text:
            assert time.monotonic() < until, answer.text
            time.sleep(0.05)
        return answer

    def post(self, path: str, form: Mapping[str, object], **headers: str) -> Answer:
        """A form, as the page of it sends it."""
        page = self.ask("/start")
        token = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
        cookie = SimpleCookie(page.headers["Set-Cookie"])[f"railyard_{self.port}_xsrf"]
        assert token is not None and cookie["httponly"] and cookie["samesite"] == "Strict"
        body = urlencode({"_xsrf": token[1], **form}, doseq=True)
        return self.ask(path, "POST", body, **{"Cookie": f"{cookie.key}={cookie.value}"} | headers)


def campaign(make: Make, further: Sequence[FakeRun] = ()) -> Path:
    """Two schemes at seven places, gathered, in a folder of results."""
    runs = [
        FakeRun(
            label=label,
            scheme="xlink",
            seed=seed,
            start_offset_ms=60_000 * seed,
            rct_s=[rct_s / 2 + 0.01 * seed, rct_s],
        )
        for label, rct_s in (("vanilla-mp", 2.0), ("xlink", 0.5))
        for seed in range(1, 8)
    ]
    out = make(*runs, *further)
    write_parquet(load_campaign(out)[1], out)
    return out
