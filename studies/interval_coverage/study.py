"""The coverage of the intervals of reports. railyard/studies/coverage.py simulates it."""

from collections.abc import Iterator

from pydantic import Field

from railyard.experiment.model import Strict
from railyard.studies import coverage
from railyard.studies.study import Data, tell


class Settings(Strict):
    trials: int = Field(ge=20)  # simulated campaigns for each row
    rate_only: bool  # only the rebuffer rate
    most_pairs: int = Field(default=1000, ge=1)  # leave out campaigns with more


class Measured(Data):
    found: list[coverage.CoverageResult]


def measure(settings: Settings) -> Measured:
    campaigns = [one for one in coverage.CAMPAIGNS if one.pairs <= settings.most_pairs]
    by_campaign = []
    for one in coverage.simulate(campaigns, settings.trials, rate_only=settings.rate_only):
        tell(f"{one.campaign.memory_s:g} s, {one.campaign.words}: done")
        by_campaign.append(one)
    return Measured(found=by_campaign)


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    yield "coverage", coverage.markdown(measured.found).rstrip()
