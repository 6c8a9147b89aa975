"""Statistics of the downlinks of recorded pairs: docs/results/evaluation-wide.md."""

from collections.abc import Iterator

from pydantic import Field

from railyard.base.errors import UserError
from railyard.experiment.model import Strict
from railyard.studies.study import Data, changed, markdown
from railyard.traces import find_pair, read_trace, trace_stats


class Settings(Strict):
    experiment: str  # a YAML file, or its name in experiments/
    collections: dict[str, str] = Field(min_length=1)  # how names of pairs begin, separated by ", ", and what they are


class Collection(Data):
    begin: str
    what: str
    pairs: int
    mean_mbps: list[float]  # of each downlink
    gaps_per_minute: list[float]
    longest_gap_s: list[float]


class Measured(Data):
    found: list[Collection]


def measure(settings: Settings) -> Measured:
    pairs = [pair.first_found[0] for pair in changed(settings.experiment, {})[0].pairs]
    return Measured(found=[collection(begin, what, pairs) for begin, what in settings.collections.items()])


def collection(begin: str, what: str, pairs: list[str]) -> Collection:
    names = [name for name in pairs if name.startswith(tuple(begin.split(", ")))]
    if not names:
        raise UserError(f"no pair of the experiment begins with '{begin}'; it has {', '.join(pairs[:3])} and others.")
    stats = [trace_stats(read_trace(path.downlink)) for name in names for path in find_pair(name).paths]
    return Collection(
        begin=begin,
        what=what,
        pairs=len(names),
        mean_mbps=[one.mean_mbps for one in stats],
        gaps_per_minute=[one.gaps_per_minute for one in stats],
        longest_gap_s=[one.longest_gap_s for one in stats],
    )


def tables(measured: Measured) -> Iterator[tuple[str, str]]:
    heads = ["pairs", "what", "mean rates Mbps, least to largest", "silences of 200 ms or more a minute, at most"]
    yield "rates", markdown([*heads, "longest, s"], map(_cells, measured.found), left=2)


def _cells(one: Collection) -> list[str]:
    begins = ", ".join(f"`{begin}…`" for begin in one.begin.split(", "))
    rates = f"{min(one.mean_mbps):.1f} to {max(one.mean_mbps):.1f}"
    return [
        f"{one.pairs} {begins}", one.what, rates, f"{max(one.gaps_per_minute):.1f}",
        f"{max(one.longest_gap_s):.1f}",
    ]  # fmt: skip
