"""Test cases of quic-interop-runner for multipath by RFC 10069; run_cases.py makes them known to the runner.

The server's name has an IPv4 and an IPv6 address (server46), and so has the client: two paths through the runner's own
network and simulator. A client that supports the case opens a path to each address in one connection, transfers files
over HTTP/0.9 as in `transfer`, and exits with status 127 otherwise.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from decrypt import (
    PATH_ABANDON,
    PATH_ACK,
    PATH_ACK_ECN,
    PATH_CHALLENGE,
    PATH_RESPONSE,
    PATH_STATUS_BACKUP,
    Packet,
    UndecipherableError,
    decrypt,
    transport_parameters,
)
from result import TestResult
from testcases_quic import MB, TestCaseQuic

INITIAL_MAX_PATH_ID = 0x3E
MIN_SHARE = 0.05  # of the stream data, that a path in use carries
MAX_BACKUP_SHARE = 0.02  # of the stream data, that may have been under way when a path became a backup
SETTLE_S = 1.0  # after a frame about a path: until then the peer may not know, and data is under way


class CheckError(Exception):
    """What the case found wrong, in a sentence."""


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise CheckError(problem)


def stream_bytes(packets: Iterable[Packet], path_id: int | None = None) -> int:
    """What the server sent."""
    return sum(p.stream_bytes for p in packets if not p.from_client and path_id in (None, p.path_id))


def about_path(packets: Iterable[Packet], kind: int, path_id: int, from_client: bool) -> list[float]:
    """The times of the frames of a type about a path."""
    return [
        p.time
        for p in packets
        if p.from_client is from_client and any(f.type == kind and f.values[0] == path_id for f in p.frames)
    ]


class TestCaseMultipath(TestCaseQuic):
    SIZES = (2 * MB, 3 * MB, 5 * MB)

    @staticmethod
    def name():
        return "multipath"

    @staticmethod
    def abbreviation():
        return "MP"

    @staticmethod
    def desc():
        return "Both IP versions are paths of one connection, and both carry data."

    @staticmethod
    def urlprefix():
        return "https://server46:443/"

    def get_paths_raw(self):
        self._files = [self._generate_random_file(size) for size in self.SIZES]
        return self._files

    def check(self) -> TestResult:
        super().check()
        if not self._keylog_file():
            logging.info("Can't check test result. SSLKEYLOG required.")
            return TestResult.UNSUPPORTED
        num_handshakes = self._count_handshakes()
        if num_handshakes != 1:
            logging.info("Expected exactly 1 handshake. Got: %d", num_handshakes)
            return TestResult.FAILED
        if not self._check_version_and_files():
            return TestResult.FAILED
        try:
            capture, keylog = Path(self._sim_log_dir.name) / "trace_node_left.pcap", Path(self._keylog_file())
            self._check_offers(capture, keylog)
            packets = decrypt(capture, keylog)
            second = self._check_two_paths(packets)
            self._check_use(packets, second)
        except (CheckError, UndecipherableError) as problem:
            logging.info("%s", problem)
            return TestResult.FAILED
        return TestResult.SUCCEEDED

    @staticmethod
    def _check_offers(capture: Path, keylog: Path) -> None:
        sent = transport_parameters(capture, keylog)
        for side, from_client in (("client", True), ("server", False)):
            found = INITIAL_MAX_PATH_ID in sent[from_client]
            _require(found, f"The {side} did not send initial_max_path_id: {sorted(sent[from_client])}.")

    @staticmethod
    def _check_two_paths(packets: list[Packet]) -> int:
        """The path ID of the second path, which is of the other IP version, and was validated by the server."""
        versions: dict[int, set[int]] = {}
        for packet in packets:
            versions.setdefault(packet.path_id, set()).add(packet.ip_version)
        logging.debug("IP versions by path ID: %s", versions)
        _require(0 in versions, "No packet of path ID 0 could be decrypted.")
        others = [path for path, of_path in versions.items() if path > 0 and not of_path & versions[0]]
        _require(len(others) > 0, f"No other path has the other IP version: {versions}.")
        second = others[0]
        on_second = [packet for packet in packets if packet.path_id == second]
        asked = {f.data for p in on_second if not p.from_client for f in p.frames if f.type == PATH_CHALLENGE}
        answered = {f.data for p in on_second if p.from_client for f in p.frames if f.type == PATH_RESPONSE}
        _require(bool(asked & answered), f"No PATH_CHALLENGE of the server on path {second} was answered on it.")
        for side, from_client in (("client", True), ("server", False)):
            acks = [
                *about_path(packets, PATH_ACK, second, from_client),
                *about_path(packets, PATH_ACK_ECN, second, from_client),
            ]
            _require(len(acks) > 0, f"The {side} did not acknowledge path {second} by PATH_ACK.")
        return second

    def _check_use(self, packets: list[Packet], second: int) -> None:
        total = stream_bytes(packets)
        for path in (0, second):
            share = stream_bytes(packets, path) / max(1, total)
            _require(
                share >= MIN_SHARE, f"Path {path} carried {share:.1%} of the data; at least {MIN_SHARE:.0%} is due."
            )


class TestCaseMultipathAbandon(TestCaseMultipath):
    @staticmethod
    def name():
        return "multipathabandon"

    @staticmethod
    def abbreviation():
        return "MA"

    @staticmethod
    def desc():
        return "The client abandons the path of the handshake during the transfer; the other path completes it."

    @staticmethod
    def _abandoned_at(packets: list[Packet]) -> float:
        by_client = about_path(packets, PATH_ABANDON, 0, True)
        _require(len(by_client) > 0, "The client sent no PATH_ABANDON of path 0.")
        _require(len(about_path(packets, PATH_ABANDON, 0, False)) > 0, "The server did not answer with PATH_ABANDON.")
        return by_client[0]

    def _check_after(self, packets: list[Packet], second: int, abandoned_at: float) -> None:
        late = [p for p in packets if p.path_id == 0 and p.time > abandoned_at + SETTLE_S]
        _require(
            len(late) == 0, f"{len(late)} packets were sent on path 0 more than {SETTLE_S:g} s after PATH_ABANDON."
        )
        after = stream_bytes((p for p in packets if p.time > abandoned_at), second)
        share = after / max(1, stream_bytes(packets))
        _require(share >= MIN_SHARE, f"Path {second} carried {share:.1%} of the data after PATH_ABANDON.")

    def _check_use(self, packets: list[Packet], second: int) -> None:
        super()._check_use(packets, second)
        self._check_after(packets, second, self._abandoned_at(packets))


class TestCaseMultipathStandby(TestCaseMultipathAbandon):
    @staticmethod
    def name():
        return "multipathstandby"

    @staticmethod
    def abbreviation():
        return "MS"

    @staticmethod
    def desc():
        return "The second path is a backup, and carries data only after the client abandons the first one."

    def _check_use(self, packets: list[Packet], second: int) -> None:
        statuses = about_path(packets, PATH_STATUS_BACKUP, second, True)
        _require(len(statuses) > 0, f"The client sent no PATH_STATUS_BACKUP of path {second}.")
        abandoned_at = self._abandoned_at(packets)
        _require(
            abandoned_at > statuses[0] + SETTLE_S, "The first path was abandoned before the second one was a backup."
        )
        early = stream_bytes((p for p in packets if p.time < abandoned_at), second) / max(1, stream_bytes(packets))
        _require(early <= MAX_BACKUP_SHARE, f"Path {second} carried {early:.1%} of the data while it was a backup.")
        share = stream_bytes(packets, 0) / max(1, stream_bytes(packets))
        _require(share >= MIN_SHARE, f"Path 0 carried {share:.1%} of the data before it was abandoned.")
        self._check_after(packets, second, abandoned_at)


CASES = [TestCaseMultipath, TestCaseMultipathAbandon, TestCaseMultipathStandby]
