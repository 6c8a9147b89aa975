"""`railyard traces`: list, measure, check and generate traces. trace_tools.py has the commands that convert files."""

import math
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich import box
from rich.table import Table

from railyard.base.errors import UserError
from railyard.base.forms import Form, FormOption, write
from railyard.base.terminal import print_table
from railyard.base.words import counted
from railyard.cli.trace_tools import console, convert, delay, fetch, pair_command, rtt, write_plot
from railyard.stats import wording
from railyard.traces.delay import is_delay_trace, read_delay_trace, rtt_over_time
from railyard.traces.generate import GeneratedPair, read_parameters, write_pair
from railyard.traces.index import Pair, bad_name, read_index, write_entry
from railyard.traces.library import SEARCH_PATH_VARIABLE, at_hand, find_pair, index_of, told_of_hidden
from railyard.traces.light import Burst, read_light_trace, read_size_latency
from railyard.traces.networks import NETWORKS, network_pair
from railyard.traces.parameters import MAX_DURATION_S
from railyard.traces.periods import unequal
from railyard.traces.presets import mobility_models
from railyard.traces.recorded import CSV_FILE, describe, read_recorded
from railyard.traces.resolution import coarse_words
from railyard.traces.stats import FINE_MS, Dips, TraceStats, pair_stats, rtt_stats, trace_stats
from railyard.traces.trace import MAX_MS, FloatArray, Trace, TraceError, read_trace

app = typer.Typer(no_args_is_help=True)
app.command("convert")(convert)
app.command("delay")(delay)
app.command("fetch")(fetch)
app.command("pair")(pair_command)
app.command("rtt")(rtt)


@app.callback()
def group() -> None:
    """List, measure, plot, check, convert, fetch, pair and generate traces."""


class ModelName(StrEnum):
    """The models by name; presets.mobility_models() has the same."""

    SUBWAY = "subway"
    HSR = "hsr"
    WALKING = "walking"
    DRIVING_NSA = "driving-nsa"
    DRIVING_SA = "driving-sa"


@app.command("list")
def list_command() -> None:
    """List the pairs of the project's library and of RAILYARD_TRACE_PATH."""
    there = at_hand()
    pairs = there.pairs.values()
    for library in dict.fromkeys(pair.library for pair in pairs):
        print_table(console, _library_table(library, [pair for pair in pairs if pair.library == library]), keys=2)
    for fault in there.faults:
        typer.echo(f"railyard: this library cannot be read: {fault}", err=True)
    for hidden in told_of_hidden(there, there.pairs):
        console.print(f"warning: {hidden}")
    console.print(f"other libraries: name their directories in {SEARCH_PATH_VARIABLE}, colon separated")


