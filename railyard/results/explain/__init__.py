"""Explains the completion time of a chunk: follows its last bytes backwards from their arrival to the request."""
