"""TCP flows of the kernel as others' traffic in mpshell, in real time."""

import itertools
import json
from pathlib import Path

import pytest

import mpshell_program
from conftest import good, one_sentence
from mpshell_program import run
from railyard.results.flows import read_flows
from two_flows import CORE_BPS, LINKS, TWO, shares

pytestmark = mpshell_program.pytestmark


def test_two_cubic_flows_share_a_bottleneck_in_mpshell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good(run(*LINKS, *TWO, "--", "sleep", "12"))
    first, second = shares(tmp_path, 3, 12)
    assert 0.5 < first / second < 2
    assert first + second == pytest.approx(CORE_BPS, rel=0.15)
    (flow,) = json.loads((tmp_path / "mpshell.json").read_text())["flows"]
    carried = sum(one.received_bytes[-1] for one in read_flows(tmp_path)["two"])
    assert (flow["received_bytes"], flow["connections"], flow["failures"]) == (carried, 2, 0)
    assert flow["link"]["down"]["departed_bytes"] > carried


def test_flows_begin_end_and_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--flow", "up:path=a,direction=up,cc=reno,from=0.5,to=1.5", "--flow", "load:path=a,size=40000,pause=100"]
    words += ["--flow", "once:path=a,size=1", "--flow-log", "flows.jsonl", "--path", "a:rate=10mbps,delay=5"]
    good(run(*words, "--summary", "mpshell.json", "--", "sleep", "2.2"))
    flows = read_flows(tmp_path)
    (up,), (load,), (once,) = flows["up"], flows["load"], flows["once"]
    (transfer,) = up.transfers
    assert transfer.began_s >= 0.5
    assert up.bytes_at(1.6) == up.received_bytes[-1] > 100_000
    assert up.bytes_at(0.5) == 0
    whole = [one for one in load.transfers if one.received_bytes == 40_000]
    assert len(whole) > 3
    assert all(later.began_s - before.ended_s >= 0.1 for before, later in itertools.pairwise(whole))
    assert [one.received_bytes for one in once.transfers] == [1]


def test_a_command_is_not_told_of_the_links_of_flows(tmp_path: Path) -> None:
    paths = ["--path", "a:rate=9mbps,delay=5", "--path", "b:rate=9mbps,delay=5", "--bottleneck", "core:rate=9mbps"]
    look = "echo $MPSHELL_PATHS; ip route show default; ip mptcp endpoint; ip mptcp limits"
    done = good(run(*paths, "--flow", "f:via=core", "--mptcp", "--", "sh", "-c", look))
    told, *lines = done.stdout.splitlines()
    assert told == "a b"
    devices = [line.split()[line.split().index("dev") + 1] for line in lines if " dev " in line]
    assert devices == ["a", "b"] * 3, "routes, and endpoints of both IP versions"
    assert lines[-1].split() == ["add_addr_accepted", "2", "subflows", "2"]


def test_mpshell_refuses_a_controller_that_this_kernel_has_not() -> None:
    done = run("--path", "a:rate=9mbps,delay=5", "--flow", "x:path=a,cc=no_such", "--", "true")
    one_sentence(
        done, "mpshell: flow x: this kernel's TCP has no congestion controller no_such; it has ", program="mpshell"
    )
