"""Judges the emulator by downloads that were recorded live. docs/results/live.md has the protocol."""
