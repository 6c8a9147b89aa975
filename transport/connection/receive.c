/* An incoming datagram: its packets are unprotected and authenticated, and their frames processed one by one. */
#include "connection/receive.h"

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/early.h"
#include "connection/frames.h"
#include "connection/handshake.h"
#include "connection/key_update.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/room.h"
#include "connection/state.h"
#include "connection/versions.h"

#define FRAMES_KEPT       4
#define LEDGER_RESTS_FROM 128 /* entries */

static xl_level level_of(xl_packet_type type) {
    if (type == XL_PACKET_INITIAL)
        return XL_LEVEL_INITIAL;
    return type == XL_PACKET_HANDSHAKE ? XL_LEVEL_HANDSHAKE : XL_LEVEL_APP;
}

static void drop(xl_connection *c, size_t bytes, const char *why, int path) {
    c->stats.datagrams_dropped++;
    xl_qlog_packet_dropped(c->qlog, c->now, bytes, why, path);
}

/* A packet's frames. As many as most packets have are parsed once, further ones again when they are processed. */
typedef struct {
    xl_frame at[FRAMES_KEPT];
    size_t count;
    xl_reader rest; /* after these */
} packet_frames;

/* First pass over the frames: whether the packet is ack-eliciting, and only probes. Returns 0 or the error to close
 * with. */
static uint64_t classify(xl_connection *c, const xl_packet_context *ctx, const uint8_t *payload, size_t len,
                         packet_frames *frames, bool *eliciting, bool *probing) {
    xl_reader r = xl_reader_of(payload, len);
    xl_frame further;
    frames->count = 0;
    *eliciting = false;
    *probing = true;
    if (len == 0)
        return XL_QERR_PROTOCOL_VIOLATION; /* RFC 9000 section 12.4 */
    while (xl_reader_left(&r) > 0) {
        bool is_kept = frames->count < FRAMES_KEPT;
        xl_frame *f = is_kept ? &frames->at[frames->count] : &further;
        uint64_t error = xl_frame_parse(&r, c->qoe.has_field, f);
        c->frame_type = f->type;
        if (error)
            return error;
        const xl_frame_info *info = xl_frame_info_of(f->type);
        if (!(info->packets >> ctx->type & 1))
            return XL_QERR_PROTOCOL_VIOLATION;
        *eliciting |= !info->is_silent;
        *probing &= info->is_probing;
        if (is_kept) {
            frames->count++;
            frames->rest = r;
        }
    }
    c->frame_type = 0;
    return 0;
}

static void log_received(xl_connection *c, const xl_packet_context *ctx, const packet_frames *frames,
                         size_t packet_bytes) {
    if (!c->qlog)
        return;
    xl_reader r = frames->rest;
    xl_frame f;
    xl_qlog_packet_begin(c->qlog, c->now, false, ctx->type, ctx->pn, packet_bytes, ctx->path->index,
                         ctx->path->cids.local_path_id);
    for (size_t i = 0; i < frames->count; i++)
        xl_qlog_frame(c->qlog, &frames->at[i]);
    while (xl_reader_left(&r) > 0 && xl_frame_parse(&r, c->qoe.has_field, &f) == 0)
        xl_qlog_frame(c->qlog, &f);
    xl_qlog_packet_end(c->qlog);
}

static void take_frame(xl_connection *c, const xl_frame *f, const xl_packet_context *ctx) {
    c->frame_type = f->type;
    uint64_t error = xl_conn_take_frame(c, f, ctx);
    if (error)
        xl_conn_fail(c, error, xl_frame_info_of(f->type)->name);
}

static void take_frames(xl_connection *c, packet_frames *frames, const xl_packet_context *ctx) {
    xl_frame further;
    c->acks_in_packet = 0;
    for (size_t i = 0; i < frames->count && xl_conn_is_live(c); i++)
        take_frame(c, &frames->at[i], ctx);
    while (xl_reader_left(&frames->rest) > 0 && xl_conn_is_live(c)) {
        xl_frame_parse(&frames->rest, c->qoe.has_field, &further);
        take_frame(c, &further, ctx);
    }
    c->frame_type = 0;
}

