/* Packets that an attacker with the keys of one end could send to the other: any frames, correctly protected. */
#pragma once

#include "tests/fuzz/live.h"

/* ---- frames ---- */

static inline uint64_t forge_stream(fuzz_input *in) {
    uint8_t v = fuzz_u8(in);
    return v < 0xf0 ? v & 31 : fuzz_number(in);
}

/* Returns the sequence number of a connection ID in use, or any number. */
static inline uint64_t forge_sequence(fuzz_input *in, const xl_cids *cids) {
    uint8_t v = fuzz_u8(in);
    if (v >= 0xf0)
        return fuzz_number(in);
    return cids->count > 0 ? cids->at[v % cids->count].sequence + (v >= 0xc0) : v & 7;
}

/* ---- path IDs, dialect `ietf` ---- */

/* Returns a path ID that may be used, one that is closed or above the limit, or any number. */
static inline uint64_t forge_path_id(fuzz_input *in, const xl_connection *to) {
    uint8_t v = fuzz_u8(in);
    if (v >= 0xf0 || !to->path_ids)
        return fuzz_number(in) & XL_VARINT_MAX;
    return v < 0xc0 ? to->path_ids->at[v % XL_PATH_IDS_MAX].id : to->path_ids->local_max - 12 + (v & 15);
}

/* Returns the connection IDs that `to` has issued (is_local) or received for this path ID; NULL: none. */
static inline const xl_cids *forge_cids(const xl_connection *to, uint64_t path_id, bool is_local) {
    const xl_path_id *p = to->path_ids ? xl_path_ids_find(to->path_ids, path_id) : NULL;
    if (to->path_ids)
        return p ? is_local ? p->local : p->remote : NULL;
    return is_local ? &to->local_cids : &to->remote_cids;
}

static inline xl_qoe forge_qoe(fuzz_input *in) {
    xl_qoe qoe;
    qoe.cached_bytes = (fuzz_number(in) << 10) & XL_VARINT_MAX;
    qoe.cached_frames = fuzz_number(in) & XL_VARINT_MAX;
    qoe.bps = (fuzz_number(in) << 12) & XL_VARINT_MAX;
    qoe.fps = fuzz_number(in) & XL_VARINT_MAX;
    return qoe;
}

/* Writes an ACK or ACK_MP. to: the end that reads it, which sent the acknowledged packets. */
static inline void forge_ack(xl_writer *w, fuzz_input *in, const xl_connection *to, const xl_path *path,
                             xl_level level) {
    xl_ack_range range[8];
    bool is_mp = level == XL_LEVEL_APP && to->multipath && fuzz_bool(in);
    const xl_space *space = level == XL_LEVEL_APP ? path->space : &to->space[level];
    uint64_t at = space ? space->ledger.next_pn : 0;
    uint8_t less = fuzz_u8(in);
    at = less < 0xe0 ? at - (at < less ? at : less) : fuzz_number(in) & XL_VARINT_MAX;
    size_t count = 0;
    for (uint64_t wanted = 1 + fuzz_u8(in) % 8; count < wanted; count++) {
        uint64_t width = fuzz_u8(in) % 16, gap = 2 + fuzz_u8(in) % 8;
        range[count] = (xl_ack_range){at - (at < width ? at : width), at};
        if (range[count].smallest < gap) {
            count++;
            break;
        }
        at = range[count].smallest - gap;
    }
    xl_qoe qoe = forge_qoe(in);
    uint64_t path_id = !is_mp ? 0 : to->path_ids ? forge_path_id(in, to) : forge_sequence(in, &to->remote_cids);
    uint64_t delay = fuzz_number(in) & XL_VARINT_MAX;
    uint64_t type = !is_mp ? XL_FRAME_ACK : to->path_ids ? XL_FRAME_PATH_ACK : XL_FRAME_ACK_MP;
    xl_frame_put_ack(w, range, count, delay, type, path_id, is_mp && to->qoe.has_field, &qoe);
}

static inline void forge_stream_data(xl_writer *w, fuzz_input *in, const xl_connection *to) {
    uint64_t id = forge_stream(in), offset = fuzz_number(in);
    const xl_stream *s = xl_conn_stream(to, id);
    bool fin = fuzz_bool(in);
    size_t len = fuzz_u8(in) * 4u;
    if (s && s->has_recv && offset < 64)
        offset += s->recv.read; /* the next byte to read */
    xl_frame_put_stream_header(w, id, offset & XL_VARINT_MAX, len, fin);
    for (; len > 0; len--)
        xl_write_u8(w, (uint8_t)len);
}

