"""Intervals, tests and verdicts. Imports nothing else of the package.

docs/reference/statistics.md states the rules.

    distributions  quantiles and probabilities of the usual distributions
    statistics     the rule of quantiles; the gate's paired test and the correction of its p values
    bootstrap      what is resampled, and how it is drawn
    wording        how figures and differences are said
    intervals      a figure's interval, and how it follows from resamples
    quantiles      quantiles of a sample: intervals, and whether the sample carries them
    changes        how a figure differs between two schemes over the same plays
    rates          rates of rare events, and how they differ
    pooled         statistics of the pooled values of many runs
    design         how many units would decide a figure, and how many a report gets
    verdict        whether what is claimed of figures is established
    steps          where a series of figures steps up or down
"""
