"""`railyard show` and `compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from railyard.base.errors import UserError
from railyard.base.forms import Form, FormOption, write
from railyard.base.paths import EXPERIMENTS_DIR, RESULTS_DIR
from railyard.base.terminal import new_console, new_table, print_table
from railyard.base.words import counted
from railyard.base.yamlfile import load_yaml, parse
from railyard.cli.options import ResultsOption
from railyard.experiment.factors import with_factors
from railyard.experiment.model import Experiment
from railyard.results import differences, resolution, shortage
from railyard.results.campaigns import StoredCampaign, find_campaigns, find_run_or_campaign, newest_of
from railyard.results.differences import Difference
from railyard.results.listing import differences_of, disk_bytes, revision_words, size_words
from railyard.results.records import Run, load_campaign, load_run
from railyard.results.show import chunks_table, print_campaign, print_run
from railyard.results.tables import figures_table
from railyard.results.two import names_of, two_campaigns
from railyard.run.folders import shown
from railyard.studies.exhibits import registry

console = new_console()


KIND_WORDS = {"population-exhibit": "exhibit over a population"}


def _table(*headings: str) -> RichTable:
    return new_table(*headings, overflow="fold")


def _experiments() -> RichTable:
    table = _table("experiment", "pairs", "schemes", "seeds", "description")
    for file in sorted(EXPERIMENTS_DIR.glob("*.yaml")):
        document = load_yaml(file)
        kind = document.data.get("kind", registry.PLAIN)
        if kind != registry.PLAIN:
            table.add_row(
                file.stem, "", f"({KIND_WORDS.get(kind, kind)})", "", str(document.data.get("description", ""))
            )
            continue
        checked = parse(with_factors(document), Experiment)
        pairs = "\n".join(" or ".join(choice.first_found) for choice in checked.pairs)
        schemes = " ".join(entry.base_label() for entry in checked.schemes)
        table.add_row(file.stem, pairs, schemes, str(len(checked.seeds)), checked.description)
    return table


def _campaigns(campaigns: list[StoredCampaign], mark: str = " *") -> RichTable:
    heads = ("campaign", "arena", "state", "runs", "void", "failed", "size", "started", "revision")
    table = _table(*heads, "what differs", "exhibit")
    newest = {campaign.folder for campaign in newest_of(campaigns).values()}
    differs = differences_of(campaigns)
    for campaign in campaigns:
        verdicts = [str(claim.get("verdict")) for claim in campaign.exhibit.get("claims", [])]
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
        name = campaign.exhibit.get("name", "")
        table.add_row(
            f"{campaign.name}{mark if campaign.folder in newest else ''}",
            campaign.arena or "–",
            campaign.state,
            str(campaign.runs_whole),
            str(campaign.runs_void),
            str(campaign.runs_failed),
            size_words(disk_bytes([campaign.folder])),
            f"{campaign.started:%Y-%m-%d %H:%M}" if campaign.started else "–",
            revision_words(campaign.git),
            differs[campaign.folder],
            f"{name}: {counts}" if counts else name,
        )
    return table


def _print_campaigns(campaigns: list[StoredCampaign], results: Path) -> None:
    print_table(console, _campaigns(campaigns))
    console.print(
        f"*: the newest of its name, to which {shown(results)}/NAME links. revision+: the work tree had changes. "
        f"{counted(len(campaigns), 'folder')}, {size_words(disk_bytes(campaign.folder for campaign in campaigns))} "
        "on disk (shared files are counted once). `railyard clean` removes folders."
    )


def _list(results: Path, form: Form) -> None:
    if form is not Form.TABLE:
        write(_campaigns(find_campaigns(results), mark=""), form)
        return
    console.print(_experiments())
    campaigns = find_campaigns(results)
    if campaigns:
        _print_campaigns(campaigns, results)
    else:
        console.print(f"No campaigns in {results}: `railyard run EXPERIMENT` makes one.")


def show_command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|CAMPAIGN", help="A folder, or a name that is in the results. Without it: list all."
        ),
    ] = None,
    results: ResultsOption = RESULTS_DIR,
    form: FormOption = Form.TABLE,
) -> None:
    """Show a run (settings, outcome, each path, fidelity, commands that repeat it) or a campaign, or list all.

    The list: the experiments in experiments/, and the campaigns in results/ with their state and differences.
    With --format: the run's chunks, the campaign's figures of each pair and scheme, or the list of campaigns.
    """
    if run is None:
        _list(results, form)
        return
    folder = find_run_or_campaign(run, results)
    if form is not Form.TABLE:
        is_run = (folder / "run.json").is_file() or not find_campaigns(folder)
        write(chunks_table(load_run(folder)) if is_run else figures_table(load_campaign(folder)[1]), form)
        return
    styled = new_console()
    if (folder / "run.json").is_file() or not find_campaigns(folder):
        print_run(styled, folder)
    else:
        print_campaign(styled, StoredCampaign(folder.resolve().name, folder))


VERDICTS_IN_WORDS = (
    "difference: scheme / other − 1, of a rate scheme − other, over plays at the same places; in brackets 95 % "
    "intervals. Less is better. lower, higher: established, corrected for all comparisons with one scheme (Holm). "
    "alike, no worse: within 2 %, of a rate 0.5 points. All four are for pairs of traces like these, with fewer than "
    "five pairs for these traces. here: for these traces alone, by a narrower interval than the one shown. needs: so "
    "many in all would establish the difference with probability 80 %, if it is as here. rank p: two-sided, of the "
    "gate's signed-rank test. docs/howto/compare.md"
)
MARKED = {"lower": "green", "higher": "red"}


def compare_command(
    campaign: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="A folder, or a name that is in the results.")],
    other: Annotated[str | None, typer.Argument(metavar="OTHER", help="Another one.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="A scheme to compare with; repeatable. Default: sp, sp:best and vanilla-mp, else the first."),
    ] = None,
    by_pair: Annotated[bool, typer.Option("--by-pair", help="Also over each pair of traces.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a forest plot: .html, .pdf, .svg or .pgf.")
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Width of --plot, in in, cm, mm or pt; not of HTML.", show_default="6in"),
    ] = None,
    results: ResultsOption = RESULTS_DIR,
    form: FormOption = Form.TABLE,
) -> None:
    """Compare the schemes of a campaign at the same places, and say which differences are established.

    With OTHER: each scheme of CAMPAIGN against itself in OTHER, at the places that both played.
    """
    if plot is not None:
        from railyard.report.forest import check_plot  # noqa: PLC0415  slow to load

        check_plot(plot, width)
    elif width is not None:
        raise UserError("--width is the width of a plot; give --plot FILE too.")
    names = [campaign] if other is None else [campaign, other]
    folders = [find_run_or_campaign(name, results) for name in names]
    if other is not None:
        if against is not None:
            raise UserError("of two campaigns each scheme is compared with itself; leave out --against.")
        both = two_campaigns((folders[0], folders[1]), names_of(folders, names))
        compared = _tell_differences(both.runs, both.comparisons, by_pair=by_pair, form=form, notes=both.notes)
        _write_plot(compared, plot, width)
        return
    folder = folders[0]
    runs = differences.sound(load_campaign(folder)[1])
    chosen = differences.asked(runs, against or [], f"{folder}: ")
    compared = _tell_differences(runs, chosen, by_pair=by_pair, form=form)
    _write_plot(compared, plot, width)


def _write_plot(compared: list[Difference], plot: Path | None, width: str | None) -> None:
    if plot is not None:
        from railyard.report.forest import write_forest  # noqa: PLC0415  slow to load

        write_forest(compared, plot, width)


def _tell_differences(
    runs: Sequence[Run], chosen: Sequence[tuple[str, str]], *, by_pair: bool, form: Form, notes: Sequence[str] = ()
) -> list[Difference]:
    compared = differences.differences(runs, chosen, by_pair=by_pair)
    table = _differences(compared, by_pair=by_pair, repeat_names=form is not Form.TABLE)
    if form is not Form.TABLE:
        write(table, form, lambda: [differences.record_of(one) for one in compared])
        return compared
    print_table(console, table, keys=4 if by_pair else 3)
    if few := shortage.note(differences.shortages(runs, compared)):
        console.print(few)
    console.print(VERDICTS_IN_WORDS)
    small = differences.too_small(runs)
    for sentence in (*notes, *differences.sentences(compared), small, resolution.note(runs)):
        if sentence:
            console.print(sentence)
    return compared


def _differences(compared: Sequence[Difference], *, by_pair: bool, repeat_names: bool) -> RichTable:
    heads = ("scheme", "against", "figure", "difference", "verdict", "needs", "scheme's / other's", "rank p")
    table = _table(*(("pair", *heads) if by_pair else heads))
    for column in table.columns:
        column.no_wrap = True
    last = ("", "", "")
    for one in compared:
        rank = "" if one.signed_rank is None else f"{one.signed_rank:.2g}"
        names = (one.pair, one.label, one.against)
        shown_names = names if repeat_names or names != last else ("", "", "")
        table.add_row(
            *(shown_names if by_pair else shown_names[1:]),
            f"{one.figure.title}, {'s' if one.figure.is_relative else '%'}",
            *(one.words, one.verdict, one.needs.partition(" instead")[0], one.levels_words, rank),
            style=MARKED.get(one.verdict.split(" ")[0], ""),
        )
        last = names
    return table
