#include "get/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http3.h"
#include "http/hq.h"

#define NO_STREAM UINT64_MAX
/* Silence after which a PING is sent. A client that only receives would otherwise send nothing, and would not detect a
 * new NAT mapping or a restarted server. */
#define ASK_AFTER_US UINT64_C(1000000)

typedef struct {
    uint64_t stream, bytes, length; /* length: Content-Length; UINT64_MAX: none */
    bool is_settled;
    unsigned status;
} fetch;

struct get_client {
    const get_plan *plan;
    get_callbacks cb;
    xl_endpoint *endpoint;
    xl_connection *connection;
    h3_session *h3;
    hq_session *hq;
    bool is_connected, is_closing, is_over;
    size_t asked, settled;
    uint64_t now, connected_at; /* connected_at: XL_NEVER before the end of the handshake */
    uint64_t heard_at;          /* time of the last event of the server, or of the last PING */
    int path[XL_MAX_PATHS];     /* the connection's index of each path of the plan */
    size_t events_done;
    fetch fetches[];
};

static void settle(get_client *c, size_t i, const char *problem) {
    if (c->fetches[i].is_settled)
        return;
    c->fetches[i].is_settled = true;
    c->settled++;
    c->cb.done(c->cb.user, c->plan->first + i, problem);
}

static void settle_all(get_client *c, const char *problem) {
    for (size_t i = 0; i < c->plan->count; i++)
        settle(c, i, problem);
}

/* Returns the index of the stream's fetch; plan->count: none. */
static size_t fetch_of(const get_client *c, uint64_t stream) {
    size_t i = 0;
    while (i < c->asked && c->fetches[i].stream != stream)
        i++;
    return i < c->asked ? i : c->plan->count;
}

/* ---- HTTP callbacks ---- */

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    get_client *c = user;
    size_t i = fetch_of(c, stream);
    if (i == c->plan->count)
        return;
    c->fetches[i].status = head->status;
    c->fetches[i].length = head->has_content_length ? head->content_length : UINT64_MAX;
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    get_client *c = user;
    size_t i = fetch_of(c, stream);
    if (i == c->plan->count)
        return;
    c->fetches[i].bytes += len;
    if (c->fetches[i].status == 200)
        c->cb.body(c->cb.user, c->plan->first + i, data, len);
}

static void on_end(void *user, uint64_t stream) {
    get_client *c = user;
    size_t i = fetch_of(c, stream);
    char problem[GET_REASON_BYTES];
    if (i == c->plan->count)
        return;
    const fetch *f = &c->fetches[i];
    if (f->status != 200)
        snprintf(problem, sizeof problem, "the server answered with status %u", f->status);
    else if (f->length != UINT64_MAX && f->length != f->bytes)
        snprintf(problem, sizeof problem, "%" PRIu64 " bytes of %" PRIu64 " came", f->bytes, f->length);
    else
        problem[0] = '\0';
    settle(c, i, problem[0] ? problem : NULL);
}

static void on_abort(void *user, uint64_t stream, uint64_t error_code) {
    get_client *c = user;
    size_t i = fetch_of(c, stream);
    char problem[GET_REASON_BYTES];
    snprintf(problem, sizeof problem, "the response ended early (error 0x%" PRIx64 ")", error_code);
    if (i < c->plan->count)
        settle(c, i, problem);
}

/* ---- Requests ---- */

static int ask(get_client *c, fetch *f) {
    const get_url *url = &c->plan->urls[c->plan->first + c->asked];
    f->length = UINT64_MAX;
    f->status = c->hq ? 200 : 0; /* HTTP/0.9 has no status */
    return c->hq ? hq_submit(c->hq, url->path, &f->stream)
                 : h3_submit(c->h3, "GET", url->authority, url->path, NULL, 0, &f->stream);
}

static void ask_for_more(get_client *c) {
    while (c->is_connected && !c->is_closing && c->asked < c->plan->count) {
        int error = ask(c, &c->fetches[c->asked]);
        if (error == XL_ERR_STREAM_LIMIT || error == XL_ERR_STREAM_STATE)
            return; /* tried again at the next step */
        c->asked++;
        if (error)
            settle(c, c->asked - 1, "the request cannot be made");
    }
}

static void pump(get_client *c) {
    ask_for_more(c);
    if (c->hq)
        hq_pump(c->hq);
    else
        h3_pump(c->h3, c->now);
}

