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
# # Cross-ISP delay on the LTE path
# Loads `results/table4/exhibit.json`; where it is not there, `railyard run table4 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("table4")
page.heading

# %% [markdown]
# ## What is to be seen
# The paper's table is a measurement of operators, which cannot be repeated here. Its values turn a knob instead:
# the base RTT of the emulated LTE path. Single path over LTE feels all of it; multipath as far as its requests
# depend on LTE.

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
