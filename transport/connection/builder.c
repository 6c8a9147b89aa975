#include "connection/builder.h"

#include <string.h>

#include "connection/connection.h"
#include "connection/key_update.h"
#include "connection/state.h"
#include "minmax.h"

#define MIN_CRYPTO_ROOM    32 /* with less room no CRYPTO frame is written */
#define CRYPTO_HEADER_ROOM 16 /* reserved for type, offset and length; the rest of it stays unused */
#define SKIP_MIN           64
#define SKIP_SPAN          1024
/* Packets without ack-eliciting frames that may stay unanswered, beside those that a flow control window requires. */
#define UNANSWERED_MIN 4096

static xl_packet_type type_of(const xl_builder *b) {
    static const xl_packet_type types[] = {XL_PACKET_INITIAL, XL_PACKET_HANDSHAKE, XL_PACKET_1RTT};
    return b->is_early ? XL_PACKET_0RTT : types[b->level];
}

static bool is_short(const xl_builder *b) {
    return b->level == XL_LEVEL_APP && !b->is_early;
}

/* RFC 9287: clears the bit at random for a peer that accepts that, so that the network does not rely on it. */
static void grease_quic_bit(const xl_builder *b) {
    xl_connection *c = b->c;
    if (c->peer_params.grease_quic_bit && c->config->limits.grease && c->handshake.peer_params_seen &&
        xl_drbg_bit(&c->random.grease))
        b->packet[0] &= (uint8_t)~0x40;
}

static bool spin_of(const xl_builder *b) {
    const xl_connection *c = b->c;
    if (!c->config->limits.spin_bit)
        return false;
    return c->spins ? b->path->spin : xl_drbg_bit(&b->c->random.grease);
}

static bool begin(xl_builder *b, xl_connection *c, xl_path *p, xl_level level, bool is_early, uint8_t *buf,
                  size_t room) {
    memset(b, 0, sizeof *b);
    b->c = c;
    b->is_early = is_early;
    b->path = p;
    b->level = level;
    b->space = level == XL_LEVEL_APP ? p->space : &c->space[level];
    b->keys = is_early ? c->early.keys : c->level[level].write;
    b->packet = buf;
    b->frames_tail = &b->frames;
    if (!b->keys || room < 64)
        return false;
    b->pn = b->space->ledger.next_pn;
    b->pn_len = xl_packet_number_len(b->pn, b->space->ledger.largest_acked);
    xl_writer w = xl_writer_of(buf, room - XL_AEAD_TAG);
    if (is_short(b)) {
        xl_packet_put_short(&w, &p->cids.remote, spin_of(b), c->key_update.phase, b->pn, b->pn_len);
    } else {
        bool with_token = level == XL_LEVEL_INITIAL && !c->is_server;
        xl_packet_put_long(&w, is_early ? c->handshake.original_version : c->handshake.version, type_of(b),
                           &p->cids.remote, &c->local_cids.at[0].cid, with_token ? c->handshake.token : NULL,
                           with_token ? c->handshake.token_len : 0, b->pn, b->pn_len, buf, &b->length_offset);
    }
    if (w.failed)
        return false;
    b->pn_offset = (size_t)(w.p - buf) - b->pn_len;
    b->payload = w.p;
    b->w = w;
    grease_quic_bit(b);
    return true;
}

bool xl_builder_begin(xl_builder *b, xl_connection *c, xl_path *p, xl_level level, uint8_t *buf, size_t room) {
    return begin(b, c, p, level, false, buf, room);
}

bool xl_builder_begin_early(xl_builder *b, xl_connection *c, xl_path *p, uint8_t *buf, size_t room) {
    return begin(b, c, p, XL_LEVEL_APP, true, buf, room);
}

bool xl_builder_is_empty(const xl_builder *b) {
    return b->w.p == b->payload;
}

size_t xl_builder_left(const xl_builder *b) {
    return xl_writer_left(&b->w);
}

xl_sent_frame *xl_builder_note(xl_builder *b, xl_sf_kind kind, uint64_t id, uint64_t offset) {
    xl_sent_frame *r = xl_records_new(&b->c->records);
    if (!r)
        return NULL;
    r->kind = (uint8_t)kind;
    r->id = id;
    r->offset = offset;
    r->path = (int8_t)b->path->index;
    r->sent_at = b->c->now;
    *b->frames_tail = r;
    b->frames_tail = &r->next;
    if (kind != XL_SF_ACK)
        b->ack_eliciting = true;
    return r;
}

xl_sent_frame *xl_builder_reserve(xl_builder *b, uint64_t frame_type, xl_sf_kind kind, uint64_t id, uint64_t offset) {
    return xl_builder_left(b) >= xl_frame_most_bytes(frame_type) ? xl_builder_note(b, kind, id, offset) : NULL;
}

