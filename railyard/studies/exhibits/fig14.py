"""Fig. 14: energy per bit against throughput, modelled, for Wi-Fi, LTE, NR and their pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from railyard.base.style import BLACK, BLUE, GREEN, ORANGE, VERMILION
from railyard.report.exhibit import Exhibit, PaperValue, Table
from railyard.results.records import Run
from railyard.results.tables import Value
from railyard.stats import intervals, pooled
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Answer, Verdict
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.energy import Carried, Radio, Transfer
from railyard.studies.exhibits.frame import (
    Frame,
    columns,
    load_frame,
    plot,
    required,
    scheme_of,
    styled,
    table,
    threshold_settings,
)
from railyard.studies.exhibits.spec import ExhibitSpec

RADIO_OF_TECHNOLOGY = {"wifi": "wifi", "lte": "lte", "5g-nsa": "nr", "5g-sa": "nr"}
NAMES = {"wifi": "Wi-Fi", "lte": "LTE", "nr": "NR"}
CONFIGURATIONS = {
    "Wi-Fi": (GREEN, "circle"),
    "LTE": (ORANGE, "square"),
    "NR": (VERMILION, "diamond"),
    "Wi-Fi + LTE": (BLUE, "star"),
    "Wi-Fi + NR": (BLACK, "star-diamond"),
}
DUAL = {"Wi-Fi + LTE": ("Wi-Fi", "LTE"), "Wi-Fi + NR": ("Wi-Fi", "NR")}
NORMAL = "LTE"  # energy per bit is given as a multiple of LTE's at the smallest load


@dataclass(frozen=True)
class Point:
    configuration: str
    load_mb: float
    transfers: list[Transfer]

    def mbps(self) -> Interval:
        return required(pooled.bootstrap([[one.mbps] for one in self.transfers], pooled.mean))

    def energy(self, radios: dict[str, Radio], *, tail: bool = True) -> Interval:
        return required(pooled.bootstrap([[one.nj_per_bit(radios, tail=tail)] for one in self.transfers], pooled.mean))


def _transfer(run: Run) -> Transfer | None:
    if len(run.chunks) != 1 or not run.chunks[0].completed:
        return None
    chunk = run.chunks[0]
    technology = {path["name"]: path["technology"] for path in run.config["paths"]}
    carried = tuple(
        Carried(RADIO_OF_TECHNOLOGY[technology[path.name]], path.up_bytes, path.down_bytes)
        for path in run.paths
        if scheme_of(run) == "xlink" or path.name == run.config["primary"]
    )
    return Transfer(chunk.bytes, chunk.request_s + chunk.rct_s, carried)


def points_of(frame: Frame) -> list[Point]:
    by_point: dict[tuple[float, str], list[Transfer]] = {}
    for key in frame.keys:
        for label in frame.labels():
            for run in frame.of(key, label):
                transfer = _transfer(run)
                if transfer is None:
                    continue
                name = " + ".join(sorted((NAMES[path.radio] for path in transfer.paths), reverse=True))
                # Both pairs have Wi-Fi alone; it is taken from the pair with LTE.
                if name == "Wi-Fi" and run.pair != "lab-cap-30-lte":
                    continue
                by_point.setdefault((float(frame.values(key)["load_mb"]), name), []).append(transfer)
    return [Point(name, load, transfers) for (load, name), transfers in sorted(by_point.items())]


def radios_of(spec: ExhibitSpec, nr_factor: float) -> dict[str, Radio]:
    radios = {name: Radio.model_validate(data) for name, data in spec.options["radios"].items()}
    return radios | {"nr": radios["lte"].scaled(nr_factor)}


def _at(points: Sequence[Point], configuration: str, load: float) -> Point | None:
    return next((p for p in points if p.configuration == configuration and p.load_mb == load), None)


def unit_of(points: Sequence[Point], radios: dict[str, Radio], *, tail: bool = True) -> float:
    loads = sorted({point.load_mb for point in points})
    normal = _at(points, NORMAL, loads[0])
    return normal.energy(radios, tail=tail).value if normal else 1.0


def checks(points: Sequence[Point], radios: dict[str, Radio], *, tail: bool = True) -> dict[str, tuple[int, int]]:
    """The decided parts of the claim: the number of loads at which each is true, and of all loads."""
    answers = _answers(points, radios, tail=tail)
    return {part: (held.count(True), len(held)) for part, held in answers.items() if None not in held}


def _answers(points: Sequence[Point], radios: dict[str, Radio], *, tail: bool = True) -> dict[str, list[Answer]]:
    """Each part of the claim: whether it is true, load by load."""
    answers: dict[str, list[Answer]] = {}
    for load in sorted({point.load_mb for point in points}):
        here = {p.configuration: p for p in points if p.load_mb == load}
        energy = {name: point.energy(radios, tail=tail).value for name, point in here.items()}
        for dual, singles in DUAL.items():
            if dual not in here or any(single not in here for single in singles):
                continue
            rates = [here[single].mbps() for single in singles]
            best, least = max(rate.high for rate in rates), max(rate.low for rate in rates)
            faster = True if here[dual].mbps().low > best else False if here[dual].mbps().high < least else None
            answers.setdefault(f"{dual} is faster than either alone", []).append(faster)
            answers.setdefault(f"{dual} takes less per bit than {singles[1]}", []).append(
                energy[dual] < energy[singles[1]]
            )
        answers.setdefault("Wi-Fi takes least per bit", []).append(energy["Wi-Fi"] == min(energy.values()))
    return answers


def verdict(counts: dict[str, tuple[int, int]], parts: int = 0) -> tuple[Verdict, str]:
    """The verdict. `parts`: the number of all parts; undecided ones are not in `counts`."""
    if len(counts) < parts:
        return "not decided", f"of {parts} parts {len(counts)} are decided by so few transfers"
    failed = [f"{part} ({held} of {total} loads)" for part, (held, total) in counts.items() if held < total]
    if not failed:
        return "holds", "every part is true at every load"
    some = any(held == total for held, total in counts.values())
    return ("partly" if some else "does not hold"), "not so in this model: " + "; ".join(failed)


def break_even_slope(points: Sequence[Point], radios: dict[str, Radio]) -> float | None:
    """Wi-Fi's downlink slope, mW/Mbps, below which Wi-Fi + LTE takes less per bit than LTE at every load, by
    bisection."""

    def holds(slope: float) -> bool:
        trial = radios | {"wifi": radios["wifi"].model_copy(update={"downlink_mw_per_mbps": slope})}
        held, total = checks(points, trial)["Wi-Fi + LTE takes less per bit than LTE"]
        return held == total

    low, high = 0.0, 1000.0
    if not holds(low):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _figure(points: Sequence[Point], radios: dict[str, Radio]) -> go.Figure:
    unit = unit_of(points, radios)
    figure = go.Figure()
    for name, (colour, symbol) in CONFIGURATIONS.items():
        here = [point for point in points if point.configuration == name]
        if not here:
            continue
        figure.add_scatter(
            x=[point.energy(radios).value / unit for point in here],
            y=[point.mbps().value for point in here],
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 1, "dash": "dot"},
            marker={"symbol": symbol, "size": 11, "color": colour},
            customdata=[point.load_mb for point in here],
            hovertemplate=f"{name}, %{{customdata:g}} MB: %{{y:.1f}} Mbps, %{{x:.2f}}<extra></extra>",
        )
        figure.add_annotation(
            x=here[0].energy(radios).value / unit,
            y=here[0].mbps().value,
            text=f"{here[0].load_mb:g} MB",
            showarrow=False,
            yshift=-14,
            font={"size": 10, "color": colour},
        )
    styled(figure, 420, margin={"l": 60, "r": 14, "t": 48, "b": 52})
    figure.update_xaxes(title_text="modelled energy per bit, LTE at the smallest load = 1", rangemode="tozero")
    figure.update_yaxes(title_text="throughput, Mbps (top left is better)", rangemode="tozero")
    return figure


def _table(points: Sequence[Point], radios: dict[str, Radio]) -> Table:
    unit = unit_of(points, radios)
    return table(
        "Throughput and modelled energy",
        [point for name in CONFIGURATIONS for point in points if point.configuration == name],
        {
            "radios": lambda point: point.configuration,
            ("load", "MB"): lambda point: point.load_mb,
            ("throughput and interval", "Mbps"): lambda point: point.mbps().text(".1f"),
            ("energy per bit", "nJ"): lambda point: round(point.energy(radios).value, 1),
            ("without tails", "nJ"): lambda point: round(point.energy(radios, tail=False).value, 1),
            "normalised": lambda point: round(point.energy(radios).value / unit, 3),
        },
        "Energy is modelled from what each link carried; only throughput comes from runs.",
    )


def _sensitivity(points: Sequence[Point], spec: ExhibitSpec) -> Table:
    cases: dict[str, dict[str, tuple[int, int]]] = {}
    for factor in spec.options["nr_over_lte"]:
        for tail in (True, False):
            title = f"NR {factor:g} × LTE, {'with' if tail else 'without'} tails"
            cases[title] = checks(points, radios_of(spec, factor), tail=tail)
    parts = list(next(iter(cases.values())))
    rows: list[list[Value]] = [
        [part, *(f"{case[part][0]} of {case[part][1]}" for case in cases.values())] for part in parts
    ]
    return Table(
        title="How the parts of the claim depend on the model: loads at which each is true",
        columns=columns("part", *cases),
        rows=rows,
    )


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    points = points_of(frame)
    factors = sorted(spec.options["nr_over_lte"])
    radios = radios_of(spec, factors[len(factors) // 2])
    counts = checks(points, radios)
    word, because = verdict(counts, len(_answers(points, radios)))
    slope = break_even_slope(points, radios)
    own = radios["wifi"].downlink_mw_per_mbps
    if slope is not None and slope < own:
        because += (
            f". The model's Wi-Fi takes {own:g} mW per Mbps downlink, its LTE {radios['lte'].downlink_mw_per_mbps:g}; "
            f"with less than {slope:.0f} mW per Mbps, Wi-Fi + LTE would take less per bit than LTE at every load"
        )
    ours = "; ".join(f"{part}: {held} of {total} loads" for part, (held, total) in counts.items())
    unit = unit_of(points, radios)
    largest = max(point.load_mb for point in points)
    values = ", ".join(
        f"{name} {point.energy(radios).value / unit:.2f} at {point.mbps().value:.0f} Mbps"
        for name in CONFIGURATIONS
        if (point := _at(points, name, largest))
    )
    return frame.exhibit(
        title="Energy per bit against throughput (modelled)",
        place="Fig. 14, section 7.4",
        summary=f"Modelled, not measured. At {largest:g} MB, energy per bit (LTE at the smallest load is 1): {values}.",
        modelled=True,
        settings={
            "links": "constant rates, capped at 30 Mbps downlink; base RTT Wi-Fi 30, LTE 81, NR 62 ms",
            "power of Wi-Fi and LTE": str(spec.options["radios_source"]),
            "power of NR": f"{factors[len(factors) // 2]:g} × LTE, all terms; {spec.options['nr_source']}",
            **threshold_settings(frame.every),
            "radio on": "from the player's start to the last byte, then its tail; radios add; unused ones are off",
            "limits": "fitted on phones of 2012 at lower rates; radio only: no screen, no processor",
        },
        tables=[_table(points, radios), _sensitivity(points, spec)],
        plots=[
            plot(
                "fig14-energy",
                "Throughput against modelled energy per bit",
                _figure(points, radios),
                f"Points for each set of radios and load. {values}.",
            )
        ],
        paper=[
            PaperValue(
                what="Wi-Fi + LTE and Wi-Fi + NR",
                theirs="higher throughput than either alone; less energy per bit than LTE and NR",
                ours=ours,
                source="Fig. 14, section 7.4, measured on phones",
            ),
            PaperValue(
                what="Wi-Fi alone",
                theirs="most energy-efficient, much lower throughput than XLINK",
                ours=values,
                source="Fig. 14, section 7.4",
            ),
        ],
        claims=[
            verdicts.claim(spec.row("multipath-energy"), ours=ours, verdict=word, because=because),
        ],
        confidence=f"{intervals.METHOD} for throughput; the model's constants have no intervals, its choices a table",
    )
