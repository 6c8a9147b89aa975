#include "base/error.h"
#include "player/http3_client_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPT_APART_US 1000000 /* from a failed attempt to the next one */

/* ---- events ---- */

static void tell_closed(http3_client *t, const char *message) {
    t->over = true;
    t->cb.closed(t->cb.user, message, t->now);
}

/* Writes to message[PLAYER_ERROR_BYTES] why the connection was closed. */
static void describe_close(const xl_event *event, char *message) {
    switch (event->close_reason) {
    case XL_CLOSE_IDLE_TIMEOUT:
        snprintf(message, PLAYER_ERROR_BYTES, "nothing was heard from the server for too long");
        break;
    case XL_CLOSE_HANDSHAKE_TIMEOUT:
        snprintf(message, PLAYER_ERROR_BYTES, "no answer from the server");
        break;
    case XL_CLOSE_VERSION:
        snprintf(message, PLAYER_ERROR_BYTES, "%s", event->reason);
        break;
    case XL_CLOSE_LOCAL:
    case XL_CLOSE_PEER:
    case XL_CLOSE_STATELESS_RESET:
    case XL_CLOSE_INTERNAL: {
        bool is_ours = event->close_reason == XL_CLOSE_LOCAL || event->close_reason == XL_CLOSE_INTERNAL;
        snprintf(message, PLAYER_ERROR_BYTES, "the %s closed the connection (%s error 0x%" PRIx64 "%s%s)",
                 is_ours ? "player" : "server", event->application_error ? "HTTP/3" : "QUIC", event->error_code,
                 event->reason[0] ? ": " : "", event->reason);
    }
    }
}

static void on_closed(http3_client *t, const xl_event *event) {
    char message[PLAYER_ERROR_BYTES];
    describe_close(event, message);
    tell_closed(t, message);
}

/* Whether another attempt may succeed: nothing was received, the server lost its state, or one side closed the
 * connection without an error. */
static bool is_worth_another(const http3_client *t, const xl_event *closed) {
    if (t->config->settings->reconnect == QUIC_RECONNECT_OFF)
        return false;
    switch (closed->close_reason) {
    case XL_CLOSE_IDLE_TIMEOUT:
    case XL_CLOSE_HANDSHAKE_TIMEOUT:
    case XL_CLOSE_STATELESS_RESET:
        return true;
    case XL_CLOSE_LOCAL:
    case XL_CLOSE_PEER:
        return !closed->application_error && closed->error_code == 0;
    case XL_CLOSE_VERSION:
    case XL_CLOSE_INTERNAL:
        break;
    }
    return false;
}

static attempt *attempt_of(http3_client *t, const xl_connection *connection) {
    for (size_t i = 0; i < ATTEMPTS_MAX; i++)
        if (t->attempts[i].connection == connection)
            return &t->attempts[i];
    return NULL;
}

/* Stops using the connection in use. Its open requests wait for the next one. */
static void leave(http3_client *t) {
    xl_connection_stats all;
    xl_connection_get_stats(t->connection, &all);
    t->past_stream_bytes += all.stream_bytes_received;
    http3_client_add_path_stats(t, t->past_stats);
    for (unsigned i = 0; i < t->count; i++)
        t->requests[i].waits |= t->requests[i].open;
    if (t->is_going || !http3_client_is_asking(t))                  /* the path has no fault */
        t->last_path = t->in_use->path + t->config->path_count - 1; /* next_path() then returns the same path */
    t->in_use = NULL;
    t->is_going = false;
}

static void add_other_paths(http3_client *t, attempt *a) {
    for (size_t i = 0; t->uses_all && !a->has_paths && i < t->config->path_count; i++)
        if (t->is_opened[i] && i != a->path)
            (void)xl_connection_add_path(a->connection, &t->paths[i].local, &t->config->server, t->paths[i].technology,
                                         t->now);
    a->has_paths = true;
}

static void give_up(http3_client *t, attempt *a) {
    a->is_left = true;
    xl_connection_close(a->connection, H3_NO_ERROR, "another path was faster", t->now);
}

