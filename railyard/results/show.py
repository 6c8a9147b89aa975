"""One run, or one campaign, in the terminal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from railyard.base.jsonl import read_jsonl
from railyard.base.paths import IN_CHECKOUT
from railyard.base.terminal import print_table
from railyard.base.words import counted
from railyard.experiment.arenas import is_exact
from railyard.results.campaigns import StoredCampaign
from railyard.results.qlogdiff import path_names
from railyard.results.records import Run, load_campaign, load_run
from railyard.results.tables import megabytes, percent, print_comparison, seconds
from railyard.run import repeat
from railyard.run.live import BARS
from railyard.traces.settings import members_of_record, of_way


def sparkline(run: Run, width: int = 72) -> str:
    """The buffer level over time, scaled to its maximum."""
    if not run.buffer_s:
        return ""
    levels = [level for _, level in run.buffer_s]
    step = max(1.0, len(levels) / width)
    sampled = [levels[int(index * step)] for index in range(int(len(levels) / step))]
    top = max(levels) or 1.0
    return "".join(BARS[round(level / top * (len(BARS) - 1))] for level in sampled)


def _setting(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pairs(settings: dict[str, Any]) -> str:
    """The settings that have a value, as 'name value, name value'."""
    return ", ".join(f"{name} {_setting(value)}" for name, value in settings.items() if value not in (None, {}, []))


def _print_config(console: Console, run: Run) -> None:
    config = run.config
    scheme = f"{config['scheme']} on {config['primary']} first" + (
        f", {_pairs(config['parameters'])}" if config.get("parameters") else ""
    )
    lag_s = run.record.get("start_lag_s")
    rows = {
        "experiment": f"{config['experiment']}, {config['arena']}, pair {run.pair}",
        "pair": config.get("pair_caveat", ""),
        "scheme": f"{scheme}, congestion control {config.get('congestion', '–')}",
        "player": _pairs(config.get("player", {})),
        "limits": _pairs({"time limit s": config.get("time_limit_s"), **config.get("buffers", {})}),
        "start": f"seed {run.seed}, start offset {config['start_offset_ms']} ms, {run.record['started']}"
        + (f", player {lag_s * 1000:.3f} ms after the links" if lag_s is not None else ""),
        "thresholds": _pairs({k: (config.get("thresholds") or {}).get(k) for k in ("x", "y", "t_th1_ms", "t_th2_ms")}),
        "link events": json.dumps(config["link_events"]) if config.get("link_events") else "",
    }
    for name, text in rows.items():
        if text:
            console.print(f"{name:<12}{text}")


def _print_outcome(console: Console, run: Run) -> None:
    fidelity = run.record["fidelity"]
    why = f": {run.record['message']}" if run.record["message"] else ""
    said = f": {run.outcome.replace('_', ' ')}{why}"
    console.print(Text.assemble((run.run_id, "bold"), said), soft_wrap=True)
    console.print(
        f"first frame {seconds(run.first_frame_s)} s, played {run.play_time_s:.1f} s, "
        f"rebuffered {run.rebuffer_time_s:.2f} s in {counted(run.rebuffer_count, 'stall')}, "
        f"redundancy {percent(run.redundancy)}"
    )
    verdict = "void: " + "; ".join(fidelity["reasons"]) if fidelity["void"] else "on time"
    if fidelity.get("added") and not fidelity["void"]:
        verdict += f"; lateness can have added {fidelity['added']['share'] * 100:.1f} % to a figure at most"
    verdict += f". {fidelity['cause'].removesuffix('.')}" if fidelity.get("cause") else ""
    lateness = (
        f"{verdict}; lateness p99 {fidelity['lateness_p99_us'] / 1000:.3f} ms, "
        f"max {fidelity['lateness_max_us'] / 1000:.3f} ms, tries {len(run.record['tries'])}"
    )
    console.print(f"fidelity: {'exact, in virtual time' if run.is_exact else lateness}")
    joins = {side: {k: v for k, v in counters.items() if v} for side, counters in run.record["mptcp"].items()}
    if run.fell_back_to_tcp:
        console.print("MPTCP gave up, and plain TCP played over one path", style="yellow")
    if any(joins.values()):
        console.print(f"MPTCP counters: {joins}")


SUMS = ("bytes_sent", "stream_bytes_sent", "reinjected_bytes", "retransmitted_bytes", "packets_lost")


def _together(before: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    """Joins two paths that used the same address, one after the other: counts are added, the rest is the later
    one's."""
    sums = {name: before.get(name, 0) + path[name] for name in SUMS if name in path}
    return {**path, **sums}


def _transport_paths(folder: Path) -> dict[str, dict[str, Any]]:
    """The counters of the server's transport for each path, by the path's name. In kernel TCP and MPTCP a path is a
    connection or subflow."""
    names = path_names(folder)
    transport_paths: dict[str, dict[str, Any]] = {}
    for event in read_jsonl(folder / "server.jsonl"):
        if event.get("event") == "connection_closed":
            for path in event.get("paths", []):
                host = str(path.get("remote", "")).rpartition(":")[0].strip("[]")
                if host in names:
                    transport_paths[names[host]] = _together(transport_paths.get(names[host], {}), path)
    return transport_paths


