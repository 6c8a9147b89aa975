"""`railyard traces delay`: round trips of ping and lists of delays become delay traces."""

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railyard.traces.convert.delays import DelayFormat, read_delays
from railyard.traces.delay import read_delay_trace, rtt_over_time
from railyard.traces.trace import TraceError
from trace_files import railyard_traces, write

HEAD = "PING 192.0.2.1 (192.0.2.1) 38(66) bytes of data.\n"
TAIL = "--- 192.0.2.1 ping statistics ---\n5 packets transmitted, 4 received, 20% packet loss, time 800ms\n"


def reply(number: int, rtt: str, stamp: str = "") -> str:
    return f"{stamp}46 bytes from 192.0.2.1: icmp_seq={number} ttl=51 time={rtt} ms\n"


def test_half_of_each_round_trip_is_the_delay_and_a_lost_one_keeps_the_one_before(tmp_path: Path) -> None:
    text = HEAD + reply(1, "50") + reply(2, "60.5") + reply(4, "41.0") + reply(5, "400") + TAIL
    code, out, err = railyard_traces("delay", str(write(tmp_path / "p", text)), "--out", str(tmp_path / "x/p.delay"))
    assert code == 0, err
    assert "4 delays in 1.000 s, RTT p25/p50/p75 60.5/60.5/60.5 ms" not in out
    assert "4 delays in 1.000 s" in out and "max 400.0 ms; 1 without a reply, which keep the delay before them" in out
    assert (tmp_path / "x/p.delay").read_text() == "0,25.000\n200,30.250\n600,20.500\n800,200.000\n1000,25.000\n"
    assert len(read_delay_trace(tmp_path / "x/p.delay")[0]) == 5


@pytest.mark.parametrize("stamps", ["epoch", "date"])
def test_a_reply_with_a_time_counts_when_its_request_was_sent(tmp_path: Path, stamps: str) -> None:
    def stamp(at_ms: int) -> str:
        return f"[1683987762.{at_ms:03}000] " if stamps == "epoch" else f"[2023-05-13 10:22:42.{at_ms:03}000] "

    text = HEAD + reply(1, "50", stamp(60)) + reply(2, "100", stamp(310)) + reply(3, "20", stamp(330))
    found = read_delays(
        write(tmp_path / "p", text + reply(3, "20", stamp(340)).replace("ms", "ms (DUP!)", 1)), None, None
    )
    assert (found.times_ms.tolist(), found.delays_ms.tolist(), found.lost) == ([0, 200, 300], [25, 50, 10], 0)
    assert found.period_ms == 450, "the last one holds for the usual time between them"


def test_a_list_of_delays_has_its_interval(tmp_path: Path) -> None:
    file = write(tmp_path / "l", "12\n16.5\n14\n")
    assert read_delays(file, None, 10).as_bytes() == b"0,12.000\n10,16.500\n20,14.000\n30,12.000\n"
    code, _, err = railyard_traces("delay", str(file), "--out", str(tmp_path / "o"))
    assert (code, "give it in ms, interval-ms" in err, (tmp_path / "o").exists()) == (2, True, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "there is no reply in it"),
        (HEAD + reply(1, "50"), "give it in ms, interval-ms"),
        (HEAD + reply(1, "50", "[soon] "), ":2: 'soon' is no time"),
        (HEAD + reply(1, "7200001"), ":2: the round trip took more than two hours"),
        ("12\n-4\n", ":2: '-4' is no delay in ms"),
        ("12\n4000000\n", ":2: '4000000' is no delay in ms"),
    ],
)
def test_what_is_no_measurement_of_delays_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = write(tmp_path / "p", text)
    with pytest.raises(TraceError) as error:
        read_delays(file, None, 10 if text.startswith("12") else None)
    assert str(error.value).startswith(str(file)) and said in str(error.value)


@given(
    data=st.one_of(
        st.binary(max_size=200), st.from_regex(r"(\[[0-9. :-]*\] )?1 bytes from .icmp_seq=\d+ x time=\d+ ms")
    )
)
def test_any_bytes_are_delays_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes | str
) -> None:
    file = write(tmp_path_factory.getbasetemp() / "any", data)
    for form in (None, *get_args(DelayFormat)):
        try:
            found = read_delays(file, form, 10)
        except TraceError as error:
            assert "\n" not in str(error)
        else:
            read_delay_trace(write(tmp_path_factory.getbasetemp() / "any.delay", found.as_bytes()))


def test_a_period_of_weeks_does_not_take_memory_for_each_millisecond(tmp_path: Path) -> None:
    rtt = rtt_over_time(write(tmp_path / "weeks.delay", "0,10\n2000000000,20\n4000000000,10\n"))
    assert len(rtt) <= 10_000_000 and (rtt.mean(), rtt[0], rtt[-1]) == (30, 20, 40)
    with pytest.raises(TraceError, match=r"y\.delay:2: the time is beyond 4294967295 ms"):
        read_delay_trace(write(tmp_path / "y.delay", "0,10\n4294967296,20\n"))
