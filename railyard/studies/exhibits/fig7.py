"""Fig. 7: first-frame delivery time against the size of the first frame, with 5G or Wi-Fi as the primary path."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from railyard.base.style import INK, ORANGE, SKY
from railyard.report.exhibit import INTERVAL, Exhibit, PaperValue
from railyard.stats import intervals, pooled, wording
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Verdict, above, of_parts
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import Frame, load_frame, plot, styled, table
from railyard.studies.exhibits.spec import ExhibitSpec

PRIMARIES = {"wifi": ("Wi-Fi primary", ORANGE, "/"), "5g": ("5G primary", SKY, "")}
PAIRS = {
    "lab-5g-wifi": "5G SA 180 Mbps, Wi-Fi 60 Mbps",
    "lab-5g-wifi-equal": "both 60 Mbps: they differ in delay alone",
}
NEVER_S = 30.0  # value of a first frame that never came: the time limit


@dataclass(frozen=True)
class Point:
    pair: str
    size: int
    wifi: Interval
    five_g: Interval
    gain: Interval

    @property
    def label(self) -> str:
        return f"{self.size >> 10}K" if self.size < 1 << 20 else f"{self.size >> 20}M"


def _latencies(frame: Frame, primary: str, size: int, pair: str) -> dict[int, list[float]]:
    """First-frame latencies by seed, ms."""
    keys = [
        key
        for key in frame.keys
        if frame.values(key)["primary"] == primary and int(frame.values(key)["first_frame"]) == size
    ]
    runs = [run for key in keys for run in frame.of(key, "xlink") if run.pair == pair]
    return {run.seed: [1000 * (run.first_frame_s or NEVER_S)] for run in runs}


def _points(frame: Frame) -> list[Point]:
    points: list[Point] = []
    sizes = sorted({int(frame.values(key)["first_frame"]) for key in frame.keys})
    for pair in dict.fromkeys(run.pair for run in frame.every):
        for size in sizes:
            wifi, five_g = (_latencies(frame, primary, size, pair) for primary in PRIMARIES)
            seeds = sorted(set(wifi) & set(five_g))
            ours, theirs = [five_g[seed] for seed in seeds], [wifi[seed] for seed in seeds]
            cells = pooled.bootstrap(theirs, pooled.mean), pooled.bootstrap(ours, pooled.mean)
            gain = pooled.paired(ours, theirs, pooled.mean, pooled.improvement)
            if cells[0] is not None and cells[1] is not None and gain is not None:
                points.append(Point(pair, size, cells[0], cells[1], gain))
    return points


def _figure(points: Sequence[Point]) -> go.Figure:
    pairs = list(dict.fromkeys(point.pair for point in points))
    figure = make_subplots(
        rows=1, cols=len(pairs), shared_yaxes=True, subplot_titles=[PAIRS.get(pair, pair) for pair in pairs]
    )
    for column, pair in enumerate(pairs, start=1):
        here = [point for point in points if point.pair == pair]
        for primary, (name, colour, pattern) in PRIMARIES.items():
            cells = [point.wifi if primary == "wifi" else point.five_g for point in here]
            figure.add_bar(
                x=[point.label for point in here],
                y=[cell.value for cell in cells],
                error_y=intervals.bars(cells),
                name=name,
                legendgroup=primary,
                showlegend=column == 1,
                marker={
                    "color": colour,
                    "pattern": {
                        "shape": pattern,
                        "fillmode": "overlay",
                        "fgcolor": INK,
                        "size": 6,
                        "solidity": 0.15,
                    },
                },
                hovertemplate=f"%{{x}}, {name}: %{{y:.0f}} ms<extra></extra>",
                row=1,
                col=column,
            )
    styled(figure, 340, margin={"l": 60, "r": 14, "t": 70, "b": 48})
    figure.update_layout(barmode="group", legend={"y": 1.12})
    figure.update_xaxes(title_text="size of the first frame", showgrid=False, type="category")
    figure.update_yaxes(title_text="first-frame delivery time, ms", rangemode="tozero", col=1)
    figure.update_annotations(font={"size": 12})
    return figure


def verdict(points: Sequence[Point]) -> tuple[Verdict, str]:
    """The verdict. 5G is faster at points where the whole interval of its gain is above 0."""
    answers = [above(point.gain) for point in points]
    sentence = f"faster beyond its interval in {answers.count(True)} of {len(points)} settings"
    if None in answers:
        sentence += f", not decided in {answers.count(None)}"
    return of_parts(answers), sentence


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    points = _points(frame)
    word, because = verdict(points)
    gains = [point.gain.value for point in points if point.pair == points[0].pair]
    alone = [point.gain.value for point in points if point.pair == points[-1].pair]
    ours = (
        f"{wording.range_words(gains, 'faster', 'slower', 0)} with the technologies' rates, "
        f"{wording.range_words(alone, 'faster', 'slower', 0)} where delay alone differs"
    )
    return frame.exhibit(
        title="First-frame delivery time by primary path",
        place="Fig. 7, section 5.3",
        summary="The first frame of a connection that starts on 5G SA instead of Wi-Fi, both paths used in either "
        f"case, is {ours}.",
        settings={
            "scheme": "xlink, first-frame acceleration on",
            "base RTT": "5G SA 14.7 ms, Wi-Fi 30 ms, as the medians' ratio of section 3.2; jitter 1 ms",
            "rates": "; ".join(PAIRS.values()) + "; the paper's test-bed does not say its rates",
        },
        tables=[
            table(
                "First-frame delivery time",
                points,
                {
                    "links": lambda point: PAIRS.get(point.pair, point.pair),
                    "first frame": lambda point: point.label,
                    ("Wi-Fi primary", "ms"): lambda point: round(point.wifi.value, 1),
                    ("5G primary", "ms"): lambda point: round(point.five_g.value, 1),
                    ("5G faster by", "%"): lambda point: round(point.gain.value, 1),
                    (INTERVAL, "%"): lambda point: point.gain.ends(lambda end: f"{end:.1f}", " to "),
                },
                "From the player's start, before the handshake, to the frame's last byte; means over the seeds.",
            )
        ],
        plots=[
            plot("fig7-first-frame", "First-frame delivery time", _figure(points), f"Bars: a start on 5G is {ours}.")
        ],
        paper=[
            PaperValue(
                what="first-frame delivery time",
                theirs="below 500 ms for all sizes; 5G clearly lower (a bar chart without numbers in the text)",
                ours=f"{points[0].five_g.value:.0f} to {max(point.wifi.value for point in points):.0f} ms",
                source="Fig. 7",
            )
        ],
        claims=[
            verdicts.claim(spec.row("primary-5g-faster"), ours=ours, verdict=word, because=because),
        ],
        confidence=f"{intervals.METHOD}; gains are paired by seed",
    )
