"""Runs: resolved, carried out in an arena one by one or as a campaign, and written into folders."""
