"""The interoperability matrix: its small set against aioquic, and the distinction of broken cells from good ones."""

import asyncio
import dataclasses
import json
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from interop import cases, cell, matrix, peers, relay
from interop.defects import DEFECTS
from railyard.base.paths import ROOT
from railyard.run import vkernel

AIOQUIC = peers.by_name("aioquic")


@pytest.mark.parametrize(
    ("server", "client"), [(peers.XLINK, AIOQUIC), (AIOQUIC, peers.XLINK), (peers.XLINK, peers.XLINK)]
)
@pytest.mark.parametrize("name", cases.SMALL)
@pytest.mark.privileged
def test_cell_passes(tmp_path: Path, name: str, server: peers.Peer, client: peers.Peer) -> None:
    result = matrix.run_cell(cases.BY_NAME[name], server, client, tmp_path)
    assert result.verdict == "passed", result


@pytest.mark.privileged
def test_a_cell_that_depends_on_chance_is_tried_with_one_seed_after_the_other(tmp_path: Path) -> None:
    result, _ = matrix.run_matrix([AIOQUIC], [cases.BY_NAME["transferloss"]], tmp_path, times=2)
    assert (result.verdict, result.passed, result.tries, result.sign()) == ("passed", 2, 2, "2/2")
    kept = [tmp_path / "cells" / "transferloss-xlink-aioquic" / number for number in ("1", "2")]
    seen = [json.loads((folder / "result.json").read_text(encoding="utf-8"))["seen"] for folder in kept]
    assert seen[0] != seen[1]


@pytest.mark.skipif(vkernel.why_not() is not None, reason=f"{vkernel.why_not()}")
def test_a_cell_in_virtual_time_has_the_same_packets_again(tmp_path: Path) -> None:
    """No root is needed; the client moves to the server's preferred address."""
    case = dataclasses.replace(cases.BY_NAME["preferredaddress"], sizes=(300_000,))
    arena = matrix.Arena(is_virtual=True, seed=5)
    logs = []
    for name in ("first", "second"):
        result = matrix.run_cell(case, peers.XLINK, peers.XLINK, tmp_path / name, arena)
        assert result.verdict == "passed", result
        logs.append({file.name: file.read_bytes() for file in (tmp_path / name).glob("*-logs/qlog/*")})
    assert len(logs[0]) == 2
    assert logs[0] == logs[1]


@pytest.mark.skipif(vkernel.why_not() is not None, reason=f"{vkernel.why_not()}")
def test_xlink_get_waits_for_a_slow_handshake(tmp_path: Path) -> None:
    """A server that speaks, and then is silent for 12 s."""
    arena = matrix.Arena(is_virtual=True)
    result = matrix.run_cell(cases.DARK_HANDSHAKE, peers.XLINK, peers.XLINK, tmp_path, arena)
    assert result.verdict == "passed", result
    assert result.seconds is not None
    assert result.seconds > 12


@pytest.mark.parametrize("peer", [peers.XLINK, AIOQUIC], ids=lambda peer: peer.name)
@pytest.mark.parametrize("role", ["server", "client"])
def test_an_endpoint_says_so_when_it_does_not_know_a_case(tmp_path: Path, peer: peers.Peer, role: str) -> None:
    unknown = dataclasses.replace(cases.BY_NAME["handshake"], testcase="nosuchcase")
    command = {"server": peer.server, "client": peer.client}[role](
        peers.Request(unknown, ("https://[::1]:9/x",), False, "")
    )
    assert command is not None
    environment = {**peers.environment_of(command), "QLOGDIR": str(tmp_path), "SSLKEYLOGFILE": ""}
    assert subprocess.run(command.words, env=environment, check=False, timeout=20).returncode == cell.UNSUPPORTED


LONG = bytes.fromhex("c0 00000001 08 0102030405060708 04 0a0b0c0d")


def test_the_relay_names_packets_by_version_and_type() -> None:
    seen = relay.Seen()
    relay.note_packets(seen, "client", LONG + bytes(100))
    relay.note_packets(seen, "server", b"\xf0" + LONG[1:] + bytes(100))
    relay.note_packets(seen, "client", b"\xd0" + bytes.fromhex("6b3343cf") + LONG[5:] + bytes(100))
    relay.note_packets(seen, "server", b"\xc0" + bytes(4) + LONG[5:] + bytes(8))
    relay.note_packets(seen, "client", b"\x40" + bytes(40))  # a short header has no information
    wanted = {"client v1 initial", "server v1 retry", "client v2 initial", "server version negotiation"}
    assert seen.packets == wanted
    assert seen.connections == {"0a0b0c0d"}


