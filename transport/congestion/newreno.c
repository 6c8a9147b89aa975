/* NewReno (RFC 9002 section 7). */
#include "congestion/reno.h"

#include <assert.h>

typedef struct {
    xl_reno reno;
    double acked; /* bytes acknowledged in congestion avoidance since the window last grew */
} newreno;

static_assert(sizeof(newreno) <= XL_CC_STATE_BYTES, "controller state too large");

static void init(void *state, uint64_t mtu_bytes, uint64_t now) {
    (void)now;
    newreno *s = state;
    *s = (newreno){0};
    xl_reno_init(&s->reno, mtu_bytes);
}

static void set_mtu(void *state, uint64_t mtu_bytes) {
    newreno *s = state;
    xl_reno_set_mtu(&s->reno, mtu_bytes);
}

static void on_ack(void *state, const xl_cc_ack *ack) {
    newreno *s = state;
    if (!xl_reno_on_ack(&s->reno, ack))
        return;
    s->acked += (double)ack->bytes;
    if (s->acked >= s->reno.cwnd) {
        s->acked -= s->reno.cwnd;
        s->reno.cwnd += (double)s->reno.mtu;
    }
}

static void on_loss(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)bytes;
    newreno *s = state;
    if (xl_reno_on_loss(&s->reno, sent_time, 0.5, now))
        s->acked = 0;
}

static void on_persistent_congestion(void *state, uint64_t now) {
    newreno *s = state;
    xl_reno_on_persistent_congestion(&s->reno, now);
    s->acked = 0;
}

const xl_cc_ops xl_cc_newreno = {
    .name = "newreno",
    .init = init,
    .set_mtu = set_mtu,
    .on_sent = xl_reno_sent,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_persistent_congestion = on_persistent_congestion,
    .window = xl_reno_window,
    .ssthresh = xl_reno_ssthresh,
};
