"""xlink-player and xlink-server over the loopback interface, two local addresses as two paths."""

import hashlib
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from quic_programs import (
    VIDEO_BYTES,
    VIDEO_URL,
    Server,
    events,
    player_command,
    player_summary,
    read_jsonl,
    run_player,
    synthetic,
    wait_for_event,
)
from railyard.base.paths import program

TWO_PATHS = ("--path", "first:127.0.0.1:wifi", "--path", "second:127.0.0.2:lte")
CARRIES_DATA_BYTES = 50_000  # what a path has carried that was really used, not only probed
VIDEO_SHA256 = hashlib.sha256(synthetic(0, VIDEO_BYTES - 1)).digest()
SERVER_STATS = {"stream_bytes_sent", "reinjected_bytes", "retransmitted_bytes", "migrations", "paths"}


def play(folder: Path, scheme: str, *arguments: str, server_arguments: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Plays the whole video. Returns the server's records."""
    with Server(folder, "--scheme", scheme, "--qlog-dir", str(folder / "qlog"), *server_arguments) as server:
        done = run_player(folder, server.port, "--scheme", scheme, "--insecure", *TWO_PATHS, *arguments)
    assert done.returncode == 0, done.stderr
    assert server.process.returncode == 0, server.error_output
    assert hashlib.sha256((folder / "video").read_bytes()).digest() == VIDEO_SHA256
    assert player_summary(folder)["outcome"] == "complete"
    return server.records()


@pytest.mark.parametrize("scheme", ["vanilla-mp", "xlink"])
def test_both_paths_carry_data_of_a_multipath_scheme(tmp_path: Path, scheme: str) -> None:
    records = play(tmp_path, scheme)
    summary = player_summary(tmp_path)
    assert summary["transport"]["multipath"] is True
    for path in summary["paths"]:
        assert path["bytes_received"] > CARRIES_DATA_BYTES, path
    (closed,) = events(records, "connection_closed")
    assert closed["multipath"] is True
    for path in closed["paths"]:
        assert path["stream_bytes_sent"] > CARRIES_DATA_BYTES, path
    remotes = {path["remote"].rsplit(":", 1)[0] for path in closed["paths"]}
    assert remotes == {"127.0.0.1", "127.0.0.2"}


@pytest.mark.privileged
def test_two_ipv6_paths_of_mpshell(tmp_path: Path) -> None:
    if not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    shell: list[str | Path] = [program("mpshell"), "--summary", tmp_path / "mpshell.json"]
    shell += ["--path", "wifi:up=40mbps,down=40mbps,delay=10,queue=droptail:packets=200"]
    shell += ["--path", "lte:up=40mbps,down=40mbps,delay=25,queue=droptail:packets=200"]
    addresses = '--path "wifi:[$MPSHELL_PATH_0_ADDR6]:wifi" --path "lte:[$MPSHELL_PATH_1_ADDR6]:lte"'
    with Server(tmp_path, "--scheme", "xlink", address="[::]") as server:
        player = player_command(tmp_path, server.port, "--scheme", "xlink", "--insecure")
        place = player.index("--server")
        del player[place : place + 2]
        script = f'exec "$0" "$@" --server "[$MPSHELL_GATEWAY6]:{server.port}" {addresses}'
        done = run_program([*shell, "--", "sh", "-c", script, *player], timeout=90)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256((tmp_path / "video").read_bytes()).digest() == VIDEO_SHA256
    assert player_summary(tmp_path)["outcome"] == "complete"
    wifi, lte = json.loads((tmp_path / "mpshell.json").read_text())["paths"]
    for path in (wifi, lte):
        assert path["down"]["departed_bytes"] > CARRIES_DATA_BYTES
    (closed,) = events(server.records(), "connection_closed")
    remotes = {path["remote"].rsplit(":", 1)[0] for path in closed["paths"]}
    assert remotes == {f"[{path['inside_addr6']}]" for path in (wifi, lte)}


@pytest.mark.parametrize("scheme", ["sp", "cm"])
def test_a_single_path_scheme_uses_the_primary_path_only(tmp_path: Path, scheme: str) -> None:
    records = play(tmp_path, scheme)
    summary = player_summary(tmp_path)
    assert summary["transport"]["multipath"] is False
    assert summary["paths"][0]["bytes_received"] > VIDEO_BYTES
    assert summary["paths"][1]["bytes_received"] == 0
    (closed,) = events(records, "connection_closed")
    assert closed["migrations"] == 0


def test_the_primary_path_is_chosen_by_name(tmp_path: Path) -> None:
    records = play(tmp_path, "sp", "--primary", "second")
    (closed,) = events(records, "connection_closed")
    assert {path["remote"].rsplit(":", 1)[0] for path in closed["paths"]} == {"127.0.0.2"}


def test_several_requests_at_a_time(tmp_path: Path) -> None:
    play(tmp_path, "xlink", "--concurrency", "4")
    records = read_jsonl(tmp_path / "player.jsonl")
    assert len(events(records, "chunk_done")) == 10
    open_requests, most = 0, 0
    for record in records:
        open_requests += {"request": 1, "chunk_done": -1}.get(record["event"], 0)
        most = max(most, open_requests)
    assert most == 4


def test_vanilla_multipath_sends_nothing_twice_without_need(tmp_path: Path) -> None:
    records = play(tmp_path, "vanilla-mp")
    assert records[-1]["reinjected_bytes"] == 0
    assert records[-1]["redundancy"] == 0


def test_reinjection_without_control_is_seen_in_the_figures(tmp_path: Path) -> None:
    records = play(tmp_path, "xlink", server_arguments=("--t-th1-ms", "100000", "--t-th2-ms", "100000"))
    (closed,) = events(records, "connection_closed")
    assert closed["reinjected_bytes"] == sum(path["reinjected_bytes"] for path in closed["paths"])


def test_records_of_player_and_server_are_what_was_agreed(tmp_path: Path) -> None:
    server = play(tmp_path, "xlink", server_arguments=("--bitrate", "80000000", "--fps", "30"))
    player = read_jsonl(tmp_path / "player.jsonl")
    for records in (server, player):
        assert records[0]["event"] == "start"
        assert records[0]["monotonic_us"] > 0
        assert isinstance(records[0]["argv"], list)
        assert records[-1]["event"] == "summary"
        times = [record["t"] for record in records]
        assert times == sorted(times)
    assert len(events(player, "handshake_done")) == 1
    assert len(events(player, "first_frame")) == 1
    assert [record["chunk"] for record in events(player, "chunk_done")] == list(range(10))
    requests = events(server, "request")
    assert [record["status"] for record in requests] == [206] * 10
    assert sorted((record["first"], record["last"]) for record in requests) == [
        (first, first + 999_999) for first in range(0, VIDEO_BYTES, 1_000_000)
    ]
    assert len(events(server, "response_done")) >= 9  # the last acknowledgement may be the player's goodbye
    (closed,) = events(server, "connection_closed")
    assert closed.keys() >= SERVER_STATS
    summary = server[-1]
    assert summary["connections"] == 1
    assert summary["stream_bytes_sent"] >= VIDEO_BYTES
    assert sum(path["bytes_sent"] for path in summary["paths"]) > summary["stream_bytes_sent"]
    for path in summary["paths"]:
        assert path.keys() >= {
            "id",
            "remote",
            "bytes_sent",
            "bytes_received",
            "packets_sent",
            "packets_lost",
            "srtt_us",
        }


def read_json_seq(file: Path) -> list[dict[str, Any]]:
    """RFC 7464: every record begins with RS and ends with LF."""
    text = file.read_text(encoding="utf-8")
    assert text.startswith("\x1e")
    assert text.endswith("\n")
    return [json.loads(record) for record in text[1:].split("\x1e")]


def test_qlogs_are_json_sequences_of_both_sides(tmp_path: Path) -> None:
    play(tmp_path, "xlink", "--qlog-dir", str(tmp_path / "qlog"), "--keylog", str(tmp_path / "keys"))
    files = sorted((tmp_path / "qlog").iterdir())
    assert len(files) == 2
    assert files[0].name.replace("_client.sqlog", "") == files[1].name.replace("_server.sqlog", "")
    for file in files:
        head, *rest = read_json_seq(file)
        assert "trace" in head
        assert len(rest) > 1000
        assert all(event.keys() >= {"time", "name", "data"} for event in rest)
        assert {"quic:packet_sent", "quic:packet_received"} <= {event["name"] for event in rest}
        times = [event["time"] for event in rest]
        assert times == sorted(times)
    labels = {line.split()[0] for line in (tmp_path / "keys").read_text(encoding="utf-8").splitlines()}
    assert labels >= {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"}
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600


def first_numbers(file: Path, direction: str) -> dict[str, int]:
    """The first number of the packets sent, or received, by packet type."""
    numbers: dict[str, int] = {}
    for event in read_json_seq(file)[1:]:
        if event["name"] == f"quic:packet_{direction}":
            header = event["data"]["header"]
            numbers.setdefault(header["packet_type"], header["packet_number"])
    return numbers


@pytest.mark.parametrize("client", ["xlink-player", "xlink-get", "xlink-load"])
@pytest.mark.parametrize("seeded", [False, True])
def test_packet_numbers_begin_at_random_without_a_seed(tmp_path: Path, client: str, seeded: bool) -> None:
    seed = ("--seed", "7") if seeded else ()
    with Server(tmp_path, "--qlog-dir", str(tmp_path / "qlog"), *seed) as server:
        at = f"127.0.0.1:{server.port}"
        load = ("--server", at, "--path", "127.0.0.1", "--connections", "1")
        commands: dict[str, list[str | Path]] = {
            "xlink-player": player_command(tmp_path, server.port, "--scheme", "sp", "--insecure", *TWO_PATHS[:2]),
            "xlink-get": [program("xlink-get"), "--insecure", "--dir", tmp_path, f"https://{at}/synthetic/1000"],
            "xlink-load": [program("xlink-load"), "--insecure", *load],
        }
        done = run_program([*commands[client], *seed], timeout=60)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "qlog").iterdir()
    for direction in ("sent", "received"):
        numbers = first_numbers(log, direction)
        assert {"initial", "handshake", "1RTT"} <= numbers.keys()
        assert max(numbers.values()) < 1 << 14
        assert any(numbers.values()) != seeded, numbers


def test_a_server_makes_no_more_qlogs_than_it_may(tmp_path: Path) -> None:
    logs = tmp_path / "qlog"
    fetch = ("--chunk-bytes", "10000", "--url", "/synthetic/10000")
    with Server(tmp_path, "--scheme", "sp", "--qlog-dir", str(logs), "--qlog-files", "2") as server:
        for seed in range(4):
            path = ("--path", "a:127.0.0.1:wifi")
            good(run_player(tmp_path, server.port, "--scheme", "sp", "--insecure", "--seed", str(seed), *path, *fetch))
    assert len(list(logs.iterdir())) == 2
    (left_out,) = events(server.records(), "qlogs_left_out")
    assert left_out["qlog_files"] == 2


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    done = run_player(tmp_path, port, "--scheme", "xlink", "--insecure", *TWO_PATHS)
    one_sentence(done, f"127.0.0.1:{port}", "refused", program="xlink-player")
    assert player_summary(tmp_path)["outcome"] == "connect_failed"


def test_a_local_address_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = run_player(tmp_path, 4433, "--scheme", "sp", "--insecure", "--path", "far:203.0.113.9:wifi")
    one_sentence(done, "203.0.113.9", "far", program="xlink-player")


def test_a_server_that_stops_while_it_serves_is_one_sentence(tmp_path: Path) -> None:
    with Server(tmp_path, "--scheme", "xlink") as server:
        command = player_command(tmp_path, server.port, "--scheme", "xlink", "--insecure", *TWO_PATHS)
        command[command.index("--bitrate") + 1] = "1000000"  # the video would play for 80 seconds
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as player:
            wait_for_event(tmp_path / "player.jsonl", "chunk_done")
            server.stop()
            _, error_output = player.communicate(timeout=20)
    assert player.returncode == 1
    assert len(error_output.splitlines()) == 1
    assert "the server closed the connection" in error_output
    assert player_summary(tmp_path)["outcome"] == "connection_lost"
    assert server.process.returncode == 0


@pytest.mark.parametrize("scheme", ["sp", "xlink"])
def test_a_resource_that_is_not_there_is_one_sentence(tmp_path: Path, scheme: str) -> None:
    with Server(tmp_path, "--scheme", scheme) as server:
        command = player_command(tmp_path, server.port, "--scheme", scheme, "--insecure", *TWO_PATHS)
        command[command.index(VIDEO_URL)] = "/missing.mp4"
        command.remove("--verify")
        done = run_program([*command, "--size", "1000000"], timeout=60)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "404" in done.stderr


def start_server(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [program("xlink-server"), *arguments]
    return run_program(command, timeout=20)


def test_certificates_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate", encoding="utf-8")
    for cert in (tmp_path / "missing.pem", nonsense):
        done = start_server("--quic", "127.0.0.1:0", "--cert", cert, "--key", nonsense)
        one_sentence(done, str(cert), program="xlink-server")


def test_an_unknown_reinjection_mode_is_one_sentence() -> None:
    done = start_server("--quic", "127.0.0.1:0", "--reinjection", "sometimes")
    one_sentence(done, "sometimes", program="xlink-server")
