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
# # Re-injection against head-of-line blocking
# Loads `results/fig6/exhibit.json`; where it is not there, `railyard run fig6 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig6")
page.heading

# %% [markdown]
# ## What is to be seen
# Shaded spans are stalls. Watch when the dashed line, what was sent a second time, rises: without control it does
# so whatever the buffer holds, with control when the buffer is low. The drawn place is an illustration; the table
# counts all places that the rule finds, and some of them offer less than the video's bit rate whatever the
# transport does.

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
