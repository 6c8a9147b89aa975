"""The figures, one row each. Computation, output and comparison of a figure follow from its row."""

from railyard.figures.figure import Figure, Gate, Quantile, Ratio, Share, Values
from railyard.figures.play import Play

STALL_S = 0.1
TAIL = 1.5


def rcts(play: Play) -> Values:
    return [(chunk.rct_s, chunk.completed) for chunk in play.chunks]


def first_frames(play: Play) -> Values:
    return [play.first_frame_counted]


def _efficiencies(play: Play) -> Values:
    return [(share, chunk.completed) for chunk in play.chunks if (share := chunk.efficiency) is not None]


def _sent_twice(play: Play) -> int:
    return (play.reinjected_bytes or 0) + play.given_up_bytes


def _sent_once(play: Play) -> int:
    return (play.stream_bytes_sent or 0) - _sent_twice(play)


def _sent_but_reinjected(play: Play) -> int:
    return (play.stream_bytes_sent or 0) - (play.reinjected_bytes or 0)


def _reports_bytes(play: Play) -> bool:
    return play.stream_bytes_sent is not None and play.reinjected_bytes is not None and _sent_once(play) > 0


def _rct(word: str, q: float, which: str, gate: Gate | None = None, example: str = "") -> Figure:
    return Figure(
        f"rct_{word}",
        f"RCT {word}",
        "s",
        Quantile(rcts, q, if_carried=0.5 < q < 1),
        f"{which} of the request completion times of all chunks of all runs.",
        example=example,
        where="`chunks.rct_s`",
        head=("RCT s", word),
        is_compared=q < 1,
        gate=gate,
    )


FIGURES = (
    _rct("median", 0.5, "The median", Gate(0.02)),
    _rct("p95", 0.95, "The 95th percentile", example="the p95 of 80 chunks is the 76th smallest."),
    _rct("p99", 0.99, "The 99th percentile", Gate(0.05)),
    _rct("max", 1.0, "The largest"),
    Figure(
        "first_frame",
        "first frame median",
        "s",
        Quantile(first_frames, 0.5, things="plays"),
        "From the player's start, before the handshake, to the last byte of the first video frame; the median over the "
        "runs. A run that never showed a frame counts with its time limit, a lower bound (≥).",
        term="first-frame latency",
        where="`runs.first_frame_s`",
        head=("first", "frame s"),
        bar_digits=2,
        is_compared=True,
        gate=Gate(0.02, "first frame"),
        is_there=lambda play: play.first_frame_counted[1],
    ),
    Figure(
        "first_frame_p95",
        "first frame p95",
        "s",
        Quantile(first_frames, 0.95, things="plays"),
        "The 95th percentile of the first-frame latencies of the runs.",
        where="`runs.first_frame_s`",
        is_compared=True,
    ),
    Figure(
        "rebuffer_rate",
        "rebuffer rate",
        "%",
        Ratio(
            lambda play: play.rebuffer_counted_s,
            lambda play: play.play_time_s,
            is_rare=True,
            is_bound=lambda play: play.failed,
        ),
        "Time stalled / time in which the video advanced. Start-up is not rebuffering. With a play that failed it is a "
        "lower bound (≥).",
        example="3 s stalled in 60 s of video is 5 %.",
        where="`runs.rebuffer_counted_s`, `play_time_s`",
        head=("rebuffer", "rate"),
        bar_digits=1,
        is_compared=True,
        gate=Gate(0.005),
    ),
    Figure(
        "redundancy",
        "redundancy",
        "%",
        Ratio(_sent_twice, _sent_once, is_known=_reports_bytes),
        "T / (all stream bytes sent − T), counted at the server, where T is re-injected bytes + bytes in flight on a "
        "path when it was given up (suspect, closed, or left by migration), which are sent again. Retransmissions "
        "after loss are not in T. For the kernel's MPTCP, T is the bytes sent on more than one "
        "subflow. Kernel TCP, MPTCP before Linux 6.5 and other stacks do not report it (–).",
        example="12 MB sent, 1.5 MB of them re-injected and 0.5 MB after a path was given up, is 20 %.",
        where="`runs.redundancy`",
        head=("redun-", "dancy"),
        bar_digits=1,
        gate=Gate(0.01),
        without=0.0,
    ),
    Figure(
        "reinjection_cost",
        "re-injection cost",
        "%",
        Ratio(lambda play: play.reinjected_bytes or 0, _sent_but_reinjected),
        "Re-injected bytes / other stream bytes sent, at the server: what the XLINK paper calls redundancy or cost, "
        "and β while the gate is always open.",
        where="`runs.reinjected_bytes`, `stream_bytes_sent`",
        without=0.0,
    ),
    Figure(
        "efficiency",
        "efficiency",
        "%",
        Quantile(
            _efficiencies,
            0.5,
            upper=True,
            is_known=lambda play: all(chunk.efficiency is not None for chunk in play.chunks),
        ),
        "Oracle RCT / RCT of a chunk; the median over all chunks. 100 % is what the traces, delays and headers of all "
        "paths allow. For a chunk that never completed it is an upper bound (≤).",
        where="`chunks.efficiency`",
        head=("effi-", "ciency"),
        bar_digits=0,
    ),
    Figure(
        "failed",
        "failed",
        "%",
        Share(lambda play: float(play.failed)),
        "Plays that failed.",
        where="`runs.failed`",
        gate=Gate(0.0),
    ),
    Figure(
        "stalled",
        "stalled",
        "%",
        Share(lambda play: float(play.rebuffer_counted_s > STALL_S)),
        f"Plays that stalled for more than {STALL_S:g} s.",
        where="`runs.rebuffer_counted_s`",
        gate=Gate(0.05),
    ),
    Figure(
        "tail",
        "tail",
        "%",
        Share(
            lambda play: max((chunk.rct_s for chunk in play.chunks), default=float("inf")),
            lambda ours, theirs: ours >= TAIL * theirs and ours > theirs,
        ),
        f"Plays whose longest request takes {TAIL:g} times as long as in the other version, or more.",
        where="`chunks.rct_s`",
        gate=Gate(0.05),
    ),
)

BY_NAME = {figure.name: figure for figure in FIGURES}
COMPARED = tuple(figure for figure in FIGURES if figure.is_compared)
GATED = tuple(figure for figure in FIGURES if figure.gate is not None)
RCT_MEDIAN, RCT_P95, RCT_P99, RCT_MAX = FIGURES[:4]
FIRST_FRAME, REBUFFER_RATE = BY_NAME["first_frame"], BY_NAME["rebuffer_rate"]
REDUNDANCY, REINJECTION_COST = BY_NAME["redundancy"], BY_NAME["reinjection_cost"]
EFFICIENCY = BY_NAME["efficiency"]


def reinjection_cost_of(sent_bytes: int, reinjected_bytes: int) -> float:
    """REINJECTION_COST from sums over plays; 0 if only copies were sent."""
    original_bytes = sent_bytes - reinjected_bytes
    return reinjected_bytes / original_bytes if original_bytes > 0 else 0.0
