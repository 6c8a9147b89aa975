"""The pages of campaigns, of one campaign, and of one run with its replay and the explanation of a chunk."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from railyard.base import forms
from railyard.base.errors import UserError
from railyard.base.lists import grouped
from railyard.base.words import counted
from railyard.base.yamlfile import near_miss
from railyard.experiment.arenas import is_exact
from railyard.figures.rows import FIGURES
from railyard.report.replay.page import render
from railyard.report.replay.series import read_replay
from railyard.results.differences import sound
from railyard.results.explain import explanation
from railyard.results.records import Run, load_run
from railyard.serve.figures import DISTRIBUTIONS, distribution, where
from railyard.serve.store import Known, NotThereError, Overview, written
from railyard.serve.web import SANDBOX, Page, title_of
from railyard.serve.work import UnfinishedError

ROWS = 50  # of a table of runs
LONGEST_REPEAT_S = 60.0  # a run without qlogs that took at most this long is repeated to explain it
MOST_DIGITS = 9
REPORT = "report.html"
ORDERS = {
    "run": "run_id",
    "scheme": "label, run_id",
    "outcome": "outcome, run_id",
    "first frame": "first_frame_s DESC NULLS FIRST, run_id",
    "stalled": "stalled_s DESC, run_id",
    "RCT median": "rct_median_s DESC NULLS FIRST, run_id",
    "RCT max": "rct_max_s DESC NULLS FIRST, run_id",
}
RUNS_SQL = """
WITH of_chunks AS (
  SELECT run_id, quantile_disc(rct_s, 0.5) AS rct_median_s, max(rct_s) AS rct_max_s,
         min(rct_s) FILTER (NOT completed) AS bound_s
  FROM chunks GROUP BY run_id
)
SELECT run_id, pair, label, seed, outcome, void, failed, first_frame_s,
       coalesce(rebuffer_counted_s, rebuffer_time_s) AS stalled_s,
       rct_median_s AS median_s, rct_max_s AS max_s, coalesce(bound_s <= rct_median_s, false) AS median_is_bound,
       bound_s IS NOT NULL AS max_is_bound, redundancy
FROM runs LEFT JOIN of_chunks USING (run_id)
WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?
"""
SLOWEST_SQL = """
SELECT run_id, chunk, label, pair, rct_s, completed, chunk < chunks_requested AS requested
FROM chunks JOIN (SELECT run_id, chunks_requested FROM runs) USING (run_id)
WHERE {condition} ORDER BY rct_s DESC, run_id, chunk LIMIT 10
"""


class Campaigns(Page):
    """The list of campaigns, with the progress of those under way."""

    async def get(self) -> None:
        words = self.get_query_argument("words", "")
        rows, broken = await self.read(self.site.store.overviews)
        shown = [row for row in rows if _matches(row, words)]
        arenas = sorted({row.arena for row in rows})
        arena = self.asked("arena", ["", *arenas], "")
        shown = [row for row in shown if arena in ("", row.arena)]
        self.draw(
            "campaigns.html.j2",
            rows=shown,
            total=len(rows),
            broken=broken,
            words=words,
            arenas=arenas,
            arena=arena,
            results=str(self.site.store.results),
        )


def _matches(row: Overview, words: str) -> bool:
    text = f"{row.name} {row.title} {row.description} {row.arena} {row.state}".lower()
    return all(word in text for word in words.lower().split())


@dataclass(frozen=True)
class Filter:
    """The selection of runs of a page. Empty choices select all."""

    pairs: list[str]
    labels: list[str]
    all_pairs: list[str]
    all_labels: list[str]

    @property
    def key(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(self.pairs), tuple(self.labels)

    @property
    def condition(self) -> tuple[str, list[object]]:
        return where(self.pairs, self.labels)

    def of(self, runs: list[Run]) -> list[Run]:
        return [
            run
            for run in runs
            if (not self.pairs or run.pair in self.pairs) and (not self.labels or run.label in self.labels)
        ]


def filter_of(page: Page, known: Known) -> Filter:
    """The selection in a request. Raises UserError for a pair or scheme that the campaign does not have."""
    asked = {name: page.get_query_arguments(name) for name in ("pair", "scheme")}
    runs = known.tables()["runs"]
    names = [list(dict.fromkeys(runs.column(column).to_pylist())) for column in ("pair", "label")]
    for (what, values), there in zip(asked.items(), names, strict=True):
        for value in values:
            if value not in there:
                raise UserError(f"{known.name} has no {what} '{value}'; {near_miss(value, there)}")
    return Filter(asked["pair"], asked["scheme"], *names)


@dataclass(frozen=True)
class _Seen:
    """The data of a campaign's page."""

    overview: Overview
    filter: Filter
    rows: list[dict[str, Any]]
    count: int
    summary: list[tuple[str, int, list[str]]]
    drawing: Any
    slowest: list[tuple[Any, ...]]


