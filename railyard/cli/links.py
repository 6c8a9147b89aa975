"""`railyard link-stats` and `railyard link-plot`."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from railyard.base.forms import Form, FormOption, write
from railyard.base.terminal import new_console, new_table, print_table
from railyard.results.linklog.read import LinkLog, read_link_log
from railyard.results.linklog.stats import LinkStats, link_stats

_out = new_console()

Logs = Annotated[
    list[Path],
    typer.Argument(metavar="LOG", help="Link logs, or folders with *.up.log and *.down.log."),
]


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
    logs: Logs,
    form: FormOption = Form.TABLE,
) -> None:
    """Print capacity, throughput, utilisation, queueing delay and drops of link logs, ours and Mahimahi's."""
    rows = [link_stats(log) for log in _read(logs)]
    if form is not Form.TABLE:
        write(_table(rows), form, lambda: [_plain(row) for row in rows])
        return
    print_table(_out, _table(rows))


def link_plot_command(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="File to write: .svg, .png, .pdf or .html.")] = Path("link.svg"),
    bin_ms: Annotated[int, typer.Option(min=1, help="Length of the bins of the rates, ms.")] = 500,
    log_delay: Annotated[
        bool, typer.Option("--log-delay", help="Logarithmic delay axis, as in mm-delay-graph.")
    ] = False,
) -> None:
    """Plot throughput and queueing delay over time against capacity, from link logs, ours and Mahimahi's."""
    from railyard.base.plotfile import check_format  # noqa: PLC0415
    from railyard.results.linklog.plot import write_link_plot  # noqa: PLC0415  slow to load, and only needed here

    check_format(out)
    write_link_plot(_read(logs), out, bin_ms, log_delay)
    typer.echo(str(out))