static inline void forge_new_cid(xl_writer *w, fuzz_input *in, const xl_connection *to) {
    uint8_t token[16] = {0};
    xl_cid cid = {.len = (uint8_t)(1 + fuzz_u8(in) % 20)};
    uint64_t next = forge_sequence(in, &to->remote_cids), prior = fuzz_u8(in) % 16;
    fuzz_fill(in, cid.id, cid.len < 4 ? cid.len : 4);
    token[0] = cid.id[0];
    xl_frame_put_new_cid(w, XL_FRAME_NEW_CONNECTION_ID, 0, next,
                         prior < 12 ? next - (next < prior ? next : prior) : next + prior, &cid, token);
}

/* Writes a frame of the dialect `ietf` only. */
static inline void forge_ietf(xl_writer *w, fuzz_input *in, const xl_connection *to) {
    uint8_t kind = fuzz_u8(in), token[16] = {0};
    uint64_t id = forge_path_id(in, to);
    const xl_cids *local = forge_cids(to, id, true), *remote = forge_cids(to, id, false);
    switch (kind % 8) {
    case 0:
        XL_FRAME_PUT(w, XL_FRAME_PATH_ABANDON, id, fuzz_number(in) & XL_VARINT_MAX);
        break;
    case 1:
        XL_FRAME_PUT(w, kind & 0x80 ? XL_FRAME_PATH_STATUS_BACKUP : XL_FRAME_PATH_STATUS_AVAILABLE, id,
                     fuzz_number(in) & XL_VARINT_MAX);
        break;
    case 2:
    case 3: {
        xl_cid cid = {.len = (uint8_t)(1 + fuzz_u8(in) % 20)};
        fuzz_fill(in, cid.id, cid.len < 4 ? cid.len : 4);
        token[0] = cid.id[0];
        uint64_t next = remote ? remote->next_sequence : 0, prior = fuzz_u8(in) % 4;
        xl_frame_put_new_cid(w, XL_FRAME_PATH_NEW_CONNECTION_ID, id, next, prior < next ? next - prior : 0, &cid,
                             token);
        break;
    }
    case 4:
        XL_FRAME_PUT(w, XL_FRAME_PATH_RETIRE_CONNECTION_ID, id, local ? forge_sequence(in, local) & XL_VARINT_MAX : 0);
        break;
    case 5:
        id = to->path_ids ? to->path_ids->peer_max + kind / 8 - 8 : kind;
        XL_FRAME_PUT(w, XL_FRAME_MAX_PATH_ID, 0, id & XL_VARINT_MAX);
        break;
    case 6:
        XL_FRAME_PUT(w, XL_FRAME_PATHS_BLOCKED, 0, id & XL_VARINT_MAX);
        break;
    default:
        XL_FRAME_PUT(w, XL_FRAME_PATH_CIDS_BLOCKED, id & XL_VARINT_MAX, local ? local->next_sequence : fuzz_u8(in));
    }
}

static inline void forge_crypto(xl_writer *w, fuzz_input *in, const xl_connection *to, xl_level level) {
    const uint8_t *data;
    size_t len;
    uint64_t offset = fuzz_number(in);
    data = fuzz_bytes(in, 255, &len);
    if (offset < 64)
        offset += to->level[level].recv.read;
    xl_frame_put_crypto_header(w, offset & XL_VARINT_MAX, len);
    xl_write_bytes(w, data, len);
}

static inline void forge_close(xl_writer *w, fuzz_input *in) {
    char reason[40] = {0};
    fuzz_fill(in, reason, fuzz_u8(in) % (sizeof reason - 1));
    bool application = fuzz_bool(in);
    uint64_t error = fuzz_number(in);
    xl_frame_put_close(w, application, error, fuzz_number(in), reason);
}

/* Writes DATAGRAM, ACK_FREQUENCY, IMMEDIATE_ACK, or nothing. */
static inline void forge_extension(xl_writer *w, fuzz_input *in, uint8_t kind) {
    uint64_t number, threshold, delay;
    if (kind >= 0xc0) {
        size_t len = fuzz_u8(in) * 5u;
        xl_frame_put_datagram_header(w, len);
        for (; len > 0; len--)
            xl_write_u8(w, (uint8_t)len);
    } else if (kind >= 0x80) {
        number = fuzz_number(in) & XL_VARINT_MAX;
        threshold = fuzz_number(in) & XL_VARINT_MAX;
        delay = fuzz_u16(in) * UINT64_C(300);
        XL_FRAME_PUT(w, XL_FRAME_ACK_FREQUENCY, number, threshold, delay, fuzz_u8(in) % 8);
    } else if (kind >= 0x60) {
        xl_write_varint(w, XL_FRAME_IMMEDIATE_ACK);
    } else {
        xl_write_varint(w, XL_FRAME_PING);
    }
}

