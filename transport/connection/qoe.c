/* When the player's signal goes out in frames of its own: QOE_CONTROL_SIGNALS (draft-liu-multipath-quic-02). Carried by
 * ACK_MP it needs no more than to be fresh: content.c. */
#include "connection/content.h"

#define QOE_SIGNAL_INTERVAL_US 50000

static bool is_equal(const xl_qoe *a, const xl_qoe *b) {
    return a->cached_bytes == b->cached_bytes && a->cached_frames == b->cached_frames && a->bps == b->bps &&
           a->fps == b->fps;
}

void xl_connection_set_qoe(xl_connection *c, const xl_qoe *qoe, uint64_t now) {
    xl_qoe_carrier carrier = c->is_server ? XL_QOE_OFF : c->config->scheme.qoe_carrier;
    xl_conn_enter(c, now);
    c->qoe = *qoe;
    c->qoe_fresh = (carrier & XL_QOE_IN_ACK) != 0;
    if (!(carrier & XL_QOE_IN_SIGNALS) || (c->qoe_signals > 0 && is_equal(qoe, &c->qoe_signalled)))
        return;
    c->qoe_signal_pending = true;
    xl_conn_wake(c);
}

static bool is_wanted(const xl_connection *c) {
    return c->qoe_signal_pending && c->multipath && c->qoe_field;
}

bool xl_conn_qoe_signal_is_due(const xl_connection *c) {
    return is_wanted(c) && c->now >= c->qoe_signal_from;
}

/* What is due already waits for room on a path, not for the clock. */
uint64_t xl_conn_qoe_deadline(const xl_connection *c) {
    return is_wanted(c) && c->qoe_signal_from > c->now ? c->qoe_signal_from : XL_NEVER;
}

void xl_content_put_qoe(xl_builder *b) {
    xl_connection *c = b->c;
    if (!xl_conn_qoe_signal_is_due(c) || xl_builder_left(b) < 64 ||
        !xl_builder_note(b, XL_SF_QOE, c->qoe_signals + 1, 0))
        return;
    xl_frame_put_qoe(&b->w, b->path->remote_seq, &c->qoe);
    c->qoe_signals++;
    c->qoe_signalled = c->qoe;
    c->qoe_signal_pending = false;
    c->qoe_signal_from = c->now + QOE_SIGNAL_INTERVAL_US;
}

void xl_conn_qoe_signal_lost(xl_connection *c, uint64_t number) {
    c->qoe_signal_pending |= number == c->qoe_signals;
}
