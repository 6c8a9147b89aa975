"""A pair of constant links, and experiments of one run over it."""

from pathlib import Path

import pytest

from railyard.experiment.model import load_experiment
from railyard.run.campaign import Campaign, run_campaign
from railyard.run.progress import Silent
from railyard.run.resolve import resolve

INDEX = """\
schema: 1
pairs:
- name: flat
  scenario: test
  licence: none
  source: by hand
  paths:
  - {name: wifi, technology: wifi, uplink: t, downlink: t, base_rtt_ms: 30, queue: 'droptail:packets=200'}
  - {name: lte, technology: lte, uplink: t, downlink: t, base_rtt_ms: 60, queue: 'droptail:packets=100'}
"""
SINGLE_PATH = """\
name: flat
pairs: [flat]
schemes: [{scheme: sp, path: wifi}]
start_offset_ms: 0
player: {duration_s: 3, bitrate_bps: 8000000, chunk_bytes: 524288}
time_limit_s: 12
qlog: false
"""


def played(folder: Path, text: str, out: str = "out") -> Path:
    """The folder of the experiment's one run, repeated while it is void. The pair is in `folder`."""
    (folder / "index.yaml").write_text(INDEX)
    (folder / "t").write_text("1\n")
    (folder / "e.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAILYARD_TRACE_PATH", str(folder))
        specs = resolve(*load_experiment(folder / "e.yaml"))
        campaign = Campaign(folder / out)
        campaign.runs.mkdir(parents=True, exist_ok=True)
        run_campaign(campaign, specs, 1, Silent())
    return next(campaign.runs.iterdir())
