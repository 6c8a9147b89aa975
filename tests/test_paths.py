"""Paths that come, go, stand by and are rebound while a video plays; docs/reference/paths.md."""

import json
import os
import select
import socket
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from conftest import good, run_program
from quic_programs import Server, events, player_command, player_summary, read_jsonl, wait_for_event
from railyard.base.paths import program
from railyard.experiment.model import Experiment, SchemeEntry
from railyard.run.runspec import RunPath, primary_path, scheme_parameters

TECHNOLOGIES = {"wifi": "wifi", "lte": "lte"}


def simulate(folder: Path, scheme: str = "xlink", **members: Any) -> tuple[int, str, Path]:
    """Ten seconds of a 10 Mbps video over two steady links of 12 Mbps; exit status, error, outputs."""
    trace = folder / "12mbps"
    trace.write_text("".join(f"{i}\n" for i in range(1, 1001)))
    paths = [
        {"name": name, "technology": technology, "up": "12mbps", "down": "12mbps", "delay_ms": 10, "queue": "infinite"}
        for name, technology in TECHNOLOGIES.items()
    ]
    player = {"video_bytes": 12_500_000, "bitrate_bps": 10_000_000, "chunk_bytes": 500_000, "verify": True}
    job = {"time_limit_s": 30, "scheme": scheme, "paths": paths, "player": player, "qlog": True} | members
    (folder / "job.json").write_text(json.dumps(job))
    command: list[str | Path] = [program("xlink-sim"), folder / "job.json", "--out", folder / "out"]
    done = run_program(command, timeout=60)
    return done.returncode, done.stderr, folder / "out"


def delivered(out: Path, path: str, begin_s: float, end_s: float) -> int:
    """The bytes that left a path's downlink in a span of time, from its log."""
    total = 0
    for line in (out / "links" / f"{path}.down.log").read_text().splitlines():
        fields = line.split()
        if not line.startswith("#") and fields[1] == "-" and begin_s * 1000 <= int(fields[0]) < end_s * 1000:
            total += int(fields[2])
    return total


def qlog_events(out: Path, side: str, prefix: str) -> list[dict[str, Any]]:
    (file,) = (out / "qlog").glob(f"*_{side}.sqlog")
    found = [json.loads(line) for line in file.read_text().replace("\x1e", "").splitlines()[1:]]
    return [event for event in found if event["name"].startswith(prefix)]


@pytest.mark.parametrize("scheme", ["vanilla-mp", "xlink"])
def test_a_path_goes_and_comes_back_in_mid_download(tmp_path: Path, scheme: str) -> None:
    status, error, out = simulate(tmp_path, scheme, path_events="2:remove:lte,4:add:lte")
    assert (status, error) == (0, "")
    records = read_jsonl(out / "player.jsonl")
    assert records[-1]["outcome"] == "complete" and records[-1]["bytes"] == 12_500_000
    states = [(record["name"], record["state"]) for record in events(records, "path")]
    assert states == [
        ("wifi", "validating"),
        ("wifi", "active"),
        ("lte", "validating"),
        ("lte", "active"),
        ("lte", "closed"),
        ("lte", "validating"),
        ("lte", "active"),
    ]
    assert delivered(out, "lte", 1, 2) > 200_000
    assert delivered(out, "lte", 2.5, 4) < 5_000
    assert delivered(out, "lte", 4.5, 6) > 200_000
    ids = [event["data"]["path_id"] for event in qlog_events(out, "client", "multipath:path_new")]
    assert len(set(ids)) == 3, "a path that comes back has a new path ID"


def test_a_path_may_come_later_only(tmp_path: Path) -> None:
    status, error, out = simulate(tmp_path, path_events=["3:add:lte"])
    assert (status, error) == (0, "")
    assert delivered(out, "lte", 0, 3) == 0
    assert delivered(out, "lte", 3.5, 5) > 200_000


def test_a_standby_path_is_spared_until_it_is_available_again(tmp_path: Path) -> None:
    status, error, out = simulate(tmp_path, path_events="1:standby:lte,4:available:lte")
    assert (status, error) == (0, "")
    assert delivered(out, "lte", 1.5, 4) < 10_000
    assert delivered(out, "lte", 4.2, 6) > 200_000
    standby = [event["data"]["why"] for event in qlog_events(out, "server", "multipath:path_standby")]
    assert standby == ["standby by the peer"]


