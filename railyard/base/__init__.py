"""Modules that every layer needs: paths, errors, YAML files, words for a terminal, plots, provenance."""
