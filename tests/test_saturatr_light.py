"""saturatr's light recordings: the rows of a light trace that a link replays come back, in virtual time."""

import csv
import json
import math
import shlex
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import good, one_sentence, run_program
from kernel_machine import needs_kernel, same_files, vk
from railyard.traces.convert.logs import read_raw
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.light import Burst, read_light_trace, read_size_latency
from railyard.traces.trace import TraceError
from test_saturatr import BIN, ENVIRONMENT, SATURATR, TOKEN, client, server

pytestmark = pytest.mark.usefixtures("built")

# Delays that rise, fall and stay, and offsets with packets at once, evenly spaced and in groups.
UP = "0 40 0 0 0 3 3 6 9 12\n500 60 0 0 2 4 6 8 10 12\n1000 80 0 5 5 10 10 15 15 20\n1500 40 0 0 0 0 1 1 1 1\n2000 40\n"
DOWN = "0 25 0 1 2 3 4 5 6 7\n700 95 0 0 0 0 0 0 0 30\n1300 95 0 2 2 2 9 9 9 9\n1700 25\n"
SCRIPT = """\
{saturatr} server --listen 0.0.0.0:7000 --once >server.log &
until grep -q listening server.log; do sleep 0.01; done
exec {mpshell} --path {link} --path reliable:rate=100mbps,delay=1 --summary mpshell.json -- \
  {saturatr} client --server @:7000 --path a:@0 --ack-via @1 --out recording --mode light {arguments}
"""


@dataclass(frozen=True)
class Recording:
    folder: Path
    said: str

    @property
    def session(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.folder / "recording" / "light.json").read_text())
        return read

    def direction(self, way: str) -> dict[str, Any]:
        figures: dict[str, Any] = self.session["paths"][0][way]
        return figures

    def trace(self, way: str) -> Path:
        return self.folder / "recording" / f"a.{way}.light"

    def link_ms(self, row: Burst) -> float:
        """The link's time when the row's train was sent, to the ms below."""
        emulated = json.loads((self.folder / "mpshell.json").read_text())
        offset_us: int = self.session["t0_monotonic_us"] - emulated["t0_monotonic_us"]
        return row.at_ms + offset_us / 1000


