"""What every layer needs: places, errors, YAML files, words for a terminal, plots, provenance."""
