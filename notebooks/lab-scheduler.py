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
# # Lab 3: write a scheduler
# 90 minutes; some C. The scheduler of a multipath transport chooses the path of the next packet. Yours is one file of
# C: it is compiled into a simulator of its own, with the transport that all schemes use, and plays against min-RTT. A
# build takes seconds, and so does a play. This notebook needs a checkout with a C compiler.

# %%
from statistics import median

from railyard.lab import scheduler as lab

# %% [markdown]
# ## The interface (20 minutes)
# `decide()` is called for each packet. It gets a view of the paths and puts their indices into `out->order`, the best
# first; the packet goes on the first one. [scheduler.h](../transport/scheduler/scheduler.h) has all members. These
# members of a path matter here:
#
# | member | meaning |
# | --- | --- |
# | `has_window` | whether the congestion window has room for a packet |
# | `srtt_us` | smoothed RTT, µs |
# | `window_bytes`, `in_flight_bytes` | the congestion window, and what is in flight |
#
# | function | meaning |
# | --- | --- |
# | `xl_scheduler_decide_by_rtt(view, out)` | the decision of min-RTT: paths with room, by RTT; false: none |
# | `xl_scheduler_faster_but_full(view, out)` | after it: a path with a smaller RTT whose window is full, or NULL |
# | `xl_scheduler_wait(out, path, "why")` | the decision to wait for that path instead |
#
# `out->count` is the number of paths in `out->order`. `state` points to 256 bytes that start as zeros and stay yours.
# Run this cell and compare the file with [minrtt.c](../transport/scheduler/minrtt.c).

# %%
MIN_RTT = """
#include "scheduler/scheduler.h"

static void decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_ops xl_scheduler_mine = {.name = "mine", .decide = decide};
"""
lab.is_min_rtt(MIN_RTT)

# %% [markdown]
# The race is over LTE (60 ms) beside a satellite (600 ms), 12 Mbps each. Why are the requests of min-RTT so slow,
# though LTE alone carries a chunk of 256 KiB in 0.24 s? `campaign.explain(run_id)` and `campaign.replay(run_id)` help;
# a run ID is `lab-lte-geo--vanilla-mp--s1`.

# %%
campaign = lab.race(MIN_RTT)
campaign

# %% [markdown]
# ## Round robin (25 minutes)
# **Exercise 1.** Write a scheduler that sends on the paths in turn, if both have room. Before you run it, predict what
# becomes slower than under min-RTT, by more than 3 %: the "median", the "maximum", or "both"?

# %%
# exercise 1
ROUND_ROBIN = MIN_RTT
slower = ...
lab.alternates(ROUND_ROBIN, slower)

# %% [markdown]
# ## Waiting (30 minutes)
# If the fast path is full, min-RTT takes the slow one at once. A packet that waits one RTT of 60 ms and then takes the
# fast path arrives before one that takes the satellite now.
#
# **Exercise 2.** Write a scheduler that spares the slow path where that pays. The median must be at most 0.75 times
# that of min-RTT.

# %%
# exercise 2
WAITING = MIN_RTT
lab.waits(WAITING)

# %% [markdown]
# **Exercise 3.** The same scheduler must not harm pairs of which both paths are worth using: over Wi-Fi (30 ms) and LTE
# (81 ms) its median must stay within 3 % of that of min-RTT. Why would a scheduler that always waits be bad there?

# %%
# exercise 3
lab.harms_nobody(WAITING)

# %% [markdown]
# ## Mobile links (15 minutes)
# On a subway RTTs and rates change within a second. Predict whether your scheduler is better there, then look. The
# [how-to](../docs/howto/scheduler.md) goes on from here: tests, many pairs, intervals.

# %%
subway = lab.race(WAITING, ["subway-1", "subway-2"], seeds=2)
{label: (median(lab.times(subway, label)), max(lab.times(subway, label))) for label in subway.schemes}

# %% [markdown]
# ## Questions for the discussion
# 1. Your scheduler knows the smoothed RTT. What does it need beside that to know when a packet would arrive?
# 2. Waiting costs nothing here, as the player asks for one chunk at a time. When would it cost throughput?
# 3. Compare with [blest.c](../transport/scheduler/blest.c) and [ecf.c](../transport/scheduler/ecf.c): what do they ask?