/* Writes a frame of any kind, for `to` on `path`. */
static inline void forge_frame(xl_writer *w, fuzz_input *in, const xl_connection *to, const xl_path *path,
                               xl_level level) {
    uint8_t kind = fuzz_u8(in), data[8];
    uint64_t id, number;
    switch (kind % 24) {
    case 0:
    case 1:
    case 2:
        forge_ack(w, in, to, path, level);
        break;
    case 3:
    case 4:
    case 5:
        forge_stream_data(w, in, to);
        break;
    case 6:
        id = forge_stream(in);
        number = fuzz_number(in);
        XL_FRAME_PUT(w, XL_FRAME_RESET_STREAM, id, number, fuzz_number(in));
        break;
    case 7:
        id = forge_stream(in);
        XL_FRAME_PUT(w, XL_FRAME_STOP_SENDING, id, fuzz_number(in));
        break;
    case 8:
        number = fuzz_u8(in) % 8;
        id = forge_stream(in);
        XL_FRAME_PUT(w, XL_FRAME_MAX_DATA + number, id, fuzz_number(in));
        break;
    case 9:
    case 10:
        forge_new_cid(w, in, to);
        break;
    case 11:
        XL_FRAME_PUT(w, XL_FRAME_RETIRE_CONNECTION_ID, 0, forge_sequence(in, &to->local_cids));
        break;
    case 12:
    case 13:
        fuzz_fill(in, data, sizeof data);
        xl_frame_put_path(w, XL_FRAME_PATH_CHALLENGE, data);
        break;
    case 14:
        fuzz_fill(in, data, sizeof data);
        xl_frame_put_path(w, XL_FRAME_PATH_RESPONSE, kind & 0x80 ? path->validation.challenge : data);
        break;
    case 15:
    case 16:
        id = forge_sequence(in, &to->local_cids);
        number = fuzz_number(in);
        XL_FRAME_PUT(w, XL_FRAME_PATH_STATUS, id, number >> 2, number & 3, fuzz_number(in));
        break;
    case 17: {
        xl_qoe qoe = forge_qoe(in);
        xl_frame_put_qoe(w, forge_sequence(in, &to->local_cids), kind & 0x80 ? NULL : &qoe);
        break;
    }
    case 18:
        forge_crypto(w, in, to, level);
        break;
    case 19: { /* any bytes */
        size_t len;
        const uint8_t *raw = fuzz_bytes(in, 64, &len);
        xl_write_bytes(w, raw, len);
        break;
    }
    case 20:
        if (kind & 0x80)
            forge_close(w, in);
        else
            xl_write_varint(w, XL_FRAME_HANDSHAKE_DONE);
        break;
    case 21:
        for (unsigned n = fuzz_u8(in); n > 0; n--)
            xl_write_u8(w, XL_FRAME_PADDING);
        break;
    case 22:
        forge_ietf(w, in, to);
        break;
    default:
        forge_extension(w, in, kind);
    }
}

/* ---- packets ---- */

/* Chooses the addresses of a forged packet, as the reader has them. */
static inline void forge_addresses(live *l, fuzz_input *in, bool to_server, xl_addr *local, xl_addr *remote) {
    uint8_t v = fuzz_u8(in);
    const pair_link *link = &l->p.link[v % l->p.link_count];
    *local = to_server ? link->server : link->client;
    *remote = to_server ? (link->nat.family ? link->nat : link->client) : link->server;
    if (v >= 0xe0)
        *remote = to_server ? live_victim(v) : pair_addr(77, v);
    else if (v >= 0xc0)
        remote->port = (uint16_t)(remote->port + (v & 3));
}

/* Whether the frames contain a challenge that was sent to a victim: it would mean that 64 random bits were guessed. */
static inline bool forge_guesses(const xl_connection *to, const uint8_t *frames, size_t len) {
    for (size_t i = 0; i < to->path_count; i++)
        for (size_t at = 0; live_is_victim(&to->path[i]->remote) && at + 8 <= len; at++)
            if (memcmp(frames + at, to->path[i]->validation.challenge, 8) == 0)
                return true;
    return false;
}

