"""The interoperability matrix: test cases × other people's QUIC stacks × direction, over emulated links."""