def run_recorder(folder: Path, link: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    script = SCRIPT.format(
        saturatr=SATURATR, mpshell=BIN / "mpshell", link=shlex.quote(link), arguments=shlex.join(arguments)
    )
    return vk(folder, "--", "sh", "-c", script, SATURATR_TOKEN=TOKEN)


def record(folder: Path, link: str, *arguments: str) -> Recording:
    done = good(run_recorder(folder, link, *arguments))
    return Recording(folder, done.stdout)


def foreseen(rows: list[Burst], at_ms: float) -> tuple[int, tuple[int, ...]]:
    """The delays of a train that arrives then: docs/reference/links.md."""
    at_ms %= rows[-1].at_ms
    k = max((k for k, row in enumerate(rows[:-1]) if row.at_ms <= at_ms), default=0)
    row, after = rows[k], rows[k + 1]
    share = max(0.0, (at_ms - row.at_ms) / (after.at_ms - row.at_ms))
    return math.floor(row.delay_ms + share * (after.delay_ms - row.delay_ms)), row.offsets_ms


def assert_recorded(recording: Recording, way: str, replayed: Path) -> None:
    """Each row except for the last one, which closes the period, agrees with the replayed trace within 1 ms."""
    known = read_light_trace(replayed)
    *rows, _ = read_light_trace(recording.trace(way))
    assert len(rows) == recording.direction(way)["rows"] > 0
    for row in rows:
        at_ms = recording.link_ms(row)
        candidates = [foreseen(known, at_ms + part) for part in (0, 1)]  # it was sent in this ms
        assert any(
            abs(row.delay_ms - delay) <= 1
            and len(row.offsets_ms) == len(offsets)
            and all(abs(got - wanted) <= 1 for got, wanted in zip(row.offsets_ms, offsets, strict=True))
            for delay, offsets in candidates
        ), (way, row, candidates)


@needs_kernel
def test_the_rows_of_a_light_trace_come_back_and_are_replayed(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        (folder / "up").write_text(UP)
        (folder / "down").write_text(DOWN)
    link = "a:rate=12mbps,up-light-trace=up,down-light-trace=down"
    arguments = ("--train", "8", "--every", "100", "--duration", "3.91")  # the last train arrives after the end
    one, _again = (record(folder, link, *arguments) for folder in folders)
    for way in ("up", "down"):
        assert_recorded(one, way, folders[0] / way)
        assert one.direction(way)["trains"] == one.direction(way)["rows"] == 40
        assert one.direction(way)["lost_packets"] == 0
        assert read_light_trace(one.trace(way))[-1].at_ms == 3910
    # Delays are one way: half of a round trip would be the same for both.
    assert one.direction("down")["delay_ms"]["least"] == pytest.approx(25, abs=1)
    assert one.direction("up")["delay_ms"]["least"] == pytest.approx(40, abs=1)
    assert same_files(*folders) == []

    # The keys that it prints replay it, and a recording of the replay is the same again.
    (keys,) = [line.partition("keys: ")[2] for line in one.said.splitlines() if line.startswith("to replay a")]
    assert keys == "up-light-trace=recording/a.up.light,down-light-trace=recording/a.down.light"
    (tmp_path / "again").mkdir()
    (folders[0] / "recording").rename(tmp_path / "again" / "first")
    again = record(tmp_path / "again", "a:rate=12mbps," + keys.replace("recording/", "first/"), *arguments)
    for way in ("up", "down"):
        assert_recorded(again, way, tmp_path / "again" / "first" / f"a.{way}.light")


@needs_kernel
def test_lost_packets_have_no_offset_and_trains_without_their_first_one_no_row(tmp_path: Path) -> None:
    (tmp_path / "light").write_text("0 30 0 1 2 3 4\n1000 30\n")
    recording = record(
        tmp_path, "a:rate=12mbps,light-trace=light,loss=0.2", "--train", "5", "--every", "50", "--duration", "5"
    )
    for way in ("up", "down"):
        log = (tmp_path / "recording" / f"a.{way}.light.csv").read_text().splitlines()
        trains: dict[int, set[int]] = defaultdict(set)
        for row in csv.DictReader(line for line in log if not line.startswith("#")):
            if row["kind"] == "data" and 0 <= int(row["sent_us"]) < 5_000_000:
                trains[int(row["seq"]) // 5].add(int(row["seq"]) % 5)
        rows = [row.offsets_ms for row in read_light_trace(recording.trace(way))[:-1]]
        wanted = [tuple(sorted(places)) for _, places in sorted(trains.items()) if 0 in places]
        assert [tuple(round(offset) for offset in offsets) for offsets in rows] == wanted
        figures = recording.direction(way)
        assert figures["trains"] == 100
        assert figures["lost_trains"] == 100 - len(rows) > 0
        assert figures["lost_packets"] == 500 - sum(map(len, trains.values())) > 0


@needs_kernel
def test_a_direction_without_a_row_has_no_trace_and_the_others_are_kept(tmp_path: Path) -> None:
    """The uplink is off from 0.3 s on, while the client still measures the base RTT."""
    done = run_recorder(tmp_path, "a:rate=12mbps,delay=30,up-onoff=300/100000", "--duration", "1")
    assert done.returncode == 1
    assert "the first packet of no train of a up arrived; this trace is missing" in done.stderr
    folder = tmp_path / "recording"
    assert not (folder / "a.up.light").exists()
    assert json.loads((folder / "light.json").read_text())["paths"][0]["up"]["trace"] is None
    assert {row.delay_ms for row in read_light_trace(folder / "a.down.light")} <= {30, 31}
    assert "to replay a, give its link these keys: down-light-trace=recording/a.down.light\n" in done.stdout


@needs_kernel
def test_a_long_train_shows_where_heavy_load_begins_and_short_pauses_show_the_gap(tmp_path: Path) -> None:
    """Eight packets are granted at once, the others get an opportunity of 12 Mbps each. After a pause of less than
    80 ms there is no grant."""
    heavy = {}
    for every_ms in (80, 100):
        folder = tmp_path / str(every_ms)
        folder.mkdir()
        (folder / "light").write_text("0 40 0 0 0 0 0 0 0 0\n1000 40\n")
        arguments = ("--train", "20", "--every", f"{every_ms}", "--duration", "3")
        recording = record(folder, "a:rate=12mbps,light-trace=light,light-gap=80", *arguments)
        heavy[every_ms] = recording.direction("down")["heavy"]
        train_ms, pause_ms = (recording.direction("down")[name] for name in ("train_ms", "pause_ms"))
        assert train_ms == pytest.approx({80: 19, 100: 12}[every_ms], abs=1)
        assert train_ms + pause_ms == pytest.approx(every_ms)
        assert heavy[every_ms]["spacing_ms"] == pytest.approx(1.003, abs=0.02)
    assert [heavy[every_ms]["from_packet"] for every_ms in (80, 100)] == [1, 8]


@needs_kernel
def test_the_latencies_of_sizes_come_back_and_are_replayed(tmp_path: Path) -> None:
    """A link with known latencies, up and down, and a delay that rises: what is recorded is what it replays."""
    known = {
        "up": [-12, -12, -10, -8, -8, -8, -8, -5, -4, -4, -4, -3, -3, -3, 0],
        "down": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0],
    }
    (tmp_path / "light").write_text("0 40 0\n1000 40\n")
    for way, latencies in known.items():
        lines = [f"{100 * (i + 1)} {ms}\n" for i, ms in enumerate(latencies)]
        (tmp_path / f"known.{way}").write_text("".join(lines))
    link = "a:rate=12mbps,light-trace=light,up-size-latency=known.up,down-size-latency=known.down"
    sizes = ",".join(map(str, range(100, 1500, 100)))
    one = record(tmp_path, link, "--sizes", sizes, "--every", "60", "--duration", "9.01")
    figures = json.loads((tmp_path / "recording" / "sizes.json").read_text())
    assert figures["mode"] == "sizes"
    for way, latencies in known.items():
        recorded = read_size_latency(tmp_path / "recording" / f"a.{way}.sizes")
        assert recorded == pytest.approx(latencies, abs=0.1)
        direction = figures["paths"][0][way]
        assert [size["packets"] for size in direction["by_size"]] == [11] + [10] * 14
        assert (direction["packets"], direction["lost_packets"], direction["left_out"]) == (151, 0, 0)
        assert direction["by_size"][0]["median_delay_ms"] == pytest.approx(40 + latencies[0], abs=0.2)

    # Few sizes: between them it is interpolated.
    (tmp_path / "few").mkdir()
    for name in ("light", "known.up", "known.down"):
        (tmp_path / name).rename(tmp_path / "few" / name)
    record(tmp_path / "few", link, "--sizes", "100,500", "--every", "60", "--duration", "2.01")
    assert read_size_latency(tmp_path / "few" / "recording" / "a.down.sizes")[:6] == pytest.approx(
        [9, 8, 7, 6, 5, 4.5], abs=0.1
    )

    # The keys that it prints replay it.
    (keys,) = [line.partition("light traces: ")[2] for line in one.said.splitlines() if line.startswith("to replay a")]
    assert keys == "up-size-latency=recording/a.up.sizes,down-size-latency=recording/a.down.sizes"


@needs_kernel
def test_a_size_that_never_arrives_leaves_no_latencies(tmp_path: Path) -> None:
    """The link's MTU is 1000: larger packets are lost."""
    done = run_recorder(tmp_path, "a:rate=12mbps,delay=30,down-mtu=1000", "--sizes", "100,1000,1200", "--duration", "2")
    assert done.returncode == 1
    assert "no packet of 1200 bytes of a down arrived; its latencies are missing" in done.stderr
    folder = tmp_path / "recording"
    assert not (folder / "a.down.sizes").exists()
    # Only the opportunity differs, which a small packet shares with none: a plain link has no latencies by size.
    assert read_size_latency(folder / "a.up.sizes") == pytest.approx([0] * 15, abs=1)
    assert "beside its light traces: up-size-latency=recording/a.up.sizes\n" in done.stdout


def test_nothing_but_trains_uses_the_recorded_path(tmp_path: Path) -> None:
    """Over loopback, without --ack-via: no acknowledgements, and the clock is measured before and after."""
    with server() as announced:
        arguments = ["--server", f"127.0.0.1:{announced['port']}", "--path", "a:127.0.0.1", "--out", tmp_path / "r"]
        run = client(*arguments, "--mode", "light", "--train", "4", "--every", "20", "--duration", "0.5")
    assert run.returncode == 0, run.stderr
    for way in ("up", "down"):
        log = (tmp_path / "r" / f"a.{way}.light.csv").read_text().splitlines()
        rows = list(csv.DictReader(line for line in log if not line.startswith("#")))
        kinds = Counter(row["kind"] for row in rows if 0 <= int(row["received_us"]) < 500_000)
        assert set(kinds) == {"data"}
        assert 4 <= kinds["data"] <= 100
        assert len(read_light_trace(tmp_path / "r" / f"a.{way}.light")) >= 2
    assert not (tmp_path / "r" / "session.json").exists()
    assert not (tmp_path / "r" / "index.yaml").exists()
    with pytest.raises(TraceError, match="is of a light recording"):
        read_raw(tmp_path / "r" / "a.down.light.csv", TraceRecipe(file="a"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mode", "dim"], "takes heavy or light, not 'dim'."),
        (["--train", "5"], "--train, --every and --sizes are of light recordings; give --mode light."),
        (["--every", "50"], "--train, --every and --sizes are of light recordings; give --mode light."),
        (["--sizes", "100"], "--train, --every and --sizes are of light recordings; give --mode light."),
        (["--mode", "light", "--sizes", "100", "--train", "5"], "and no trains; leave out --train."),
        (["--mode", "light", "--sizes", "400,100"], "takes up to 16 ascending sizes from 100 to 1500, for example"),
        (["--mode", "light", "--sizes", "99,400"], "takes up to 16 ascending sizes from 100 to 1500, for example"),
        (["--mode", "light", "--sizes", "100,"], "takes up to 16 ascending sizes from 100 to 1500, for example"),
        (["--mode", "light", "--sizes", "100,1500", "--packet-bytes", "1400"], "which must be the largest."),
        (["--mode", "light", "--train", "0"], "takes a whole number from 1 to 500, not '0'."),
        (["--mode", "light", "--train", "501"], "takes a whole number from 1 to 500, not '501'."),
        (["--mode", "light", "--every", "4"], "takes a whole number from 5 to 60000, not '4'."),
        (["--mode", "light", "--train", "60", "--every", "5"], "are more than 10 packets a ms; raise --every"),
    ],
)
def test_a_wrong_train_ends_in_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    path = ["--server", "127.0.0.1:1", "--path", "a:127.0.0.1", "--out", str(tmp_path / "r")]
    command = [str(SATURATR), "client", *path, *arguments]
    one_sentence(run_program(command, env=ENVIRONMENT), sentence, program="saturatr")
