/* The player's QoE signal: when it is sent in an ACK_MP or in a QOE_CONTROL_SIGNALS frame
 * (draft-liu-multipath-quic-02), which of several received signals is the newest, and the gate. */
#include "connection/qoe.h"

#include "connection/connection.h"
#include "connection/state.h"

#define QOE_SIGNAL_INTERVAL_US 50000

void xl_conn_qoe_configure(xl_connection *c) {
    const xl_scheme *s = &c->config->scheme;
    c->qoe.gate.enabled = s->qoe_control;
    c->qoe.gate.extrapolate = s->qoe_extrapolation;
    c->qoe.gate.t_th1_us = s->t_th1_us;
    c->qoe.gate.t_th2_us = s->t_th2_us;
}

/* ---- Sender ---- */

static bool is_equal(const xl_qoe *a, const xl_qoe *b) {
    return a->cached_bytes == b->cached_bytes && a->cached_frames == b->cached_frames && a->bps == b->bps &&
           a->fps == b->fps;
}

void xl_connection_set_qoe(xl_connection *c, const xl_qoe *qoe, uint64_t now) {
    xl_qoe_carrier carrier = c->is_server ? XL_QOE_OFF : c->config->scheme.qoe_carrier;
    if (c->path_ids && carrier != XL_QOE_OFF) /* PATH_ACK has no field for it */
        carrier = XL_QOE_IN_SIGNALS;
    xl_conn_enter(c, now);
    c->qoe.own = *qoe;
    c->qoe.is_fresh = (carrier & XL_QOE_IN_ACK) != 0;
    if (!(carrier & XL_QOE_IN_SIGNALS) || (c->qoe.signals > 0 && is_equal(qoe, &c->qoe.signalled)))
        return;
    c->qoe.signal_pending = true;
    xl_conn_wake(c);
}

const xl_qoe *xl_conn_qoe_for_ack(const xl_connection *c) {
    return c->qoe.has_field && !c->is_server && c->qoe.is_fresh ? &c->qoe.own : NULL;
}

static bool is_wanted(const xl_connection *c) {
    return c->qoe.signal_pending && c->multipath && c->qoe.has_field;
}

bool xl_conn_qoe_signal_is_due(const xl_connection *c) {
    return is_wanted(c) && c->now >= c->qoe.signal_from;
}

/* A signal that is due already waits for room on a path, not for the clock. */
uint64_t xl_conn_qoe_deadline(const xl_connection *c) {
    return is_wanted(c) && c->qoe.signal_from > c->now ? c->qoe.signal_from : XL_NEVER;
}

void xl_conn_put_qoe(xl_builder *b) {
    xl_connection *c = b->c;
    if (!xl_conn_qoe_signal_is_due(c) ||
        !xl_builder_reserve(b, XL_FRAME_QOE_CONTROL_SIGNALS, XL_SF_QOE, c->qoe.signals + 1, 0))
        return;
    xl_frame_put_qoe(&b->w, b->path->cids.remote_path_id, &c->qoe.own);
    c->qoe.signals++;
    c->qoe.signalled = c->qoe.own;
    c->qoe.signal_pending = false;
    c->qoe.signal_from = c->now + QOE_SIGNAL_INTERVAL_US;
}

/* ---- Receiver ---- */

void xl_conn_take_qoe(xl_connection *c, const xl_qoe *qoe, uint64_t made_after) {
    if (xl_qoe_gate_signal(&c->qoe.gate, qoe, made_after, c->now))
        xl_qlog_qoe_received(c->qlog, c->now, qoe);
}

/* A signal in a frame of its own acknowledges nothing, so two bounds apply. It was made half of the path's smallest RTT
 * ago or earlier: if that is before the present signal can have been made, it was overtaken. And it was made after the
 * acknowledgements that arrived before it on its path, those before it in its packet included. */
void xl_conn_take_qoe_signal(xl_connection *c, const xl_qoe *qoe, const xl_packet_context *ctx) {
    xl_path *p = ctx->path;
    uint64_t made_before = c->now - (p->rtt.has_sample ? p->rtt.min / 2 : 0);
    if (ctx->pn < p->made.signal_pn || (c->qoe.gate.has_signal && made_before < c->qoe.gate.signal_made_after))
        return;
    p->made.signal_pn = ctx->pn + 1;
    bool heard = ctx->pn >= p->made.made_pn && p->made.made_after > c->qoe.gate.signal_made_after;
    xl_conn_take_qoe(c, qoe, heard ? p->made.made_after : c->qoe.gate.signal_made_after);
}

/* ---- The gate ---- */

/* Equation 1: over all paths with unacknowledged packets, the largest RTT plus its variation. */
static uint64_t deliver_time_max(const xl_connection *c) {
    uint64_t longest = 0;
    XL_EACH_PATH(const xl_path, p, c) {
        if (p->flight.eliciting == 0 || !xl_path_may_carry_data(p))
            continue;
        uint64_t t = p->rtt.smoothed + p->rtt.var;
        longest = t > longest ? t : longest;
    }
    return longest;
}

xl_qoe_decision xl_conn_ask_gate(xl_connection *c, xl_qlog_gate *facts) {
    uint64_t longest = deliver_time_max(c);
    xl_qoe_decision d = xl_qoe_gate_decide(&c->qoe.gate, longest, c->now);
    *facts = (xl_qlog_gate){.on = d.on,
                            .why = d.why,
                            .play_time_left_us = d.play_time_left_us,
                            .t_th1_us = c->qoe.gate.t_th1_us,
                            .t_th2_us = c->qoe.gate.t_th2_us,
                            .deliver_time_max_us = longest};
    xl_qlog_qoe_gate(c->qlog, c->now, facts);
    return d;
}
