"""Makes a pair of two single recordings. The pair is marked as recorded separately."""

import math
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from railyard.base.lists import distinct
from railyard.traces.convert.delays import read_delays
from railyard.traces.convert.recipe import TraceRecipe
from railyard.traces.convert.run import convert_trace
from railyard.traces.index import PairEntry, PathEntry, bad_name
from railyard.traces.light import LEO_STEP_MS, layout_of, read_light_trace, read_size_latency
from railyard.traces.links import link_defaults
from railyard.traces.names import Kind, Technology
from railyard.traces.periods import CONSTANT_MS
from railyard.traces.recorded import CSV_FILE, Recording, describe
from railyard.traces.trace import TraceError, format_trace, read_trace


@dataclass(frozen=True)
class Single:
    """A recording as the user names it. Members that are None come from the INDEX.csv beside the file."""

    file: Path
    """The downlink's trace, or a folder of CellReplay or LeoReplayer."""
    technology: Technology | None = None
    start_s: float = 0.0
    kind: Kind | None = None
    resolution_ms: float | None = None


@dataclass(frozen=True)
class PairMetadata:
    """Facts about the pair. Members that are None come from the INDEX.csv beside the files."""

    name: str
    scenario: str | None = None
    licence: str | None = None
    source: str | None = None


def _needed(given: str | None, described: list[Recording | None], member: str) -> str:
    """The user's value, else that of the recordings. Raises TraceError if there is none."""
    if given:
        return given
    known = [getattr(one, member) for one in described if one is not None]
    if len(known) < len(described):
        raise TraceError(
            f"the pair needs a {member}, which no {CSV_FILE} beside both traces tells; add --{member} TEXT"
        )
    return "; ".join(distinct(known))


def _device_names(technologies: list[Technology]) -> list[str]:
    names: list[str] = list(technologies)
    return names if len(set(names)) == len(names) else [f"{names[0]}-1", f"{names[1]}-2"]


def _directions(single: Single) -> dict[str, Path]:
    """The downlink, and the uplink if there is a file of the same name with .up."""
    if single.file.is_dir():
        layout = layout_of(single.file)
        return {"down": layout.downlink} | ({"up": layout.uplink} if layout.uplink else {})
    uplink = single.file.with_suffix(".up")
    return {"down": single.file} | ({"up": uplink} if uplink.is_file() and uplink != single.file else {})


def _left_s(single: Single) -> float:
    """The length of a recording from its start on, s. Infinite for a link of a constant rate and for a folder."""
    if single.file.is_dir():
        if single.start_s:
            raise TraceError(f"{single.file}: a folder is taken whole; leave out its start")
        return math.inf
    period_ms = read_trace(single.file).period_ms
    if period_ms <= CONSTANT_MS and single.start_s == 0:
        return math.inf
    left = period_ms / 1000 - single.start_s
    if left <= 0:
        raise TraceError(f"{single.file}: nothing is left from {single.start_s:g} s on; start earlier")
    return left


def cut_words(singles: tuple[Single, Single]) -> str:
    """A sentence on what `cut` removes from the longer recording. Empty if that is nothing."""
    lengths_s = [_left_s(single) for single in singles]
    shorter, longer = sorted(lengths_s)
    if not longer > shorter or not math.isfinite(longer):
        return ""
    file = singles[lengths_s.index(longer)].file
    return (
        f"{file}: its last {longer - shorter:.3f} s of {longer:.3f} s are left out, so that both loop together; "
        "--no-cut keeps them."
    )


def make_pair(
    singles: tuple[Single, Single], metadata: PairMetadata, *, cut: bool = True
) -> tuple[dict[str, bytes], PairEntry]:
    """The traces of the pair by file name, and its entry in an index. Raises TraceError.

    `cut`: cuts both recordings to the length of the shorter one, so that they loop together. Links of a constant rate
    are not cut.
    """
    lengths_s = [_left_s(single) for single in singles]
    if singles[0].file.resolve() == singles[1].file.resolve() and singles[0].start_s == singles[1].start_s:
        raise TraceError(
            f"{singles[0].file}: both paths would be the same recording; give another one, or --second-start"
        )
    described = [None if single.file.is_dir() else describe(single.file) for single in singles]
    technologies: list[Technology] = []
    for single, known in zip(singles, described, strict=True):
        technology = single.technology or (known.technology if known else None)
        if technology is None:
            raise TraceError(f"{single.file}: its technology is not known; add --technologies FIRST,SECOND")
        technologies.append(technology)
    scenario = _needed(metadata.scenario, described, "scenario")
    files: dict[str, bytes] = {}
    entries = []
    names = _device_names(technologies)
    for single, known, name, technology, length_s in zip(
        singles, described, names, technologies, lengths_s, strict=True
    ):
        duration_s = min(lengths_s) if cut else length_s
        written = {}
        for direction, file in _directions(single).items():
            written[direction] = f"{metadata.name}.{name}.{direction}"
            files[written[direction]] = _part(file, single.start_s, duration_s)
        link = link_defaults(scenario, technology)
        of_folder, settings = _of_folder(single, f"{metadata.name}.{name}")
        files |= of_folder
        entries.append(
            PathEntry(
                name=name,
                technology=technology,
                uplink=written.get("up", written["down"]),
                downlink=written["down"],
                base_rtt_ms=link.base_rtt_ms,
                queue=link.queue,
                kind=single.kind or (known.kind if known else None),
                resolution_ms=single.resolution_ms or (known.resolution_ms if known else None),
                link=link.settings | settings,
            )
        )
    try:
        entry = PairEntry(
            name=metadata.name,
            scenario=scenario,
            licence=_needed(metadata.licence, described, "licence"),
            source=_needed(metadata.source, described, "source"),
            recorded="separately",
            paths=tuple(entries),
        )
    except ValidationError:
        raise bad_name(metadata.name) from None
    return files, entry


def _of_folder(single: Single, stem: str) -> tuple[dict[str, bytes], dict[str, str | float]]:
    """The other files of a folder, by name, and the settings of the link that name them."""
    if not single.file.is_dir():
        return {}, {}
    layout = layout_of(single.file)
    files: dict[str, bytes] = {}
    settings: dict[str, str | float] = dict(layout.settings)
    for setting, file in layout.files.items():
        name = f"{stem}.{setting.replace('_', '-')}"
        if setting == "delay_trace":
            data = read_delays(file, "list", LEO_STEP_MS).as_bytes()
        else:
            (read_size_latency if setting.endswith("size_latency") else read_light_trace)(file)
            data = file.read_bytes()
        files[name] = data
        settings[setting] = name
    return files, settings


def _part(file: Path, start_s: float, duration_s: float) -> bytes:
    trace = read_trace(file)
    if start_s == 0 and duration_s * 1000 >= trace.period_ms:
        return format_trace(trace.opportunities_ms)
    recipe = TraceRecipe(file=str(file), format="mahimahi", start_s=start_s, duration_s=duration_s)
    return convert_trace(file, recipe).data