def _print_paths(console: Console, run: Run, folder: Path) -> None:
    transport = _transport_paths(folder)
    total = sum(path.down_bytes for path in run.paths) or 1
    of_paths = {path["name"]: path for path in run.config["paths"]}
    links = Table(
        "path", "link", "delay ms", "queue", "MB", "share", "packets", "queue drops", "random losses", "p99 late"
    )
    for path in run.paths:
        of_path = of_paths.get(path.name, {})
        settings = members_of_record(of_path) if of_path else {}
        for direction, link in (("down", path.down), ("up", path.up)):
            links.add_row(
                f"{path.name} ({of_path.get('technology', '–')})" if direction == "down" else "",
                direction,
                _setting(of_way(settings, direction, "delay_ms", "–")),
                str(of_way(settings, direction, "queue", "–")),
                megabytes(link["departed_bytes"]),
                percent(path.down_bytes / total) if direction == "down" else "",
                str(link.get("departed_packets", "–")),
                str(link["queue_drops"]),
                str(link.get("random_losses", "–")),
                f"{link['lateness_us']['p99'] / 1000:.3f} ms",
            )
    print_table(console, links, keys=2)
    if transport:
        sent = Table("path", "stream MB", "re-injected", "retransmitted", "packets lost", "srtt ms", "cwnd KB", "state")
        for name, counted in transport.items():
            sent.add_row(
                name,
                megabytes(counted.get("stream_bytes_sent", counted.get("bytes_sent", 0))),
                megabytes(counted["reinjected_bytes"]) if "reinjected_bytes" in counted else "–",
                megabytes(counted["retransmitted_bytes"]) if "retransmitted_bytes" in counted else "–",
                str(counted.get("packets_lost", "–")),
                f"{counted.get('srtt_us', 0) / 1000:.1f}",
                f"{counted.get('cwnd_bytes', 0) / 1000:.0f}",
                str(counted.get("state", "–")),
            )
        print_table(console, sent)


def chunks_table(run: Run) -> Table:
    chunks = Table("chunk", "requested at s", "RCT s", "oracle s", "oracle play s", "efficiency", header_style="bold")
    for chunk in run.chunks:
        share = chunk.efficiency
        chunks.add_row(
            str(chunk.index),
            f"{chunk.request_s:.3f}" if chunk.requested else "–",
            f"{'' if chunk.completed else '≥ '}{chunk.rct_s:.3f}",
            seconds(chunk.oracle_s),
            seconds(chunk.oracle_play_s),
            "–" if share is None else f"{'' if chunk.completed else '≤ '}{percent(share)}",
        )
    return chunks


def print_run(console: Console, folder: Path) -> None:
    run = load_run(folder)
    _print_outcome(console, run)
    _print_config(console, run)
    _print_paths(console, run, folder)
    print_table(console, chunks_table(run))
    if run.buffer_s:
        top = max(level for _, level in run.buffer_s)
        console.print(f"buffer level, 0 to {top:.1f} s of video, over {run.buffer_s[-1][0]:.1f} s:\n{sparkline(run)}")
    console.print(f"\nTo do it again{', in the folder of the checkout' if IN_CHECKOUT else ''}:")
    for line in repeat.commands(run.record, folder):
        console.print(f"  {line}")
    since = repeat.changes(run.record)
    same, another = "it will be the same to the byte", "it will be another draw of the same"
    exact = same if is_exact(run.config["arena"]) else another
    text = f"It may differ: {'; '.join(since)}." if since else f"Programs and traces are what they were: {exact}."
    console.print(text)


def print_campaign(console: Console, campaign: StoredCampaign) -> None:
    """Prints the campaign's settings, its progress, the comparison, and a line for each run."""
    said = f": {campaign.state}, {campaign.arena or '–'}"
    console.print(Text.assemble((campaign.name, "bold"), said), soft_wrap=True)
    about = campaign.experiment.get("description") or campaign.exhibit.get("summary", "")
    for text in (about, campaign.record.get("command") or campaign.exhibit.get("command", "")):
        if text:
            console.print(str(text))
    for claim in campaign.exhibit.get("claims", []):
        console.print(f"{claim['verdict']}: {claim['claim']} Paper: {claim['theirs']}. Here: {claim['ours']}.")
    if not campaign.whole:
        return
    _, runs = load_campaign(campaign.folder)
    rule = campaign.record["experiment"].get("start_offset_ms")
    print_comparison(console, runs, campaign.record.get("not_run", []), rule)
    table = Table("run", "outcome", "first frame s", "rebuffered s", "redundancy", "fidelity", header_style="bold")
    for run in runs:
        table.add_row(
            run.run_id,
            run.outcome.replace("_", " "),
            seconds(run.first_frame_s),
            f"{run.rebuffer_time_s:.2f}",
            percent(run.redundancy),
            "void" if run.void else "exact" if is_exact(run.config["arena"]) else "on time",
        )
    print_table(console, table)
    missing = len(campaign.asked) - len(runs)
    if missing:
        console.print(f"{counted(missing, 'run')} still to do: `{campaign.record['command']}` goes on.")
