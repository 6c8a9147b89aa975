"""Cells that fail by an error of the peer: docs/reference/interop.md says of each what the peer does. They are in the
matrix with their reason like all others, and do not make `make interop` fail."""

# Case, server, client.
DEFECTS = frozenset(
    {
        ("amplificationlimit", "quic-go", "xlink"),
        ("amplificationlimit", "caddy", "xlink"),
        ("handshakeloss", "xlink", "quinn"),
        ("rebind-port", "quiche", "xlink"),
        ("rebind-addr", "quiche", "xlink"),
        ("connectionmigration", "quiche", "xlink"),
    }
)