static void take_payload(xl_connection *c, const xl_packet_context *ctx, const uint8_t *payload, size_t len,
                         size_t packet_bytes) {
    bool eliciting, probing;
    packet_frames frames;
    uint64_t error = classify(c, ctx, payload, len, &frames, &eliciting, &probing);
    if (error) {
        xl_conn_fail(c, error, "malformed or forbidden frame");
        c->frame_type = 0;
        return;
    }
    log_received(c, ctx, &frames, packet_bytes);
    if (ctx->type == XL_PACKET_1RTT) {
        xl_conn_path_packet_seen(c, ctx, probing);
        xl_conn_own_cid_seen(c, ctx->local_id, ctx->cid_sequence);
    }
    take_frames(c, &frames, ctx);
    if (!xl_conn_is_live(c) || c->level_discarded[ctx->level])
        return;
    uint8_t ecn = ctx->datagram->ecn;
    bool immediate = ctx->level != XL_LEVEL_APP || ecn == XL_IP_CE || /* RFC 9000 section 13.2.1 */
                     ctx->path->state == XL_PATH_CLOSED;              /* RFC 10069 section 3.4.3 */
    xl_ecn_count(&ctx->space->ecn, ecn);
    if (ctx->level == XL_LEVEL_APP)
        ctx->space->policy = c->ack_policy;
    if (xl_space_receive(ctx->space, ctx->pn, eliciting, immediate, c->now) != 0)
        xl_conn_fail(c, XL_QERR_INTERNAL, "out of memory");
}

static size_t tokens_of(const xl_cids *cids, const uint8_t **out) {
    size_t n = 0;
    for (size_t i = 0; i < cids->count; i++)
        if (cids->at[i].has_token && cids->at[i].in_use)
            out[n++] = cids->at[i].reset_token;
    return n;
}

size_t xl_conn_reset_tokens(const xl_connection *c, const uint8_t *out[XL_RESET_TOKENS_MAX]) {
    size_t n = tokens_of(&c->remote_cids, out);
    for (size_t i = 0; c->path_ids && i < XL_PATH_IDS_MAX; i++)
        n += c->path_ids->at[i].remote != &c->remote_cids ? tokens_of(c->path_ids->at[i].remote, out + n) : 0;
    return n;
}

bool xl_conn_is_stateless_reset(const xl_connection *c, const uint8_t *datagram, size_t len) {
    const uint8_t *token[XL_RESET_TOKENS_MAX];
    size_t count = len < XL_RESET_MIN_BYTES ? 0 : xl_conn_reset_tokens(c, token);
    bool is_equal = false;
    for (size_t i = 0; i < count; i++)
        is_equal |= xl_is_equal(token[i], datagram + len - 16, 16);
    return is_equal;
}

/* Finds the path and packet number space of a packet; false: drop it. Both are NULL if the packet, once it is
 * authentic, opens a path with its own space: until then no state is kept of it. */
static bool find_context(xl_connection *c, const xl_packet_header *h, const xl_datagram *d, xl_packet_context *ctx) {
    *ctx = (xl_packet_context){.type = h->type, .level = level_of(h->type), .datagram = d};
    if (h->type != XL_PACKET_1RTT) {
        ctx->path = c->path[0];
        ctx->space = &c->space[ctx->level];
        return true;
    }
    xl_path_id *id = NULL;
    const xl_cid_entry *e =
        c->path_ids ? xl_path_ids_find_local(c->path_ids, &h->dcid, &id) : xl_cids_find(&c->local_cids, &h->dcid);
    if (!e || !c->handshake.is_complete)
        return false;
    bool may_open;
    ctx->local_id = id ? id->id : e->sequence;
    ctx->cid_sequence = e->sequence;
    ctx->path = xl_conn_path_for_packet(c, ctx->local_id, &d->local, &d->remote, &may_open);
    if (ctx->path)
        ctx->space = ctx->path->space;
    else if (!c->multipath)
        ctx->space = &c->space[XL_LEVEL_APP];
    return ctx->path || may_open;
}

static int path_index(const xl_packet_context *ctx) {
    return ctx->path ? ctx->path->index : -1;
}

/* The packet is authentic: opens its path if necessary. False: no path can be opened. */
static bool settle_context(xl_connection *c, xl_packet_context *ctx) {
    if (!ctx->path)
        ctx->path = xl_conn_path_for_authentic_packet(c, ctx->local_id, &ctx->datagram->local, &ctx->datagram->remote);
    if (!ctx->path)
        return false;
    ctx->space = ctx->level == XL_LEVEL_APP ? ctx->path->space : ctx->space;
    ctx->is_newest = ctx->space->largest_received == UINT64_MAX || ctx->pn > ctx->space->largest_received;
    return true;
}

/* Takes what an authentic long header shows: the server's chosen CID, or that the client's address is real. */
static void after_long_header(xl_connection *c, const xl_packet_header *h) {
    if (!c->is_server && !c->handshake.has_scid_peer) {
        c->handshake.initial_scid_peer = h->scid;
        c->handshake.has_scid_peer = true;
        c->path[0]->cids.remote = h->scid;
        c->remote_cids.at[0].cid = h->scid;
        uint64_t confirmed_by = c->now + c->config->limits.confirm_timeout_us;
        if (confirmed_by < c->handshake.deadline)
            c->handshake.deadline = confirmed_by;
    }
    if (h->type == XL_PACKET_HANDSHAKE && c->is_server) {
        c->path[0]->validation.is_done = true;      /* RFC 9000 section 8.1 */
        xl_conn_discard_level(c, XL_LEVEL_INITIAL); /* RFC 9001 section 4.9.1 */
        /* Anybody can make Initials with any CID, at any rate, but no packet under the handshake's keys. */
        c->qlog = xl_qlog_open(c->qlog, c->now);
    }
}

