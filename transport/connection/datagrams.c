#include "connection/datagrams.h"

#include <stdlib.h>
#include <string.h>

#include "connection/connection.h"
#include "connection/state.h"

/* Bytes of a packet beside its only DATAGRAM frame: flags, connection ID, packet number, tag. */
#define PACKET_OVERHEAD(cid_bytes) (1 + (size_t)(cid_bytes) + 4 + XL_AEAD_TAG)

static size_t cost(size_t len) {
    return sizeof(xl_queued_datagram) + len;
}

static bool push(xl_datagram_queue *q, size_t most, uint64_t id, const uint8_t *data, size_t len) {
    xl_queued_datagram *d = cost(len) <= most && q->bytes <= most - cost(len) ? malloc(cost(len)) : NULL;
    if (!d)
        return false;
    d->next = NULL;
    d->id = id;
    d->len = len;
    if (len > 0)
        memcpy(d->data, data, len);
    if (q->head)
        *q->tail = d;
    else
        q->head = d;
    q->tail = &d->next;
    q->bytes += cost(len);
    return true;
}

static void pop(xl_datagram_queue *q) {
    xl_queued_datagram *d = q->head;
    q->head = d->next;
    q->bytes -= cost(d->len);
    free(d);
}

void xl_conn_free_datagrams(xl_connection *c) {
    while (c->datagrams.out.head)
        pop(&c->datagrams.out);
    while (c->datagrams.in.head)
        pop(&c->datagrams.in);
}

/* ---- Sending ---- */

/* Returns the most data that a DATAGRAM frame of this size has. */
static size_t data_in_frame(uint64_t frame_bytes) {
    size_t len = frame_bytes < XL_VARINT_MAX ? (size_t)frame_bytes : (size_t)XL_VARINT_MAX;
    while (len > 0 && xl_frame_datagram_header_len(len) + len > frame_bytes)
        len--;
    return len;
}

static size_t packet_room(const xl_connection *c) {
    size_t least = SIZE_MAX;
    XL_EACH_PATH(const xl_path, p, c) {
        size_t overhead = PACKET_OVERHEAD(p->cids.remote.len);
        if (xl_path_may_carry_data(p) && (c->multipath || p->index == c->active) && p->mtu - overhead < least)
            least = (size_t)p->mtu - overhead;
    }
    return least == SIZE_MAX ? 0 : least;
}

size_t xl_connection_datagram_capacity(const xl_connection *c) {
    uint64_t theirs = c->handshake.is_complete ? c->peer_params.max_datagram_frame_size : 0;
    uint64_t room = packet_room(c);
    return xl_conn_is_live(c) ? data_in_frame(theirs < room ? theirs : room) : 0;
}

int xl_connection_send_datagram(xl_connection *c, const uint8_t *data, size_t len, uint64_t id, uint64_t now) {
    if (!xl_conn_is_live(c))
        return XL_ERR_CLOSED;
    const size_t most = xl_connection_datagram_capacity(c);
    if (most == 0 || len > most)
        return XL_ERR_ARGUMENT;
    xl_conn_enter(c, now);
    if (!push(&c->datagrams.out, c->config->limits.datagram_queue_bytes, id, data, len))
        return XL_ERR_QUEUE;
    xl_conn_wake(c);
    return 0;
}

static void give_up_head(xl_connection *c) {
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_DATAGRAM_LOST, .datagram_id = c->datagrams.out.head->id});
    pop(&c->datagrams.out);
    c->pacer_wakeup = c->now; /* the driver has already taken the events of this moment: make it call again */
}

void xl_conn_put_datagrams(xl_builder *b) {
    xl_connection *c = b->c;
    xl_queued_datagram *d;
    while ((d = c->datagrams.out.head)) {
        if (xl_frame_datagram_header_len(d->len) + d->len > xl_builder_left(b)) {
            if (!xl_builder_is_empty(b))
                return;
            give_up_head(c); /* the path's MTU has fallen */
            continue;
        }
        if (!xl_builder_note(b, XL_SF_DATAGRAM, d->id, 0))
            return;
        xl_frame_put_datagram_header(&b->w, d->len);
        xl_write_bytes(&b->w, d->data, d->len);
        pop(&c->datagrams.out);
    }
}

/* ---- Receiving ---- */

uint64_t xl_conn_take_datagram(xl_connection *c, const xl_frame *f) {
    if (f->datagram.frame_bytes > c->local_params.max_datagram_frame_size)
        return XL_QERR_PROTOCOL_VIOLATION; /* RFC 9221 section 3: too large, or none was allowed */
    if (!push(&c->datagrams.in, c->config->limits.datagram_queue_bytes, 0, f->datagram.data, f->datagram.len)) {
        c->stats.datagram_frames_dropped++;
        return 0;
    }
    if (!c->datagrams.is_told)
        xl_conn_emit(c, (xl_event){.type = XL_EVENT_DATAGRAM});
    c->datagrams.is_told = true;
    return 0;
}

bool xl_connection_read_datagram(xl_connection *c, uint8_t *buf, size_t cap, size_t *len) {
    const xl_queued_datagram *d = c->datagrams.in.head;
    xl_conn_touch(c);
    c->datagrams.is_told = d != NULL;
    if (!d)
        return false;
    *len = d->len;
    if (d->len > 0)
        memcpy(buf, d->data, d->len < cap ? d->len : cap);
    pop(&c->datagrams.in);
    return true;
}
