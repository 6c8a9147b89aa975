"""Experiments: the fields of their YAML files, and the settings of the schemes."""
