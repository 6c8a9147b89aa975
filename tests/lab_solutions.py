"""Solutions of the lab notebooks, by exercise: what takes the place of a cell's code before its check."""

PATH = {
    1: """
wifi_mbps, lte_mbps = (len(t.opportunities_ms) * 1504 * 8 / 1e3 / t.period_ms for t in (wifi, lte))
""",
    2: """
wifi_ms, lte_ms = (np.diff(t.opportunities_ms).max() for t in (wifi, lte))
""",
    3: """
slow_wifi, slow_lte = (t.rate_mbps(500) < 1 for t in (wifi, lte))
both_slow = (slow_wifi & slow_lte).mean()
if_independent = slow_wifi.mean() * slow_lte.mean()
together = "more" if both_slow > if_independent else "less"
""",
    4: """
packets = 12e6 * 0.020 / 8 / 1504
""",
    5: """
predicted_s = (1 << 20) * 8 / 12.03e6 + 0.020
""",
    6: """
queue_packets = 16
""",
}

TAIL = {
    1: """
def quantile(values, q):
    import math
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
""",
    2: """
run, slowest = max(
    ((run, one) for run in campaign.runs if run.label == "vanilla-mp" for one in run.chunks),
    key=lambda both: both[1].rct_s,
)
run_id, chunk = run.run_id, slowest.index
""",
    3: """
parts = campaign.explain(run_id, chunk).parts.to_pylist()
bounded_by = max(parts, key=lambda part: part["seconds"])["bound"]
""",
    4: """
saved = 1 - slowest.oracle_s / slowest.rct_s
""",
    5: """
runs = [run for run in campaign.runs if run.label == "xlink"]
twice = sum(run.reinjected_bytes + run.given_up_bytes for run in runs)
redundancy = twice / (sum(run.stream_bytes_sent for run in runs) - twice)
""",
    6: """
places = 8
""",
}

SCHEDULER = {
    1: '''
ROUND_ROBIN = """
#include "scheduler/scheduler.h"

static void decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    size_t *turn = state;
    if (!xl_scheduler_decide_by_rtt(view, out) || out->count < 2)
        return;
    if (++*turn % 2 == 0) {
        size_t first = out->order[0];
        out->order[0] = out->order[1];
        out->order[1] = first;
    }
}

const xl_scheduler_ops xl_scheduler_mine = {.name = "mine", .decide = decide};
"""
slower = "maximum"
''',
    2: '''
WAITING = """
#include "scheduler/scheduler.h"

static void decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    if (!xl_scheduler_decide_by_rtt(view, out))
        return;
    const xl_scheduler_path *fast = xl_scheduler_faster_but_full(view, out);
    if (fast && view->path[out->order[0]].srtt_us > 4 * fast->srtt_us)
        xl_scheduler_wait(out, fast, "the slow path takes longer");
}

const xl_scheduler_ops xl_scheduler_mine = {.name = "mine", .decide = decide};
"""
''',
    3: "",
}

SOLUTIONS = {"lab-path": PATH, "lab-tail": TAIL, "lab-scheduler": SCHEDULER}
