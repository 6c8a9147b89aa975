"""The results store: what lies in `results/`, its tables and their versions, and SQL over them."""
