"""Schedulers and congestion controllers, chosen by name in the programs and in the simulator, and what comes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import run_program
from quic_programs import read_jsonl
from railyard.base.errors import UserError
from railyard.base.paths import program
from railyard.experiment.model import KERNEL_CONGESTION, load_experiment
from railyard.experiment.settings import CONTROLLERS, FORESIGHT_SCHEDULERS, SCHEDULERS, SETTINGS
from railyard.results.oracle import OraclePath, rct_s
from railyard.run.resolve import resolve
from railyard.traces import find_pair
from railyard.traces.trace import read_trace
from sim_program import simulate

Job = dict[str, Any]


def flat_job(folder: Path, delays_ms: tuple[float, ...], **members: Any) -> Job:
    """Paths of 12 Mbps with queues of 40 ms."""
    trace = folder / "12mbps.trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    link = {"up": str(trace), "down": str(trace), "queue": "droptail:packets=40"}
    paths = [link | {"name": f"path-{i}", "delay_ms": delay} for i, delay in enumerate(delays_ms)]
    player = {"video_bytes": 6_000_000, "bitrate_bps": 4_000_000, "chunk_bytes": 250_000, "max_buffer_ms": 3000}
    return {"scheme": "vanilla-mp", "time_limit_s": 60, "paths": paths, "player": player, "link_logs": False} | members


def events(out: Path, side: str, name: str) -> list[dict[str, Any]]:
    text = next(out.glob(f"qlog/*_{side}.sqlog")).read_text()
    found = [json.loads(record) for record in text.split("\x1e") if f'"{name}"' in record]
    return [record for record in found if record.get("name") == name]


def rcts(out: Path) -> list[float]:
    return sorted(r["rct_s"] for r in read_jsonl(out / "player.jsonl") if r["event"] == "chunk_done")


def path_bytes(out: Path) -> list[int]:
    return [path["bytes_received"] for path in read_jsonl(out / "player.jsonl")[-1]["paths"]]


def test_every_scheduler_with_every_controller_plays_a_subway_to_its_end(tmp_path: Path) -> None:
    pair = find_pair("subway-1")
    paths = [
        {"name": p.name, "technology": p.technology, "up": str(p.uplink), "down": str(p.downlink)}
        | {"delay_ms": p.base_rtt_ms / 2, "queue": p.queue}
        for p in pair.paths
    ]
    seen: dict[tuple[str, str], list[float]] = {}
    for scheduler in SCHEDULERS:
        for cc in CONTROLLERS:
            job = flat_job(tmp_path, (), scheduler=scheduler, cc=cc, seed=1, null_crypto=True) | {"paths": paths}
            job["player"] |= {"video_bytes": 3_000_000, "verify": True}
            out = simulate(tmp_path / f"{scheduler}-{cc}", job)
            assert read_jsonl(out / "player.jsonl")[-1]["outcome"] == "complete", (scheduler, cc)
            seen[scheduler, cc] = rcts(out)
    for cc in CONTROLLERS:
        # Without re-injection xlink is min-RTT, and a send window of megabytes leaves BLEST nothing to do.
        assert seen["minrtt", cc] == seen["xlink", cc] == seen["blest", cc], cc
        assert len({tuple(seen[name, cc]) for name in ("minrtt", "roundrobin", "redundant", "ecf")}) >= 3, cc
    assert len({tuple(seen["minrtt", cc]) for cc in CONTROLLERS}) >= 3


def test_the_choice_is_in_the_outputs_and_decides_what_is_sent_by_both_ends(tmp_path: Path) -> None:
    job = flat_job(tmp_path, (10, 10), scheduler="roundrobin", cc="bbr", qlog=True)
    out = simulate(tmp_path / "out", job)
    assert {r["name"] for r in events(out, "server", "multipath:path_selected")} == {"multipath:path_selected"}
    for side in ("server", "client"):
        chosen = [r["data"] for r in events(out, side, "multipath:path_selected")]
        assert {data["scheduler"] for data in chosen} == {"roundrobin"}, side
        assert "its turn" in {data["rule"] for data in chosen}, side
        phases = [r["data"]["new"] for r in events(out, side, "quic:congestion_state_updated")]
        assert phases[0] == "Startup", side
    assert "ProbeBW" in {r["data"]["new"] for r in events(out, "server", "quic:congestion_state_updated")}
    one, two = path_bytes(out)
    assert one == pytest.approx(two, rel=0.1)


def test_ecf_keeps_chunks_off_a_slow_path_and_says_when_it_waits(tmp_path: Path) -> None:
    outs = {
        name: simulate(tmp_path / name, flat_job(tmp_path, (10, 150), scheduler=name, qlog=True))
        for name in ("minrtt", "ecf")
    }
    assert path_bytes(outs["minrtt"])[1] > 1_000_000
    assert path_bytes(outs["ecf"])[1] < path_bytes(outs["minrtt"])[1] / 2
    median = {name: rcts(out)[len(rcts(out)) // 2] for name, out in outs.items()}
    assert median["ecf"] < 0.9 * median["minrtt"], median
    waits = events(outs["ecf"], "server", "multipath:scheduler_waits")
    assert waits and {r["data"]["path"] for r in waits} == {0}
    assert not events(outs["minrtt"], "server", "multipath:scheduler_waits")


def test_players_of_lia_leave_a_single_path_player_more_than_players_of_cubic(tmp_path: Path) -> None:
    """Each link has a player of its own beside the one with both paths."""

    def bytes_of_single_paths(cc: str) -> int:
        players = [{}, {"scheme": "sp", "primary": "path-0", "cc": "newreno"}]
        players.append({"scheme": "sp", "primary": "path-1", "cc": "newreno"})
        job = flat_job(tmp_path, (15, 20), cc=cc, players=players, null_crypto=True)
        job["player"] |= {"video_bytes": 30_000_000, "bitrate_bps": 100_000_000, "chunk_bytes": 2_000_000}
        out = simulate(tmp_path / cc, job | {"time_limit_s": 20})
        return sum(int(read_jsonl(out / f"player-{i}.jsonl")[-1]["bytes"]) for i in (2, 3))

    assert bytes_of_single_paths("lia") > 1.1 * bytes_of_single_paths("cubic")


@pytest.mark.parametrize("name", ["scheduler", "cc"])
def test_unknown_names_are_one_sentence_that_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    *others, last = SETTINGS[name].known_words()
    sentence = f"{name} takes {', '.join(others)} or {last}, not 'best'."
    job = json.dumps(flat_job(tmp_path, (10,), **{name: "best"}))
    player = ["--transport", "quic", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1", "--url", "/synthetic/9"]
    player += ["--chunk-bytes", "9", "--bitrate", "99999", "--time-limit", "1", "--out", str(tmp_path / "p")]
    commands: list[tuple[str, list[str]]] = [
        ("xlink-sim", ["-", "--out", str(tmp_path / "out")]),
        ("xlink-server", ["--quic", "127.0.0.1:0", f"--{name}", "best"]),
        ("xlink-player", [*player, f"--{name}", "best"]),
    ]
    for binary, arguments in commands:
        command = [str(program(binary)), *arguments]
        done = run_program(command, input=job, timeout=20)
        assert done.returncode == 2
        assert done.stderr.rstrip().endswith(sentence), done.stderr
        assert done.stderr.startswith(f"{binary}: ") and done.stderr.count("\n") == 1


def test_the_kernels_player_takes_neither(tmp_path: Path) -> None:
    arguments = ["--transport", "tcp", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1", "--url", "/synthetic/9"]
    arguments += ["--chunk-bytes", "9", "--bitrate", "99999", "--time-limit", "1", "--out", str(tmp_path / "p")]
    command = [str(program("xlink-player")), *arguments, "--cc", "bbr"]
    done = run_program(command, timeout=20)
    assert done.returncode == 2 and "--transport quic" in done.stderr
    assert set(KERNEL_CONGESTION) < set(CONTROLLERS)


def fading_job(folder: Path, **members: Any) -> tuple[Job, list[OraclePath]]:
    """12 Mbps for 100 of each 400 ms beside 4 Mbps without a break but farther away."""
    job = flat_job(folder, (10, 40), seed=1, null_crypto=True, **members)
    files = {"fading": folder / "fading.trace", "steady": folder / "steady.trace", "up": folder / "up.trace"}
    files["fading"].write_text("".join(f"{ms}\n" for ms in [*range(1, 101), 400]))
    files["steady"].write_text("".join(f"{ms}\n" for ms in range(3, 301, 3)))
    files["up"].write_text("1\n")
    for path, name in zip(job["paths"], ("fading", "steady"), strict=True):
        path |= {"up": str(files["up"]), "down": str(files[name]), "queue": "droptail:packets=400"}
    known = [
        OraclePath(read_trace(files["up"]), read_trace(files[name]), delay_us, 0)
        for name, delay_us in (("fading", 10_000), ("steady", 40_000))
    ]
    return job, known


def test_the_clairvoyant_scheduler_comes_near_the_oracle_and_no_other_does(tmp_path: Path) -> None:
    over: dict[str, list[float]] = {}
    for scheduler in SCHEDULERS:
        job, known = fading_job(tmp_path, scheduler=scheduler)
        chunks = read_jsonl(simulate(tmp_path / scheduler, job) / "player.jsonl")
        asked = {record["chunk"]: record["t"] for record in chunks if record["event"] == "request"}
        done = {record["chunk"]: record["rct_s"] for record in chunks if record["event"] == "chunk_done"}
        # Before that the windows grow, whatever the scheduler.
        over[scheduler] = [done[i] / rct_s(known, asked[i], 250_000) for i in sorted(done) if i >= 8]
    mean = {name: sum(values) / len(values) for name, values in over.items()}
    best = min(value for name, value in mean.items() if name != "clairvoyant")
    assert min(over["clairvoyant"]) > 0.999
    assert mean["clairvoyant"] < 1.06 and max(over["clairvoyant"]) < 1.1, mean
    assert mean["clairvoyant"] < best - 0.1, mean


def test_no_program_on_sockets_and_no_other_arena_takes_a_scheduler_that_needs_foresight(tmp_path: Path) -> None:
    assert FORESIGHT_SCHEDULERS == ("clairvoyant",)
    sets = ("--scheduler", "clairvoyant")
    player = ("xlink-player", "--server", "127.0.0.1:1", "--path", "a:127.0.0.1", "--transport", "quic")
    play = ("--url", "/synthetic/1000", "--chunk-bytes", "1000", "--bitrate", "8000", "--time-limit", "1")
    for command in (
        ("xlink-server", "--quic", "127.0.0.1:0"),
        (*player, *play, "--out", str(tmp_path / "player.jsonl"), "--scheme", "xlink+"),
        ("xlink-load", "--server", "127.0.0.1:1", "--path", "127.0.0.1", "--insecure"),
        ("xlink-get", "--insecure", "https://127.0.0.1:1/"),
    ):
        done = run_program([program(command[0]), *sets, *command[1:]], timeout=20)
        assert done.returncode == 2 and "which only the simulator does" in done.stderr, (command, done.stderr)
    file = tmp_path / "one.yaml"
    file.write_text(
        "name: one\narena: mpshell\npairs: [subway-1]\nschemes:\n"
        "  - vanilla-mp\n  - {scheme: xlink+, scheduler: clairvoyant}\nseeds: 1\n"
    )
    with pytest.raises(UserError, match=r"one\.yaml:6: .*the scheduler clairvoyant must know"):
        resolve(*load_experiment(file))