static inline xl_level forge_level(const xl_connection *from, uint8_t v) {
    xl_level level = v < 0xe0 ? XL_LEVEL_APP : v < 0xf0 ? XL_LEVEL_HANDSHAKE : XL_LEVEL_INITIAL;
    while (level > XL_LEVEL_INITIAL && !from->level[level].write)
        level--;
    return level;
}

/* Writes the header of a packet to `to`. False: no keys, or no connection ID. */
static inline bool forge_header(live *l, xl_writer *w, uint8_t *packet, const xl_connection *from,
                                const xl_connection *to, xl_level level, size_t *pn_offset, size_t *length_at,
                                uint64_t *pn, uint64_t *path_id) {
    fuzz_input *in = l->in;
    uint8_t which = fuzz_u8(in), ahead = fuzz_u8(in), bits = fuzz_u8(in);
    if (!from->level[level].write || to->local_cids.count == 0)
        return false;
    const xl_path_id *id = to->path_ids ? &to->path_ids->at[which / 8 % XL_PATH_IDS_MAX] : NULL;
    const xl_cids *cids = id && id->local->count > 0 ? id->local : &to->local_cids;
    if (cids == &to->local_cids)
        id = NULL;
    const xl_cid_entry *cid = &cids->at[which % cids->count];
    /* The packet numbers differ from those of the genuine sender, so that it can continue. Some repeat, or are far
     * off. */
    *pn = ahead < 0xf0 ? (UINT64_C(1) << 20) + l->forged_pn + ahead % 4 : fuzz_number(in) & XL_VARINT_MAX;
    l->forged_pn += 1 + ahead % 4;
    uint64_t right = !to->multipath ? 0 : to->path_ids ? (id ? id->id : 0) : cid->sequence;
    *path_id = level == XL_LEVEL_APP && to->multipath ? right + (which >= 0xf8) : 0;
    if (level == XL_LEVEL_APP) {
        xl_packet_put_short(w, &cid->cid, bits & 1, from->key_update.phase ^ (bits >= 0xf8), *pn, 4);
    } else {
        const xl_cid *dcid =
            to->is_server && !to->handshake.is_complete && (bits & 1) ? &to->handshake.odcid : &cid->cid;
        xl_packet_put_long(
            w, from->handshake.version, level == XL_LEVEL_INITIAL ? XL_PACKET_INITIAL : XL_PACKET_HANDSHAKE, dcid,
            from->local_cids.count ? &from->local_cids.at[0].cid : dcid, NULL, 0, *pn, 4, packet, length_at);
    }
    *pn_offset = (size_t)(w->p - packet) - 4;
    return true;
}

/* Delivers a forged packet. The state of the apparent sender does not change. */
static inline void forge_packet(live *l) {
    fuzz_input *in = l->in;
    bool to_server = fuzz_bool(in);
    const xl_connection *from = to_server ? l->p.cc : l->p.sc, *to = to_server ? l->p.sc : l->p.cc;
    uint8_t packet[PAIR_MTU], count = fuzz_u8(in);
    if (!from || !to || (to_server ? l->p.server_closed : l->p.client_closed) ||
        (to_server ? l->p.client_closed : l->p.server_closed))
        return;
    xl_level level = forge_level(from, fuzz_u8(in));
    xl_writer w = xl_writer_of(packet, sizeof packet - XL_AEAD_TAG);
    size_t pn_offset, length_at;
    uint64_t pn, path_id;
    if (!forge_header(l, &w, packet, from, to, level, &pn_offset, &length_at, &pn, &path_id))
        return;
    uint8_t *payload = w.p;
    const xl_path *path = to->path[fuzz_u8(in) % to->path_count];
    for (unsigned n = 1 + count % 4; n > 0; n--) {
        uint8_t *before = w.p;
        forge_frame(&w, in, to, path, level);
        if (w.failed) {
            w.failed = false;
            w.p = before;
        }
    }
    while (w.p - payload < 4 || (level == XL_LEVEL_INITIAL && w.p - packet < XL_MIN_DATAGRAM - XL_AEAD_TAG))
        xl_write_u8(&w, 0);
    size_t len = (size_t)(w.p - payload);
    if (forge_guesses(to, payload, len))
        return;
    if (level != XL_LEVEL_APP)
        xl_packet_set_length(packet, length_at, 4 + len + XL_AEAD_TAG);
    if (xl_keys_protect(from->level[level].write, path_id, pn, packet, pn_offset, 4, len) == 0)
        return;
    xl_addr local, remote;
    forge_addresses(l, in, to_server, &local, &remote);
    live_deliver(l, to_server, &local, &remote, packet, pn_offset + 4 + len + XL_AEAD_TAG);
}