static void on_closed(get_client *c, const xl_event *e) {
    char problem[GET_REASON_BYTES];
    snprintf(problem, sizeof problem, "the connection ended (error 0x%" PRIx64 "%s%s)", e->error_code,
             e->reason[0] ? ": " : "", e->reason);
    settle_all(c, problem);
    c->is_over = true;
}

/* ---- What happens to paths ---- */

static void apply_path_event(get_client *c, const path_event *event) {
    const int path = c->path[strtoul(event->name, NULL, 10)];
    if (event->action == PATH_REMOVE)
        (void)xl_connection_close_path(c->connection, path, c->now);
    else
        (void)xl_connection_set_path_status(
            c->connection, path, event->action == PATH_STANDBY ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE, c->now);
}

static uint64_t next_path_event(const get_client *c) {
    if (c->connected_at == XL_NEVER || c->is_closing || c->is_over || c->events_done == c->plan->event_count)
        return XL_NEVER;
    return c->connected_at + c->plan->events[c->events_done].at_us;
}

static uint64_t next_ping(const get_client *c) {
    const bool waits = c->connected_at != XL_NEVER && !c->is_closing && !c->is_over && !get_client_is_done(c);
    return waits ? c->heard_at + ASK_AFTER_US : XL_NEVER;
}

uint64_t get_client_next_timeout(const get_client *c) {
    const uint64_t event = next_path_event(c), ping = next_ping(c);
    return event < ping ? event : ping;
}

static void on_event(get_client *c, const xl_event *e) {
    c->heard_at = c->now;
    if (e->type == XL_EVENT_CLOSED) {
        on_closed(c, e);
        return;
    }
    if (e->type == XL_EVENT_CONNECTED)
        c->connected_at = c->now;
    c->is_connected |= e->type == XL_EVENT_CONNECTED || e->type == XL_EVENT_EARLY;
    if (c->hq)
        hq_on_event(c->hq, e);
    else
        h3_on_event(c->h3, e, c->now);
}

/* ---- Life ---- */

static bool open_session(get_client *c) {
    const h3_callbacks h3 = {.user = c, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort};
    const hq_callbacks hq = {.user = c, .body = on_body, .end = on_end, .abort = on_abort};
    if (strcmp(c->plan->alpn, HQ_ALPN) == 0)
        return (c->hq = hq_session_new(c->connection, false, &hq));
    return (c->h3 = h3_session_client(c->connection, &h3));
}

get_client *get_client_start(xl_endpoint *endpoint, const get_plan *plan, const get_callbacks *cb, uint64_t now) {
    get_client *c = calloc(1, sizeof *c + plan->count * sizeof(fetch));
    if (!c)
        return NULL;
    c->plan = plan;
    c->cb = *cb;
    c->endpoint = endpoint;
    c->now = now;
    c->connected_at = XL_NEVER;
    for (size_t i = 0; i < plan->count; i++)
        c->fetches[i].stream = NO_STREAM;
    c->connection = xl_endpoint_connect(endpoint, plan->urls[plan->first].host, &plan->local[0], &plan->server[0],
                                        XL_TECH_WIFI, now);
    bool ok = c->connection && open_session(c);
    for (size_t i = 1; ok && i < plan->paths; i++) {
        c->path[i] = xl_connection_add_path(c->connection, &plan->local[i], &plan->server[i], XL_TECH_LTE, now);
        ok = c->path[i] >= 0;
    }
    if (ok)
        return c;
    get_client_free(c);
    return NULL;
}

void get_client_free(get_client *c) {
    if (!c)
        return;
    hq_session_free(c->hq);
    h3_session_free(c->h3);
    xl_connection_free(c->connection);
    free(c);
}

void get_client_step(get_client *c, uint64_t now) {
    xl_event e;
    c->now = now;
    while (!c->is_over && xl_endpoint_poll_event(c->endpoint, &e))
        if (e.connection == c->connection)
            on_event(c, &e);
    while (next_path_event(c) <= now)
        apply_path_event(c, &c->plan->events[c->events_done++]);
    if (next_ping(c) <= now) {
        xl_connection_ping(c->connection, now);
        c->heard_at = now;
    }
    if (!c->is_over)
        pump(c);
}

void get_client_close(get_client *c, const char *reason, uint64_t now) {
    c->now = now;
    settle_all(c, reason);
    if (!c->is_closing && !c->is_over)
        xl_connection_close(c->connection, c->hq ? 0 : H3_NO_ERROR, "done", now);
    c->is_closing = true;
}

bool get_client_is_done(const get_client *c) {
    return c->settled == c->plan->count;
}

const xl_connection *get_client_connection(const get_client *c) {
    return c->connection;
}
