"""The application: its pages, and the server on the loopback interface."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tornado.web import Application

from railyard.base.errors import UserError
from railyard.experiment.settings import QUIC_SCHEMES
from railyard.run.children import ending_signals
from railyard.serve import leaderboard
from railyard.serve.comparing import Compare
from railyard.serve.connections import LOOPBACK, listening, server_of
from railyard.serve.job import Job
from railyard.serve.pages import Campaigns, OneCampaign, OneRun, Replay, Report
from railyard.serve.starting import (
    MOST_RUNS,
    MOST_SEEDS,
    MOST_VIDEO_BYTES,
    asked_of,
    pair_names,
    player_rows,
    run_rows,
    scheme_rows,
)
from railyard.serve.store import Store
from railyard.serve.web import Asset, NotFound, Page, Site
from railyard.serve.work import UnfinishedError, Work


class Start(Page):
    """The form that starts a campaign in the simulator."""

    async def get(self) -> None:
        await self.form({"pair": self.get_query_argument("pair", ""), "scheme": "xlink", "seeds": "1"}, ["vanilla-mp"])

    async def form(self, form: dict[str, str], beside: list[str], problem: str = "") -> None:
        rows = await self.read(lambda: (pair_names(), run_rows(), player_rows(), scheme_rows()))
        names = ("pairs", "run_rows", "player_rows", "scheme_rows")
        limits = {"runs": MOST_RUNS, "seeds": MOST_SEEDS, "megabytes": MOST_VIDEO_BYTES // 1_000_000}
        limits["seconds"] = round(self.site.job.limit_s)
        about = dict(zip(names, rows, strict=True)) | {"schemes": QUIC_SCHEMES, "limits": limits}
        self.draw("start.html.j2", **about, form=form, beside=beside, problem=problem)

    async def post(self) -> None:
        form = {name: self.get_body_argument(name) for name in self.request.body_arguments if name != "_xsrf"}
        beside = self.get_body_arguments("beside")
        form.pop("beside", None)
        try:
            asked = await self.read(lambda: asked_of(form, beside))
            await self.site.job.start(asked.arguments, asked.runs, asked.identity)
        except UserError as error:
            self.set_status(409 if self.site.job.is_running else 400)
            await self.form(form, beside, str(error))
            return
        self.redirect("/job", status=303)


class Running(Page):
    """The progress of the campaign that the form started. A POST stops it."""

    async def get(self) -> None:
        started = self.site.job.last
        name = await self.read(self._name) if started is not None else None
        self.draw("job.html.j2", started=started, name=name, limit_s=self.site.job.limit_s)

    def _name(self) -> str | None:
        """The campaign's name in the results. None: its folder does not exist yet."""
        folder = self.site.job.folder()
        if folder is None:
            return None
        return next((one.name for one in self.site.store.all() if one.folder == folder.resolve()), None)

    async def post(self) -> None:
        await self.site.job.stop()
        self.redirect("/job", status=303)


class Leaderboard(Page):
    """The page of `railyard serve --export`, with the application's own head."""

    async def get(self) -> None:
        first = leaderboard.figure_named(self.get_query_argument("figure", leaderboard.DEFAULT))
        names = self.get_query_arguments("campaign")
        known = await self.read(lambda: leaderboard.chosen(self.site.store, names))
        boards = []
        for one in known:
            stamp = await self.read(one.stamp)
            try:
                key = (one.folder, stamp, "board", first.name)
                boards.append(await self.site.work.made(key, partial(leaderboard.board_of, one, first), ""))
            except UnfinishedError:
                message = (
                    f"The schemes of {one.name} are being ranked: {len(boards)} of {len(known)} campaigns are done."
                )
                raise UnfinishedError(message) from None
        self.draw(
            "leaderboard.html.j2",
            boards=[board for board in boards if board is not None],
            figures=leaderboard.FIGURES,
            first=first.name,
            width=leaderboard.WIDTH,
        )


PAGES: tuple[tuple[str, type[Page]], ...] = (
    (r"/", Campaigns),
    (r"/campaign/(.+)", OneCampaign),
    (r"/run/(.+)/([^/]+)", OneRun),
    (r"/replay/(.+)/([^/]+)", Replay),
    (r"/report/(.+)", Report),
    (r"/compare", Compare),
    (r"/start", Start),
    (r"/job", Running),
    (r"/leaderboard", Leaderboard),
    (r"/static/([a-z.]+)", Asset),
)


def application(site: Site) -> Application:
    given = {"site": site}
    return Application(
        [(route, page, given) for route, page in PAGES],
        default_handler_class=NotFound,
        default_handler_args=given,
        xsrf_cookies=True,
        # Cookies belong to a host, whatever the port: other Tornado servers here, such as Jupyter, use `_xsrf`.
        xsrf_cookie_name=f"railyard_{site.port}_xsrf",
        xsrf_cookie_kwargs={"httponly": True, "samesite": "Strict"},
        compress_response=True,
        log_function=lambda _: None,
    )


async def _serve(results: Path, port: int, tell: Callable[[str], None], limit_s: float | None) -> None:
    sockets = listening(port)
    work = Work()
    job = Job(results) if limit_s is None else Job(results, limit_s)
    site = Site(Store(results, work), work, job, sockets[0].getsockname()[1])
    server = server_of(application(site))
    server.accept_from(sockets)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, ended.set)
    tell(f"http://{LOOPBACK}:{site.port}/")
    try:
        await ended.wait()
    finally:
        server.stop_accepting()
        await job.stop()
        work.end()


def serve(results: Path, port: int, tell: Callable[[str], None], limit_s: float | None = None) -> None:
    """Serves the results until it is interrupted. `tell` gets the address once the server listens. `limit_s`: the time
    limit of a campaign that the form starts. Raises UserError."""
    asyncio.run(_serve(results.resolve(), port, tell, limit_s))
