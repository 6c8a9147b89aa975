"""`railyard qlog`."""

from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from railyard.base.errors import UserError
from railyard.base.files import write_named
from railyard.base.forms import Form, FormOption, write
from railyard.base.paths import RESULTS_DIR
from railyard.base.terminal import new_console, new_table, print_table
from railyard.cli.options import ResultsOption
from railyard.report import perfetto, timeline
from railyard.results import qvis
from railyard.results.anyqlog import AnyQlog, PathOfLog, read_any_qlogs
from railyard.results.campaigns import find_run
from railyard.results.qlogdiff import no_qlogs


def qlog_command(
    what: Annotated[
        list[str],
        typer.Argument(metavar="RUN|FILE", help="A run's folder or name, or qlogs of any stack, one for each end."),
    ],
    to_perfetto: Annotated[
        bool, typer.Option("--perfetto", help="Write a trace for ui.perfetto.dev: a process for each path.")
    ] = False,
    to_qvis: Annotated[
        bool, typer.Option("--qvis", help="Write main schema 0.3 for qvis, a file for each path. Our qlogs only.")
    ] = False,
    to_page: Annotated[
        bool, typer.Option("--page", help="Write one HTML page: packets, windows and RTTs of all paths over time.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File, or with --qvis the folder, to write. Default: here, by the run's name.")
    ] = None,
    form: FormOption = Form.TABLE,
    results: ResultsOption = RESULTS_DIR,
) -> None:
    """Print what qlogs say of each path, draw them on one page, or convert them for Perfetto or qvis.

    The trace of a run also has the packets in queue and in flight, the links' capacity, copies and the player. Qlogs of
    other stacks may have main schema 0.3 or 0.4, or be sequential files of the present drafts.
    """
    if to_perfetto + to_qvis + to_page > 1:
        raise UserError("--perfetto, --qvis and --page write different files; give one of them.")
    files = [Path(name) for name in what if Path(name).is_file()]
    if files and len(files) < len(what):
        raise UserError("name either one run, or only files.")
    if not files and len(what) > 1:
        raise UserError("one run at a time; `railyard diff RUN_A RUN_B` compares two.")
    folder = None if files else find_run(what[0], results)
    if folder is not None:
        files = sorted((folder / "qlog").glob("*.sqlog"))
        if not files:
            raise no_qlogs(folder, "there are no qlogs")
    if to_qvis:
        _qvis(files, out or Path())
    elif to_perfetto:
        trace = perfetto.document(folder) if folder else perfetto.document_of_logs(read_any_qlogs(files))
        target = out or Path(f"{(folder or files[0]).resolve().name}.perfetto.json")
        write_named(target, trace)
        typer.echo(str(target))
    elif to_page:
        target = out or Path(f"{(folder or files[0]).resolve().name}.html")
        timeline.write_page(read_any_qlogs(files), target)
        typer.echo(str(target))
    else:
        _print(read_any_qlogs(files), form)


def _qvis(files: list[Path], folder: Path) -> None:
    try:
        for file in files:
            for target in qvis.convert(file, folder):
                typer.echo(str(target))
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror}; choose another folder with --out.") from None


HEADS = {
    "end": "end",
    "path": "path",
    "sent": "sent",
    "acknowledged": "acked",
    "lost": "lost",
    "received": "received",
    "bytes_sent": "MB sent",
    "bytes_received": "MB received",
    "min_rtt_ms": "min RTT, ms",
    "median_rtt_ms": "median RTT, ms",
    "largest_window_bytes": "largest window, kB",
}


def _row(log: AnyQlog, name: str, path: PathOfLog) -> dict[str, Any]:
    rtt = [value for _, value in path.metrics["smoothed_rtt"]]
    least = [value for _, value in path.metrics["min_rtt"]]
    windows = [value for _, value in path.metrics["congestion_window"]]
    return {
        "end": log.vantage,
        "path": name,
        "sent": len(path.sent),
        "acknowledged": sum(packet.acked_ms is not None for packet in path.sent),
        "lost": sum(packet.lost_ms is not None for packet in path.sent),
        "received": len(path.received),
        "bytes_sent": sum(packet.length for packet in path.sent),
        "bytes_received": sum(row[3] for row in path.received),
        "min_rtt_ms": min(least or rtt, default=None),
        "median_rtt_ms": median(rtt) if rtt else None,
        "largest_window_bytes": max(windows, default=None),
    }


def _text(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name.startswith("bytes"):
        return f"{value / 1e6:.3f}"
    if name.endswith("_ms"):
        return f"{value:.1f}"
    return f"{value / 1000:.1f}" if name.startswith("largest") else str(value)


def _print(logs: list[AnyQlog], form: Form) -> None:
    rows = [_row(log, name, path) for log in logs for name, path in log.paths.items()]
    heads = tuple(HEADS.values())
    table = new_table(*heads, right=heads[2:], no_wrap=True)
    for row in rows:
        table.add_row(*(_text(name, value) for name, value in row.items()))
    if form is Form.TABLE:
        print_table(new_console(), table, keys=2)
    else:
        write(table, form, lambda: rows)
