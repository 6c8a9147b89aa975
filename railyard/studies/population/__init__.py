"""A population of viewers: drawn from a documented distribution, played under every scheme in virtual time."""
