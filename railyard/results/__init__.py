"""Results: the records of runs, tables gathered from them and their versions, and SQL over them."""
