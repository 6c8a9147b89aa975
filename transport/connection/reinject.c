#include "connection/reinject.h"

#include <math.h>

#include "connection/connection.h"
#include "connection/qoe.h"

#define REINJECTION_RECHECK_US 50000
/* Rescue copies: bytes of a share that do not depend on the bytes sent; number of shares that may be copied; factor of
 * a byte's price from one share to the next. */
#define RESCUE_CREDIT_BYTES 32000
#define RESCUE_SHARES_MAX   3
#define RESCUE_PRICE_FACTOR 5
#define SMALL_STREAM_BYTES  512

xl_reinjection_scope xl_conn_copy_scope(const xl_connection *c, const xl_stream *s, bool connection_has_unsent,
                                        bool is_held_up) {
    uint64_t mark_end = s->mark.position + s->mark.size;
    xl_reinjection_view view = {
        .stream_flushed = xl_send_is_flushed(&s->send) || is_held_up,
        .has_mark = s->has_mark,
        .frame_flushed = s->has_mark && s->send.sent >= mark_end &&
                         (s->send.lost.count == 0 || s->send.lost.at[0].start >= mark_end),
        .connection_has_unsent = connection_has_unsent,
    };
    return c->reinjection->scope(&view);
}

/* ---- The packet ---- */

static void drop_settled(xl_connection *c, xl_stream *s, xl_unacked_queue *q) {
    for (; q->head && xl_send_range_is_acked(&s->send, q->head->offset, q->head->len, q->head->fin);
         c->stats.reinjection_steps++)
        xl_conn_unacked_remove(s, q->head); /* the other copy arrived */
    for (; q->tail && xl_send_range_is_acked(&s->send, q->tail->offset, q->tail->len, q->tail->fin);
         c->stats.reinjection_steps++)
        xl_conn_unacked_remove(s, q->tail);
}

/* Usually a request: sending it on every path costs less than waiting for a lost one. */
static bool is_small(const xl_connection *c, const xl_stream *s) {
    return c->config->scheme.rescue && s->send.fin_written && s->send.written <= SMALL_STREAM_BYTES;
}

/* Whether a copy pays. min_gain_us: how much earlier it must be; 0 while the gate is open. */
static bool pays(xl_connection *c, const xl_stream *s, const xl_sent_frame *r, const xl_path *onto,
                 uint64_t min_gain_us, xl_qlog_race *race) {
    const xl_path *from = c->path[r->path];
    c->stats.reinjection_steps++;
    if (r->copied_on & 1u << onto->index)
        return false; /* a copy of it is, or was, in flight there */
    race->original_us = xl_path_time_left(from, r->sent_total, r->sent_at, c->now);
    race->copy_us = xl_path_delivery_time(onto, r->len, c->now);
    if (race->original_us == XL_NEVER && min_gain_us > 0)
        race->original_us = c->now - r->sent_at; /* unknown: assume that the silence lasts as long again */
    if (c->config->scheme.reinjection_unconditional || from->state != XL_PATH_ACTIVE || is_small(c, s))
        return true;
    return xl_reinjection_pays(race->original_us, race->copy_us, min_gain_us);
}

/* Starts a timer for another search: silence makes a copy worthwhile, but causes no event. */
static void look_again_later(xl_connection *c) {
    if (c->reinjection_recheck == XL_NEVER)
        c->reinjection_recheck = c->now + REINJECTION_RECHECK_US;
}

/* Returns the stream's packet in flight on one other path that is most worth copying: the oldest if its path has fallen
 * silent, else the newest, which will arrive last. A queue is in order of sending, the marked frame first, and holds
 * only packets that may still be copied, so the cost does not depend on how much is in flight. */
static xl_sent_frame *worth_copying(xl_connection *c, xl_stream *s, xl_unacked_queue *q, const xl_path *onto,
                                    xl_reinjection_scope scope, uint64_t min_gain_us, xl_qlog_race *race) {
    look_again_later(c);
    if (scope == XL_REINJECT_MARKED_FRAME && q->head->offset >= s->mark.position + s->mark.size)
        return NULL;
    if (pays(c, s, q->head, onto, min_gain_us, race))
        return q->head;
    return scope == XL_REINJECT_STREAM && pays(c, s, q->tail, onto, min_gain_us, race) ? q->tail : NULL;
}