static void win(http3_client *t, attempt *winner) {
    bool is_first = !t->connected;
    if (t->in_use)
        leave(t);
    t->race_at = XL_NEVER;
    t->connected = true;
    if (t->connection != winner->connection) /* only paths of another attempt were reported so far */
        t->cb.path(t->cb.user, winner->path, xl_path_state_name(XL_PATH_ACTIVE), t->now);
    t->in_use = winner;
    t->connection = winner->connection;
    t->h3 = winner->h3;
    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        attempt *a = &t->attempts[i];
        if (a != winner && a->is_alive)
            give_up(t, a);
    }
    add_other_paths(t, winner);
    if (is_first)
        t->cb.connected(t->cb.user, t->now);
    http3_client_submit_again(t);
}

/* Handles the failure of an attempt while no connection is in use. */
static void try_on(http3_client *t, const xl_event *closed) {
    describe_close(closed, t->why);
    if (t->race_at != XL_NEVER)
        t->race_at = t->now; /* the next attempt need not wait */
    else if (is_worth_another(t, closed))
        t->again_at = t->again_at < t->now + ATTEMPT_APART_US ? t->again_at : t->now + ATTEMPT_APART_US;
    else if (t->attempts_alive == 0)
        on_closed(t, closed);
}

/* Handles an event of an attempt that is not the connection in use. */
static void on_attempt_event(http3_client *t, attempt *a, const xl_event *event) {
    bool is_wanted = !t->in_use || !xl_connection_is_confirmed(t->connection);
    if (event->type == XL_EVENT_EARLY && !t->in_use && t->config->settings->race_us == 0 && !a->is_left) {
        h3_on_event(a->h3, event, t->now); /* 0-RTT, except in a race, where another attempt may win */
        win(t, a);
    } else if (event->type == XL_EVENT_CONNECTED && !a->is_left) {
        if (!is_wanted) {
            give_up(t, a);
            return;
        }
        h3_on_event(a->h3, event, t->now);
        win(t, a);
    } else if (event->type == XL_EVENT_CLOSED) {
        a->is_alive = false;
        t->attempts_alive--;
        if (!t->in_use && !(a->is_left && t->connected))
            try_on(t, event);
    }
}

/* Handles the end of the connection in use. */
static void on_end_of_use(http3_client *t, const xl_event *closed) {
    t->in_use->is_alive = false;
    t->attempts_alive--;
    if (!is_worth_another(t, closed) && !(t->is_going && closed->close_reason == XL_CLOSE_PEER)) {
        on_closed(t, closed);
        return;
    }
    leave(t);
    describe_close(closed, t->why);
    t->again_at = http3_client_is_asking(t) ? t->now : XL_NEVER;
}

static void on_event(http3_client *t, const xl_event *event) {
    attempt *a = attempt_of(t, event->connection);
    bool decides = event->type == XL_EVENT_CONNECTED || event->type == XL_EVENT_CLOSED || event->type == XL_EVENT_EARLY;
    if (!a)
        return;
    if ((a != t->in_use && decides) || event->connection != t->connection) {
        on_attempt_event(t, a, event);
        return;
    }
    h3_on_event(t->h3, event, t->now);
    switch (event->type) {
    case XL_EVENT_PATH: {
        size_t path = http3_client_to_config(t, event->path);
        if (path < t->config->path_count)
            t->cb.path(t->cb.user, path, xl_path_state_name(event->path_state), t->now);
        break;
    }
    case XL_EVENT_MIGRATED: {
        size_t from = http3_client_to_config(t, event->from_path), to = http3_client_to_config(t, event->path);
        if (from < t->config->path_count && to < t->config->path_count)
            t->cb.migrated(t->cb.user, from, to, t->now);
        break;
    }
    case XL_EVENT_CLOSED:
        on_end_of_use(t, event);
        break;
    default:
        break;
    }
}

/* ---- life ---- */

