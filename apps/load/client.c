#include "load/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "http/http3.h"
#include "video/video.h"
#include "xlink/udp.h"

struct load_client {
    const load_plan *plan;
    xl_udp *udp;
    xl_endpoint *endpoint;
    xl_connection *connection;
    h3_session *h3;
    bool connected, requesting, waits_for_credit, closing, over, wrong;
    uint64_t stream, requested_at, request_bytes, expected_bytes;
    uint64_t next_request, next_ping, now;
    load_result result;
};

const char *load_outcome_name(load_outcome outcome) {
    static const char *const names[LOAD_OUTCOMES] = {"running",        "complete", "stateless_reset", "timeout",
                                                     "closed_by_peer", "failed",   "time_limit"};
    return names[outcome];
}

/* Returns the address of client `number` on a path: base + number, modulo the prefix. */
static xl_addr address_of(const xl_addr *base, unsigned prefix, uint64_t number) {
    xl_addr a = *base;
    if (a.family != 4 || prefix >= 32)
        return a;
    uint32_t ip = (uint32_t)a.ip[0] << 24 | (uint32_t)a.ip[1] << 16 | (uint32_t)a.ip[2] << 8 | a.ip[3];
    uint32_t mask = UINT32_MAX >> prefix;
    ip = (ip & ~mask) | ((ip + (uint32_t)number) & mask);
    for (int i = 0; i < 4; i++)
        a.ip[i] = (uint8_t)(ip >> (24 - 8 * i));
    return a;
}

/* ---- Requests ---- */

static void end_with(load_client *c, load_outcome outcome, const char *reason) {
    if (c->result.outcome != LOAD_RUNNING)
        return;
    c->result.outcome = outcome;
    c->result.ended_after = c->now - c->result.began;
    snprintf(c->result.reason, sizeof c->result.reason, "%s", reason);
}

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    load_client *c = user;
    (void)stream;
    c->wrong |= head->status != 200;
    c->expected_bytes = head->has_content_length ? head->content_length : UINT64_MAX;
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    load_client *c = user;
    uint64_t whole;
    (void)stream;
    if (video_synthetic_parse(c->plan->url, strlen(c->plan->url), &whole))
        c->wrong |= video_synthetic_check(data, len, c->request_bytes) != len;
    c->request_bytes += len;
    c->result.bytes += len;
}

static void on_end(void *user, uint64_t stream) {
    load_client *c = user;
    (void)stream;
    uint64_t took = c->now - c->requested_at;
    c->requesting = false;
    c->wrong |= c->expected_bytes != UINT64_MAX && c->expected_bytes != c->request_bytes;
    if (c->wrong) {
        end_with(c, LOAD_FAILED, "a response with the wrong status or content");
        return;
    }
    c->result.requests_done++;
    if (took > c->result.longest_request_us)
        c->result.longest_request_us = took;
    c->next_request = c->now + c->plan->pause_us;
}

static void on_abort(void *user, uint64_t stream, uint64_t code) {
    load_client *c = user;
    (void)stream;
    (void)code;
    c->requesting = false;
    end_with(c, LOAD_FAILED, "a request was refused");
}

static bool has_enough(const load_client *c) {
    return c->plan->requests > 0 && c->result.requests_done >= c->plan->requests;
}

static void make_request(load_client *c) {
    c->request_bytes = 0;
    c->expected_bytes = UINT64_MAX;
    c->requested_at = c->now;
    int rv = h3_submit(c->h3, "GET", c->plan->authority, c->plan->url, NULL, 0, &c->stream);
    c->requesting = rv == 0;
    c->waits_for_credit = rv == XL_ERR_STREAM_LIMIT; /* the server's next packets may raise the limit */
    if (rv != 0 && !c->waits_for_credit)
        end_with(c, LOAD_FAILED, "no request can be made");
    h3_pump(c->h3, c->now);
}

/* Whether each path was validated or abandoned. Suspect paths count too, because a path without traffic may stay
 * suspect. */
static bool all_paths_are_settled(const load_client *c) {
    xl_connection_stats stats;
    xl_connection_get_stats(c->connection, &stats);
    for (size_t i = 0; stats.multipath && i < c->plan->paths; i++) {
        xl_path_stats p;
        if (xl_connection_path_stats(c->connection, i, &p) != 0 || p.state == XL_PATH_NEW ||
            p.state == XL_PATH_VALIDATING)
            return false;
    }
    return true;
}

/* Makes the next request, or closes the connection after the last one. */
static void proceed(load_client *c) {
    if (!c->connected || c->closing || c->requesting)
        return;
    bool done = has_enough(c);
    if (c->result.outcome == LOAD_RUNNING && !done && c->now >= c->next_request)
        make_request(c);
    else if (c->result.outcome == LOAD_RUNNING && done && all_paths_are_settled(c))
        end_with(c, LOAD_COMPLETE, "");
    if (c->result.outcome != LOAD_RUNNING) {
        c->closing = true;
        xl_connection_close(c->connection, H3_NO_ERROR, "done", c->now);
    }
}

/* ---- The connection ---- */

static void note_paths(load_client *c) {
    for (size_t i = 0; i < c->plan->paths; i++) {
        xl_path_stats p;
        if (xl_connection_path_stats(c->connection, i, &p) != 0)
            return;
        c->result.path[i] = (load_path){p.local, p.state, p.bytes_received};
        c->result.path_count = i + 1;
    }
}

