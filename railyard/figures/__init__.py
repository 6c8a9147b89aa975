"""Figures of plays: each is one row in `rows.py`. Columns, metrics, floors and docs/reference/metrics.md follow."""
