"""Exhibits: figures and tables of the paper, rebuilt here, with computed verdicts."""