static bool make_endpoint(http3_client *t, const player_transport_config *config, xl_credentials *credentials,
                          const xl_log *log, uint64_t now, char *error) {
    xl_config c;
    xl_config_init(&c);
    c.alpn = "h3";
    memcpy(c.random_key, config->random_key, sizeof c.random_key);
    c.random_packet_numbers = config->random_packet_numbers;
    c.credentials = credentials;
    c.log = *log;
    c.null_crypto = config->null_crypto;
    quic_settings_configure(config->settings, &c);
    /* An unanswered attempt continues beside later ones, because its packets are the first in the queue of a link in
     * an outage. */
    if (config->settings->reconnect != QUIC_RECONNECT_OFF)
        c.limits.handshake_timeout_us = c.limits.idle_timeout_us;
    int rv = XL_ERR_ARGUMENT;
    t->endpoint =
        config->new_endpoint ? config->new_endpoint(config->network, &c, now, &rv) : xl_endpoint_new(&c, now, &rv);
    if (!t->endpoint)
        snprintf(error, PLAYER_ERROR_BYTES,
                 rv == XL_ERR_MEMORY ? "out of memory" : "the transport refuses the settings");
    return t->endpoint != NULL;
}

http3_client *http3_client_new(const player_transport_config *config, const player_transport_callbacks *callbacks,
                               xl_credentials *credentials, const xl_log *log, uint64_t now, char *error) {
    if (strlen(config->target) > MAX_TARGET_BYTES)
        return error_null(error, PLAYER_ERROR_BYTES, "the URL is longer than %d bytes", MAX_TARGET_BYTES);
    http3_client *t = calloc(1, sizeof *t + config->concurrency * sizeof(client_request));
    if (!t)
        return error_null(error, PLAYER_ERROR_BYTES, "out of memory");
    t->cb = *callbacks;
    t->config = config;
    t->count = config->concurrency;
    t->start_us = now;
    t->keeps_session = config->session_file || config->early_data || config->keeps_session;
    t->uses_all = quic_settings_use_all_paths(config->settings);
    t->race_at = t->again_at = XL_NEVER;
    snprintf(t->why, sizeof t->why, "no answer from the server");
    memcpy(t->paths, config->paths, config->path_count * sizeof *config->paths);
    if (!make_endpoint(t, config, credentials, log, now, error)) {
        http3_client_free(t);
        return NULL;
    }
    return t;
}

void http3_client_free(http3_client *t) {
    if (!t)
        return;
    for (size_t i = 0; i < ATTEMPTS_MAX; i++)
        h3_session_free(t->attempts[i].h3);
    xl_endpoint_free(t->endpoint); /* frees its connections too */
    free(t);
}

/* SNI is the host part of the authority. */
static void host_of(const char *authority, char *host, size_t cap) {
    snprintf(host, cap, "%s", authority + (authority[0] == '['));
    char *end = authority[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    if (end)
        *end = '\0';
}

static void give_back(attempt *a) {
    h3_session_free(a->h3);
    xl_connection_free(a->connection);
    *a = (attempt){.connection = NULL};
}

/* Returns a free slot, if necessary that of an ended attempt. NULL: all slots are in use. */
static attempt *free_attempt(http3_client *t) {
    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        attempt *a = &t->attempts[i];
        if (!a->connection)
            return a;
        if (a->is_alive || a->connection == t->connection)
            continue;
        give_back(a);
        return a;
    }
    return NULL;
}

/* Starts a handshake on path i. */
static bool connect_on(http3_client *t, size_t i, uint64_t now) {
    char host[96];
    host_of(t->config->authority, host, sizeof host);
    const player_path *path = &t->paths[i];
    attempt *a = free_attempt(t);
    if (!a)
        return false;
    a->path = i;
    a->connection = xl_endpoint_connect(t->endpoint, host, &path->local, &t->config->server, path->technology, now);
    const h3_callbacks callbacks = http3_client_callbacks(t);
    if (a->connection)
        a->h3 = h3_session_client(a->connection, &callbacks);
    if (!a->h3) {
        give_back(a);
        return false;
    }
    a->is_alive = true;
    t->last_path = i;
    t->attempts_begun++;
    t->attempts_alive++;
    t->again_at =
        t->config->settings->reconnect == QUIC_RECONNECT_OFF ? XL_NEVER : now + t->config->settings->reconnect_us;
    return true;
}

