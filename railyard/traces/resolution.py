"""Silences shorter than a trace's resolution, which it cannot have, and the share of pairs with such a resolution."""

from collections.abc import Mapping, Sequence

from railyard.traces.index import Pair
from railyard.traces.stats import GAP_MS

Resolutions = Sequence[float | None]
"""The resolution of each path of a pair, ms. None: unknown."""
EFFECT = f"silences of {GAP_MS} ms, the shortest that re-injection is judged by"


def is_coarse(resolutions_ms: Resolutions) -> bool:
    """Whether a path of the pair is recorded in steps longer than the silences by which re-injection is judged."""
    return any(resolution is not None and resolution > GAP_MS for resolution in resolutions_ms)


def coarse_words(pair: Pair) -> str:
    """A sentence about a pair with a coarse resolution. Empty for others."""
    steps = {path.name: path.resolution_ms for path in pair.paths}
    if not is_coarse(list(steps.values())):
        return ""
    steps_text = ", ".join(f"{name} {step:g} ms" for name, step in steps.items() if step is not None and step > GAP_MS)
    return f"Its traces are coarser ({steps_text}) than {EFFECT}: shorter stalls are not in them."


def share_words(pairs: Mapping[str, Resolutions]) -> str:
    """A sentence on the share of pairs that are too coarse. Empty for one pair that is not."""
    coarse = [name for name, resolutions in pairs.items() if is_coarse(resolutions)]
    unknown = [name for name, resolutions in pairs.items() if name not in coarse and None in resolutions]
    if not coarse and not unknown:
        return f"Resolution: all {len(pairs)} pairs show {EFFECT}." if len(pairs) > 1 else ""
    said = f"Resolution: {len(coarse)} of {len(pairs)} pairs ({len(coarse) / len(pairs):.0%}) "
    said += f"are coarser than {EFFECT}: shorter stalls are not in them"
    said += f" ({', '.join(coarse)})" if coarse else ""
    return said + (f"; of {len(unknown)} it is not known ({', '.join(unknown)})." if unknown else ".")
