"""The whole report: every exhibit of a results directory and its campaigns on one page, with an abstract over all."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from railyard.base.errors import UserError
from railyard.base.lists import Key, grouped
from railyard.base.style import layout
from railyard.experiment.arenas import ARENAS, counts_lateness, is_exact
from railyard.report import page
from railyard.report.exhibit import FILE, ORDER, Claim, Exhibit, newest_exhibits
from railyard.report.sections import Context, Drawing, Section, embedded
from railyard.results.records import load_campaign
from railyard.results.shapes import CAMPAIGN, RUN, read_record
from railyard.run.arena import arena_of

DEFAULT_HEIGHT = 380


@dataclass
class CampaignPart:
    """A campaign as a part of the page."""

    name: str
    anchor: str
    context: Context
    bodies: list[tuple[Section, Markup]]

    @property
    def wall_s(self) -> float:
        return sum(float(run.record["wall_s"]) for run in self.context.runs)


@dataclass
class ExhibitPart:
    """An exhibit as a part of the page. `runs`: the records of its runs, if its folder has them. `replays`: the
    addresses of runs with their own pages. `beside_others`: the page also has it from another arena."""

    exhibit: Exhibit
    folder: Path
    figures: list[Drawing]
    runs: list[dict[str, Any]] = field(default_factory=list)
    replays: dict[str, str] = field(default_factory=dict)
    beside_others: bool = False

    @property
    def name(self) -> str:
        return self.exhibit.name

    @property
    def anchor(self) -> str:
        return f"exhibit-{self.name}{f'-{self.exhibit.arena}' if self.beside_others else ''}"

    @property
    def label(self) -> str:
        return f"{label(self.name)}{f' ({self.exhibit.arena})' if self.beside_others else ''}"

    @property
    def void(self) -> list[dict[str, Any]]:
        return [run for run in self.runs if run["fidelity"]["void"]]

    @property
    def run_count(self) -> int | None:
        return self.exhibit.fidelity.runs or len(self.runs) or None


def label(name: str) -> str:
    """'fig1c' is 'Fig. 1c'."""
    match = re.fullmatch(r"(fig|table)(\d+\w*)", name)
    return f"{'Fig.' if match[1] == 'fig' else 'Table'} {match[2]}" if match else name


@dataclass
class OnTime:
    """A line of the table about lateness of the emulator. None: unknown, or nothing can be late."""

    name: str
    anchor: str
    arena: str
    runs: int | None
    void: int
    worst_us: float | None

    @property
    def verdict(self) -> str:
        good = "exact" if self.worst_us is None or is_exact(self.arena) else "on time"
        return f"{self.void} void, the others {good}" if self.void else good


@dataclass
class Whole:
    """All that the page shows."""

    exhibits: list[ExhibitPart]
    campaigns: list[CampaignPart]
    left_out: list[str]  # sentences about folders that are not shown
    made: datetime

    @property
    def missing(self) -> list[str]:
        """The other exhibits. A page of campaigns alone misses none."""
        return [name for name in ORDER if name not in self.shown] if self.exhibits else []

    @property
    def shown(self) -> set[str]:
        """The names of the exhibits. An exhibit may be from several arenas."""
        return {part.name for part in self.exhibits}

    @property
    def claims(self) -> list[tuple[ExhibitPart, Claim]]:
        """The claims in the order of the page, with those from several arenas next to each other."""
        claims = [(part, claim) for part in self.exhibits for claim in part.exhibit.claims]
        place = {key: k for k, key in reversed(list(enumerate((part.name, claim.id) for part, claim in claims)))}
        return sorted(claims, key=lambda row: place[row[0].name, row[1].id])

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(claim.verdict for _, claim in self.claims)

    @cached_property
    def records(self) -> list[tuple[str, dict[str, Any]]]:
        """Every run's record, with the name of the part it belongs to."""
        of_exhibits = [(part.label, run) for part in self.exhibits for run in part.runs]
        return of_exhibits + [(part.name, run.record) for part in self.campaigns for run in part.context.runs]

    @property
    def void_count(self) -> int:
        of_exhibits = sum(max(part.exhibit.fidelity.void, len(part.void)) for part in self.exhibits)
        return of_exhibits + sum(run.void for part in self.campaigns for run in part.context.runs)

    @property
    def run_count(self) -> int:
        return sum(part.run_count or 0 for part in self.exhibits) + sum(
            len(part.context.runs) for part in self.campaigns
        )

    @property
    def arenas(self) -> list[str]:
        names = dict.fromkeys(part.exhibit.arena for part in self.exhibits)
        # Drawn or modelled exhibits ran in no arena.
        return [f"{arena_of(name).about} ({name})" for name in names if name in ARENAS]

    @property
    def of_size(self) -> dict[str, list[str]]:
        return self.by_value((part.label, part.exhibit.size) for part in self.exhibits)

    @property
    def fidelity(self) -> list[OnTime]:
        rows = []
        for part in self.exhibits:
            on_time = part.exhibit.fidelity
            worst = _late(part.runs) if on_time.exact else on_time.worst_p99_us or 0.0
            void = max(on_time.void, len(part.void))
            rows.append(OnTime(part.label, part.anchor, part.exhibit.arena, part.run_count, void, worst))
        for campaign in self.campaigns:
            runs, arena = campaign.context.runs, str(campaign.context.experiment["arena"])
            worst = _late([run.record for run in runs])
            void = sum(run.void for run in runs)
            rows.append(OnTime(campaign.name, campaign.anchor, arena, len(runs), void, worst))
        return rows

    @property
    def void_runs(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, run) for name, run in self.records if run["fidelity"]["void"]]

    def by_value(self, pairs: Iterable[tuple[str, Key]]) -> dict[Key, list[str]]:
        """Each value with the parts that have it, both in order of appearance."""
        return grouped((value, part) for part, value in dict.fromkeys(pairs))

    @property
    def revisions(self) -> dict[str, list[str]]:
        def word(git: dict[str, Any]) -> str:
            return f"{git.get('revision') or 'no commit'}{', with local changes' if git.get('dirty') else ''}"

        exhibits = [(part.label, word(part.exhibit.provenance.git)) for part in self.exhibits]
        return self.by_value(exhibits + [(name, word(run["git"])) for name, run in self.records])

    @property
    def kernels(self) -> dict[str, list[str]]:
        exhibits = [(part.label, part.exhibit.provenance.kernel) for part in self.exhibits]
        return self.by_value(exhibits + [(name, run["kernel"]) for name, run in self.records])

    @property
    def cpus(self) -> dict[str, list[str]]:
        cpus = ((name, run["cpu"]) for name, run in self.records)
        return self.by_value((name, f"{cpu['model'] or 'unknown'}, {cpu['cores']} cores") for name, cpu in cpus)

    @property
    def sysctls(self) -> dict[str, dict[str, list[str]]]:
        """The parts that ran under each value of each setting."""
        names = dict.fromkeys(name for _, run in self.records for name in run.get("sysctls", {}))
        return {
            name: self.by_value((part, run["sysctls"][name]) for part, run in self.records if name in run["sysctls"])
            for name in names
        }

    @property
    def programs(self) -> dict[tuple[str, str], list[str]]:
        programs_of = [(part.label, part.exhibit.provenance.programs_sha256) for part in self.exhibits]
        programs_of += [(name, run["config"]["programs_sha256"]) for name, run in self.records]
        return self.by_value((where, program) for where, programs in programs_of for program in programs.items())

    @property
    def traces(self) -> list[tuple[str, str]]:
        traces = {pair for part in self.exhibits for pair in part.exhibit.provenance.traces.items()}
        for _, run in self.records:
            for path in run["config"]["paths"]:
                traces |= {(Path(path[way]).name, path[f"{way}_sha256"]) for way in ("up", "down")}
        return sorted(traces)


