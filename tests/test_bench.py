"""endpoint-bench: what it compares is comparable."""

from __future__ import annotations

import json
import subprocess

import pytest

from railyard.base.paths import program

REQUESTS = 60


def requests_phase(connections: int) -> dict[str, float]:
    command = [str(program("endpoint-bench")), str(connections), str(REQUESTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    phase: dict[str, float] = json.loads(done.stdout)["requests"]
    return phase


def test_a_request_takes_as_many_packets_of_one_connection_as_of_many() -> None:
    few, many = requests_phase(3), requests_phase(REQUESTS)
    assert many["packets"] >= REQUESTS * 8  # 10 kB, the request, an acknowledgement at least
    assert few["packets"] == pytest.approx(many["packets"], rel=0.2)
    assert few["cpu_s"] > 0
