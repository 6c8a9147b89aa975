"""Fig. 8: a 4 MB load over two paths of different RTT, ACK_MP on the fastest or the original path."""

from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from scipy import stats

from railyard.base.style import BLUE, ORANGE, LineStyle
from railyard.report.exhibit import Exhibit, PaperValue
from railyard.stats import intervals, pooled
from railyard.stats.intervals import Interval
from railyard.stats.verdict import Verdict, above, in_steps
from railyard.studies.exhibits import verdicts
from railyard.studies.exhibits.frame import Frame, add_curve, load_frame, plot, rcts, styled, table
from railyard.studies.exhibits.spec import ExhibitSpec

ARMS = {"original": LineStyle(ORANGE, "dash", "square"), "fastest": LineStyle(BLUE, "solid", "circle")}


def _points(frame: Frame) -> list[dict[str, Any]]:
    points = []
    for key in frame.keys:
        runs = {label: frame.of(key, label) for label in ARMS}
        seeds = {run.seed for run in runs["original"]} & {run.seed for run in runs["fastest"]}
        groups = {label: rcts([run for run in of if run.seed in seeds]) for label, of in runs.items()}
        gain = pooled.paired(groups["fastest"], groups["original"], pooled.mean, pooled.improvement)
        cells = {label: pooled.bootstrap(groups[label], pooled.mean) for label in ARMS}
        if gain is not None:
            points.append({"ratio": float(frame.values(key)["ratio"]), "gain": gain, **cells})
    return sorted(points, key=lambda point: float(point["ratio"]))


def _figure(points: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    ratios = [point["ratio"] for point in points]
    for label, style in ARMS.items():
        hover = "RTT ratio %{x}: %{y:.3f} s<extra>" + label + "</extra>"
        add_curve(figure, f"ACK_MP on the {label} path", style, ratios, [point[label] for point in points], hover)
    styled(figure, 340, margin={"l": 60, "r": 14, "t": 40, "b": 48})
    figure.update_xaxes(title_text="RTT of the second path / RTT of the first", dtick=1)
    figure.update_yaxes(title_text="completion time of 4 MB, s")
    return figure


def trend(points: list[dict[str, Any]]) -> float:
    """Spearman's rank correlation of ratio and gain. 0 with fewer than two ratios."""
    if len(points) < 2:
        return 0.0
    correlation = stats.spearmanr([point["ratio"] for point in points], [point["gain"].value for point in points])
    return float(correlation.statistic) if correlation.statistic == correlation.statistic else 0.0


def verdict(points: list[dict[str, Any]], monotone: float) -> tuple[Verdict, str]:
    """ "The larger the ratio, the larger the gain" is said from that rank correlation (Spearman's) on."""
    last: Interval = points[-1]["gain"]
    correlation = trend(points)
    wins = above(last)
    if wins and correlation >= monotone:
        return "holds", f"gain and ratio rise together (rank correlation {correlation:.2f})"
    if wins:
        return "partly", f"it wins at the largest ratio, but not ever more (rank correlation {correlation:.2f})"
    return in_steps(wins, wins), f"at the largest ratio the gain is {last.text('.1f')} %"


def gain_words(point: dict[str, Any]) -> str:
    gain: Interval = point["gain"]
    return gain.words("shorter", "longer")


def build(folder: Path, spec: ExhibitSpec) -> Exhibit:
    frame = load_frame(folder, spec)
    points = _points(frame)
    first, last = points[0], points[-1]
    row = spec.row("fastest-ack-wins-more")
    word, because = verdict(points, row.numbers["monotone"])
    ours = "; ".join(f"ratio {point['ratio']:g}: {gain_words(point)}" for point in (first, last))
    path = frame.every[0].config["paths"][0]
    return frame.exhibit(
        title="ACK_MP on the fastest or the original path",
        place="Fig. 8, section 5.3",
        summary=(
            "Does it pay to acknowledge over the path with the smallest RTT? "
            f"The completion time is {gain_words(first)} at an RTT ratio of {first['ratio']:g}, {gain_words(last)} at "
            f"{last['ratio']:g}."
        ),
        settings={
            "load": "4 MB in one request, handshake not counted",
            "links": f"two of 12 Mbps, RTT of the first {2 * float(path['delay_ms']):g} ms, jitter 1 ms",
            "scheme": "vanilla-mp: min-RTT scheduler, no re-injection, Cubic, decoupled",
        },
        tables=[
            table(
                "Completion time of 4 MB",
                points,
                {
                    "RTT ratio": lambda point: point["ratio"],
                    ("original path", "s"): lambda point: round(point["original"].value, 4),
                    ("fastest path", "s"): lambda point: round(point["fastest"].value, 4),
                    ("gain of fastest", "%"): lambda point: round(point["gain"].value, 2),
                    ("95 % interval of the gain", "%"): lambda point: point["gain"].ends(
                        lambda end: f"{end:.2f}", " to "
                    ),
                },
                "Means over the seeds; the seeds differ in the links' jitter.",
            )
        ],
        plots=[
            plot(
                "fig8-rct",
                "Completion time against RTT ratio",
                _figure(points),
                "Completion time of 4 MB rises with the RTT ratio; with ACK_MP on the fastest path it is "
                f"{gain_words(last)} at ratio {last['ratio']:g}.",
            )
        ],
        paper=[
            PaperValue(
                what="gain of the fastest path",
                theirs="begins to show as the ratio grows (a figure without numbers in the text)",
                ours=ours,
                source="Fig. 8, section 5.3",
            )
        ],
        claims=[
            verdicts.claim(row, ours=ours, verdict=word, because=because),
        ],
        confidence=f"{intervals.METHOD}; gains are paired by seed",
    )