def test_the_order_of_technologies_chooses_the_primary_path(tmp_path: Path) -> None:
    assert simulate(tmp_path)[0] == 0
    start = read_jsonl(tmp_path / "out" / "player.jsonl")[0]
    assert [path["name"] for path in start["paths"]] == ["wifi", "lte"]
    assert simulate(tmp_path, path_order="lte,wifi")[0] == 0
    start = read_jsonl(tmp_path / "out" / "player.jsonl")[0]
    assert [path["name"] for path in start["paths"]] == ["lte", "wifi"]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"path_events": "2:remove:satellite"}, "'satellite'"),
        ({"path_events": "2:vanish:lte"}, "T:add|remove|standby|available:NAME"),
        ({"path_events": "2:add:wifi"}, "primary path 'wifi'"),
        ({"path_events": "2:remove:lte", "scheme": "cm"}, "several paths"),
        ({"path_order": "6g"}, "5g-sa, 5g-nsa, wifi, lte"),
        ({"path_management": "on,colour=3"}, "path_management takes off, or on"),
        ({"migrate_after": "soon", "scheme": "cm"}, "silence:MS or ptos:N"),
        ({"migrate_back": "soon", "scheme": "cm"}, "never"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(
    tmp_path: Path, members: dict[str, Any], words: str
) -> None:
    status, error, _ = simulate(tmp_path, **members)
    assert status == 2
    assert words in error and error.count("\n") == 1, error


def test_an_experiment_passes_them_on() -> None:
    entry = SchemeEntry.model_validate(
        {"scheme": "xlink", "path_management": True, "path_events": ["2:remove:lte", "5:add:lte"]}
    )
    assert scheme_parameters(entry) == {"path_management": "on", "path_events": "2:remove:lte,5:add:lte"}
    entry = SchemeEntry.model_validate({"scheme": "cm", "migrate_after": "ptos:2", "migrate_back": 1.5})
    assert scheme_parameters(entry) == {"migrate_after": "ptos:2", "migrate_back": "1.5"}
    for wrong in ({"scheme": "xlink", "migrate_back": 1}, {"scheme": "cm", "path_events": "2:remove:lte"}):
        with pytest.raises(ValueError, match="leave it out"):
            SchemeEntry.model_validate(wrong)
    with pytest.raises(ValueError, match="path_events"):
        SchemeEntry.model_validate({"scheme": "xlink", "path_events": "2:vanish:lte"})


def test_an_experiment_may_order_the_technologies() -> None:
    path = {"up": "u", "down": "d", "up_sha256": "", "down_sha256": "", "delay_ms": 1, "queue": "infinite"}
    paths = tuple(RunPath.model_validate({"name": t, "technology": t} | path) for t in ("lte", "wifi", "5g-sa"))
    assert primary_path(paths).name == "5g-sa"
    assert primary_path(paths, ["wifi", "lte"]).name == "wifi"
    shortest = {"name": "x", "pairs": ["subway-1"], "schemes": ["sp"]}
    assert Experiment.model_validate(shortest | {"path_order": ["lte"]}).path_order == ["lte"]
    with pytest.raises(ValueError, match="path_order"):
        Experiment.model_validate(shortest | {"path_order": ["6g"]})


class Nat:
    """Stands between player and server as a NAT does: each client gets a port of its own, and rebind() a new one."""

    def __init__(self, server_port: int) -> None:
        self.server = ("127.0.0.1", server_port)
        self.inside = self._socket()
        self.port = int(self.inside.getsockname()[1])
        self.outside: dict[tuple[str, int], socket.socket] = {}
        self.old: list[socket.socket] = []
        self.lock = threading.Lock()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run)

    @staticmethod
    def _socket() -> socket.socket:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        s.bind(("127.0.0.1", 0))
        s.setblocking(False)
        return s

    def rebind(self, client_ip: str) -> tuple[int, int]:
        """The ports before and after. Datagrams to the old one are lost."""
        with self.lock:
            (client,) = [address for address in self.outside if address[0] == client_ip]
            before = self.outside[client]
            self.outside[client] = after = self._socket()
            self.old.append(before)
            return int(before.getsockname()[1]), int(after.getsockname()[1])

    def _forward(self) -> None:
        with self.lock:
            clients = dict(self.outside)
        ready, _, _ = select.select([self.inside, *clients.values()], [], [], 0.05)
        for s in ready:
            for _ in range(200):
                try:
                    data, address = s.recvfrom(2048)
                except BlockingIOError:
                    break
                if s is not self.inside:
                    (client,) = [client for client, other in clients.items() if other is s]
                    self.inside.sendto(data, client)
                    continue
                with self.lock:
                    out = self.outside.get(address) or self.outside.setdefault(address, self._socket())
                out.sendto(data, self.server)

    def _run(self) -> None:
        while not self.ends.is_set():
            self._forward()

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ends.set()
        self.thread.join()
        for s in [self.inside, *self.outside.values(), *self.old]:
            s.close()


