/* Dark paths and peers that are not libxlink. When a path goes dark, libxlink sends what was in flight there on another
 * one. Others do not (tests/interop has the cells):
 *
 *   noq        retransmits nothing of a dark path until the path is abandoned, and sends all acknowledgements on its
 *              first path: if that is dark it acknowledges nothing of the others either;
 *   picoquic   repairs a dark path by itself, 0.6 s later at most, and forgets what was in flight on an abandoned one.
 *
 * So a path is abandoned if it is silent and nothing that is awaited arrives on any other path, but no earlier, so that
 * no repair is cut off. With PTO the path's probe timeout and S = max(1.5 s, 4 PTO), a path is in the way if
 *
 *     no stream data came for S although some is awaited, or nothing was acknowledged for S after two probe timeouts,
 *     and nothing came on the path for S, not even the answers to two PATH_CHALLENGEs,
 *     and another path was heard all the time.
 *
 * A PATH_RESPONSE returns on the path of its PATH_CHALLENGE, wherever acknowledgements go. */
#include "connection/silence.h"

#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "minmax.h"

#define PATIENCE_US   1500000
#define PATIENCE_PTOS 4
#define ASK_US        300000  /* silence before a path is challenged, unless its PTO is longer */
#define STALE_US      1000000 /* after a longer break the last look is ignored: the connection was idle */
#define ASKED_TIMES   2
#define ASK_AGAIN_US  1000000

bool xl_conn_has_foreign_peer(const xl_connection *c) {
    return c->path_ids && !c->qoe.has_field;
}

/* Whether a stream has a gap, or an answer is not complete yet. */
static bool awaits_data(const xl_connection *c) {
    for (size_t i = 0; i < c->streams.count; i++) {
        const xl_stream *s = c->streams.at[i];
        if (!s->peer_reset && s->recv.highest > s->recv.read + xl_recv_readable(&s->recv))
            return true;
    }
    return xl_conn_expects_data(c);
}

static bool awaits_acks(const xl_connection *c) {
    XL_EACH_PATH(const xl_path, p, c)
        if (xl_path_may_carry_data(p) && p->flight.pto_count >= XL_SUSPECT_PTOS)
            return true;
    return false;
}

bool xl_conn_is_being_repaired(const xl_connection *c) {
    return awaits_data(c) && c->now - c->silence.received_at < PATIENCE_US;
}

static uint64_t pto(const xl_connection *c, const xl_path *p) {
    return xl_rtt_pto(&p->rtt, xl_conn_peer_ack_delay_us(c));
}

static uint64_t ask_after(const xl_connection *c, const xl_path *p) {
    return xl_max(ASK_US, pto(c, p));
}

static bool is_usable(const xl_path *p) {
    return xl_path_may_carry_data(p) && p->cids.has_remote;
}

static bool is_heard(const xl_connection *c, const xl_path *p) {
    return is_usable(p) && c->now - p->last_received_at < 2 * ask_after(c, p);
}

static size_t heard_paths(const xl_connection *c) {
    size_t n = 0;
    XL_EACH_PATH(const xl_path, p, c)
        n += is_heard(c, p);
    return n;
}

void xl_conn_silence_look(xl_connection *c) {
    xl_silence *s = &c->silence;
    bool is_stale = c->now - s->looked_at > STALE_US;
    if (is_stale || s->stream_bytes != c->stats.stream_bytes_received || !awaits_data(c))
        s->received_at = c->now;
    if (is_stale || !awaits_acks(c))
        s->acked_at = c->now;
    if (is_stale || heard_paths(c) == 0)
        s->unheard_at = c->now;
    s->stream_bytes = c->stats.stream_bytes_received;
    s->looked_at = c->now;
}

/* Time since which neither what is awaited nor anything on p has arrived. */
static uint64_t held_up_since(const xl_connection *c, const xl_path *p) {
    return xl_max(p->last_received_at, xl_min(c->silence.received_at, c->silence.acked_at));
}

/* Challenges without an answer stay in flight and delay the probe timeout, so they are limited. */
static void ask(xl_connection *c, xl_path *p) {
    bool is_time = p->watch.asked <= ASKED_TIMES || c->now - p->validation.sent_at >= ASK_AGAIN_US;
    if (p->validation.is_outstanding || !is_time)
        return;
    p->watch.asked++;
    xl_conn_start_rtt_probe(c, p);
}

void xl_conn_probe_heard_paths(xl_connection *c) {
    XL_EACH_PATH(xl_path, p, c)
        if (is_heard(c, p))
            p->flight.probes = 1;
    xl_conn_wake(c);
}

bool xl_conn_path_is_in_the_way(xl_connection *c, xl_path *p) {
    uint64_t since = held_up_since(c, p);
    size_t usable = 0;
    XL_EACH_PATH(xl_path, q, c)
        usable += is_usable(q);
    if (!is_usable(p) || usable < 2)
        return false;
    if (c->now - since < ask_after(c, p)) {
        p->watch.asked = 0;
        return false;
    }
    ask(c, p);
    uint64_t passed = c->now - xl_max(since, c->silence.unheard_at);
    return p->watch.asked > ASKED_TIMES && passed >= xl_max(PATIENCE_US, PATIENCE_PTOS * pto(c, p));
}
