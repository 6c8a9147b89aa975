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
# # A figure or table of the paper, or a study, by its name
# An exhibit is loaded from `results/NAME/exhibit.json`, or made by `railyard run NAME --size small`. A study is loaded
# from what is kept of it, or carried out at the small size.

# %%
from railyard.studies.exhibits.notebook import open_page

# %% tags=["parameters"]
name = "fig8"

# %%
page = open_page(name)
page.heading

# %%
page.to_be_seen

# %%
page.show()

# %%
page.tables

# %%
page.against_the_paper

# %%
page.claims

# %%
page.provenance
