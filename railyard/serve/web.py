"""The common parts of all pages of the application: access, templates and errors.

Only pages of this server, or a user at the address bar, have access: Host must be a name of this machine (DNS
rebinding), Origin this server's, and a form carries a token. Templates escape names from the results.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tornado.web import HTTPError, RequestHandler

from railyard.base.errors import MOST_LETTERS, UserError, fault_words
from railyard.base.words import printable
from railyard.report.page import gzipped_plotly
from railyard.results.campaigns import StoredCampaign
from railyard.serve.html import environment, source, style
from railyard.serve.job import Job
from railyard.serve.store import NotThereError, Store
from railyard.serve.work import UnfinishedError, Work

NAMES = ("127.0.0.1", "localhost")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Pages from the results have inline scripts. They run in their own origin and can access nothing.
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OUT_OF_DATE = "The form was not sent by a page of this server, or by an old one; load its page again."
SCRIPTS = {"figures.js", "live.js", "points.js"}


@dataclass
class Site:
    """The shared objects of all pages."""

    store: Store
    work: Work
    job: Job
    port: int = 0

    @cached_property
    def hosts(self) -> set[str]:
        return {f"{name}:{self.port}" for name in NAMES} | (set(NAMES) if self.port == 80 else set())

    @property
    def origins(self) -> set[str]:
        return {f"http://{host}" for host in self.hosts}


class Page(RequestHandler):
    """A page. It reads files outside of the event loop."""

    def initialize(self, site: Site) -> None:
        self.site = site

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Content-Security-Policy", POLICY)
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if (refused := self._refused()) is not None:
            raise HTTPError(403, reason=refused)

    def _refused(self) -> str | None:
        """Why the request is refused. None: it is not."""
        headers, site = self.request.headers, self.site
        if headers.get("Host", "").lower() not in site.hosts:
            return "The Host is none of this server's."
        if (origin := headers.get("Origin")) is not None and origin not in site.origins:
            return "Pages of other origins may not ask here."
        by_address = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
        foreign = headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        if foreign and not (by_address and self.request.method == "GET"):
            return "Pages of other origins may not ask here."
        return None

    def head(self, *names: str) -> Any:
        """Answers HEAD like GET, as RFC 9110 section 9.1 requires. Tornado omits the body."""
        return self.get(*names)

    async def read(self, make: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, make)

    def draw(self, template: str, **data: Any) -> None:
        data |= {"path": self.request.path, "xsrf": self.xsrf_token.decode()}
        self.finish(environment().get_template(template).render(**data))

    def asked(self, name: str, known: dict[str, Any] | list[str] | tuple[str, ...], default: str) -> str:
        """The value of a parameter that takes one of these words. Raises HTTPError."""
        value = self.get_query_argument(name, default)
        if value not in known:
            raise UserError(f"{name} takes {', '.join(filter(None, known))}, not '{value}'.")
        return value

    def write_error(self, status_code: int, **more: Any) -> None:
        error = more["exc_info"][1] if "exc_info" in more else None
        if isinstance(error, UnfinishedError):
            self.set_status(202)
            self.draw("wait.html.j2", words=str(error))  # this page reloads until the other is ready
            return
        sentence = {
            404: "There is no such page.",
            405: "This page takes no such request.",
            500: "This page failed. The terminal in which the server runs says more.",
        }.get(status_code, "This request cannot be answered.")
        if isinstance(error, NotThereError):
            status_code, sentence = 404, str(error)
        elif isinstance(error, UserError):
            status_code, sentence = 400, str(error)
        elif isinstance(error, HTTPError):
            sentence = error.reason or (OUT_OF_DATE if status_code == 403 else sentence)
        self.set_status(status_code)
        self.draw("error.html.j2", status=status_code, sentence=_sentence(sentence))

    def log_exception(self, kind: Any, error: Any, at: Any) -> None:
        if not isinstance(error, UserError | UnfinishedError | HTTPError):
            print(f"railyard: {self.request.path[:MOST_LETTERS]!r}: {fault_words(error)}", file=sys.stderr)


def _sentence(text: str) -> str:
    text = printable(text)
    return text[:1].upper() + text[1:]


class NotFound(Page):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404)


class Asset(Page):
    """The style sheets, the scripts and the plotting library. No folder is served."""

    def get(self, name: str) -> None:
        if name == "plotly.js":
            self.set_header("Content-Type", "text/javascript")
            self.set_header("Content-Encoding", "gzip")
            self.set_header("Cache-Control", "private, max-age=86400")
            self.finish(gzipped_plotly())
        elif name == "style.css":
            self.set_header("Content-Type", "text/css; charset=utf-8")
            self.finish(style())
        elif name in SCRIPTS:
            self.set_header("Content-Type", "text/javascript; charset=utf-8")
            self.finish(source(name))
        else:
            raise HTTPError(404)


def title_of(campaign: StoredCampaign) -> str:
    return campaign.experiment_name or campaign.name
