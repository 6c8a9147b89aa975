"""The command line: the commands of `railyard`, and the reference pages that are made from them."""
