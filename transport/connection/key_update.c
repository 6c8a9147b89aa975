/* Generations of the 1-RTT keys (RFC 9001 section 6): which of them opens a packet, when the next one comes, and when
 * the connection has to end because keys were used too often. All paths share the keys, but not packet numbers. */
#include "connection/key_update.h"

#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/state.h"

/* Packets that the keys must last for while the connection is closing, because the close is repeated. */
#define CLOSE_RESERVE 16

#define UPDATE_INTERVAL_US 10000

/* ---- Generations ---- */

static bool takes_part(const xl_connection *c, const xl_path *p) {
    return (c->multipath || p->index == c->active) && (p->state == XL_PATH_ACTIVE || p->state == XL_PATH_STANDBY) &&
           p->flight.pto_count < XL_SUSPECT_PTOS;
}

/* Whether a packet of the present phase was acknowledged on every path: before, the peer may still need the previous
 * keys. A path that does not answer is not waited for. */
static bool is_acked_everywhere(const xl_connection *c) {
    bool is_acked = false;
    XL_EACH_PATH(const xl_path, p, c) {
        is_acked |= p->phase.is_acked;
        if (takes_part(c, p) && !p->phase.is_acked)
            return false;
    }
    return is_acked;
}

bool xl_conn_may_update_keys(const xl_connection *c) {
    return c->handshake.is_confirmed && c->key_update.phase_acked && c->now >= c->key_update.may_from &&
           c->key_update.next_read && is_acked_everywhere(c);
}

/* Changes the reading keys at once, because the current packet needs them. xl_conn_prepare_keys() does the rest: the
 * time that a packet takes must not tell an observer that it began a phase (section 6.3). */
static void enter_next_phase(xl_connection *c, bool by_peer) {
    xl_level_state *app = &c->level[XL_LEVEL_APP];
    xl_keys_free(c->key_update.previous_read);
    c->key_update.previous_read = app->read;
    c->key_update.previous_read_until = XL_NEVER;
    app->read = c->key_update.next_read;
    c->key_update.next_read = NULL;
    c->key_update.phase = !c->key_update.phase;
    c->key_update.generation++;
    c->key_update.phase_seen_at = XL_NEVER;
    c->key_update.phase_answered = c->key_update.phase_acked = false;
    XL_EACH_PATH(xl_path, p, c) {
        p->phase.first_pn = p->space->ledger.next_pn;
        p->phase.is_acked = false;
        p->space->before_phase = p->space->largest_received;
        p->space->phase_first = UINT64_MAX;
    }
    xl_qlog_connection(c->qlog, c->now, "key_updated", by_peer ? "remote_update" : "local_update");
}

static bool advance(xl_keys **keys, const xl_keys *from) {
    xl_keys *next = xl_keys_next(from);
    if (!next)
        return false;
    xl_keys_free(*keys);
    *keys = next;
    return true;
}

int xl_conn_prepare_keys(xl_connection *c) {
    xl_level_state *app = &c->level[XL_LEVEL_APP];
    if (c->key_update.next_read || !c->handshake.is_complete)
        return 0;
    while (c->key_update.write_generation < c->key_update.generation) {
        if (!advance(&app->write, app->write))
            return XL_ERR_MEMORY;
        c->key_update.write_generation++;
    }
    return advance(&c->key_update.next_read, app->read) ? 0 : XL_ERR_MEMORY;
}

int xl_conn_update_keys(xl_connection *c) {
    int error = xl_conn_prepare_keys(c);
    if (error)
        return error;
    enter_next_phase(c, false);
    return xl_conn_prepare_keys(c);
}

void xl_conn_forget_previous_keys(xl_connection *c) {
    if (!c->key_update.previous_read || c->now < c->key_update.previous_read_until)
        return;
    xl_keys_free(c->key_update.previous_read);
    c->key_update.previous_read = NULL;
}

/* ---- Receiving ---- */

/* While there are keys of three generations, every packet that is not authentic costs two attempts, else one, whatever
 * its key phase. So the time reveals nothing about a protected bit (section 6.3). */
ssize_t xl_conn_open_1rtt(xl_connection *c, const xl_packet_context *ctx, uint64_t path_id, uint8_t *packet, size_t len,
                          size_t pn_offset, size_t pn_len, uint8_t **payload, xl_key_age *age) {
    const xl_keys *read = c->level[XL_LEVEL_APP].read;
    const xl_keys *next =
        c->key_update.next_read ? c->key_update.next_read : read; /* `read` opens nothing of the other phase */
    bool other_phase = ((packet[0] & 0x04) != 0) != c->key_update.phase;
    const xl_keys *order[2] = {other_phase ? next : read, c->key_update.previous_read};
    for (int i = 0; i < 2 && order[i]; i++) {
        ssize_t n = xl_keys_open(order[i], path_id, ctx->pn, packet, len, pn_offset, pn_len, payload);
        if (n < 0)
            continue;
        *age = i == 1 ? XL_KEYS_PREVIOUS : order[i] == read ? XL_KEYS_PRESENT : XL_KEYS_NEXT;
        return other_phase == (*age != XL_KEYS_PRESENT) ? n : -1;
    }
    return -1;
}

