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
# # Vanilla multipath while a path fails
# Loads `results/fig1/exhibit.json`; where it is not there, `railyard run fig1 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig1")
page.heading

# %% [markdown]
# ## What is to be seen
# The dashed line is the congestion window, the solid one what is in flight. In the shaded span the link carries
# next to nothing. Cubic learns of a loss by acknowledgements, and none come: the window stays where it was, the
# min-RTT scheduler still finds room in it, and what it puts there waits for the link to come back. Data that went
# over the other path meanwhile is complete but for these packets: multipath head-of-line blocking.

# %%
page.show()

# %% [markdown]
# ## In figures

# %%
page.tables

# %% [markdown]
# ## The paper's values beside ours

# %%
page.against_the_paper

# %% [markdown]
# ## Claims, and what became of them here

# %%
page.claims

# %%
page.provenance