/* Finds the best original on all other paths. Returns whether any of them has a packet that may be copied at all. */
static bool look_for_original(xl_connection *c, xl_stream *s, const xl_path *onto, xl_reinjection_scope scope,
                              uint64_t min_gain_us, xl_copy *out) {
    bool any = false;
    c->stats.reinjection_decisions++;
    for (size_t i = 0; i < c->path_count; i++) {
        xl_unacked_queue *q = &s->unacked[i];
        xl_qlog_race race = {0, 0};
        drop_settled(c, s, q);
        if (!q->head || (int)i == onto->index)
            continue;
        any = true;
        xl_sent_frame *r = worth_copying(c, s, q, onto, scope, min_gain_us, &race);
        if (r && (!out->original || r->offset < out->original->offset)) {
            out->original = r;
            out->race = race;
        } else if (!out->original) {
            out->race = race;
        }
    }
    return any;
}

static bool refuse(xl_connection *c, const xl_stream *s, const xl_path *onto, const char *why, const xl_qlog_gate *gate,
                   const xl_qlog_race *race) {
    xl_qlog_reinjection_refused(c->qlog, c->now, s->id, onto->index, why, gate, race);
    return false;
}

/* Bytes of the stream that are in flight on other paths and may be copied. */
static uint64_t rest_to_copy(const xl_connection *c, const xl_stream *s, const xl_path *onto) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->path_count; i++)
        bytes += (int)i != onto->index ? s->unacked[i].bytes : 0;
    return bytes;
}

/* The gain that a byte must bring, in microseconds: it rises with the number of shares that are copied, `rest`
 * included. So small gains get some of the bytes, and the others are kept for large gains. This is a threshold policy
 * for a knapsack whose items are not known in advance (Zhou, Chakrabarty and Lukose, WINE 2008). */
static double price_us(const xl_connection *c, uint64_t rest) {
    uint64_t share = RESCUE_CREDIT_BYTES + c->stats.stream_bytes_sent / 1000 * c->config->scheme.rescue_permille;
    double shares = (double)(c->stats.reinjected_bytes + rest) / (double)share;
    return shares > RESCUE_SHARES_MAX ? INFINITY : pow(RESCUE_PRICE_FACTOR, shares);
}

/* The gate is closed because the player has enough, but the request is not complete. Copies what would arrive much too
 * late if the gain is worth the price of all bytes that are still to be copied: a request completes with its last
 * packet, so a part of them is of no use. */
static bool rescue(xl_connection *c, xl_stream *s, const xl_path *onto, xl_reinjection_scope scope, xl_copy *out) {
    if (!c->config->scheme.rescue)
        return false;
    uint64_t rest = rest_to_copy(c, s, onto);
    double price = price_us(c, rest);
    if (isinf(price))
        return false;
    uint64_t gain_us = c->config->scheme.rescue_gain_us + (uint64_t)(price * (double)rest);
    out->original = NULL;
    return look_for_original(c, s, onto, scope, gain_us, out) && out->original;
}

bool xl_conn_choose_copy(xl_connection *c, xl_stream *s, const xl_path *onto, xl_reinjection_scope scope,
                         xl_copy *out) {
    *out = (xl_copy){0};
    if (!look_for_original(c, s, onto, scope, 0, out))
        return refuse(c, s, onto, s->unacked[onto->index].head ? "in flight on this path only" : "all copied", NULL,
                      NULL);
    if (!out->original)
        return refuse(c, s, onto, "does not pay", NULL, &out->race);
    xl_qlog_gate gate;
    xl_qoe_decision d = xl_conn_ask_gate(c, &gate);
    if (!d.on && !rescue(c, s, onto, scope, out)) {
        out->original = NULL;
        return refuse(c, s, onto, "gate closed", &gate, NULL);
    }
    out->why = d.on ? d.why : "rescue";
    return true;
}

void xl_conn_copy_sent(xl_connection *c, xl_stream *s, const xl_copy *copy, const xl_path *onto, uint64_t offset,
                       size_t len) {
    xl_sent_frame *o = copy->original;
    xl_qlog_reinjection(c->qlog, c->now, s->id, offset, len, o->path, onto->index, o->copies + 1u, copy->why,
                        &copy->race);
    o->copied += (uint32_t)len;
    if (o->copied < o->len)
        return;
    o->copied = 0;
    o->copied_on |= (uint8_t)(1u << onto->index);
    xl_conn_unacked_remove(s, o);
    if (++o->copies < c->config->scheme.max_reinjections)
        xl_conn_unacked_push(s, o, c->reinjection->frame_first);
}