def prepared(figure: dict[str, Any], title: str) -> tuple[dict[str, Any], int]:
    """A plotly figure as the page draws it, and its height. The house's style is its default."""
    given: dict[str, Any] = dict(figure.get("layout", {}))
    given.pop("width", None)
    # The caption has the title.
    heading = given.get("title")
    if (heading.get("text") if isinstance(heading, dict) else heading) == title:
        given.pop("title", None)
    height = int(given.get("height") or DEFAULT_HEIGHT)
    return {"data": figure.get("data", []), "layout": given | layout(height)}, height


def _late(records: list[dict[str, Any]]) -> float | None:
    """The worst p99 lateness of the runs whose emulator can be late. None: no emulator can."""
    able = [record for record in records if counts_lateness(record["config"]["arena"])]
    return max((float(record["fidelity"]["lateness_p99_us"]) for record in able), default=None)


def _run_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder's completed runs. Empty if it has no runs."""
    records = (read_record(file, RUN) or {} for file in sorted(folder.glob("runs/[!.]*/run.json")))
    return [record for record in records if {"config", "fidelity", "run_id"} <= record.keys()]


def _exhibits(results: Path, numbers: Iterator[int]) -> tuple[list[ExhibitPart], list[str]]:
    """The exhibits in the order of the paper, others after them, and a sentence for each that cannot be read."""
    newest, left_out = newest_exhibits(results)
    parts = []
    for exhibit, folder in newest:
        figures = []
        for plot in exhibit.plots:
            drawn, height = prepared(plot.figure, plot.title)
            text = embedded(json.dumps(drawn, separators=(",", ":")))
            figures.append(Drawing(next(numbers), plot.title, text, height, plot.alt))
        runs = _run_records(folder)
        pages = {run["run_id"]: folder / "runs" / run["run_id"] / "replay.html" for run in runs}
        # The folder itself, because its link may lead to another one later.
        place = Path(os.path.relpath(folder.resolve(), results.resolve()))
        replays = {
            run: quote((place / page.relative_to(folder)).as_posix()) for run, page in pages.items() if page.is_file()
        }
        beside_others = [other.name for other, _ in newest].count(exhibit.name) > 1
        parts.append(ExhibitPart(exhibit, folder, figures, runs, replays, beside_others))
    return parts, left_out


