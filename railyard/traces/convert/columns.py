"""Finds time and rate, and their units, among the columns of a table of rates: as asked for, or by their names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.trace import OPPORTUNITY_BYTES, TraceError

US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


@dataclass(frozen=True)
class RateUnit:
    """Bytes in a unit of the column, for each second or for each bin."""

    name: str
    bytes_each: float
    per_bin: bool = False


UNITS = {
    unit.name: unit
    for unit in (
        *(RateUnit(name, bits / 8) for name, bits in (("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3), ("bps", 1.0))),
        RateUnit("bytes-per-s", 1.0),
        RateUnit("bytes", 1.0, per_bin=True),
        RateUnit("packets", float(OPPORTUNITY_BYTES), per_bin=True),
    )
}
ASSUMED = UNITS["mbps"]

_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30}
_RATE_UNIT = re.compile(
    r"(?P<prefix>(?:[kKmMgG]i?)?)(?:(?P<bits>[bB]its?)|(?P<bytes>[bB]ytes?)|(?P<letter>[bB]))"
    r"(?P<per>ps\b|ps(?=_)|PS|\s*/\s*s|[ _]?p(?:er)?[ _]?s)"
)
_AMOUNT = re.compile(r"(?<![a-zA-Z])(?:[rRtT]x)?(?P<prefix>(?:[kKmMgG]i?)?)[bB]ytes?(?![a-zA-Z])")
_NO_TIME = re.compile(
    r"(?<![a-zA-Z])(?![mM]b(?:it)?s?(?![a-zA-Z]))(?:(?:[kKmMgG]i?)?[bB]its?|[kKmMgG]i?[bB])(?![a-zA-Z])"
)
"""Units without a time, such as kbit and KB, except for Mbit, which is the assumed one."""
_PACKETS = re.compile(r"packets|pkts", re.IGNORECASE)
_GNETTRACK = ("DL_bitrate", "UL_bitrate")
"""Columns of G-NetTrack, whose log has no units: kbps."""
_RATE = re.compile(r"rate|throughput|goodput|bandwidth|capacity|durchsatz|d[ée]bit", re.IGNORECASE)
_NO_RATE = re.compile(
    r"rtt|delay|latenc|ping|jitter|loss|rsrp|rsrq|rssi|sinr|snr|cqi|speed|lat(?:itude)?$|lon(?:g|gitude)?$",
    re.IGNORECASE,
)
_DOWN = re.compile(r"(?<![a-z])(?:dl|down|rx|recv|received)(?![a-z])|downl", re.IGNORECASE)
_UP = re.compile(r"(?<![a-z])(?:ul|up|tx|sent)(?![a-z])|upl", re.IGNORECASE)
_TIME = re.compile(r"(?:ts?|s|ms|sec(?:onds)?)$|.*time|date|epoch|unix|elapsed|zeit", re.IGNORECASE)
_TIME_UNIT = re.compile(
    r"(?<![a-z])(?:(?P<ms>ms(?:ec)?|milli\w*)|(?P<us>us(?:ec)?|[µμ]s|micro\w*)|(?P<ns>ns(?:ec)?|nano\w*)"
    r"|(?P<s>s(?:ec(?:ond)?s?)?))(?![a-z])",
    re.IGNORECASE,
)
_SINCE_1970 = (("ns", 1e17), ("us", 1e14), ("ms", 1e11))
"""From this size on, times are since 1970 in that unit: in a larger unit they would be thousands of years."""


def rate_unit_of(title: str) -> RateUnit | None:
    """The unit in the title of a column. None: there is none."""
    if title in _GNETTRACK:
        return UNITS["kbps"]
    title = title.replace("(", " ").replace(")", " ").replace("[", " ").replace("]", " ")
    if match := _RATE_UNIT.search(title):
        # "MBPS" means Mbps; a B before a lowercase "ps" or "/s" means bytes.
        in_bytes = match["bytes"] or (match["letter"] == "B" and match["per"] != "PS")
        return RateUnit(match[0], _PREFIX[match["prefix"].lower()] * (1 if in_bytes else 1 / 8))
    if _PACKETS.search(title):
        return UNITS["packets"]
    if match := _AMOUNT.search(title.replace("_", " ")):
        return RateUnit(match[0], _PREFIX[match["prefix"].lower()], per_bin=True)
    return None


def _is_rate(title: str) -> bool:
    return rate_unit_of(title) is not None or (_RATE.search(title) is not None and not _NO_RATE.search(title))


@dataclass(frozen=True)
class Columns:
    """The columns of times and rates, and their units."""

    time: int | None
    """None: the bins have a given length."""
    rate: int
    unit: RateUnit
    is_unit_known: bool
    """Whether the unit was given or is in a name. False: it is assumed."""
    time_unit: str
    is_time_unit_known: bool
    words: str
    """The decision in words, for the user."""


def _asked(path: Path, header: Sequence[str] | None, width: int, name: str) -> int:
    if header is not None and name in header:
        return header.index(name)
    if name.isdigit() and 1 <= int(name) <= width:
        return int(name) - 1
    if width == 1:
        raise TraceError(f"{path}: this table has one column; give it a time and a rate in each line, such as '0,12.5'")
    known = ", ".join(header) if header is not None else f"1 to {width}"
    raise TraceError(f"{path}: there is no column {name!r}; the columns are {known}")


def _time_by_title(header: Sequence[str]) -> int:
    """The first column, unless another one alone is called a time."""
    named = [at for at, title in enumerate(header) if _TIME.match(title)]
    return named[0] if len(named) == 1 else 0


def _rate_by_title(path: Path, header: Sequence[str], time: int | None) -> int:
    """The column that is called a rate, the downlink's before the uplink's. Of several, the one after the time."""
    after = 0 if time is None else time + 1
    rates = [at for at, title in enumerate(header) if at != time and _is_rate(title)]
    for chosen in (
        rates,
        [at for at in rates if not _UP.search(header[at])],
        [at for at in rates if _DOWN.search(header[at])],
    ):
        if len(chosen) == 1:
            return chosen[0]
    if after in rates and not _UP.search(header[after]):
        return after
    others = [at for at in range(len(header)) if at != time]
    if not rates and len(others) == 1 and not _NO_RATE.search(header[others[0]]):
        return others[0]
    known = ", ".join(header[at] for at in rates or others)
    said = "several columns may be the rate" if rates else "no column is called a rate"
    raise TraceError(f"{path}: {said}; give one as rate-column: {known}")


def _time_unit_of(title: str | None, first: float | None) -> str | None:
    if title is not None and (match := _TIME_UNIT.search(title.replace("_", " "))):
        return match.lastgroup
    return next((unit for unit, least in _SINCE_1970 if first is not None and first >= least), None)


def columns_of(
    path: Path, recipe: TraceRecipe, header: Sequence[str] | None, width: int, first_time: dict[int, float]
) -> Columns:
    """The columns by the recipe, else by the header's names, else the first one and the next one. `first_time`: the
    numbers of the first row by column."""
    time = None
    if recipe.bin_ms is None:
        by_title = 0 if header is None else _time_by_title(header)
        time = by_title if recipe.time_column is None else _asked(path, header, width, recipe.time_column)
    if recipe.rate_column is not None:
        rate = _asked(path, header, width, recipe.rate_column)
    elif header is not None:
        rate = _rate_by_title(path, header, time)
    else:
        rate = _asked(path, header, width, str(1 if time is None else time + 2))
    named = "" if header is None or rate >= len(header) else header[rate]
    unit = rate_unit_of(named) if recipe.unit is None else UNITS[recipe.unit]
    if unit is None and (match := _NO_TIME.search(named.replace("_", " "))):
        raise TraceError(f"{path}: column '{named}' is in {match[0]}, which is no rate; give its unit")
    title = None if header is None or time is None else header[time]
    time_unit = recipe.time_unit or _time_unit_of(title, None if time is None else first_time.get(time))
    column = f"column '{named}'" if named else f"column {rate + 1}"
    described = f"rates in {(unit or ASSUMED).name}{'' if unit else ' (assumed)'} from {column}"
    return Columns(time, rate, unit or ASSUMED, unit is not None, time_unit or "s", time_unit is not None, described)
