"""`railyard traces rtt`: the round trips of TCP handshakes. `data/hsr_mptcp/` has the heads of real captures (MIT)."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from railyard.traces.handshakes import Handshake, handshakes, quantiles, read_packets
from trace_files import railyard_traces, write

CAPTURES = Path(__file__).parent / "data/hsr_mptcp"
HEADER = "frame.time_epoch,tcp.srcport,tcp.dstport,tcp.seq,tcp.ack,tcp.len,tcp.flags"


def of_file(name: str) -> list[Handshake]:
    with (CAPTURES / name).open(encoding="utf-8") as stream:
        return handshakes(read_packets(name, stream))


def test_the_wake_up_is_the_syn_less_the_round_trip_of_the_first_data() -> None:
    (found,) = of_file("1529185071.M.csv")
    assert found.syn_ms == pytest.approx(345.135, abs=1e-3)
    assert found.next_ms == pytest.approx(51.733, abs=1e-3)
    assert found.wake_up_ms == pytest.approx(345.135 - 51.733, abs=1e-3)


def test_a_subflow_that_joins_has_its_next_round_trip_in_the_acknowledgement_of_its_third_segment() -> None:
    (found,) = of_file("1529185071.U.csv")
    assert found.syn_ms == pytest.approx(361.796, abs=1e-3)
    assert found.next_ms == pytest.approx(49.169, abs=1e-3)


@pytest.mark.parametrize("name", ["1529184925.U.csv", "1529186315.U.csv"])
def test_a_syn_that_was_sent_twice_or_refused_gives_no_sample(name: str) -> None:
    assert of_file(name) == []


def test_data_that_were_sent_twice_give_no_next_round_trip(tmp_path: Path) -> None:
    lines = (CAPTURES / "1529185071.M.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    data = next(place for place, line in enumerate(lines) if ",126,0x" in line)
    with write(tmp_path / "again.csv", "".join([*lines[: data + 1], *lines[data:]])).open(encoding="utf-8") as stream:
        (found,) = handshakes(read_packets("again", stream))
    assert (found.syn_ms > 0, found.next_ms, found.wake_up_ms) == (True, None, None)


def test_the_interval_of_a_median_needs_five_blocks() -> None:
    few, enough = (quantiles([float(value * 37 % count) for value in range(count)]) for count in (39, 80))
    assert few is not None
    assert enough is not None
    assert (few.p50.known, enough.p50.known, enough.count, enough.p5, enough.p95) == (False, True, 80, 3, 75)
    assert quantiles([]) is None


def test_a_folder_and_an_archive_give_the_same_rows(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "captures.zip", "w") as zipped, tarfile.open(tmp_path / "captures.tar", "w") as tar:
        for file in sorted(CAPTURES.glob("*.csv")):
            zipped.write(file, f"mouse/{file.name}")
            tar.add(file, f"mouse/{file.name}")
    code, folder, _ = railyard_traces("rtt", str(CAPTURES), "--group", r"\.([UM])\.csv$")
    assert (code, "362" in folder, "345" in folder) == (0, True, True), folder
    for archive in ("captures.zip", "captures.tar"):
        assert railyard_traces("rtt", str(tmp_path / archive), "--group", r"\.([UM])\.csv$")[1] == folder
    assert "all" in railyard_traces("rtt", str(CAPTURES / "1529185071.U.csv"))[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,2\n", ":1: the column 'frame.time_epoch' is missing"),
        (f"{HEADER}\n1,2,3,4,5,x,0x2\n", ":2: a cell is"),
        (b"\xff\xfe", "not a CSV file in UTF-8"),
    ],
)
def test_a_bad_capture_ends_in_one_sentence(tmp_path: Path, content: str | bytes, said: str) -> None:
    code, _, err = railyard_traces("rtt", str(write(tmp_path / "bad.csv", content)))
    assert (code, said in err, err.count("\n")) == (2, True, 1), err
    assert railyard_traces("rtt", str(tmp_path / "none.csv"))[0] == 2
    assert railyard_traces("rtt", str(tmp_path), "--group", "(")[0] == 2
    assert railyard_traces("rtt", str(tmp_path), "--group", "nothing")[0] == 2