static bool put_crypto(xl_builder *b, uint64_t offset, size_t len) {
    xl_level_state *l = &b->c->level[b->level];
    xl_sent_frame *r = xl_builder_note(b, XL_SF_CRYPTO, (uint64_t)b->level, offset);
    if (!r)
        return false;
    r->len = (uint32_t)len;
    xl_frame_put_crypto_header(&b->w, offset, len);
    xl_send_copy(&l->send, offset, b->w.p, len);
    b->w.p += len;
    l->resent_to = offset + len;
    return true;
}

void xl_builder_put_crypto(xl_builder *b) {
    xl_send *s = &b->c->level[b->level].send;
    xl_send_piece piece;
    while (xl_builder_left(b) > MIN_CRYPTO_ROOM &&
           xl_send_next(s, UINT64_MAX, xl_builder_left(b) - CRYPTO_HEADER_ROOM, &piece)) {
        if (!put_crypto(b, piece.offset, piece.len))
            return;
        xl_send_mark_sent(s, &piece);
    }
}

static bool next_unacked_crypto(const xl_level_state *l, xl_range *gap) {
    uint64_t from = l->resent_to > l->send.base ? l->resent_to : l->send.base;
    return xl_ranges_first_gap(&l->send.acked, from, l->send.sent, gap) ||
           xl_ranges_first_gap(&l->send.acked, l->send.base, l->send.sent, gap);
}

bool xl_builder_has_unacked_crypto(const xl_connection *c, xl_level level) {
    xl_range gap;
    return next_unacked_crypto(&c->level[level], &gap);
}

void xl_builder_put_crypto_again(xl_builder *b) {
    xl_range gap;
    if (xl_builder_left(b) <= MIN_CRYPTO_ROOM || !next_unacked_crypto(&b->c->level[b->level], &gap))
        return;
    (void)put_crypto(b, gap.start, xl_min(gap.end - gap.start, xl_builder_left(b) - CRYPTO_HEADER_ROOM));
}

void xl_builder_pad_to(xl_builder *b, size_t packet_bytes) {
    size_t now = (size_t)(b->w.p - b->packet) + XL_AEAD_TAG;
    size_t pad = packet_bytes > now ? packet_bytes - now : 0;
    if (pad > xl_writer_left(&b->w))
        pad = xl_writer_left(&b->w);
    if (pad == 0)
        return;
    memset(b->w.p, 0, pad);
    b->w.p += pad;
    b->has_padding = true;
}

static void log_sent(xl_builder *b, size_t payload_len, size_t packet_bytes) {
    xl_connection *c = b->c;
    xl_reader r = xl_reader_of(b->payload, payload_len);
    xl_frame f;
    xl_qlog_packet_begin(c->qlog, c->now, true, type_of(b), b->pn, packet_bytes, b->path->index,
                         b->level == XL_LEVEL_APP ? b->path->cids.remote_path_id : 0);
    while (xl_reader_left(&r) > 0 && xl_frame_parse(&r, c->qoe.has_field, &f) == 0)
        xl_qlog_frame(c->qlog, &f);
    xl_qlog_packet_end(c->qlog);
}

/* The mark applies to a whole datagram. So long headers have none, nor what may be coalesced with them. Neither has
 * what a server sends to an address that is not validated: if the path dropped it, the limit of section 8.1 would leave
 * no room for a probe. */
static void mark(xl_builder *b, xl_sent_packet *pkt) {
    xl_ecn *ecn = &b->path->ecn;
    if (b->level != XL_LEVEL_APP || !b->c->handshake.is_confirmed || !b->path->validation.is_done || b->is_aside) {
        ecn->last_marked = false;
        return;
    }
    const char *before = xl_ecn_state_name(ecn->state);
    pkt->is_ect0 = xl_ecn_mark(ecn, b->path->flight.pto_count);
    b->space->ecn.sent += pkt->is_ect0;
    xl_qlog_ecn_state(b->c->qlog, b->c->now, b->path->index, before, xl_ecn_state_name(ecn->state));
}

/* Whether the packet carries only QoE signals. They are sent more often than a probe timeout lasts: if each restarted
 * the timer (RFC 9002 section 6.2.1), an earlier request on a dark path would never be probed for. */
static bool is_signal_alone(const xl_builder *b) {
    bool any = false;
    for (const xl_sent_frame *r = b->frames; r; r = r->next) {
        if (r->kind != XL_SF_QOE && r->kind != XL_SF_ACK)
            return false;
        any |= r->kind == XL_SF_QOE;
    }
    return any; /* a PING has no record */
}

