/* BLEST, blocking estimation (S. Ferlin, O. Alay, O. Mehani, R. Boreli, "BLEST: Blocking Estimation-based MPTCP
 * Scheduler for Heterogeneous Networks", IFIP Networking 2016), section IV. BLEST decides as min-RTT does, unless only
 * a slower path S has a window. A packet on S stays in the send window for RTT_S. If the fast path F could send more in
 * that time than the rest of the send window, S would block F, and BLEST waits for F. With W the send window,
 *
 *     rtts = RTT_S / RTT_F,   X = MSS_F (cwnd_F + (rtts - 1) / 2) rtts      cwnd_F in packets
 *     wait if  lambda X > W - (in flight on S + one packet)
 *
 * lambda corrects the estimate once in RTT_S: up when the send window was blocked in that time, down when not. The
 * paper leaves its steps open; start 1.2, +0.04, -0.01 and the limits 1.0 and 1.3 are those of the authors' scheduler
 * in the Linux kernel. The send window is the least of the stream's and the connection's flow-control credit and the
 * send buffer. If it is much larger than what the fast path sends in RTT_S, BLEST decides as min-RTT does. */
#include "scheduler/scheduler.h"

#include <assert.h>

#define LAMBDA_START 1.2
#define LAMBDA_MIN   1.0
#define LAMBDA_MAX   1.3
#define LAMBDA_UP    0.04
#define LAMBDA_DOWN  0.01

typedef struct {
    double lambda;
    uint64_t updated_at;
    bool was_blocked; /* since updated_at */
} blest;

static_assert(sizeof(blest) <= XL_SCHEDULER_STATE_BYTES, "scheduler state too large");

static void blest_init(void *state) {
    ((blest *)state)->lambda = LAMBDA_START;
}

static void correct_lambda(blest *s, uint64_t now, uint64_t slow_rtt_us) {
    if (now - s->updated_at < slow_rtt_us)
        return;
    s->lambda += s->was_blocked ? LAMBDA_UP : -LAMBDA_DOWN;
    s->lambda = s->lambda < LAMBDA_MIN ? LAMBDA_MIN : s->lambda > LAMBDA_MAX ? LAMBDA_MAX : s->lambda;
    s->was_blocked = false;
    s->updated_at = now;
}

/* X: bytes that the fast path could send while a packet is in transit on the slow one. Its window grows by a packet a
 * round trip. */
static double fast_bytes(const xl_scheduler_path *fast, const xl_scheduler_path *slow) {
    double rtts = (double)slow->srtt_us / (double)(fast->srtt_us ? fast->srtt_us : 1);
    double mss = (double)fast->mtu_bytes;
    return ((double)fast->window_bytes + mss * (rtts - 1.0) / 2.0) * rtts;
}

static void blest_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    blest *s = state;
    s->was_blocked |= view->is_window_blocked;
    if (!xl_scheduler_decide_by_rtt(view, out) || view->unsent_bytes == 0)
        return;
    const xl_scheduler_path *slow = &view->path[out->order[0]], *fast = xl_scheduler_faster_but_full(view, out);
    if (!fast)
        return;
    correct_lambda(s, view->now, slow->srtt_us);
    double left = (double)view->send_window_bytes - (double)(slow->in_flight_bytes + slow->mtu_bytes);
    if (s->lambda * fast_bytes(fast, slow) > left)
        xl_scheduler_wait(out, fast, "the slow path would block the send window");
}

const xl_scheduler_ops xl_scheduler_blest = {
    .name = "blest", .init = blest_init, .decide = blest_decide, .wants_backlog = true};
