#include "connection/state.h"

#include <stdio.h>
#include <string.h>

#include "connection/connection.h"
#include "minmax.h"

#define CLOSE_PTOS 3

void xl_conn_emit(xl_connection *c, xl_event e) {
    e.connection = c;
    c->hooks.event(c->hooks.endpoint, &e);
}

void xl_conn_wake(xl_connection *c) {
    if (!c->slot.is_ready)
        c->hooks.wake(c->hooks.endpoint, c);
}

void xl_conn_touch(xl_connection *c) {
    if (!c->slot.is_touched)
        c->hooks.touched(c->hooks.endpoint, c);
}

void xl_conn_enter(xl_connection *c, uint64_t now) {
    c->now = now;
    xl_conn_touch(c);
}

bool xl_conn_is_live(const xl_connection *c) {
    return c->state == XL_CONN_HANDSHAKE || c->state == XL_CONN_OPEN;
}

uint64_t xl_conn_peer_ack_delay_us(const xl_connection *c) {
    return c->peer_params.max_ack_delay_ms * 1000;
}

uint64_t xl_conn_max_pto(const xl_connection *c) {
    uint64_t longest = 0;
    XL_EACH_PATH(const xl_path, p, c) {
        if (!xl_path_is_open(p))
            continue;
        uint64_t pto = xl_rtt_pto(&p->ack_rtt, xl_conn_peer_ack_delay_us(c));
        longest = pto > longest ? pto : longest;
    }
    return longest ? longest : 3 * XL_INITIAL_RTT_US;
}

/* RFC 9000 section 10.1: at least three PTOs, so that a short timeout does not cut recovery off. */
void xl_conn_restart_idle(xl_connection *c, uint64_t now) {
    uint64_t timeout = c->idle_timeout_us, least = 3 * xl_conn_max_pto(c);
    timeout = timeout == 0 || timeout > least ? timeout : least;
    c->idle_deadline = timeout == 0 || timeout > XL_NEVER - now ? XL_NEVER : now + timeout;
}

/* ---- The end ---- */

static void note_closed(xl_connection *c, const char *words) {
    snprintf(c->closing.words, sizeof c->closing.words, "%s", words);
    xl_qlog_connection(c->qlog, c->now, "connection_closed", c->closing.words);
}

static void begin_closing(xl_connection *c, bool is_application, uint64_t code, const char *words) {
    c->closing.is_application = is_application;
    c->closing.code = code;
    note_closed(c, words);
    c->state = XL_CONN_CLOSING;
    c->closing.is_pending = true;
    c->closing.deadline = c->now + CLOSE_PTOS * xl_conn_max_pto(c);
    xl_conn_wake(c);
}

void xl_conn_fail(xl_connection *c, uint64_t transport_error, const char *reason) {
    if (!xl_conn_is_live(c))
        return;
    c->closing.frame_type = c->frame_type;
    begin_closing(c, false, transport_error, reason);
}

void xl_connection_close(xl_connection *c, uint64_t app_error, const char *reason, uint64_t now) {
    if (!xl_conn_is_live(c))
        return;
    xl_conn_enter(c, now);
    begin_closing(c, true, xl_min(app_error, XL_VARINT_MAX), reason ? reason : "");
}

static void report_closed(xl_connection *c, xl_close_reason reason) {
    if (c->closing.is_reported)
        return;
    c->closing.is_reported = true;
    xl_event e = {.type = XL_EVENT_CLOSED,
                  .close_reason = reason,
                  .error_code = c->closing.code,
                  .application_error = c->closing.is_application};
    memcpy(e.reason, c->closing.words, sizeof e.reason);
    xl_conn_emit(c, e);
}

void xl_conn_abort(xl_connection *c, xl_close_reason reason, const char *words) {
    if (c->state == XL_CONN_CLOSED)
        return;
    if (reason == XL_CLOSE_INTERNAL) {
        c->closing.is_application = false;
        c->closing.code = XL_QERR_INTERNAL;
    }
    note_closed(c, words);
    c->state = XL_CONN_CLOSED;
    report_closed(c, reason);
}

void xl_conn_drain(xl_connection *c, xl_close_reason reason, const char *words) {
    note_closed(c, words);
    c->state = XL_CONN_DRAINING;
    c->closing.deadline = c->now + CLOSE_PTOS * xl_conn_max_pto(c);
    report_closed(c, reason);
}

void xl_conn_end_closing(xl_connection *c) {
    c->state = XL_CONN_CLOSED;
    report_closed(c, c->closing.reason);
}
