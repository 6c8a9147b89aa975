"""`railyard traces convert`, `delay`, `pair`, `fetch` and `rtt`, and the plot of `stats`."""

import math
import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from railyard.base.counting import counting
from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.terminal import new_console, print_table
from railyard.base.yamlfile import load_yaml, parse
from railyard.traces.convert.delays import DelayFormat, read_delays
from railyard.traces.convert.recipe import Direction, Format, PairRecipe, RecipeFile, TimeUnit, TraceRecipe, Unit
from railyard.traces.convert.run import convert_pair, convert_trace, provenance_bytes
from railyard.traces.delay import is_delay_trace, rtt_over_time
from railyard.traces.fetch import DOWNLOADS, MANIFEST, Source, fetch_source, find_source, read_manifest
from railyard.traces.handshakes import BLOCK, Quantiles, quantiles, read_groups
from railyard.traces.index import MADE_OF_SINGLES, write_entry
from railyard.traces.library import find_pair
from railyard.traces.names import TECHNOLOGY_ORDER, Kind
from railyard.traces.singles import PairMetadata, Single, cut_words, make_pair
from railyard.traces.stats import rtt_stats
from railyard.traces.trace import OPPORTUNITY_BYTES, TraceError, read_trace

Name = TypeVar("Name", bound=str)
console = new_console()
MOST_FOLDERS = 9
"""If a data set has more folders, its files are not listed one by one."""


def write_plot(what: str, target: Path, bin_ms: int, start: float, duration: float | None) -> None:
    """Plots the capacity of a pair or a trace over time: all paths, both directions, with outages."""
    from railyard.traces.plot import Strip, rows_of_pair, write_trace_plot  # noqa: PLC0415  slow to load

    if is_delay_trace(Path(what)):
        raise UserError(f"{what}: a delay trace has no capacity to plot; leave out --plot.")
    if Path(what).is_file():
        title, rows = Path(what).name, [Strip(Path(what).name, read_trace(what), uplink=False)]
    elif "/" in what:
        raise TraceError(f"{what}: there is no such trace file")
    else:
        pair = find_pair(what)
        title, rows = f"{pair.name}: {pair.scenario}", rows_of_pair(pair)
    start_ms = round(start * 1e3)
    longest = max(row.trace.period_ms for row in rows)
    duration_ms = max(1, longest - start_ms) if duration is None else max(1, round(duration * 1e3))
    write_trace_plot(f"{title}, in bins of {bin_ms} ms", rows, target, bin_ms, start_ms, duration_ms)


def _option(field: object) -> str:
    """The option for a field of a recipe."""
    return f"--{str(field).removesuffix('_epoch_s').removesuffix('_s').replace('_', '-')}"


