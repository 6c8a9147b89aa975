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
# # Energy per bit against throughput, modelled
# Loads `results/fig14/exhibit.json`; where it is not there, `railyard run fig14 --size small` is carried out first.

# %%
from railyard.studies.exhibits.notebook import Page

page = Page("fig14")
page.heading

# %% [markdown]
# ## What is to be seen
# No power was measured. Transfers were run, and published models of radio power were applied to what each link
# carried. The second table is the important one: it says which parts of the claim stand or fall with the model's
# assumptions.

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
