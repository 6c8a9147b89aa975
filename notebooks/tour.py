# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A tour: from two traces to a verdict
# Three schemes play the same ten seconds of video over the same two mobile links, from six places in the traces, in
# virtual time. It takes seconds.

# %%
import tempfile
from pathlib import Path

import plotly.graph_objects as go

import railyard as rr
from railyard.report.pictures import also_as_pictures
from railyard.results.query import connect
from railyard.traces import find_pair, read_trace

also_as_pictures()
results = Path(tempfile.mkdtemp(prefix="railyard-tour-"))

# %% [markdown]
# ## The links
# A trace pair is two paths that were (or are generated as if) recorded at the same time. A trace lists delivery
# opportunities: the moments at which the link can send one packet. Note the seconds in which a path offers nothing.

# %%
pair = find_pair("subway-1")
capacity = go.Figure()
for path in pair.paths:
    rates = read_trace(path.downlink).rate_mbps(500, duration_ms=60_000)
    capacity.add_scatter(y=rates, x=[k / 2 for k in range(len(rates))], name=f"{path.name} ({path.technology})")
capacity.update_layout(xaxis_title="time, s", yaxis_title="downlink, Mbps", height=300)

# %% [markdown]
# ## An experiment
# Trace pairs × schemes × seeds. With `start_offset_ms: spread` each seed starts at another place of the traces.

# %%
experiment = results / "tour.yaml"
experiment.write_text("""
name: tour
description: Single path, plain multipath and XLINK in a subway.
arena: sim
pairs: [subway-1]
schemes: [{scheme: sp, path: primary}, vanilla-mp, xlink]
seeds: 6
start_offset_ms: spread
player: {duration_s: 10, bitrate_bps: 2500000, chunk_bytes: 262144}
time_limit_s: 30
""")
# !python -m railyard run {experiment} --out {results}/tour

# %% [markdown]
# The table has the figures, and the sentences say what is established and what is not.
#
# ## Request completion times
# The share of the video's chunks that were complete within t. Multipath is about the right end of these curves: the
# slow requests make a video stall.

# %%
tour = rr.load(results / "tour")
tour.rct_cdf("subway-1")

# %% [markdown]
# ## One play
# Everything that happened in one run, on one axis of time: what each link could carry, which packets were sent on it,
# what was sent twice, congestion windows, round-trip times, chunks, and the player's buffer.

# %%
slowest = max((run for run in tour.runs if run.label == "xlink"), key=lambda run: max(c.rct_s for c in run.chunks))
tour.replay(slowest.run_id)

# %% [markdown]
# ## What is established
# The differences over the six places, with their intervals. `rr.play(pairs=["subway-1"], settings={"player.bitrate":
# "8mbps"}, seeds=6)` plays without a file.

# %%
rr.compare(tour, against="vanilla-mp")

# %% [markdown]
# ## Questions in SQL
# All results are tables of DuckDB; `railyard query` is the same on the command line. How much more does each scheme
# send than it has to?

# %%
print(
    connect(results).sql("""
    SELECT label, count(*) AS plays, sum(rebuffer_counted_s) / sum(play_time_s) AS rebuffer_rate,
           sum(reinjected_bytes) / sum(stream_bytes_sent - reinjected_bytes) AS reinjection_cost
    FROM runs WHERE NOT void GROUP BY label ORDER BY label
""")
)

# %% [markdown]
# ## From here
# [A first run](../docs/tutorial/first-run.md) does the same on the command line.
# [study.py](study.py) shows any figure of the paper.
