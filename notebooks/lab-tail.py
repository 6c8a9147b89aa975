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
# # Lab 2: why a tail is slow
# 90 minutes. The slow requests make a video stall, not the median. You find the slowest chunk of a scheme, learn what
# bounded it, and what re-injection does about it and at which price. Replace the three dots of an exercise.

# %%
from collections.abc import Sequence

import railyard as rr
from railyard.lab import tail as lab
from railyard.report.pictures import also_as_pictures

also_as_pictures()


def play(seeds: int) -> rr.Campaign:
    """One path, two paths, two paths with re-injection, from `seeds` places of one pair of traces."""
    player = {"player.duration_s": 6, "player.bitrate": "2.5mbps", "player.chunk_bytes": 131072}
    schemes = [{"scheme": "sp", "path": "primary"}, "vanilla-mp", "xlink"]
    settings = player | {"schemes": schemes, "start_offset_ms": "spread", "time_limit_s": 30}
    return rr.play(pairs=["subway-1"], settings=settings, seeds=seeds)


campaign = play(6)
campaign

# %%
campaign.rct_cdf("subway-1")

# %% [markdown]
# ## The tail (20 minutes)
# **Exercise 1.** Write the quantile of a list: the smallest value that at least a share q of the values does not
# exceed.


# %%
# exercise 1
def quantile(values: Sequence[float], q: float) -> float:
    return ...


lab.quantile(quantile)

# %% [markdown]
# How many requests does each scheme have here, and so how many are above its p99? What is a p99 of 40 values?

# %%
rct = {label: [chunk.rct_s for run in campaign.runs if run.label == label for chunk in run.chunks]
       for label in campaign.schemes}  # fmt: skip
{label: (len(values), min(values), max(values)) for label, values in rct.items()}

# %% [markdown]
# ## The slowest chunk (30 minutes)
# **Exercise 2.** Which run of `vanilla-mp` has its slowest chunk, and which chunk is it? `campaign.runs` is a list; a
# run has `run_id`, `label` and `chunks`, a chunk has `index` and `rct_s`.

# %%
# exercise 2
run_id = ...
chunk = ...
lab.slowest(campaign, "vanilla-mp", run_id, chunk)

# %% [markdown]
# `campaign.explain(run_id, chunk)` says why it took so long, and `campaign.replay(run_id)` draws all of the run.
#
# **Exercise 3.** What bounded the largest part of its time? The answer is a text of the column "bounded by".

# %%
# exercise 3
bounded_by = ...
lab.cause(campaign, "vanilla-mp", bounded_by)

# %% [markdown]
# The oracle knows both links in advance. Its time for the chunk is `chunk.oracle_s`.
#
# **Exercise 4.** Which share of the slowest chunk's time would the oracle have saved? What follows for the scheduler,
# if the share is small, and what if it is large?

# %%
# exercise 4
saved = ...
lab.avoidable(campaign, "vanilla-mp", saved)

# %% [markdown]
# ## The price (20 minutes)
# `xlink` sends again on the other path what is late. Redundancy is what was sent twice, over all that was sent once: T
# / (sent - T), where T is `reinjected_bytes` and `given_up_bytes`, and sent is `stream_bytes_sent`, of all runs.
#
# **Exercise 5.** What is the redundancy of `xlink` here?

# %%
# exercise 5
redundancy = ...
lab.price(campaign, "xlink", redundancy)

# %% [markdown]
# ## Is it better? (20 minutes)
# Six places of one trace are few. The comparison says which differences have an interval, and what the others need.

# %%
rr.compare(campaign, against="vanilla-mp")

# %% [markdown]
# **Exercise 6.** From how many places on does the difference of the p95 have an interval? Find a number at which it has
# one, while half of it is too few.

# %%
# exercise 6
places = ...
lab.decided(places, play, "xlink", "vanilla-mp")

# %% [markdown]
# ## Questions for the discussion
# 1. Somebody plays until the interval excludes zero, and stops there. What is wrong with it?
# 2. All places are of one pair of traces. What would you have to play before you say so of other subways?
# 3. Which of the parts that you saw could a better congestion controller avoid, which a better scheduler, which nobody?