def _library_table(library: Path, pairs: list[Pair]) -> Table:
    table = Table(title=str(library), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in ("pair", "path", "scenario", "technology"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("path", "technology"))
    table.add_column("base RTT", justify="right", no_wrap=True)
    table.add_column("queue", no_wrap=True)
    for pair in pairs:
        for position, path in enumerate(pair.paths):
            first = position == 0
            note = " (two single recordings)" if pair.caveat else ""
            table.add_row(
                pair.name if first else "",
                path.name,
                f"{pair.scenario}{note}" if first else "",
                path.technology,
                f"{path.base_rtt_ms:g} ms",
                path.queue,
                end_section=position == len(pair.paths) - 1,
            )
    return table


def number(value: float, digits: int = 2) -> str:
    return "–" if math.isnan(value) else wording.number(value, f".{digits}f")


def percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _dip_lengths(dips: Dips) -> str:
    lengths = (dips.length_p50_s, dips.length_p90_s, dips.length_max_s)
    return "/".join(number(length, 1) for length in lengths)


ROWS: tuple[tuple[str, Callable[[TraceStats], str]], ...] = (
    ("duration, s", lambda s: number(s.duration_s, 1)),
    ("opportunities", lambda s: f"{s.opportunities}"),
    ("mean, Mbps", lambda s: number(s.mean_mbps)),
    ("CV of 1 s bins", lambda s: number(s.cv)),
    ("mu, sigma of ln(Mbps)", lambda s: f"{number(s.ln_mu)}, {number(s.ln_sigma)}"),
    ("autocorrelation 1/e, s", lambda s: number(s.autocorrelation_s, 1)),
    ("time below 1 Mbps", lambda s: percent(s.below_1mbps)),
    ("dips below 1 Mbps", lambda s: f"{s.dips.count}"),
    ("dips p50/p90/max, s", lambda s: _dip_lengths(s.dips)),
    ("dip spacing, median, s", lambda s: number(s.dips.spacing_median_s, 1)),
    ("empty 100 ms bins", lambda s: percent(s.empty_100ms)),
    ("silences >= 200 ms a minute", lambda s: number(s.gaps_per_minute, 1)),
    ("silent share", lambda s: percent(s.silent_share)),
    ("longest silence, s", lambda s: number(s.longest_gap_s)),
)


def _origin(kind: str | None, resolution_ms: float | None) -> tuple[str, str]:
    """A trace's kind and resolution in the index, in words."""
    return kind or "–", "–" if resolution_ms is None else f"{resolution_ms:g}"


def _traces_table(title: str, traces: dict[str, Trace], origins: Sequence[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for name in traces:
        table.add_column(name, justify="right", no_wrap=True)
    for heading, cells in zip(("kind", "resolution, ms"), zip(*origins, strict=True), strict=True):
        table.add_row(heading, *cells)
    stats = [trace_stats(trace) for trace in traces.values()]
    for heading, cell in ROWS:
        table.add_row(heading, *(cell(of_trace) for of_trace in stats))
    return table


def _print_traces(title: str, traces: dict[str, Trace], origins: Sequence[tuple[str, str]]) -> None:
    print_table(console, _traces_table(title, traces, origins))
    for name, trace in traces.items():
        console.print(f"{name}: {trace.path} sha256 {trace.sha256}")


def _print_rtt(name: str, rtt_ms: FloatArray) -> None:
    rtt = rtt_stats(rtt_ms)
    quartiles = "/".join(number(value, 0) for value in (rtt.p25_ms, rtt.p50_ms, rtt.p75_ms))
    console.print(
        f"{name}: RTT p25/p50/p75 {quartiles} ms, p95 {number(rtt.p95_ms, 0)} ms, max {number(rtt.max_ms, 0)} ms"
    )


def _of_pair(pair: Pair) -> tuple[dict[str, Trace], list[tuple[str, str]]]:
    """The traces of a pair by path and direction, each with its kind and resolution."""
    columns: dict[str, Trace] = {}
    origins: list[tuple[str, str]] = []
    for path in pair.paths:
        down = read_trace(path.downlink)
        origins += [_origin(path.kind, path.resolution_ms)] * (1 + (path.uplink != path.downlink))
        columns[f"{path.name} down" if path.uplink != path.downlink else f"{path.name} down = up"] = down
        if path.uplink != path.downlink:
            columns[f"{path.name} up"] = read_trace(path.uplink)
    return columns, origins


def _print_pair(pair: Pair) -> None:
    columns, origins = _of_pair(pair)
    _print_traces(f"{pair.name} ({pair.scenario})", columns, origins)
    downs = (trace for name, trace in columns.items() if " down" in name)
    downlinks = [(path.name, trace) for path, trace in zip(pair.paths, downs, strict=True)]
    for position, (name, trace) in enumerate(downlinks):
        for other_name, other in downlinks[position + 1 :]:
            together = pair_stats(trace, other)
            console.print(
                f"{name} and {other_name}, downlinks: rate correlation {number(together.rate_correlation)}; "
                f"both below 1 Mbps {percent(together.both_in_dip)} of the time "
                f"({percent(together.both_in_dip_if_independent)} if independent)"
            )
    for path in pair.paths:
        for setting, file in path.delay_traces.items():
            what = f"{path.name} {setting.replace('_', '-')} ({file.name})"
            if setting.endswith("delay_trace"):
                _print_rtt(what, rtt_over_time(file))
            elif setting.endswith("light_trace"):
                _print_light(what, read_light_trace(file))
    for hidden in told_of_hidden(at_hand(), [pair.name]):
        console.print(f"warning: {hidden}")
    warning = unequal({name: trace.period_ms for name, trace in columns.items()})
    if warning:
        console.print(f"warning: {warning}")
    if coarse := coarse_words(pair):
        console.print(f"warning: {coarse}")
    if pair.caveat:
        console.print(pair.caveat)
    console.print(f"licence: {pair.licence}\nsource: {pair.source}")


def _write_stats(what: str, form: Form) -> None:
    if Path(what).is_file() and is_delay_trace(Path(what)):
        raise UserError(f"{what}: a delay trace has no table; leave out --format.")
    columns, origins = ({what: read_trace(what)}, [("–", "–")]) if Path(what).is_file() else _of_pair(find_pair(what))
    write(_traces_table(what, columns, origins), form)


@app.command()
def stats(
    what: Annotated[str, typer.Argument(metavar="PAIR_OR_FILE", help="A pair's name, a trace file, or a delay trace.")],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also plot the capacity over time, with outages: .svg, .png, .pdf or .html."),
    ] = None,
    bin_ms: Annotated[
        int | None, typer.Option(min=1, help="--plot: length of the bins, ms.", show_default="200")
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(min=0, max=MAX_MS / 1e3, help="--plot: its start in the traces, s.", show_default="0"),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=MAX_MS / 1e3, help="--plot: its length, s. Traces loop. Default: the longest trace."
        ),
    ] = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Print statistics of a pair or a trace: rates, dips, gaps, and the correlation of the paths.

    The plot of a pair has all paths, both directions. With --format: the statistics of each trace.
    """
    if plot is not None:
        write_plot(what, plot, bin_ms or 200, start or 0.0, duration)
    elif (bin_ms, start, duration) != (None, None, None):
        raise UserError("--bin-ms, --start and --duration are for a plot; give --plot FILE too.")
    if form is not Form.TABLE:
        _write_stats(what, form)
        return
    if Path(what).is_file() and is_delay_trace(Path(what)):
        _print_rtt(Path(what).name, rtt_over_time(Path(what)))
    elif Path(what).is_file():
        known = describe(Path(what))
        origin = _origin(known.kind, known.resolution_ms) if known else _origin(None, None)
        _print_traces(Path(what).name, {"trace": read_trace(what)}, [origin])
    elif "/" in what:
        raise TraceError(f"{what}: there is no such trace file")
    else:
        _print_pair(find_pair(what))


def _warn_of_periods(pairs: list[Pair]) -> None:
    for pair in pairs:
        files = {f"{path.name} {way}": file for path in pair.paths
                 for way, file in (("down", path.downlink), ("up", path.uplink))}  # fmt: skip
        warning = unequal({name: read_trace(file).period_ms for name, file in files.items()})
        if warning:
            console.print(f"warning: {pair.name}: {warning}")


def _reader_of(setting: str) -> Callable[[Path], object]:
    """The function that reads the file of a link's setting."""
    readers = {"light_trace": read_light_trace, "size_latency": read_size_latency}
    return next((read for name, read in readers.items() if setting.endswith(name)), read_delay_trace)


def _print_light(what: str, rows: Sequence[Burst]) -> None:
    delays, packets = sorted(row.delay_ms for row in rows), sorted(len(row.offsets_ms) for row in rows)
    last = sorted(max(row.offsets_ms, default=0) for row in rows)
    middle = len(rows) // 2
    console.print(
        f"{what}: {counted(len(rows), 'row')} in {rows[-1].at_ms / 1000:g} s; one-way delay p50 {delays[middle]} ms, "
        f"at most {delays[-1]} ms; trains of {packets[middle]} packets (p50) in {last[middle]} ms (p50)"
    )


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Traces, indexes (.yaml, INDEX.csv), libraries.")],
) -> None:
    """Check traces and indexes: describe each, or its first error. Exit code 2 if there is an error."""
    failed = False
    table = Table("file", "opportunities", "period, s", "mean, Mbps", "SHA-256")
    for file in (index_of(given) if os.path.isdir(given) else given for given in files):  # noqa: PTH112 - raises nothing
        try:
            if file.suffix in (".yaml", ".yml") or file.name == CSV_FILE:
                pairs = (read_recorded if file.name == CSV_FILE else read_index)(file)
                _warn_of_periods(pairs)
                for trace in sorted({t for pair in pairs for path in pair.paths for t in (path.uplink, path.downlink)}):
                    read_trace(trace)
                for name, delays in sorted(
                    {item for pair in pairs for path in pair.paths for item in path.delay_traces.items()}
                ):
                    _reader_of(name)(delays)
                table.add_row(str(file), counted(len(pairs), "pair"), "", "", "")
                continue
            trace_read = read_trace(file)
            trace_read.check_bins(FINE_MS, trace_read.period_ms)
        except UserError as error:
            failed = True
            typer.echo(f"railyard: {error}", err=True)
            continue
        table.add_row(
            str(file),
            f"{len(trace_read.opportunities_ms)}",
            number(trace_read.period_ms / 1e3, 3),
            number(trace_read.mean_mbps),
            trace_read.sha256[:16],
        )
    if table.row_count:
        print_table(console, table)
    if failed:
        raise typer.Exit(2)


@app.command()
def generate(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the trace library to write to. Updates its index.yaml.")],
    model: Annotated[ModelName | None, typer.Option(help="Mobility model.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the model.")] = 1,
    duration: Annotated[int, typer.Option(min=1, max=MAX_DURATION_S, help="Length of the traces, s.")] = 120,
    name: Annotated[str | None, typer.Option(help="Name of the pair. Default: MODEL-SEED.")] = None,
    delay_traces: Annotated[
        bool, typer.Option("--delay-traces", help="Also write a delay trace for each path, from the model's RTT.")
    ] = False,
    parameters: Annotated[
        Path | None, typer.Option(help="Generate from the parameters beside a pair instead of from --model.")
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(help=f"A path of a constant rate, as others name it; give two or more. {', '.join(NETWORKS)}."),
    ] = None,
) -> None:
    """Generate a pair of traces from a mobility model and a seed, or of networks that others named."""
    if [model is not None, parameters is not None, bool(network)].count(True) != 1:
        raise TraceError("generate needs either --model NAME, --parameters FILE or --network NAME")
    try:
        if network:
            files = write_entry(out, *network_pair(network, name))
        elif parameters is not None:
            files = write_pair(read_parameters(parameters), out)
        else:
            assert model is not None  # noqa: S101  the check above
            pair_name, of_model = name or f"{model.value}-{seed}", mobility_models()[model.value]
            named = GeneratedPair(
                name=pair_name, seed=seed, duration_s=duration, delay_traces=delay_traces, model=of_model
            )
            files = write_pair(named, out)
    except ValidationError:
        raise bad_name(name) from None
    for file in files:
        console.print(f"{file}")
