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
# # Lab 1: what a path is
# 90 minutes. A path of an emulated network is a trace, a delay and a queue. You measure all three, and predict what a
# download over them does. Replace the three dots of an exercise; the cell says whether the answer is right.

# %%
import numpy as np
import plotly.graph_objects as go

import railyard as rr
from railyard.lab import path as lab
from railyard.report.pictures import also_as_pictures
from railyard.traces import find_pair

also_as_pictures()

# %% [markdown]
# ## The trace (30 minutes)
# A pair of traces is two paths of one phone at the same time. A trace lists delivery opportunities: the milliseconds in
# which the link can carry one packet of 1504 bytes. After its last timestamp, the period, it begins again.

# %%
wifi, lte = lab.downlink("wifi"), lab.downlink("lte")
wifi.opportunities_ms[:20], wifi.period_ms

# %%
rates = {"wifi": wifi.rate_mbps(500, duration_ms=60_000), "lte": lte.rate_mbps(500, duration_ms=60_000)}
capacity = go.Figure()
for name, values in rates.items():
    capacity.add_scatter(y=values, x=np.arange(len(values)) / 2, name=name)
capacity.update_layout(xaxis_title="time, s", yaxis_title="downlink, Mbps", height=300)

# %% [markdown]
# **Exercise 1.** What is the mean rate of each path over its whole period, in Mbps?

# %%
# exercise 1
wifi_mbps = ...
lte_mbps = ...
lab.mean_rate(wifi_mbps, lte_mbps)

# %% [markdown]
# **Exercise 2.** A silence is the time between two opportunities. How long is the longest one of each path, in ms?

# %%
# exercise 2
wifi_ms = ...
lte_ms = ...
lab.longest_silence(wifi_ms, lte_ms)

# %% [markdown]
# **Exercise 3.** In which share of the windows of 500 ms are both paths below 1 Mbps? Which share would it be if the
# two paths were independent? So are they bad together "more" or "less" often than independent ones? Both traces have
# the same period. What does the answer mean for somebody who hopes that a second path helps?

# %%
# exercise 3
both_slow = ...
if_independent = ...
together = ...
lab.both_slow(both_slow, if_independent, together)

# %% [markdown]
# ## Delay and queue (20 minutes)
# The second pair is a laboratory: two equal paths of constant rate.

# %%
[(path.name, path.base_rtt_ms, path.queue) for path in find_pair("lab-equal-12").paths]

# %% [markdown]
# **Exercise 4.** How many packets must be in flight on one of these paths, so that it is never idle and its queue stays
# empty? This is the bandwidth-delay product.

# %%
# exercise 4
packets = ...
lab.packets_in_flight(packets)

# %% [markdown]
# ## A download (40 minutes)
# A player asks for one chunk of 1 MiB after the other over one of these paths. The request completion time (RCT) is the
# time from the request to the last byte.
#
# **Exercise 5.** Predict the RCT of a chunk, in seconds, before you run the next cells. 10 % are near enough.

# %%
# exercise 5
predicted_s = ...
lab.chunk_time(predicted_s)

# %%
download = lab.download()
[run] = download.runs
[round(chunk.rct_s, 3) for chunk in run.chunks]

# %% [markdown]
# Where is the difference to the prediction? Look at the replay: what is on the wire beside the chunk's bytes, and what
# does the window do in the first chunk?

# %%
download.replay(run.run_id)

# %% [markdown]
# **Exercise 6.** Cubic fills the queue until a packet is dropped, and then halves its window, nearly. With a queue that
# is too short the path is idle after each loss. Find a queue, in packets, with which a chunk takes at most 4 % longer
# than with 100 packets, while half of your queue is too short. `lab.download("droptail:packets=50")` plays one. What
# has the answer to do with exercise 4?

# %%
# exercise 6
queue_packets = ...
lab.shortest_queue(queue_packets)

# %% [markdown]
# ## Questions for the discussion
# 1. What does a trace not say? Think of the sender that recorded it, of a short burst, and of a sleeping radio
#    ([links](../docs/reference/links.md)).
# 2. A trace with a resolution of 1 s has no silence of 200 ms. Which of your answers would such a trace change?
# 3. `rr.play(pairs=["subway-1"], seeds=3)` plays three schemes over the first pair. Predict the order of their medians.

# %%
rr.play(pairs=["subway-1"], settings={"player.duration_s": 5, "start_offset_ms": "spread"}, seeds=3)