static void on_closed(load_client *c, const xl_event *e) {
    static const load_outcome outcomes[] = {[XL_CLOSE_LOCAL] = LOAD_FAILED,
                                            [XL_CLOSE_PEER] = LOAD_CLOSED_BY_PEER,
                                            [XL_CLOSE_STATELESS_RESET] = LOAD_RESET,
                                            [XL_CLOSE_IDLE_TIMEOUT] = LOAD_TIMEOUT,
                                            [XL_CLOSE_HANDSHAKE_TIMEOUT] = LOAD_TIMEOUT,
                                            [XL_CLOSE_VERSION] = LOAD_FAILED,
                                            [XL_CLOSE_INTERNAL] = LOAD_FAILED};
    end_with(c, outcomes[e->close_reason], e->reason);
    note_paths(c);
    c->over = true;
}

static void on_event(load_client *c, const xl_event *e) {
    if (e->type == XL_EVENT_CLOSED) {
        on_closed(c, e);
        return;
    }
    h3_on_event(c->h3, e, c->now);
    h3_pump(c->h3, c->now);
    if (e->type == XL_EVENT_CONNECTED) {
        c->connected = true;
        c->result.connected_after = c->now - c->result.began;
        c->next_request = c->now;
    }
}

void load_client_step(load_client *c, uint64_t now) {
    c->now = now;
    xl_udp_receive(c->udp, c->endpoint, now);
    xl_endpoint_handle_timeout(c->endpoint, now);
    xl_event e;
    while (!c->over && xl_endpoint_poll_event(c->endpoint, &e))
        on_event(c, &e);
    if (!c->over)
        proceed(c);
    if (!c->over && c->plan->ping_us && now >= c->next_ping) {
        xl_connection_ping(c->connection, now);
        c->next_ping = now + c->plan->ping_us;
    }
    xl_udp_flush(c->udp, c->endpoint, now);
}

uint64_t load_client_next_timeout(const load_client *c) {
    uint64_t at = xl_endpoint_next_timeout(c->endpoint);
    bool waits = c->connected && !c->closing && !c->requesting && !c->waits_for_credit && !has_enough(c);
    if (waits && c->next_request < at)
        at = c->next_request;
    return c->plan->ping_us && !c->closing && c->next_ping < at ? c->next_ping : at;
}

bool load_client_is_over(const load_client *c) {
    return c->over;
}

void load_client_give_up(load_client *c, uint64_t now) {
    c->now = now;
    note_paths(c);
    end_with(c, LOAD_TIME_LIMIT, "the time limit came first");
    c->over = true;
}

const load_result *load_client_result(const load_client *c) {
    return &c->result;
}

int load_client_fd(const load_client *c) {
    return xl_udp_fd(c->udp);
}

/* ---- Life ---- */

static bool open_sockets(load_client *c, uint64_t number, xl_addr bound[XL_MAX_PATHS], char *error, size_t cap) {
    for (size_t i = 0; i < c->plan->paths; i++) {
        xl_addr local = address_of(&c->plan->path[i], c->plan->prefix[i], number);
        char text[64];
        int rv = xl_udp_add_socket(c->udp, &local, &bound[i]);
        if (rv < 0)
            return error_set(error, cap, "cannot send from %s: %s", xl_addr_format(&local, text, sizeof text),
                             strerror(-rv));
    }
    return true;
}

static bool connect_it(load_client *c, uint64_t number, const xl_addr *bound, uint64_t now, char *reason, size_t cap) {
    const random_seed seed = {.given = c->plan->seed.given, .seed = c->plan->seed.seed + number};
    xl_config config;
    int error;
    xl_config_init(&config);
    quic_settings_configure(&c->plan->settings, &config);
    if (!random_key_make(&seed, "client", config.random_key, reason, cap))
        return false;
    config.random_packet_numbers = !seed.given;
    config.credentials = c->plan->credentials;
    c->endpoint = xl_endpoint_new(&config, now, &error);
    if (c->endpoint)
        c->connection = xl_endpoint_connect(c->endpoint, c->plan->host, &bound[0], &c->plan->server, XL_TECH_WIFI, now);
    if (!c->connection)
        return false;
    for (size_t i = 1; i < c->plan->paths; i++)
        if (xl_connection_add_path(c->connection, &bound[i], &c->plan->server, XL_TECH_LTE, now) < 0)
            return false;
    const h3_callbacks callbacks = {
        .user = c, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort};
    c->h3 = h3_session_client(c->connection, &callbacks);
    return c->h3 != NULL;
}

load_client *load_client_start(const load_plan *plan, uint64_t number, uint64_t now, char *error, size_t error_cap) {
    xl_addr bound[XL_MAX_PATHS];
    load_client *c = calloc(1, sizeof *c);
    snprintf(error, error_cap, "out of memory");
    if (!c)
        return NULL;
    c->plan = plan;
    c->now = now;
    c->result.began = now;
    c->next_ping = now + plan->ping_us;
    c->udp = xl_udp_new();
    if (c->udp && open_sockets(c, number, bound, error, error_cap) &&
        connect_it(c, number, bound, now, error, error_cap)) {
        load_client_step(c, now);
        return c;
    }
    load_client_free(c);
    return NULL;
}

void load_client_free(load_client *c) {
    if (!c)
        return;
    h3_session_free(c->h3);
    xl_endpoint_free(c->endpoint);
    xl_udp_free(c->udp);
    free(c);
}
