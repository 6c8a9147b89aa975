/* How much of the application's data the streams accept into their buffers: what can be sent soon, and no more. A
 * client that requests a large file and lets nothing of it be sent makes the server hold nothing.
 *
 * Streams are sent one after the other, by priority and ID. All together need as many unsent bytes as the congestion
 * windows of all paths can take, and LOOK_AHEAD more for the time until the application writes again. No stream needs
 * bytes that flow control does not let it send. So with B(s) the bytes that s has not sent and may send,
 *
 *     room of s = min(credit of s left, min(sum of windows + LOOK_AHEAD, credit of the connection left)
 *                     - sum of B over s and the streams before it)
 *
 * The window of a fast path is more than a processor's cache holds, and to send what left the cache takes longer than
 * to ask the application again. So no more than LOOK_AHEAD of it counts: the application is asked after each burst.
 *
 * Example: two streams, one path with a window of 100 kB, unlimited credit. The first accepts 164 kB and the second
 * nothing. When the first has written its last byte and 20 kB are unsent, the second accepts 144 kB. */
#include "connection/room.h"

#include "connection/connection.h"
#include "connection/state.h"
#include "minmax.h"

#define LOOK_AHEAD 65536     /* bytes */
#define FAST       500000000 /* bytes/s of a path's pacer: 4 Gbit/s */
#define QUANTUM    32768     /* room that must be free before the application is asked: not for every packet */

static bool is_fast(const xl_path *p) {
    return p->pacer.rate >= FAST;
}

/* of_fast: most bytes that a fast path counts. */
static uint64_t windows(const xl_connection *c, uint64_t of_fast) {
    uint64_t bytes = 0;
    XL_EACH_PATH(const xl_path, p, c)
        if (xl_path_may_carry_data(p))
            bytes += is_fast(p) ? xl_min(xl_path_window(p), of_fast) : xl_path_window(p);
    return bytes;
}

static uint64_t wanted(const xl_connection *c) {
    return windows(c, LOOK_AHEAD) + LOOK_AHEAD;
}

void xl_conn_raise_send_limit(const xl_connection *c, xl_stream *s) {
    uint64_t limit = xl_min(2 * windows(c, UINT64_MAX), c->config->limits.most_send_bytes);
    s->send.limit = xl_max(s->send.limit, (size_t)limit);
}

static uint64_t backlog(const xl_stream *s) {
    uint64_t end = xl_min(s->send.written, s->send_flow.limit);
    return !xl_conn_is_reset(s) && end > s->send.sent ? end - s->send.sent : 0;
}

/* Bytes that s accepts if it and the streams before it have `ahead` bytes to send. */
static uint64_t room(const xl_connection *c, const xl_stream *s, uint64_t ahead, uint64_t most) {
    uint64_t by_connection = xl_min(most, xl_flow_out_left(&c->streams.flow_out));
    if (ahead >= by_connection || s->send.written >= s->send_flow.limit)
        return 0;
    return xl_min(by_connection - ahead, s->send_flow.limit - s->send.written);
}

size_t xl_conn_send_room(const xl_connection *c, const xl_stream *s) {
    uint64_t ahead = backlog(s), most = wanted(c);
    for (const xl_stream *t = c->streams.send_head; t && xl_conn_is_sent_before(t, s) && ahead < most; t = t->send_next)
        ahead += backlog(t);
    return (size_t)xl_min(room(c, s, ahead, most), xl_send_capacity(&s->send));
}

size_t xl_conn_announced_bytes(const xl_connection *c, const xl_stream *s, size_t room) {
    uint64_t written = s->send.written, in_flight = windows(c, 0);
    if (s->expected <= written || room == 0)
        return 0;
    uint64_t credit = xl_min(s->send_flow.limit - written, xl_flow_out_left(&c->streams.flow_out));
    return (size_t)xl_min(xl_min(s->expected - written, room + in_flight), credit);
}

/* If the budget leaves the stream nothing, rather than its own limit, it may wait for bytes of other connections. */
static void await_budget(xl_connection *c, const xl_stream *s) {
    if (xl_send_capacity(&s->send) == 0 && s->send.written - s->send.base < s->send.limit)
        xl_budget_await_pool(&c->streams.budget);
}

void xl_conn_await_room(xl_connection *c, xl_stream *s) {
    s->writable_wanted = true;
    await_budget(c, s);
}

/* Whether it is worth asking the application: a quarter of the buffer is free below the stream's limit. */
static bool has_capacity(const xl_connection *c, const xl_stream *s) {
    size_t quarter = c->config->limits.send_buffer_bytes / 4, held = (size_t)(s->send.written - s->send.base);
    return s->send.limit >= held + quarter && xl_send_capacity(&s->send) > 0;
}

bool xl_conn_is_full(const xl_connection *c, const xl_stream *s) {
    bool has_credit = s->send.written < s->send_flow.limit && xl_flow_out_left(&c->streams.flow_out) > 0;
    return s->writable_wanted && !(has_capacity(c, s) && has_credit);
}

bool xl_conn_has_more_for(const xl_connection *c, const xl_path *p) {
    for (const xl_stream *s = c->streams.send_head; s && is_fast(p); s = s->send_next)
        if (s->writable_wanted && !xl_conn_is_full(c, s))
            return true;
    return false;
}

static bool is_anybody_waiting(const xl_connection *c) {
    for (const xl_stream *s = c->streams.send_head; s; s = s->send_next)
        if (s->writable_wanted)
            return true;
    return false;
}

void xl_conn_offer_room(xl_connection *c) {
    if (!xl_conn_is_live(c) || !is_anybody_waiting(c))
        return;
    uint64_t ahead = 0, most = wanted(c);
    for (xl_stream *s = c->streams.send_head; s; s = s->send_next) {
        xl_conn_raise_send_limit(c, s);
        ahead += backlog(s);
        if (ahead + QUANTUM > most)
            return;
        if (s->writable_wanted)
            await_budget(c, s); /* bytes that it was offered before may be taken by now */
        uint64_t takes = s->writable_wanted && has_capacity(c, s) ? room(c, s, ahead, most) : 0;
        if (takes == 0)
            continue;
        s->writable_wanted = false;
        xl_conn_emit(c, (xl_event){.type = XL_EVENT_STREAM_WRITABLE, .stream_id = s->id});
        ahead += takes; /* if it has less, it writes all of it, and the next stream is asked */
    }
}