def convert(
    source: Annotated[Path, typer.Argument(help="A measurement, or a recipe (.yaml) for pairs.")],
    *,
    out: Annotated[Path, typer.Option(help="Trace file to write; for a recipe, the folder of the library.")],
    form: Annotated[
        Format | None, typer.Option("--from", help="Format of the measurement. Default: detected from its content.")
    ] = None,
    start: Annotated[float, typer.Option(min=0, help="Leave out this much of the beginning, s.")] = 0.0,
    duration: Annotated[
        float | None, typer.Option(min=0.001, help="Convert this much, s. Default: to the end.")
    ] = None,
    scale: Annotated[
        float, typer.Option(min=1e-9, help="Multiply all bytes by this, e.g. 1.04 for TCP payload.")
    ] = 1.0,
    unit: Annotated[
        Unit | None,
        typer.Option(help="rates: unit of the column; bytes and packets are per bin. Default: by its name, else mbps."),
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(help="rates: column name, or number from 1. Default: by its name, else the first.")
    ] = None,
    rate_column: Annotated[
        str | None, typer.Option(help="rates: column name or number. Default: by its name, else after the time.")
    ] = None,
    time_unit: Annotated[
        TimeUnit | None, typer.Option(help="rates: unit of the times. Default: by the column's name, else s.")
    ] = None,
    bin_ms: Annotated[
        float | None,
        typer.Option(min=1e-3, help="rates: length of bins, ms, if there is no time column; --microstructure: of any."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="pcap, tshark: address of the measured host; packets to it are downlink.")
    ] = None,
    direction: Annotated[Direction, typer.Option(help="pcap, tshark, iperf3 --bidir: direction to convert.")] = "down",
    packet_bytes: Annotated[
        int | None, typer.Option(min=1, help="saturatr: bytes of a data packet. Default: 1432.")
    ] = None,
    sender_id: Annotated[int | None, typer.Option(help="saturatr: ID of the session. Default: the last.")] = None,
    microstructure: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DONOR",
            help="Give a recording in bins the silences of this trace of packets; repeatable.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of --microstructure.", show_default="1")] = None,
    t0: Annotated[
        float | None, typer.Option(min=0, help="saturatr, pcap, tshark: Unix time of the trace's time 0, s.")
    ] = None,
) -> None:
    """Convert a measurement into a Mahimahi trace, or several into pairs by a recipe."""
    if seed is not None and not microstructure:
        raise TraceError("--seed is for --microstructure; leave it out")
    seed = 1 if seed is None else seed
    options = {
        "file": str(source), "from": form, "start_s": start, "duration_s": duration, "scale": scale, "unit": unit,
        "time_column": time_column, "rate_column": rate_column, "time_unit": time_unit, "bin_ms": bin_ms,
        "address": address, "direction": direction, "packet_bytes": packet_bytes, "sender_id": sender_id,
        "t0_epoch_s": t0,
        "microstructure": {"donors": [*map(str, microstructure)], "seed": seed} if microstructure else None,
    }  # fmt: skip
    try:
        recipe = TraceRecipe.model_validate({name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        mistake = error.errors()[0]
        raise TraceError(f"{source}: {_option(mistake['loc'][0])}: {mistake['msg'].lower()}") from None
    if source.suffix in (".yaml", ".yml"):
        if recipe != TraceRecipe(file=str(source)):
            raise TraceError(f"{source}: a recipe says how its files are read; leave out all options but --out")
        _convert_recipe(source, out)
        return
    done = convert_trace(source, recipe, shown=_option)
    write_named(out, done.data)
    if done.provenance is not None:
        write_named(out.with_name(f"{out.name}.yaml"), provenance_bytes(done.provenance))
    mbps = done.opportunities * OPPORTUNITY_BYTES * 8 / done.period_ms / 1e3
    console.print(
        f"{out}: from {done.format}, {done.measured_bytes:.0f} bytes in {done.period_ms / 1e3:.3f} s: "
        f"{done.opportunities} opportunities, {mbps:.2f} Mbps"
        f"{'' if done.resolution_ms is None else f'; resolution {done.resolution_ms:g} ms'}"
        f"{'; ' if done.note else ''}{done.note}"
    )


def delay(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A measurement of delays.")],
    *,
    out: Annotated[Path, typer.Option(help="Delay trace to write.")],
    form: Annotated[
        DelayFormat | None,
        typer.Option("--from", help="ping: its output; list: one-way delays in ms, a line each. Default: detected."),
    ] = None,
    interval_ms: Annotated[
        float | None, typer.Option(min=0.1, help="Time from one to the next, ms. Default for ping: what it prints.")
    ] = None,
) -> None:
    """Make a delay trace of measured delays: half of each round trip in each direction."""
    delays = read_delays(source, form, interval_ms)
    write_named(out, delays.as_bytes())
    rtt = rtt_stats(rtt_over_time(out))
    lost = f"; {delays.lost} without a reply, which keep the delay before them" if delays.lost else ""
    console.print(
        f"{out}: {len(delays.delays_ms)} delays in {delays.period_ms / 1e3:.3f} s, RTT p25/p50/p75 {rtt.p25_ms:.1f}/"
        f"{rtt.p50_ms:.1f}/{rtt.p75_ms:.1f} ms, max {rtt.max_ms:.1f} ms{lost}"
    )


def _convert_recipe(source: Path, out: Path) -> None:
    recipes = parse(load_yaml(source), RecipeFile).pairs
    with counting("pairs", len(recipes)) as advance:
        for recipe in recipes:
            _write_recipe(recipe, source, out)
            advance()


def _write_recipe(recipe: PairRecipe, source: Path, out: Path) -> None:
    files, entry = convert_pair(recipe, lambda name: source.parent / name)
    for file in write_entry(out, files, entry):
        console.print(f"{file}")


def pair_command(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Downlink trace of the first path.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Downlink trace of the second path.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the pair.")],
    out: Annotated[Path, typer.Option(help="Folder of the trace library to write to. Updates its index.yaml.")],
    technologies: Annotated[
        str | None,
        typer.Option(help="For both paths: FIRST,SECOND, each 5g-sa, 5g-nsa, wifi or lte. Default: of INDEX.csv."),
    ] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario. Default: of INDEX.csv.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence. Default: of INDEX.csv.")] = None,
    source: Annotated[str | None, typer.Option(help="Source. Default: of INDEX.csv.")] = None,
    kinds: Annotated[
        str | None, typer.Option(help="What the traces are: FIRST,SECOND, such as tcp-goodput. Default: of INDEX.csv.")
    ] = None,
    resolutions: Annotated[
        str | None,
        typer.Option(help="In which steps they were recorded, ms: FIRST,SECOND. Default: of INDEX.csv, else unknown."),
    ] = None,
    first_start: Annotated[float, typer.Option(min=0, help="Start in the first recording, s.")] = 0.0,
    second_start: Annotated[float, typer.Option(min=0, help="Start in the second recording, s.")] = 0.0,
    cut: Annotated[
        bool, typer.Option(help="Cut both to the length of the shorter, so that they loop together.")
    ] = True,
) -> None:
    """Make a pair of two single recordings. The pair says that they were not recorded together."""
    of_both = zip(
        (first, second),
        _both("technologies", technologies, TECHNOLOGY_ORDER),
        (first_start, second_start),
        _both("kinds", kinds, get_args(Kind)),
        _resolutions(resolutions),
        strict=True,
    )
    one, other = (Single(*values) for values in of_both)
    singles = (one, other)
    files, entry = make_pair(singles, PairMetadata(name, scenario, licence, source), cut=cut)
    written = write_entry(out, files, entry)
    note = cut_words(singles) if cut else ""
    for file in written:
        console.print(f"{file}")
    if note:
        console.print(note)
    console.print(MADE_OF_SINGLES)


def _both(option: str, text: str | None, known: Sequence[Name]) -> tuple[Name | None, Name | None]:
    """The two names in the value of an option. None: not given."""
    if text is None:
        return None, None
    by_name = {str(name): name for name in known}
    names = [by_name.get(word.strip()) for word in text.split(",")]
    if len(names) != 2 or None in names:
        raise TraceError(f"--{option} takes two of {', '.join(known)}, such as {known[-2]},{known[-1]}, not '{text}'")
    return names[0], names[1]


def _resolutions(text: str | None) -> tuple[float | None, float | None]:
    if text is None:
        return None, None
    try:
        one, other = (float(word) for word in text.split(","))
    except ValueError:
        one = other = 0.0
    if not (0 < one < math.inf and 0 < other < math.inf):
        raise TraceError(f"--resolutions takes two numbers of ms above 0, such as 1000,1, not '{text}'")
    return one, other


def fetch(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A data set of the manifest. Without it: list all.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the trace library to write to.")] = Path("fetched"),
    manifest: Annotated[
        Path, typer.Option(help="The manifest. Default: the project's.", show_default=False)
    ] = MANIFEST,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the licence. Without it the command shows the licence.")
    ] = False,
) -> None:
    """Download a public data set, check it against its pinned SHA-256, and convert it to pairs."""
    known = read_manifest(manifest)
    if name is None:
        print_table(console, _sources_table(known.sources))
        return
    source = find_source(known, name, manifest)
    places = _places([file.url for file in source.files])
    console.print(
        f"{source.title}\n{source.country}, {source.year}; {source.scenario}; {source.technology}\n"
        f"licence: {source.licence}\ncite: {source.cite}\nfrom: {places}, {source.size}"
    )
    if source.total_bytes is None:
        console.print(
            "its SHA-256 is not pinned: that of the first download is recorded beside it and checked from then on"
        )
    if not accept_licence:
        raise TraceError(
            f"nothing was downloaded; if the licence above suits you, add --accept-licence to fetch {name}"
        )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {file.name: bars.add_task(file.name, total=file.bytes) for file in source.files}
        written = fetch_source(source, out, lambda file, have: bars.update(tasks[file], completed=have))
    for path in written:
        console.print(f"{path}")
    if source.pairs:
        console.print(f"put {out} on RAILYARD_TRACE_PATH to replay: {', '.join(pair.name for pair in source.pairs)}")
    else:
        console.print(f"{out / DOWNLOADS / source.name}")


def _sources_table(sources: tuple[Source, ...]) -> Table:
    table = Table(show_lines=True)
    for heading in ("data set", "what", "where, when", "licence", "pairs"):
        table.add_column(heading, overflow="fold")
    table.add_column("MB", justify="right", no_wrap=True)
    for source in sources:
        pairs = "\n".join(source.made)
        megabytes = "–" if source.total_bytes is None else f"{source.total_bytes / 1e6:.3f}"
        place = f"{source.country}, {source.year}; {source.scenario}; {source.technology}"
        table.add_row(source.name, source.title, place, source.licence, pairs, megabytes)
    return table


def _places(urls: list[str]) -> str:
    """The folders of URLs or, if there are many, their common part."""
    folders = dict.fromkeys(url.rpartition("/")[0] for url in urls)
    if len(folders) <= MOST_FOLDERS:
        return ", ".join(folders)
    levels = zip(*(folder.split("/") for folder in folders), strict=False)
    common = [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]
    return f"{'/'.join(common)} ({len(urls)} files)"


def rtt(
    captures: Annotated[
        list[Path], typer.Argument(metavar="CAPTURE", help="CSV of tshark, a folder of them, or a zip or tar archive.")
    ],
    *,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="A row for each text that its groups find in a file's name. Others are left out."
        ),
    ] = None,
) -> None:
    """Print the RTTs of TCP handshakes in client-side captures: SYN, next round trip, and the difference."""
    try:
        pattern = None if group is None else re.compile(group)
    except re.error as error:
        raise TraceError(f"--group {group!r} is no regular expression: {error}; correct it") from None
    groups = read_groups(captures, pattern)
    if not groups:
        raise TraceError("no capture was found; name CSV files, and check --group")
    table = Table("group", "round trip", "n", "p5", "p25", "p50 [95 %]", "p75", "p95")
    for label, handshakes in groups.items():
        rows = {
            "SYN": [handshake.syn_ms for handshake in handshakes],
            "next": [handshake.next_ms for handshake in handshakes if handshake.next_ms is not None],
            "SYN - next": [handshake.wake_up_ms for handshake in handshakes if handshake.wake_up_ms is not None],
        }
        for name, values in rows.items():
            table.add_row(label, name, *_cells(quantiles(values)))
    print_table(console, table)
    console.print(f"ms; intervals: bootstrap in blocks of {BLOCK} connections")


def _cells(quantiles: Quantiles | None) -> list[str]:
    if quantiles is None:
        return ["0"]
    return [
        f"{quantiles.count}", f"{quantiles.p5:.0f}", f"{quantiles.p25:.0f}", quantiles.p50.text(".0f"),
        f"{quantiles.p75:.0f}", f"{quantiles.p95:.0f}",
    ]  # fmt: skip
