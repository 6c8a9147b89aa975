"""The command line: each command of `railyard`, and the reference pages that are made from them."""