class OneCampaign(Page):
    async def get(self, name: str) -> None:
        known = await self.read(lambda: self.site.store.find(name))
        overview = await self.read(known.overview)
        about = {"overview": overview, "campaign": known.campaign, "title": title_of(known.campaign)}
        about |= {"has_report": (known.folder / REPORT).is_file()}
        if not overview.has_runs or not overview.whole:
            self.draw("empty.html.j2", **about)
            return
        order, of = self.asked("order", list(ORDERS), "run"), self.asked("of", list(DISTRIBUTIONS), "rct")
        number = self._number("page")
        seen: _Seen = await self.read(lambda: self._see(known, order, of, number))
        pages = max(1, math.ceil(seen.count / ROWS))
        if number > pages:
            raise UserError(f"the table of runs has {counted(pages, 'part')}, and no page {number}.")
        about |= {"seen": seen, "order": order, "orders": list(ORDERS), "of": of, "number": number, "pages": pages}
        heads = [f"{of.title} s" if of.unit == "s" else of.title for of in FIGURES if of.head]
        about |= {"distributions": DISTRIBUTIONS, "heads": heads, "link": self._link}
        self.draw("campaign.html.j2", **about)

    def _number(self, name: str) -> int:
        text = self.get_query_argument(name, "1")
        if not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS or int(text) < 1:
            raise UserError(f"{name} takes a number from 1, not '{text}'.")
        return int(text)

    def _link(self, number: int) -> str:
        """The address of the page with another part of the table of runs."""
        pairs = [
            (name, value) for name in ("pair", "scheme", "order", "of") for value in self.get_query_arguments(name)
        ]
        return "?" + urlencode([*pairs, ("page", str(number))]) + "#runs"

    def _see(self, known: Known, order: str, of: str, number: int) -> _Seen:
        chosen = filter_of(self, known)
        condition, parameters = chosen.condition
        plain = condition.removeprefix("NOT void").removeprefix(" AND ") or "true"  # void runs are listed, and marked
        sql = RUNS_SQL.format(condition=plain, order=ORDERS[order])
        rows = known.rows(sql, [*parameters, ROWS, (number - 1) * ROWS])
        [(count,)] = known.ask(f"SELECT count(*) FROM runs WHERE {plain}", parameters)  # noqa: S608
        return _Seen(
            known.overview(),
            chosen,
            rows,
            count,
            _summary(chosen.of(known.runs())),
            distribution(known, of, condition, parameters),
            known.ask(SLOWEST_SQL.format(condition=condition), parameters),
        )


def _summary(runs: list[Run]) -> list[tuple[str, int, list[str]]]:
    """A row for each scheme: its label, the number of its plays that count, and its figures as in tables."""
    by_label = grouped((run.label, run) for run in sound(runs))
    shown = [figure for figure in FIGURES if figure.head]
    labels = dict.fromkeys(run.label for run in runs if not run.void)
    return [(label, len(of := by_label.get(label, [])), [figure.text(of) for figure in shown]) for label in labels]


