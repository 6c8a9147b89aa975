/* LIA, linked increases (RFC 6356). In congestion avoidance, for each acknowledgement on path i,
 *
 *     cwnd_i += min(alpha bytes_acked MSS_i / cwnd_total, bytes_acked MSS_i / cwnd_i)
 *     alpha = cwnd_total max_i(cwnd_i / rtt_i^2) / (sum_i cwnd_i / rtt_i)^2
 *
 * so that at a shared bottleneck all paths together take as much as one flow on the best of them, and no path takes
 * more than a flow of its own. Only the increase is coupled: slow start, decrease and persistent congestion are
 * NewReno's (section 3). */
#include "congestion/coupled.h"

/* alpha / cwnd_total. */
static double alpha_share(const xl_coupled *s) {
    const xl_cc_member *m[XL_CC_GROUP_MAX];
    double best = 0, rate = 0;
    for (size_t i = 0, n = xl_coupled_siblings(s, m); i < n; i++) {
        double quality = m[i]->window / (m[i]->rtt_s * m[i]->rtt_s);
        best = quality > best ? quality : best;
        rate += m[i]->window / m[i]->rtt_s;
    }
    return best / (rate * rate);
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    xl_coupled *s = state;
    if (!xl_coupled_on_ack(s, ack))
        return;
    double own = 1.0 / s->reno.cwnd, linked = alpha_share(s);
    s->reno.cwnd += (linked < own ? linked : own) * (double)ack->bytes * (double)s->reno.mtu;
    xl_coupled_publish(s);
}

const xl_cc_ops xl_cc_lia = {
    .name = "lia",
    XL_COUPLED_OPS,
    .on_ack = on_ack,
    .on_loss = xl_coupled_on_loss_by_half,
};