/* NULL: no keys open the packet, or its version is not spoken here. */
static const xl_keys *read_keys(xl_connection *c, const xl_packet_header *h, const xl_packet_context *ctx,
                                bool *changes_version) {
    *changes_version = false;
    if (h->type == XL_PACKET_0RTT)
        return h->version == c->handshake.original_version ? xl_conn_early_read_keys(c) : NULL;
    if (c->level_discarded[ctx->level])
        return NULL;
    if (h->type == XL_PACKET_INITIAL)
        return xl_conn_initial_read_keys(c, h->version, changes_version);
    bool is_long = h->type == XL_PACKET_HANDSHAKE;
    return is_long && h->version != c->handshake.version ? NULL : c->level[ctx->level].read;
}

static void take_packet(xl_connection *c, const xl_packet_header *h, const xl_datagram *d, uint8_t *packet) {
    xl_packet_context ctx;
    size_t len = h->total_len;
    if (!find_context(c, h, d, &ctx)) {
        drop(c, len, "connection_unknown", -1);
        return;
    }
    bool changes_version;
    const xl_keys *read = read_keys(c, h, &ctx, &changes_version);
    if (!read) {
        drop(c, len, "key_unavailable", path_index(&ctx));
        return;
    }
    if (h->type != XL_PACKET_1RTT && c->handshake.has_scid_peer &&
        !xl_cid_equal(&h->scid, &c->handshake.initial_scid_peer)) {
        drop(c, len, "invalid", path_index(&ctx)); /* RFC 9000 section 7.2: the peer's CID must not change */
        return;
    }
    uint64_t truncated;
    size_t pn_len;
    if (xl_keys_unmask(read, packet, len, h->pn_offset, &truncated, &pn_len) != 0) {
        drop(c, len, "invalid", path_index(&ctx));
        return;
    }
    ctx.pn = xl_packet_number_decode(ctx.space ? ctx.space->largest_received : UINT64_MAX, truncated, pn_len);
    uint8_t *payload;
    xl_key_age age = XL_KEYS_PRESENT;
    ssize_t n = h->type == XL_PACKET_1RTT ? xl_conn_open_1rtt(c, &ctx, c->multipath ? ctx.local_id : 0, packet, len,
                                                              h->pn_offset, pn_len, &payload, &age)
                                          : xl_keys_open(read, 0, ctx.pn, packet, len, h->pn_offset, pn_len, &payload);
    if (n < 0) {
        drop(c, len, "decryption_failure", path_index(&ctx));
        if (ctx.level != XL_LEVEL_INITIAL) /* Initial keys are public: there is nothing to guess */
            xl_conn_count_forged(c, read);
        return;
    }
    uint8_t reserved = h->type == XL_PACKET_1RTT ? 0x18 : 0x0c;
    if (packet[0] & reserved) {
        xl_conn_fail(c, XL_QERR_PROTOCOL_VIOLATION, "reserved bits");
        return;
    }
    if (ctx.space && xl_space_is_duplicate(ctx.space, ctx.pn)) {
        drop(c, len, "duplicate", path_index(&ctx));
        return;
    }
    if (!settle_context(c, &ctx)) {
        drop(c, len, "connection_unknown", -1);
        return;
    }
    uint64_t error = h->type == XL_PACKET_1RTT ? xl_conn_take_phase(c, ctx.space, ctx.pn, age) : 0;
    if (error) {
        xl_conn_fail(c, error, "keys of the wrong phase");
        return;
    }
    if (changes_version)
        xl_conn_follow_version(c, h->version);
    if (h->type != XL_PACKET_1RTT)
        after_long_header(c, h);
    else if (c->spins && ctx.is_newest) /* RFC 9000 section 17.4 */
        ctx.path->spin = ((packet[0] & 0x20) != 0) == c->is_server;
    ctx.path->last_received_at = c->now;
    c->eliciting_since_receive = false;
    xl_conn_restart_idle(c, c->now);
    take_payload(c, &ctx, payload, (size_t)n, len);
}

/* Counts a datagram for its path. Bytes from an address that is not validated raise what may be sent there (RFC 9000
 * section 8). False: no path has these addresses. */
static bool count_path_bytes(xl_connection *c, const xl_datagram *d) {
    xl_path *p = xl_conn_path_by_address(c, &d->local, &d->remote);
    if (!p)
        return false;
    p->stats.bytes_received += d->len;
    if (!p->validation.is_done)
        p->validation.received_bytes += d->len;
    return true;
}

