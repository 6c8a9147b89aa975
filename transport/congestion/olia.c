/* OLIA, opportunistic linked increases (R. Khalili, N. Gast, M. Popovic, U. Upadhyay, J.-Y. Le Boudec, "MPTCP is not
 * Pareto-Optimal: Performance Issues and a Possible Solution", ACM CoNEXT 2012;
 * draft-khalili-mptcp-congestion-control). In congestion avoidance, for each acknowledgement on path r, in packets,
 *
 *     w_r += (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r
 *
 *     alpha_r = 1 / (n |B \ M|)    if r is in B \ M
 *               -1 / (n |M|)       if r is in M, and B \ M is not empty
 *               0                  else
 *
 * n: number of paths. B: the best paths, which have the largest l_p / rtt_p^2 and would give a TCP flow the most; l_p
 * is the larger of the bytes acknowledged since the last loss and between the last two. M: the paths with the largest
 * window. The first term couples the increase; alpha moves windows to good paths that have small ones. Slow start and
 * decrease are NewReno's. */
#include "congestion/coupled.h"

static double quality(const xl_cc_member *m) {
    return m->between_losses / (m->rtt_s * m->rtt_s);
}

typedef struct {
    double best_quality, largest_window, rate;
    size_t count;
} survey;

static survey look(const xl_cc_member *const *m, size_t n) {
    survey v = {.count = n};
    for (size_t i = 0; i < n; i++) {
        v.best_quality = quality(m[i]) > v.best_quality ? quality(m[i]) : v.best_quality;
        v.largest_window = m[i]->window > v.largest_window ? m[i]->window : v.largest_window;
        v.rate += m[i]->window / m[i]->rtt_s;
    }
    return v;
}

static bool has_largest_window(const survey *v, const xl_cc_member *m) {
    return m->window >= v->largest_window;
}

static bool is_collected(const survey *v, const xl_cc_member *m) {
    return quality(m) >= v->best_quality && !has_largest_window(v, m);
}

static double alpha(const survey *v, const xl_cc_member *const *m) {
    size_t collected = 0, largest = 0;
    for (size_t i = 0; i < v->count; i++) {
        collected += is_collected(v, m[i]);
        largest += has_largest_window(v, m[i]);
    }
    if (collected == 0)
        return 0;
    if (is_collected(v, m[0]))
        return 1.0 / (double)(v->count * collected);
    return has_largest_window(v, m[0]) ? -1.0 / (double)(v->count * largest) : 0;
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    xl_coupled *s = state;
    if (!xl_coupled_on_ack(s, ack))
        return;
    const xl_cc_member *m[XL_CC_GROUP_MAX];
    survey v = look(m, xl_coupled_siblings(s, m));
    double linked = m[0]->window / (m[0]->rtt_s * m[0]->rtt_s) / (v.rate * v.rate);
    double growth = linked + alpha(&v, m) / s->reno.cwnd; /* per byte, in units of an MSS */
    xl_reno_set_window(&s->reno, s->reno.cwnd + growth * (double)ack->bytes * (double)s->reno.mtu);
    if (s->reno.cwnd < (double)s->reno.ssthresh) /* a negative alpha is not a return to slow start */
        s->reno.ssthresh = (uint64_t)s->reno.cwnd;
    xl_coupled_publish(s);
}

const xl_cc_ops xl_cc_olia = {
    .name = "olia",
    XL_COUPLED_OPS,
    .on_ack = on_ack,
    .on_loss = xl_coupled_on_loss_by_half,
};
