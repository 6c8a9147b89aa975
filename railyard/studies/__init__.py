"""Studies beyond one campaign: agreement of arenas, thresholds, populations of viewers, exhibits of the paper."""