/* RFC 9000 section 9: a client accepts nothing from an address at which it does not know the server. */
static bool is_from_peer(const xl_connection *c, const xl_datagram *d) {
    if (c->is_server)
        return true;
    XL_EACH_PATH(const xl_path, p, c)
        if (xl_addr_equal(&p->remote, &d->remote) || (p->proven.exists && xl_addr_equal(&p->proven.remote, &d->remote)))
            return true;
    return false;
}

/* Initial packets that must be discarded: a client's in a datagram that is too small (RFC 9000 section 14.1), a
 * server's with a token (section 17.2.2). */
static bool is_improper(const xl_connection *c, const xl_packet_header *h, const xl_datagram *d) {
    return h->type == XL_PACKET_INITIAL && (c->is_server ? d->len < XL_MIN_DATAGRAM : h->token_len > 0);
}

/* first: the datagram's first packet, or NULL. All its packets have one destination CID (RFC 9000 section 12.2). */
static bool is_acceptable(const xl_connection *c, const xl_packet_header *h, const xl_packet_header *first,
                          const xl_datagram *d) {
    return h->type != XL_PACKET_VERSION_NEGOTIATION && h->type != XL_PACKET_OTHER_VERSION &&
           (h->has_quic_bit || c->config->limits.grease) && !is_improper(c, h, d) &&
           (!first || h == first || xl_cid_equal(&h->dcid, &first->dcid));
}

/* Nothing that was sent is unsettled: shrinks idle memory to what is needed. Rings of a few packets stay. */
static void rest(xl_connection *c) {
    xl_conn_release_levels(c);
    xl_records_rest(&c->records);
    XL_EACH_PATH(const xl_path, p, c)
        if (p->space->ledger.cap >= LEDGER_RESTS_FROM)
            xl_ledger_shrink(&p->space->ledger);
}

void xl_connection_rest(xl_connection *c) {
    XL_EACH_PATH(xl_path, p, c)
        if (p->flight.bytes > 0)
            return;
    xl_conn_touch(c);
    XL_EACH_PATH(const xl_path, p, c) {
        xl_space *space = p->space;
        xl_conn_drop_space(c, space);
        space->loss_time = XL_NEVER;
        xl_ledger_shrink(&space->ledger);
    }
    if (c->records.in_use == 0)
        rest(c);
}

void xl_conn_receive(xl_connection *c, const xl_datagram *d, const xl_packet_header *first, uint8_t *data,
                     uint64_t now) {
    xl_conn_enter(c, now);
    if (c->state == XL_CONN_CLOSED || c->state == XL_CONN_DRAINING)
        return;
    if (!is_from_peer(c, d)) {
        drop(c, d->len, "invalid", -1);
        return;
    }
    if (c->state == XL_CONN_CLOSING && xl_conn_is_stateless_reset(c, data, d->len)) {
        c->state = XL_CONN_DRAINING; /* RFC 9000 section 10.3.1; ends with the closing period (10.2.2) */
        return;
    }
    if (c->state == XL_CONN_CLOSING) {
        /* RFC 9000 section 10.2.1: repeat the close, ever more rarely. */
        c->closing.packets_received++;
        count_path_bytes(c, d);
        if ((c->closing.packets_received & (c->closing.packets_received - 1)) == 0) {
            c->closing.is_pending = true;
            xl_conn_wake(c);
        }
        return;
    }
    c->stats.datagrams_received++;
    xl_conn_expire_early_keys(c);
    bool is_counted = count_path_bytes(c, d);
    uint64_t drops = c->stats.datagrams_dropped;
    size_t at = 0;
    xl_packet_header further;
    for (const xl_packet_header *h = first; at < d->len && xl_conn_is_live(c); h = NULL) {
        if (!h && xl_packet_parse(data + at, d->len - at, c->local_cid_bytes, &further) == 0)
            h = &further;
        if (!h || !is_acceptable(c, h, first, d)) {
            drop(c, d->len - at, "invalid", -1);
            break;
        }
        if (h->type == XL_PACKET_RETRY) {
            xl_conn_retry(c, h, data + at, d->len - at);
            break;
        }
        take_packet(c, h, d, data + at);
        at += h->total_len;
    }
    /* RFC 9000 section 10.3: a stateless reset may look like any packet. */
    if (drops != c->stats.datagrams_dropped && xl_conn_is_live(c) && xl_conn_is_stateless_reset(c, data, d->len))
        xl_conn_drain(c, XL_CLOSE_STATELESS_RESET, "stateless reset");
    if (!is_counted) /* a path that this datagram opened, or moved to its address, did not exist above */
        count_path_bytes(c, d);
    if (c->records.in_use == 0)
        rest(c);
    xl_conn_offer_room(c);
    xl_conn_wake(c);
}