# --- one run ----------------------------------------------------------------------------------------------------------


class OneRun(Page):
    async def get(self, name: str, run_id: str) -> None:
        known, folder, run = await self.read(lambda: self.load(name, run_id))
        chunk = self._chunk(run)
        data: dict[str, Any] = {"run": run, "name": name, "title": title_of(known.campaign), "chunk": chunk}
        siblings = await self.read(lambda: self._siblings(known, run))
        data |= {"siblings": siblings, "explained": None, "wait": "", "problem": ""}
        if chunk is not None:
            data |= await self._explained(known.name, folder, run, chunk)
        self.draw("run.html.j2", **data)

    def load(self, name: str, run_id: str) -> tuple[Known, Path, Run]:
        known = self.site.store.find(name)
        if run_id not in known.run_ids():
            raise NotThereError(f"{name} has no run '{run_id}'.")
        folder = known.run_folder(run_id)
        if folder is None:
            raise UserError(f"{name} is kept without the folders of its runs, so '{run_id}' cannot be shown.")
        return known, folder, load_run(folder)

    @staticmethod
    def _siblings(known: Known, run: Run) -> list[tuple[str, str]]:
        """The other schemes at the same place, and their runs."""
        sql = "SELECT label, run_id FROM runs WHERE pair = ? AND seed = ? AND run_id <> ? ORDER BY label"
        try:
            return [(label, run_id) for label, run_id in known.ask(sql, [run.pair, run.seed, run.run_id])]
        except UnfinishedError:
            return []

    def _chunk(self, run: Run) -> int | None:
        text = self.get_query_argument("chunk", None)
        if text is None:
            return None
        known = {str(chunk.index): chunk.index for chunk in run.chunks if chunk.requested}
        if text not in known:
            raise UserError(f"{run.run_id} requested no chunk '{text}'; it has {len(known)}.")
        return known[text]

    async def _explained(self, name: str, folder: Path, run: Run, chunk: int) -> dict[str, Any]:
        has_qlogs = any((folder / "qlog").glob("*.sqlog"))
        if not has_qlogs and is_exact(run.config.get("arena")) and float(run.record["wall_s"]) > LONGEST_REPEAT_S:
            command = f"railyard explain {name}/{run.run_id} --chunk {chunk}"
            return {"problem": f"The run has no qlogs, and to repeat it takes long; in a terminal: {command}"}
        message = "The chunk is being explained; a run without qlogs is repeated for it."
        try:
            key = (folder, "explain", written(folder), chunk)
            explained = await self.site.work.made(key, lambda: explanation.explain(folder, chunk), message)
        except UnfinishedError as error:
            return {"wait": str(error)}
        except UserError as error:
            return {"problem": str(error)}
        return {
            "explained": list(explanation.sentences(explained)),
            "parts": forms.content(explanation.parts_table(explained, repeat_steps=True)),
            "shares": forms.content(explanation.shares_table(explained)),
            "waterfall": explanation.waterfall(explained),
        }


class Replay(OneRun):
    """The run's own page, as `railyard report RUN` writes it."""

    async def get(self, name: str, run_id: str) -> None:
        _, folder, _ = await self.read(lambda: self.load(name, run_id))
        key = (folder, "replay", written(folder))
        text = await self.site.work.made(key, lambda: render(folder, read_replay(folder)), "The replay is being drawn.")
        self.set_header("Content-Security-Policy", SANDBOX)
        self.finish(text)


class Report(Page):
    """The file of the campaign's report, whatever its contents, in its own origin."""

    async def get(self, name: str) -> None:
        known = await self.read(lambda: self.site.store.find(name))
        file = known.folder / REPORT
        if file.is_symlink() or not file.is_file():
            raise NotThereError(f"{name} has no report; `railyard report` writes one.")
        self.set_header("Content-Security-Policy", SANDBOX)
        self.finish(await self.read(file.read_bytes))
