/* The client's requests and their responses. */
#include <inttypes.h>
#include <stdio.h>

#include "player/http3_client_internal.h"

static client_request *find_stream(http3_client *t, uint64_t stream) {
    for (unsigned i = 0; i < t->count; i++)
        if (t->requests[i].open && !t->requests[i].waits && t->requests[i].stream == stream)
            return &t->requests[i];
    return NULL;
}

bool http3_client_is_asking(const http3_client *t) {
    for (unsigned i = 0; i < t->count; i++)
        if (t->requests[i].open)
            return true;
    return false;
}

/* Requests the missing bytes on the connection in use. */
static bool submit(http3_client *t, client_request *r, uint64_t now) {
    if (!http3_client_is_asking(t) || r->waits)
        t->heard_at = now;
    char range[64];
    snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, r->first + r->received, r->last);
    const h3_header headers[] = {{"range", range}};
    if (h3_submit(t->h3, "GET", t->config->authority, t->config->target, headers, 1, &r->stream) != 0)
        return false;
    r->asked_from = r->first + r->received;
    r->waits = r->is_whole = false;
    r->skip = 0;
    return true;
}

void http3_client_submit_again(http3_client *t) {
    for (unsigned i = 0; i < t->count && t->in_use && !t->over; i++) {
        client_request *r = &t->requests[i];
        if (!r->open || !r->waits)
            continue;
        if (r->received <= r->last - r->first) {
            (void)submit(t, r, t->now);
            continue;
        }
        r->open = false;
        t->cb.done(t->cb.user, r->id, t->now);
    }
}

bool http3_client_request(http3_client *t, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    client_request *free_slot = NULL;
    for (unsigned i = 0; i < t->count && !free_slot; i++)
        if (!t->requests[i].open)
            free_slot = &t->requests[i];
    if (!t->connected || t->over || !free_slot)
        return false;
    *free_slot = (client_request){.id = id, .first = first, .last = last};
    if (!t->in_use) {
        free_slot->open = free_slot->waits = true;
        t->again_at = t->again_at == XL_NEVER ? now : t->again_at;
        return true;
    }
    if (!submit(t, free_slot, now))
        return false;
    free_slot->open = true;
    h3_pump(t->h3, now);
    return true;
}

static void request_failed(http3_client *t, client_request *r, const char *message) {
    r->open = false;
    h3_cancel(t->h3, r->stream, H3_REQUEST_CANCELLED);
    t->cb.failed(t->cb.user, r->id, message, t->now);
}

/* Whether the head announces the requested range, or the complete resource. */
static bool right_range(const client_request *r, const h3_response_head *head) {
    if (head->status == 200)
        return !head->has_content_length || head->content_length > r->last;
    return (!head->has_content_length || head->content_length == r->last - r->asked_from + 1) &&
           head->has_content_range && head->first == r->asked_from && head->last == r->last;
}

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    http3_client *t = user;
    client_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (head->status != 200 && head->status != 206) {
        char message[32];
        snprintf(message, sizeof message, "status %u", head->status);
        request_failed(t, r, message);
    } else if (!right_range(r, head)) {
        request_failed(t, r, "the response is not the range that was asked for");
    } else if (head->status == 200) {
        r->is_whole = !head->has_content_length || head->content_length > r->last + 1;
        r->skip = r->asked_from;
    }
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    http3_client *t = user;
    client_request *r = find_stream(t, stream);
    if (!r)
        return;
    size_t passed_over = len < r->skip ? len : (size_t)r->skip;
    r->skip -= passed_over;
    data += passed_over;
    len -= passed_over;
    uint64_t missing = r->last - r->first + 1 - r->received;
    if (len > missing && !r->is_whole) {
        request_failed(t, r, "more bytes than were asked for");
        return;
    }
    uint64_t id = r->id, offset = r->received, answered = r->stream;
    len = len < missing ? len : (size_t)missing;
    r->received += len;
    t->heard_at = t->now;
    if (len > 0)
        t->cb.data(t->cb.user, id, offset, data, len, t->now);
    if (r->is_whole && len == missing && r->open && r->id == id) { /* the rest is not needed */
        r->open = false;
        h3_cancel(t->h3, answered, H3_REQUEST_CANCELLED);
        t->cb.done(t->cb.user, id, t->now);
    }
}

static void on_end(void *user, uint64_t stream) {
    http3_client *t = user;
    client_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (r->received < r->last - r->first + 1) {
        request_failed(t, r, "fewer bytes than were asked for");
        return;
    }
    r->open = false;
    t->cb.done(t->cb.user, r->id, t->now);
}

static void on_abort(void *user, uint64_t stream, uint64_t error_code) {
    http3_client *t = user;
    client_request *r = find_stream(t, stream);
    if (!r)
        return;
    if (t->is_going && error_code == H3_REQUEST_REJECTED) { /* not processed: submitted again on the next connection */
        r->waits = true;
        return;
    }
    char message[64];
    snprintf(message, sizeof message, "the response ended early (HTTP/3 error 0x%" PRIx64 ")", error_code);
    request_failed(t, r, message);
}

static void on_goaway(void *user) {
    ((http3_client *)user)->is_going = true;
}

h3_callbacks http3_client_callbacks(http3_client *t) {
    return (h3_callbacks){
        .user = t, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort, .goaway = on_goaway};
}
