"""One run in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from railyard.records import Run, load_run
from railyard.tables import megabytes, percent, seconds

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparkline(run: Run, width: int = 72) -> str:
    """The buffer level over time, scaled to its maximum."""
    if not run.buffer_s:
        return ""
    levels = [level for _, level in run.buffer_s]
    step = max(1.0, len(levels) / width)
    sampled = [levels[int(index * step)] for index in range(int(len(levels) / step))]
    top = max(levels) or 1.0
    return "".join(BLOCKS[round(level / top * (len(BLOCKS) - 1))] for level in sampled)


def print_run(console: Console, folder: Path) -> None:
    run = load_run(folder)
    fidelity = run.record["fidelity"]
    console.print(f"[bold]{run.run_id}[/bold]: {run.outcome.replace('_', ' ')} {run.record['message']}", soft_wrap=True)
    console.print(
        f"first frame {seconds(run.first_frame_s)} s, played {run.play_time_s:.1f} s, "
        f"rebuffered {run.rebuffer_time_s:.2f} s in {run.rebuffer_count} stalls, redundancy {percent(run.redundancy)}, "
        f"start offset {run.config['start_offset_ms']} ms, seed {run.seed}",
        soft_wrap=True,
    )
    verdict = "void: " + "; ".join(fidelity["reasons"]) if fidelity["void"] else "on time"
    lateness = (
        f"{verdict}; lateness p99 {fidelity['lateness_p99_us'] / 1000:.3f} ms, "
        f"max {fidelity['lateness_max_us'] / 1000:.3f} ms, tries {len(run.record['tries'])}"
    )
    console.print(f"fidelity: {'exact, in virtual time' if run.config['arena'] == 'sim' else lateness}", soft_wrap=True)
    joins = {side: {k: v for k, v in counters.items() if v} for side, counters in run.record["mptcp"].items()}
    if any(joins.values()):
        console.print(f"MPTCP counters: {joins}", soft_wrap=True)
    table = Table("path", "MB down", "MB up", "queue drops", header_style="bold")
    for path in run.paths:
        table.add_row(path.name, megabytes(path.down_bytes), megabytes(path.up_bytes), str(path.queue_drops))
    console.print(table)
    chunks = Table("chunk", "requested at s", "RCT s", "oracle s", "efficiency", header_style="bold")
    for chunk in run.chunks:
        share = chunk.efficiency
        chunks.add_row(
            str(chunk.index),
            f"{chunk.request_s:.3f}",
            f"{'' if chunk.completed else '≥ '}{chunk.rct_s:.3f}",
            seconds(chunk.oracle_s),
            "–" if share is None else f"{'' if chunk.completed else '≤ '}{percent(share)}",
        )
    console.print(chunks)
    if run.buffer_s:
        top = max(level for _, level in run.buffer_s)
        console.print(f"buffer level, 0 to {top:.1f} s of video, over {run.buffer_s[-1][0]:.1f} s:\n{sparkline(run)}")