bool http3_client_open_path(http3_client *t, size_t i, const xl_addr *local, uint64_t now, char *error) {
    t->paths[i].local = *local;
    t->is_opened[i] = true;
    if (i == 0) {
        if (!connect_on(t, 0, now))
            return error_set(error, PLAYER_ERROR_BYTES, "out of memory");
        t->attempts[0].has_paths = t->config->settings->race_us == 0; /* http3_client_open_path() adds them */
        t->connection = t->attempts[0].connection;
        t->h3 = t->attempts[0].h3;
    } else if (t->config->settings->race_us > 0) {
        t->race_at = now + t->config->settings->race_us; /* win() adds the path to the winner */
    } else if (xl_connection_add_path(t->connection, local, &t->config->server, t->paths[i].technology, now) < 0)
        return error_set(error, PLAYER_ERROR_BYTES, "the transport does not take path %s (at most %d)",
                         t->paths[i].name, XL_MAX_PATHS);
    return true;
}

/* Starts the race's next attempt if it is due, on the next open path. */
static void race(http3_client *t, uint64_t now) {
    if (t->race_at > now)
        return;
    size_t next = t->last_path + 1;
    while (next < t->config->path_count && !t->is_opened[next])
        next++;
    bool started = next < t->config->path_count && connect_on(t, next, now);
    t->race_at = started && next + 1 < t->config->path_count ? now + t->config->settings->race_us : XL_NEVER;
    if (t->attempts_alive == 0 && t->again_at == XL_NEVER)
        tell_closed(t, t->why);
}

/* ---- connecting again ---- */

static bool has_attempt(const http3_client *t, size_t path) {
    for (size_t i = 0; i < ATTEMPTS_MAX; i++)
        if (t->attempts[i].is_alive && !t->attempts[i].is_left && t->attempts[i].path == path)
            return true;
    return false;
}

/* Whether path i is open. A scheme that uses one path opens it now if necessary. */
static bool has_interface(http3_client *t, size_t i) {
    if (t->is_opened[i] || t->uses_all)
        return t->is_opened[i];
    t->is_opened[i] = !t->opener || t->opener(t->opener_user, i, &t->paths[i].local);
    return t->is_opened[i];
}

/* Returns the path of the next attempt, one without a running attempt; path_count: none. */
static size_t next_path(http3_client *t) {
    if (t->config->settings->reconnect != QUIC_RECONNECT_NEXT)
        return has_attempt(t, 0) ? t->config->path_count : 0;
    for (size_t step = 1; step <= t->config->path_count; step++) {
        size_t i = (t->last_path + step) % t->config->path_count;
        if (!has_attempt(t, i) && has_interface(t, i))
            return i;
    }
    return t->config->path_count;
}

/* Returns when the connection in use is left as silent; XL_NEVER: never, or no request is open. */
static uint64_t leave_at(const http3_client *t) {
    const quic_settings *s = t->config->settings;
    bool may_leave = s->leave_us > 0 && s->reconnect != QUIC_RECONNECT_OFF;
    return may_leave && t->in_use && http3_client_is_asking(t) ? t->heard_at + s->leave_us : XL_NEVER;
}

static bool is_served(const http3_client *t) {
    for (unsigned i = 0; i < t->count; i++)
        if (t->requests[i].open && !t->requests[i].waits)
            return true;
    return false;
}

/* Leaves the connection in use if it is silent, or if the server sent GOAWAY and has completed all requests that it
 * accepted (RFC 9114 section 5.2). */
