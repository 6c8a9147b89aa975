"""`railyard serve`: the results of this machine as a local web application, and a leaderboard as a static page."""