static void enter_flight(xl_builder *b, xl_sent_packet *pkt, size_t bytes) {
    xl_connection *c = b->c;
    xl_path *p = b->path;
    pkt->time_us = c->now;
    pkt->bytes = (uint32_t)bytes;
    pkt->ack_eliciting = b->ack_eliciting && !b->is_aside;
    pkt->in_flight = (b->ack_eliciting || b->has_padding) && !b->is_aside;
    pkt->path = (int8_t)p->index;
    pkt->is_mtu_probe = b->is_mtu_probe;
    pkt->is_aside = b->is_aside;
    mark(b, pkt);
    pkt->frames = b->frames;
    if (b->is_aside) {
        p->flight.unanswered++;
        return;
    }
    if (pkt->in_flight) {
        xl_rate_sent(&p->rate, pkt, p->flight.bytes, c->now);
        xl_path_note_sent(p, bytes, c->now);
        p->flight.bytes += bytes;
        for (xl_sent_frame *r = b->frames; r; r = r->next)
            r->sent_total = p->delivery.sent_total;
        if (p->cc.ops->on_sent)
            p->cc.ops->on_sent(p->cc.state, bytes, p->flight.bytes, c->now);
        if (p->cc.ops->pacing_rate && p->flight.bytes == bytes && pkt->is_app_limited) /* it was idle */
            xl_path_update_pacer(p, c->now);
        xl_pacer_sent(&p->pacer, bytes, c->now);
    }
    if (!b->ack_eliciting) {
        p->flight.quiet_packets++;
        p->flight.unanswered++;
        return;
    }
    b->space->last_eliciting_at = c->now;
    p->flight.quiet_packets = 0;
    if (p->flight.eliciting++ == 0)
        p->flight.awaited_since = c->now;
    if (p->flight.eliciting > 1 && is_signal_alone(b))
        p->flight.last_signal_at = c->now;
    else
        p->flight.last_eliciting_at = c->now;
    if (p->flight.probes > 0)
        p->flight.probes--;
    if (!c->eliciting_since_receive) {
        c->eliciting_since_receive = true;
        xl_conn_restart_idle(c, c->now);
    }
}

/* Congestion control does not delay acknowledgements, and each is remembered until the peer acknowledges it. From time
 * to time a PING is added, which the peer must answer (RFC 9000 section 13.2.1). A peer that keeps sending and never
 * answers would make us remember without limit. */
static void end_if_unanswered(xl_connection *c, const xl_path *p) {
    if (p->flight.unanswered > UNANSWERED_MIN + c->streams.flow_in.window / XL_MIN_DATAGRAM)
        xl_conn_fail(c, XL_QERR_PROTOCOL_VIOLATION, "the peer acknowledges nothing");
}

/* RFC 9000 section 21.4: skipping a packet number from time to time exposes a peer that acknowledges what it never
 * received. */
static void maybe_skip(xl_connection *c, xl_space *space) {
    if (c->until_skip == 0)
        c->until_skip = SKIP_MIN + (unsigned)(xl_drbg_next(&c->random.skips) % SKIP_SPAN);
    if (--c->until_skip == 0)
        xl_ledger_skip(&space->ledger);
}

size_t xl_builder_finish(xl_builder *b) {
    xl_connection *c = b->c;
    if (xl_builder_is_empty(b))
        return 0;
    size_t payload = (size_t)(b->w.p - b->payload);
    if (b->pn_len + payload < 4) { /* room for the header protection sample */
        memset(b->w.p, 0, 4 - b->pn_len - payload);
        payload = 4 - b->pn_len;
    }
    size_t bytes = b->pn_offset + b->pn_len + payload + XL_AEAD_TAG;
    if (!is_short(b))
        xl_packet_set_length(b->packet, b->length_offset, b->pn_len + payload + XL_AEAD_TAG);
    if (c->qlog)
        log_sent(b, payload, bytes);
    uint64_t path_id = is_short(b) && c->multipath ? b->path->cids.remote_path_id : 0;
    xl_sent_packet *pkt = xl_ledger_push(&b->space->ledger);
    bool is_sealed = pkt && xl_keys_protect(b->keys, path_id, b->pn, b->packet, b->pn_offset, b->pn_len, payload) > 0;
    if (!is_sealed) {
        xl_conn_abort(c, XL_CLOSE_INTERNAL, pkt ? "a packet cannot be encrypted" : "out of memory");
        return 0;
    }
    enter_flight(b, pkt, bytes);
    if (b->level == XL_LEVEL_APP)
        maybe_skip(c, b->space);
    b->path->stats.packets_sent++;
    b->path->stats.bytes_sent += bytes;
    if (!b->path->validation.is_done && !b->is_aside)
        b->path->validation.sent_bytes += bytes;
    if (is_short(b))
        xl_conn_count_sealed(c);
    end_if_unanswered(c, b->path);
    return bytes;
}
