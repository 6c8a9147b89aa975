/* The client's paths: which are used, adding and removing them, and their statistics. */
#include <string.h>

#include "player/http3_client_internal.h"

bool http3_client_opens_at_start(const player_transport_config *config, size_t i) {
    bool uses_all = quic_settings_use_all_paths(config->settings) || config->settings->race_us > 0;
    return (i == 0 || uses_all) &&
           !path_events_add_later(config->path_events, config->path_event_count, config->paths[i].name);
}

void http3_client_set_opener(http3_client *t, http3_client_opener *opener, void *user) {
    t->opener = opener;
    t->opener_user = user;
}

size_t http3_client_to_config(const http3_client *t, int index) {
    xl_path_stats path;
    if (index < 0 || xl_connection_path_stats(t->connection, (size_t)index, &path) != 0)
        return t->config->path_count;
    size_t i = 0;
    while (i < t->config->path_count && !(t->is_opened[i] && xl_addr_equal(&t->paths[i].local, &path.local)))
        i++;
    return i;
}

/* Returns the transport's index of configured path i, if the path is not closed; else -1. */
static int open_index(const http3_client *t, size_t i) {
    xl_path_stats path;
    for (size_t k = 0; xl_connection_path_stats(t->connection, k, &path) == 0; k++)
        if (path.state != XL_PATH_CLOSED && http3_client_to_config(t, (int)k) == i)
            return (int)k;
    return -1;
}

static bool is_usable(xl_path_state state) {
    return state == XL_PATH_ACTIVE || state == XL_PATH_STANDBY || state == XL_PATH_SUSPECT;
}

void http3_client_remove_path(http3_client *t, size_t i, uint64_t now) {
    int index = open_index(t, i);
    xl_path_stats path;
    for (size_t k = 0; index >= 0 && xl_connection_path_stats(t->connection, k, &path) == 0; k++) {
        if ((int)k != index && is_usable(path.state)) {
            (void)xl_connection_close_path(t->connection, index, now);
            return;
        }
    }
}

void http3_client_add_path(http3_client *t, size_t i, uint64_t now) {
    if (t->over || open_index(t, i) >= 0)
        return;
    if (t->opener && !t->opener(t->opener_user, i, &t->paths[i].local)) {
        t->cb.path(t->cb.user, i, "unavailable", now);
        return;
    }
    t->is_opened[i] = true;
    if (xl_connection_add_path(t->connection, &t->paths[i].local, &t->config->server, t->paths[i].technology, now) < 0)
        t->cb.path(t->cb.user, i, "refused", now);
}

void http3_client_apply_event(http3_client *t, const path_event *event) {
    size_t i = 0;
    while (i < t->config->path_count && strcmp(t->paths[i].name, event->name) != 0)
        i++;
    int index = open_index(t, i);
    if (event->action == PATH_ADD)
        http3_client_add_path(t, i, t->now);
    else if (event->action == PATH_REMOVE)
        http3_client_remove_path(t, i, t->now);
    else if (index >= 0)
        (void)xl_connection_set_path_status(
            t->connection, index, event->action == PATH_STANDBY ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE, t->now);
}

/* Events wait for the handshake, which decides whether multipath is used. */
uint64_t http3_client_next_event(const http3_client *t) {
    return t->in_use && t->event_next < t->config->path_event_count
               ? t->start_us + t->config->path_events[t->event_next].at_us
               : XL_NEVER;
}

/* ---- facts ---- */

void http3_client_add_path_stats(const http3_client *t, player_path_stats *stats) {
    xl_path_stats path;
    for (size_t i = 0; xl_connection_path_stats(t->connection, i, &path) == 0; i++) {
        size_t at = http3_client_to_config(t, path.index);
        if (at < t->config->path_count) {
            stats[at].bytes_sent += path.bytes_sent;
            stats[at].bytes_received += path.bytes_received;
            stats[at].srtt_us = path.srtt_us;
        }
    }
}

void http3_client_path_stats(const http3_client *t, player_path_stats *stats) {
    memcpy(stats, t->past_stats, t->config->path_count * sizeof *stats);
    if (t->in_use || !t->connected) /* after leave(), past_stats includes the connection */
        http3_client_add_path_stats(t, stats);
}
