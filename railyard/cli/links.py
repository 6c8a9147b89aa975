"""`railyard link-stats`."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from railyard.base.errors import UserError
from railyard.base.forms import Form, FormOption, write
from railyard.base.terminal import new_console, new_table, print_table
from railyard.results.linklog.read import LinkLog, read_link_log
from railyard.results.linklog.stats import LinkStats, link_stats

_out = new_console()


def _read(paths: list[Path]) -> list[LinkLog]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            logs = sorted(path.glob("*.up.log")) + sorted(path.glob("*.down.log"))
            if not logs:
                raise typer.BadParameter(f"there is no *.up.log or *.down.log in {path}")
            files += [log for log in logs if log.is_file()]
        else:
            files.append(path)
    return [read_link_log(file) for file in files]


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else format(value, form)


def _table(rows: list[LinkStats]) -> Table:
    headings = (
        "\ns", "capacity\nMbps", "throughput\nMbps", "utili-\nsation", "delay ms\np50", "\np95", "\nmax",
        "signal\np95", "\narrived", "\ndeparted", "\ndropped",
    )  # fmt: skip
    table = new_table("\nlink", *headings, right=headings, no_wrap=True)
    for row in rows:
        delays = (row.delay_median_ms, row.delay_p95_ms, row.delay_max_ms, row.signal_delay_p95_ms)
        dropped = f"{row.dropped_packets}"
        if row.dropped_packets and not math.isnan(row.drop_share):
            dropped += f" ({row.drop_share:.2%})"
        table.add_row(
            row.name,
            f"{row.duration_s:.1f}",
            _number(row.capacity_mbps, ".2f"),
            _number(row.throughput_mbps, ".2f"),
            _number(row.utilisation, ".1%"),
            *(_number(delay, ".0f") for delay in delays),
            f"{row.arrived_packets}",
            f"{row.departed_packets}",
            dropped,
        )
    return table


def _plain(row: LinkStats) -> dict[str, Any]:
    data = dataclasses.asdict(row)
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in data.items()}


def link_stats_command(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG", help="Link logs, or folders with *.up.log and *.down.log.")
    ],
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also plot rates and delay over time against capacity: .svg, .png, .pdf or .html."
        ),
    ] = None,
    bin_ms: Annotated[
        int | None, typer.Option(min=1, help="--plot: length of the bins of the rates, ms.", show_default="500")
    ] = None,
    log_delay: Annotated[
        bool, typer.Option("--log-delay", help="--plot: logarithmic delay axis, as in mm-delay-graph.")
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Print capacity, throughput, utilisation, queueing delay and drops of link logs, ours and Mahimahi's."""
    if plot is not None:
        from railyard.base.plotfile import check_format  # noqa: PLC0415  slow to load

        check_format(plot)
    elif bin_ms is not None or log_delay:
        raise UserError("--bin-ms and --log-delay are for a plot; give --plot FILE too.")
    read = _read(logs)
    rows = [link_stats(log) for log in read]
    if plot is not None:
        from railyard.results.linklog.plot import write_link_plot  # noqa: PLC0415  slow to load

        write_link_plot(read, plot, 500 if bin_ms is None else bin_ms, log_delay)
    if form is not Form.TABLE:
        write(_table(rows), form, lambda: [_plain(row) for row in rows])
        return
    print_table(_out, _table(rows))
