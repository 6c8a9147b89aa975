"""Networks by the names that others give them become pairs of constant rates."""

import re
from pathlib import Path

import pytest

from railyard.base.paths import ROOT
from railyard.traces.index import read_index
from railyard.traces.networks import NETWORKS
from railyard.traces.trace import read_trace
from trace_files import railyard_traces

OPPORTUNITY_MBIT = 1504 * 8 / 1e6


def generated(out: Path, *networks: str, more: tuple[str, ...] = ()) -> tuple[int, str]:
    words = [word for network in networks for word in ("--network", network)]
    code, _, err = railyard_traces("generate", *words, "--out", str(out), *more)
    return code, err


def test_a_pair_of_networks_has_their_figures(tmp_path: Path) -> None:
    assert generated(tmp_path, "lte", "satellite-250", "congested") == (0, "")
    (pair,) = read_index(tmp_path / "index.yaml")
    assert (pair.name, pair.recorded) == ("lte-satellite-250-congested", None)
    assert "simulator-plot.rb" in pair.source and "satellite_test.c" in pair.source
    for path in pair.paths:
        network = NETWORKS[path.name]
        assert (path.base_rtt_ms, path.technology) == (network.rtt_ms, network.technology)
        queues = {"down": path.queue, "up": str(path.settings["up_queue"])}
        for way, file, mbps in (("down", path.downlink, network.down_mbps), ("up", path.uplink, network.up_mbps)):
            trace = read_trace(file)
            assert trace.period_ms == 1000
            rate = len(file.read_text().splitlines()) * OPPORTUNITY_MBIT
            assert rate == pytest.approx(mbps, abs=0.51 * OPPORTUNITY_MBIT), "half an opportunity a second"
            held_ms = int(queues[way].removeprefix("droptail:packets=")) * OPPORTUNITY_MBIT / mbps * 1e3
            assert held_ms == pytest.approx(network.queue_ms, abs=0.51 * OPPORTUNITY_MBIT / mbps * 1e3)


@pytest.mark.parametrize(
    ("networks", "more", "words"),
    [
        (("lte",), (), "a pair has two or more networks"),
        (("lte", "lte"), (), "a pair has two or more networks"),
        (("lte", "home-wfi"), (), "'home-wfi' is no network; did you mean 'home-wifi'"),
        (("lte", "5g"), ("--name", "a b"), "'a b' cannot name a pair"),
        (("lte", "5g"), ("--model", "subway"), "generate needs either"),
    ],
)
def test_mistakes_are_told(networks: tuple[str, ...], more: tuple[str, ...], words: str, tmp_path: Path) -> None:
    code, err = generated(tmp_path / "lib", *networks, more=more)
    assert (code, words in err.replace("\n", " ")) == (2, True), err
    assert not (tmp_path / "lib").exists()


def test_the_page_has_the_same_figures() -> None:
    page = (ROOT / "docs/reference/traces.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*, )?[0-9].* \| (?:quicly|picoquic) \|$", page, re.MULTILINE))
    assert set(rows) == set(NETWORKS)
    for name, network in NETWORKS.items():
        up = "" if network.up_mbps == network.down_mbps else f", {network.up_mbps:g}"
        source = "quicly" if "quicly" in network.source.partition(" ")[0] else "picoquic"
        row = f"| `{name}` | {network.down_mbps:g}{up} | {network.rtt_ms:g} | {network.queue_ms:g} | {source} |"
        assert row in page