def _campaigns(results: Path, numbers: Iterator[int]) -> tuple[list[CampaignPart], list[str]]:
    """The newest campaign of each experiment that is no exhibit, and a sentence for each folder that is left out."""
    campaigns: dict[Path, tuple[str, dict[str, Any]]] = {}
    for file in sorted(results.glob("*/campaign.json"), key=lambda file: (not file.parent.is_symlink(), file)):
        folder = file.parent.resolve()
        if folder in campaigns or (folder / FILE).exists():
            continue
        record = read_record(file, CAMPAIGN) or {}
        if isinstance(record.get("experiment"), dict) and "runs" in record:
            campaigns[folder] = (file.parent.name, record)
    newest: dict[str, Path] = {}
    for folder, (_, record) in campaigns.items():
        name = str(record["experiment"]["name"])
        if name not in newest or str(record.get("started")) > str(campaigns[newest[name]][1].get("started")):
            newest[name] = folder
    parts: list[CampaignPart] = []
    left_out: list[str] = []
    for folder, (name, record) in sorted(campaigns.items(), key=lambda item: item[1][0]):
        if newest[str(record["experiment"]["name"])] != folder:
            left_out.append(f"{name}: there is a newer campaign of the same experiment.")
            continue
        try:
            campaign, runs = load_campaign(folder)
        except UserError as error:
            left_out.append(str(error))
            continue
        anchor = f"campaign-{len(parts) + 1}"
        context = Context(campaign, runs, numbers=numbers, folder=folder, page_folder=results)
        parts.append(CampaignPart(name, anchor, context, page.bodies(context)))
    return parts, left_out


def gather(results: Path) -> Whole:
    """Everything below a results directory. Raises UserError if there is nothing."""
    numbers = count(1)
    exhibits, broken = _exhibits(results, numbers)
    campaigns, left_out = _campaigns(results, numbers)
    if not exhibits and not campaigns:
        raise UserError(
            f"{results}: there is no result in this directory; `make report` makes all, `railyard run NAME` one."
        )
    return Whole(exhibits, campaigns, broken + left_out, datetime.now(UTC))


def render(whole: Whole) -> str:
    """The page as HTML text."""
    return page.environment().get_template("whole.html.j2").render(whole=whole, assets=page.assets(), label=label)