/* Sends such frames as a packet of one end, which records it as sent on its path. */
static inline void forge_as_own(live *l) {
    fuzz_input *in = l->in;
    bool to_server = fuzz_bool(in);
    xl_connection *from = to_server ? l->p.cc : l->p.sc, *to = to_server ? l->p.sc : l->p.cc;
    uint8_t buf[PAIR_MTU + 64], count = fuzz_u8(in), which = fuzz_u8(in);
    xl_builder b;
    if (!from || !to || !xl_conn_is_live(from) || l->p.client_closed || l->p.server_closed)
        return;
    xl_path *path = from->path[which % from->path_count];
    xl_level level = forge_level(from, XL_LEVEL_APP);
    xl_conn_enter(from, l->p.now);
    if (level != XL_LEVEL_APP || !path->cids.has_remote || !path->space || !path->validation.is_done ||
        !xl_builder_begin(&b, from, path, level, buf, PAIR_MTU))
        return;
    for (unsigned n = 1 + count % 4; n > 0; n--) {
        uint8_t *before = b.w.p;
        forge_frame(&b.w, in, to, to->path[which % to->path_count], level);
        if (b.w.failed) {
            b.w.failed = false;
            b.w.p = before;
        }
    }
    b.ack_eliciting = true;
    bool guesses = forge_guesses(to, b.payload, (size_t)(b.w.p - b.payload));
    xl_datagram d = {.local = path->local, .remote = path->remote, .len = xl_builder_finish(&b)};
    if (d.len > 0 && !guesses && !live_is_victim(&d.remote))
        pair_enqueue(&l->p, to_server, &d, buf);
}

/* Delivers a recorded datagram again, perhaps changed, and perhaps from another address. */
static inline void forge_from_sight(live *l) {
    fuzz_input *in = l->in;
    uint8_t which = fuzz_u8(in), how = fuzz_u8(in);
    if (l->seen_count == 0)
        return;
    live_sight s = l->seen[which % (l->seen_count < LIVE_SEEN ? l->seen_count : LIVE_SEEN)];
    if (how & 1) {
        xl_addr local;
        forge_addresses(l, in, s.to_server, &local, &s.remote);
    }
    if (how & 2)
        s.len = 1 + fuzz_u16(in) % s.len;
    for (unsigned n = (how >> 2) & 3; n > 0; n--) {
        size_t at = fuzz_u16(in) % s.len;
        s.data[at] ^= (uint8_t)(1 + fuzz_u8(in));
    }
    live_deliver(l, how & 16 ? !s.to_server : s.to_server, &s.local, &s.remote, s.data, s.len);
}

/* Delivers a packet that needs no keys: random bytes, stateless reset, Version Negotiation, Retry. */
static inline void forge_noise(live *l) {
    fuzz_input *in = l->in;
    bool to_server = fuzz_bool(in);
    uint8_t packet[1500] = {0}, kind = fuzz_u8(in);
    const xl_connection *to = to_server ? l->p.sc : l->p.cc;
    size_t len = 21 + fuzz_u16(in) % 1200;
    const xl_cid *cid = to && to->local_cids.count > 0 ? &to->local_cids.at[kind % to->local_cids.count].cid : NULL;
    fuzz_fill(in, packet + 20, 40);
    packet[0] = kind;
    if (kind & 0x80) {
        packet[4] = fuzz_u8(in) & 1;
        packet[5] = cid ? cid->len : fuzz_u8(in) % 24;
        if (cid)
            memcpy(packet + 6, cid->id, cid->len);
    } else if (cid) {
        memcpy(packet + 1, cid->id, cid->len);
    }
    if ((kind & 0x44) == 0x44 && to && to->remote_cids.count > 0) /* the valid reset token */
        memcpy(packet + len - 16, to->remote_cids.at[0].reset_token, 16);
    xl_addr local, remote;
    forge_addresses(l, in, to_server, &local, &remote);
    live_deliver(l, to_server, &local, &remote, packet, len);
}