/* configured 0: no limit. */
static uint64_t least(uint64_t limit, uint64_t configured) {
    return configured && configured < limit ? configured : limit;
}

static uint64_t shortest_pto(const xl_connection *c) {
    uint64_t shortest = XL_NEVER;
    XL_EACH_PATH(const xl_path, p, c) {
        uint64_t pto = xl_rtt_pto(&p->ack_rtt, xl_conn_peer_ack_delay_us(c));
        if (xl_path_is_open(p) && pto < shortest)
            shortest = pto;
    }
    return shortest == XL_NEVER ? 0 : shortest;
}

/* The peer must have an acknowledgement of a packet of the present phase before it begins another (section 6.1), which
 * takes a round trip. To limit the work of updates, two of them must be at least min(shortest PTO, UPDATE_INTERVAL_US)
 * apart. Our PTO may be much longer than the peer's: on a new path, or behind our own queue. */
static bool may_peer_update(const xl_connection *c) {
    if (c->key_update.generation == 0)
        return true;
    return c->key_update.phase_answered && c->key_update.phase_seen_at != XL_NEVER &&
           c->now - c->key_update.phase_seen_at >= least(UPDATE_INTERVAL_US, shortest_pto(c));
}

static void note_of_phase(xl_connection *c, xl_space *space, uint64_t pn) {
    if (space->phase_first == UINT64_MAX || pn < space->phase_first)
        space->phase_first = pn;
    if (c->key_update.phase_seen_at != XL_NEVER)
        return;
    c->key_update.phase_seen_at = c->now;
    c->key_update.previous_read_until = c->now + 3 * xl_conn_max_pto(c); /* section 6.5 */
}

static bool is_above(uint64_t pn, uint64_t least) {
    return least != UINT64_MAX && pn > least;
}

/* Higher packet numbers must have the same keys or newer ones (section 6.4). */
uint64_t xl_conn_take_phase(xl_connection *c, xl_space *space, uint64_t pn, xl_key_age age) {
    c->key_update.packet_is_old = age == XL_KEYS_PREVIOUS;
    if (age == XL_KEYS_PREVIOUS) {
        if (is_above(pn, space->phase_first))
            return XL_QERR_KEY_UPDATE;
        if (space->before_phase == UINT64_MAX || pn > space->before_phase)
            space->before_phase = pn;
        return 0;
    }
    if (age == XL_KEYS_NEXT) {
        if (!may_peer_update(c))
            return XL_QERR_KEY_UPDATE;
        enter_next_phase(c, true);
    }
    if (space->before_phase != UINT64_MAX && pn < space->before_phase)
        return XL_QERR_KEY_UPDATE;
    note_of_phase(c, space, pn);
    return 0;
}

void xl_conn_phase_was_acked(xl_connection *c) {
    if (c->key_update.phase_acked || !is_acked_everywhere(c))
        return;
    c->key_update.phase_acked = true;
    /* The peer may not have the keys for another update yet (section 6.5). */
    c->key_update.may_from = c->key_update.generation > 0 ? c->now + 3 * xl_conn_max_pto(c) : c->now;
}

/* ---- Limits of the use of keys (section 6.6) ---- */

void xl_conn_count_forged(xl_connection *c, const xl_keys *keys) {
    c->key_update.forged_packets++;
    if (c->key_update.forged_packets > least(xl_keys_integrity_limit(keys), c->config->limits.forged_packets))
        xl_conn_fail(c, XL_QERR_AEAD_LIMIT, "too many packets that are not authentic");
}

/* Sends PINGs on paths where nothing of this phase is acknowledged and nothing in flight could be. */
static void ask_for_acks(xl_connection *c) {
    XL_EACH_PATH(xl_path, p, c)
        if (takes_part(c, p) && !p->phase.is_acked && p->flight.eliciting == 0)
            p->flight.ping_pending = true;
}

void xl_conn_count_sealed(xl_connection *c) {
    const xl_keys *write = c->level[XL_LEVEL_APP].write;
    uint64_t limit = least(xl_keys_confidentiality_limit(write), c->config->limits.packets_per_key);
    uint64_t sealed = xl_keys_sealed_count(write);
    if (sealed < limit / 2 || !xl_conn_is_live(c))
        return;
    if (sealed + CLOSE_RESERVE >= limit)
        xl_conn_fail(c, XL_QERR_AEAD_LIMIT, "the keys are used up and cannot be updated");
    else if (!xl_conn_may_update_keys(c))
        ask_for_acks(c);
    else if (xl_conn_update_keys(c) != 0)
        xl_conn_fail(c, XL_QERR_INTERNAL, "key update failed");
}