def test_a_nat_rebinds_one_path_while_the_other_goes_on(tmp_path: Path) -> None:
    settings: tuple[str, ...] = (
        "--scheme",
        "xlink",
        "--insecure",
        "--path",
        "a:127.0.0.1:wifi",
        "--path",
        "b:127.0.0.2:lte",
    )
    # Four seconds of video, requested half a second ahead: the download lasts as long as the play.
    settings += ("--bitrate", "20000000", "--max-buffer-ms", "500", "--chunk-bytes", "100000")
    qlog = ("--scheme", "xlink", "--qlog-dir", str(tmp_path / "qlog"))
    with Server(tmp_path, *qlog) as server, Nat(server.port) as nat:
        process = subprocess.Popen(player_command(tmp_path, nat.port, *settings), stderr=subprocess.PIPE)
        wait_for_event(tmp_path / "player.jsonl", "play")
        time.sleep(1)
        before, after = nat.rebind("127.0.0.2")
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    summary = player_summary(tmp_path)
    assert summary["outcome"] == "complete" and summary["bytes"] == 10_000_000
    (closed,) = events(server.records(), "connection_closed")
    assert len(closed["paths"]) == 2, "the client opened no other path, and changed no connection ID"
    assert closed["paths"][1]["remote"] == f"127.0.0.1:{after}"
    assert closed["paths"][1]["state"] == "active"
    (file,) = (tmp_path / "qlog").glob("*_server.sqlog")
    text = [json.loads(line) for line in file.read_text().replace("\x1e", "").splitlines()[1:]]
    (rebound,) = [event for event in text if event["name"] == "multipath:path_rebound"]
    assert rebound["data"]["path"] == 1 and rebound["data"]["why"] == "new port"
    assert rebound["data"]["remote"] == f"127.0.0.1:{after}" and before != after
    sent = [e for e in text if e["name"] == "quic:packet_sent" and e["time"] >= rebound["time"]]
    with_data = [e for e in sent if any(f["frame_type"] == "stream" for f in e["data"]["frames"])]
    challenges = [e for e in sent if any(f["frame_type"] == "path_challenge" for f in e["data"]["frames"])]
    assert challenges and challenges[0]["data"]["path"] == 1
    # Data on the rebound path waits for the answer; there is some again after it.
    answered = next(
        e["time"]
        for e in text
        if e["name"] == "quic:packet_received"
        and e["time"] >= rebound["time"]
        and any(f["frame_type"] == "path_response" for f in e["data"]["frames"])
    )
    on_path = [e["time"] for e in with_data if e["data"]["path"] == 1]
    assert on_path and min(on_path) >= answered


GONE_AND_BACK = """
ip link set lo up
for a in 1 2 9; do ip addr add 10.9.0.$a/32 dev lo; done
exec 3< <("$SERVER" --quic 10.9.0.9:0 --scheme xlink --out "$OUT/server.jsonl")
server=$!
read -r line <&3
port=$(sed 's/.*10.9.0.9:\\([0-9]*\\).*/\\1/' <<< "$line")
"$PLAYER" --transport quic --scheme xlink --insecure --server 10.9.0.9:$port \
    --path a:10.9.0.1:wifi --path b:10.9.0.2:lte --url /synthetic/10000000 --chunk-bytes 100000 \\
    --bitrate 20000000 --max-buffer-ms 500 --time-limit 30 --verify \\
    --out "$OUT/player.jsonl" &
player=$!
until_b_is() {
    until grep -qs '"name":"b".*"state":"'$1'"' "$OUT/player.jsonl" || ! kill -0 $player; do sleep 0.05; done
}
until_b_is active
ip addr del 10.9.0.2/32 dev lo
until_b_is closed
ip addr add 10.9.0.2/32 dev lo
wait $player
status=$?
kill $server
exit $status
"""


@pytest.mark.privileged
def test_a_path_whose_interface_goes_is_abandoned_and_returns(tmp_path: Path) -> None:
    environment = os.environ | {
        "SERVER": str(program("xlink-server")),
        "PLAYER": str(program("xlink-player")),
        "OUT": str(tmp_path),
    }
    good(run_program(["unshare", "--net", "bash", "-c", GONE_AND_BACK], env=environment, timeout=60))
    records = read_jsonl(tmp_path / "player.jsonl")
    assert records[-1]["outcome"] == "complete" and records[-1]["bytes"] == 10_000_000
    b = [record["state"] for record in events(records, "path") if record["name"] == "b"]
    assert b == ["validating", "active", "closed", "validating", "active"]
    assert [record["state"] for record in events(records, "path") if record["name"] == "a"] == ["validating", "active"]
