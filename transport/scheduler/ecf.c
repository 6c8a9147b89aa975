/* ECF, earliest completion first (Y.-s. Lim, E. Nahum, D. Towsley, R. Gibbens, "ECF: An MPTCP Path Scheduler to Manage
 * Heterogeneous Paths", ACM CoNEXT 2017), Algorithm 1. ECF decides as min-RTT does, unless only a slower path S has a
 * window. Then it waits for the fast path F if F would complete all unsent data earlier. With k the unsent bytes and
 * delta = max(sigma_F, sigma_S), the larger variation of both RTTs,
 *
 *     wait if  (1 + k / cwnd_F) RTT_F < (1 + waiting beta) (RTT_S + delta)   F, after a round trip, completes earlier
 *     and      k / cwnd_S RTT_S >= 2 RTT_F + delta                           S does not complete before F could answer
 *
 * beta = 0.25 is hysteresis: it applies while the scheduler is already waiting. k / cwnd is at least 1, as in the
 * authors' implementation, because any transfer takes a round trip. */
#include "scheduler/scheduler.h"

#define BETA 0.25

typedef struct {
    bool waiting;
} ecf;

static double windows(uint64_t bytes, const xl_scheduler_path *p) {
    return bytes > p->window_bytes && p->window_bytes > 0 ? (double)bytes / (double)p->window_bytes : 1.0;
}

static void ecf_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    ecf *s = state;
    if (!xl_scheduler_decide_by_rtt(view, out) || view->unsent_bytes == 0)
        return;
    const xl_scheduler_path *slow = &view->path[out->order[0]], *fast = xl_scheduler_faster_but_full(view, out);
    if (!fast)
        return;
    double rtt_f = (double)fast->srtt_us, rtt_s = (double)slow->srtt_us;
    double delta = (double)(fast->rttvar_us > slow->rttvar_us ? fast->rttvar_us : slow->rttvar_us);
    double margin = s->waiting ? 1.0 + BETA : 1.0;
    double round_trips = 1.0 + windows(view->unsent_bytes, fast);
    if (round_trips * rtt_f >= margin * (rtt_s + delta)) {
        s->waiting = false;
        out->why = "both paths are needed to be through early";
        return;
    }
    if (windows(view->unsent_bytes, slow) * rtt_s < 2.0 * rtt_f + delta) {
        out->why = "the slow path is through before the fast one answers";
        return;
    }
    s->waiting = true;
    xl_scheduler_wait(out, fast, "the fast path alone completes earlier");
}

const xl_scheduler_ops xl_scheduler_ecf = {.name = "ecf", .decide = ecf_decide, .wants_backlog = true};
