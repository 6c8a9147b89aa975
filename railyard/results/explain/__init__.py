"""Why a chunk took as long as it did: the path of its last bytes, backwards from their arrival to the request."""