async def _through_a_relay(plan: relay.Plan, count: int) -> tuple[list[bytes], set[tuple[str, int]], relay.Seen]:
    """Those of `count` datagrams of 100 bytes that an echo server returns, and the addresses that it saw. A datagram is
    lost if it does not come soon after the relay has counted it."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("127.0.0.1", 0))
        client.bind(("127.0.0.1", 0))
        for sock in (server, client):
            sock.setblocking(False)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        forwarding = await relay.start(plan, port, server.getsockname(), seed=3)
        loop, seen = asyncio.get_running_loop(), forwarding.seen

        async def arrived(receiver: socket.socket, counter: str, before: relay.Seen) -> tuple[bytes, tuple[str, int]]:
            """After a rebinding nothing may come: the socket of the earlier address is closed."""
            while getattr(seen, counter) == getattr(before, counter) and seen.rebindings == before.rebindings:
                await asyncio.sleep(0.001)
            return await asyncio.wait_for(loop.sock_recvfrom(receiver, 2000), 0.2)

        came, addresses = [], set()
        async with asyncio.timeout(60):
            for number in range(count):
                before = dataclasses.replace(seen)
                with suppress(TimeoutError):
                    await loop.sock_sendto(client, bytes([number]) * 100, ("127.0.0.1", port))
                    data, address = await arrived(server, "client_datagrams", before)
                    addresses.add(address)
                    await loop.sock_sendto(server, data, address)
                    came.append((await arrived(client, "server_datagrams", before))[0])
        return came, addresses, seen


def test_the_relay_loses_and_corrupts_as_told() -> None:
    came, addresses, seen = asyncio.run(_through_a_relay(relay.Plan(), 20))
    assert came == [bytes([number]) * 100 for number in range(20)]
    assert len(addresses) == 1
    assert (seen.client_datagrams, seen.server_datagrams) == (20, 20)
    came, _, _ = asyncio.run(_through_a_relay(relay.Plan(drop_client=(2, 3)), 5))
    assert [data[0] for data in came] == [0, 3, 4]
    came, _, _ = asyncio.run(_through_a_relay(relay.Plan(corruption=1.0), 5))
    assert len(came) == 5
    assert all(len(set(data)) > 1 for data in came)
    came, _, _ = asyncio.run(_through_a_relay(relay.Plan(loss=0.5), 12))
    assert 0 < len(came) < 12


def test_the_relay_gives_the_client_another_address() -> None:
    plan = relay.Plan(rebind_after_s=0.01, rebind_times=2, rebind_address=True)
    _, addresses, seen = asyncio.run(_through_a_relay(plan, 200))
    assert seen.rebindings == 2
    hosts = {host for host, _ in addresses}
    assert {"127.0.0.2", "127.0.0.4"} <= hosts <= {"127.0.0.2", "127.0.0.3", "127.0.0.4"}


def test_what_a_case_needs_is_asked_of_the_packets_and_files(tmp_path: Path) -> None:
    retry, handshake = cases.BY_NAME["retry"], cases.BY_NAME["handshake"]
    assert cell.problem_with_packets(retry, relay.Seen()) == "no such packet was seen: server v1 retry"
    assert cell.problem_with_packets(retry, relay.Seen(packets={"server v1 retry"})) is None
    assert cell.problem_with_packets(handshake, relay.Seen(connections={"a", "b"})) == "2 connections in place of 1"
    for name in ("www", "downloads"):
        (tmp_path / name).mkdir()
    (tmp_path / "www" / "a").write_bytes(b"1")
    assert cell.problem_with_files(tmp_path, ["a"]) == "a was not fetched"
    (tmp_path / "downloads" / "a").write_bytes(b"2")
    assert cell.problem_with_files(tmp_path, ["a"]) == "a differs from the server's"


def test_the_page_and_the_table_have_a_cell_for_each_direction() -> None:
    cells = [
        matrix.Cell("retry", "xlink", "aioquic", "passed", None, 1.25),
        matrix.Cell("retry", "aioquic", "xlink", "failed", "a < b"),
        *(matrix.Cell("retry", *pair, "missing", "no compiler") for pair in (("xlink", "quinn"), ("quinn", "xlink"))),
    ]
    cells.append(matrix.Cell("transferloss", "xlink", "aioquic", "failed", "try 2: lost", 2.5, passed=3, tries=5))
    foreign = [AIOQUIC, peers.by_name("quinn")]
    rows = matrix.text_table(cells, foreign).splitlines()[1:]
    assert [row.split() for row in rows] == [["retry", "✓", "✗", "—", "—"], ["transferloss", "3/5"]]
    rows = matrix.markdown(cells, foreign, "of a test").splitlines()
    assert rows[0] == "of a test"
    assert "| retry | ✓ ✗ | — — |" in rows
    assert "| transferloss | 3/5 · | · · |" in rows
    assert "- `retry`, aioquic's server: a < b" in rows
    page = matrix.html_page(cells, foreign)
    assert page.count('class="passed"') == 1
    assert "retry, aioquic serves xlink: a &lt; b" in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_known_error_of_a_peer_is_no_failure_of_the_matrix_and_any_other_is() -> None:
    names = {peer.name for peer in (peers.XLINK, *peers.FOREIGN)}
    for case, server, client in DEFECTS:
        assert case in cases.BY_NAME and {server, client} <= names
        page = (ROOT / "docs" / "reference" / "interop.md").read_text()
        assert f"`{case}`" in page, "the page says what the peer does"
        known = matrix.Cell(case, server, client, "failed", "its error")
        other = matrix.Cell(case, client, server, "failed", "an error")
        assert matrix.unexplained([known, other]) == [other]


def test_a_cell_that_depends_on_chance_fails_the_matrix_if_it_failed_half_of_the_times() -> None:
    cell = matrix.Cell("transferloss", "xlink", "noq", "failed", "try 1: lost", tries=4)
    passed = [dataclasses.replace(cell, passed=count) for count in range(4)]
    assert matrix.unexplained(passed) == passed[:3]


def test_earlier_results_of_a_case_that_is_no_more_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "matrix.json"
    earlier = [matrix.Cell(case, "xlink", "quinn", "passed") for case in ("handshake", "renamed-since")]
    file.write_text(json.dumps([dataclasses.asdict(one) for one in earlier]))
    assert matrix.with_earlier([], file) == earlier[:1]