static void leave_for_another(http3_client *t, uint64_t now) {
    const bool is_silent = leave_at(t) <= now;
    if (!is_silent && !(t->is_going && t->in_use && !is_served(t)))
        return;
    attempt *left = t->in_use;
    leave(t);
    left->is_left = true;
    xl_connection_close(left->connection, H3_NO_ERROR, is_silent ? "nothing was heard" : "after GOAWAY", now);
    t->again_at = http3_client_is_asking(t) ? now : XL_NEVER;
}

static void connect_again(http3_client *t, uint64_t now) {
    if (t->again_at > now)
        return;
    if (t->in_use && xl_connection_is_confirmed(t->connection)) {
        t->again_at = XL_NEVER;
        return;
    }
    size_t next = next_path(t);
    if (next < t->config->path_count && connect_on(t, next, now))
        t->cb.path(t->cb.user, next, "tried", now);
    else
        t->again_at = now + ATTEMPT_APART_US;
}

xl_endpoint *http3_client_endpoint(http3_client *t) {
    return t->endpoint;
}

/* Sets the QoE signal before anything is sent, so that the next acknowledgement includes the newest data. */
static void tell_qoe(http3_client *t, uint64_t now) {
    xl_qoe qoe;
    if (t->cb.qoe(t->cb.user, now, &qoe))
        xl_connection_set_qoe(t->connection, &qoe, now);
}

void http3_client_process(http3_client *t, uint64_t now) {
    if (t->over)
        return;
    t->now = now;
    xl_endpoint_handle_timeout(t->endpoint, now);
    race(t, now);
    xl_event event;
    while (!t->over && xl_endpoint_poll_event(t->endpoint, &event))
        on_event(t, &event);
    if (!t->over) {
        leave_for_another(t, now);
        connect_again(t, now);
    }
    http3_client_submit_again(t);
    while (!t->over && http3_client_next_event(t) <= now)
        http3_client_apply_event(t, &t->config->path_events[t->event_next++]);
    if (t->over || (t->connected && !t->in_use))
        return;
    h3_pump(t->h3, now);
    tell_qoe(t, now);
}

uint64_t http3_client_next_timeout(const http3_client *t) {
    if (t->over)
        return XL_NEVER;
    uint64_t at = xl_endpoint_next_timeout(t->endpoint), event = http3_client_next_event(t);
    at = event < at ? event : at;
    at = t->again_at < at ? t->again_at : at;
    at = leave_at(t) < at ? leave_at(t) : at;
    return t->race_at < at ? t->race_at : at;
}

bool http3_client_is_connected(const http3_client *t) {
    return t->connected;
}

bool http3_client_is_over(const http3_client *t) {
    return t->over;
}

void http3_client_fail(http3_client *t, const char *message, uint64_t now) {
    t->now = now;
    if (!t->over)
        tell_closed(t, message);
}

void http3_client_close(http3_client *t, uint64_t now) {
    for (size_t i = 0; i < ATTEMPTS_MAX && !t->over; i++)
        if (t->attempts[i].is_alive)
            xl_connection_close(t->attempts[i].connection, H3_NO_ERROR, "", now);
}

/* ---- facts ---- */

json_t *http3_client_summary(const http3_client *t) {
    xl_connection_stats all;
    xl_connection_get_stats(t->connection, &all);
    uint64_t stream_bytes = t->past_stream_bytes + (t->in_use || !t->connected ? all.stream_bytes_received : 0);
    json_t *summary =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I}", "multipath", (int)all.multipath, "attempts",
                  (json_int_t)t->attempts_begun, "migrations", (json_int_t)all.migrations, "stream_bytes_received",
                  (json_int_t)stream_bytes, "datagrams_received", (json_int_t)all.datagrams_received,
                  "datagrams_dropped", (json_int_t)all.datagrams_dropped);
    if (t->keeps_session) {
        json_object_set_new(summary, "resumed", json_boolean(xl_connection_is_resumed(t->connection)));
        json_object_set_new(summary, "early_data", json_boolean(xl_connection_is_early_accepted(t->connection)));
    }
    return summary;
}
