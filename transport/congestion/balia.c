/* BALIA, balanced linked adaptation (Q. Peng, A. Walid, J. Hwang, S. Low, "Multipath TCP: Analysis, Design, and
 * Implementation", IEEE/ACM Transactions on Networking 24(1), 2016; draft-walid-mptcp-congestion-control). With x_k =
 * w_k / rtt_k and a_r = max_k x_k / x_r, in congestion avoidance for each acknowledgement on path r, in packets,
 *
 *     w_r += x_r / rtt_r / (sum_k x_k)^2  (1 + a_r) / 2  (4 + a_r) / 5
 *     a congestion event:  w_r -= w_r / 2 min(a_r, 1.5)
 *
 * Unlike LIA and OLIA it couples the decrease too: the best path halves its window, others lose up to three
 * quarters. */
#include "congestion/coupled.h"

typedef struct {
    double total, ratio; /* sum of x_k; a_r */
} survey;

static survey look(const xl_coupled *s, const xl_cc_member **m) {
    survey v = {0};
    double best = 0;
    for (size_t i = 0, n = xl_coupled_siblings(s, m); i < n; i++) {
        double rate = m[i]->window / m[i]->rtt_s;
        best = rate > best ? rate : best;
        v.total += rate;
    }
    v.ratio = best / (m[0]->window / m[0]->rtt_s);
    return v;
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    xl_coupled *s = state;
    if (!xl_coupled_on_ack(s, ack))
        return;
    const xl_cc_member *m[XL_CC_GROUP_MAX];
    survey v = look(s, m);
    double linked = m[0]->window / (m[0]->rtt_s * m[0]->rtt_s) / (v.total * v.total);
    double balanced = (1.0 + v.ratio) / 2.0 * (4.0 + v.ratio) / 5.0;
    s->reno.cwnd += linked * balanced * (double)ack->bytes * (double)s->reno.mtu;
    xl_coupled_publish(s);
}

static void on_loss(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)bytes;
    xl_coupled *s = state;
    const xl_cc_member *m[XL_CC_GROUP_MAX];
    xl_coupled_siblings(s, m);
    double ratio = m[0]->rtt_s > 0 ? look(s, m).ratio : 1.0; /* without an RTT the path halves its window */
    xl_coupled_on_loss(s, sent_time, 1.0 - (ratio < 1.5 ? ratio : 1.5) / 2.0, now);
}

const xl_cc_ops xl_cc_balia = {
    .name = "balia",
    XL_COUPLED_OPS,
    .on_ack = on_ack,
    .on_loss = on_loss,
};
