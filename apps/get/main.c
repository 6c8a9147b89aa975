/* xlink-get: fetches URLs over QUIC, by HTTP/3 or HTTP/0.9, into files. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/jsonl.h"
#include "base/net.h"
#include "base/numbers.h"
#include "base/text_file.h"
#include "base/wait.h"
#include "get/options.h"
#include "get/summary.h"
#include "xlink/log_files.h"
#include "xlink/session_file.h"
#include "xlink/udp.h"

#define HANDSHAKE_US    UINT64_C(30000000) /* for the complete handshake, which is not repeated */
#define PROGRAM         "xlink-get"
#define SESSION_WAIT_US 1000000
#define CANNOT_WRITE    "it cannot be written"

typedef struct {
    uint64_t bytes;
    int fd; /* -1: not open yet, or no --dir */
} target;

typedef struct {
    get_options o;
    jsonl *log;
    xl_log_files *logs;
    xl_credentials *credentials;
    xl_udp *udp;
    xl_endpoint *endpoint;
    get_plan plan;
    target *targets;
    size_t failed, connections;
    uint64_t start_us;
    get_summary summary;
    xl_session_file *sessions; /* newest session; all URLs have the same server */
    bool has_new_session;      /* from the current connection */
    bool cannot_write;
    char error[SETTINGS_ERROR_BYTES];
} get;

/* ---- Files ---- */

static bool open_target(get *g, size_t url) {
    char file[4096];
    const bool is_short = snprintf(file, sizeof file, "%s/%s", g->o.dir, g->o.urls[url].file) < (int)sizeof file;
    errno = ENAMETOOLONG;
    if (is_short)
        g->targets[url].fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return g->targets[url].fd >= 0;
}

/* Writes to the URL's file. If that fails, the program ends. */
static void write_target(get *g, size_t url, const uint8_t *data, size_t len) {
    target *t = &g->targets[url];
    if (!g->o.dir || g->cannot_write)
        return;
    g->cannot_write = (t->fd < 0 && !open_target(g, url)) || !file_write(t->fd, data, len);
    if (g->cannot_write)
        error_say(PROGRAM, "cannot write %s/%s: %s.", g->o.dir, g->o.urls[url].file, strerror(errno));
}

static void on_body(void *user, size_t url, const uint8_t *data, size_t len) {
    get *g = user;
    g->targets[url].bytes += len;
    write_target(g, url, data, len);
}

static void on_done(void *user, size_t url, const char *problem) {
    get *g = user;
    target *t = &g->targets[url];
    if (!problem && t->bytes == 0)
        write_target(g, url, NULL, 0); /* creates an empty file */
    descriptor_close(&t->fd);
    if (!problem && g->cannot_write)
        problem = CANNOT_WRITE;
    *(problem ? &g->failed : &g->summary.complete) += 1;
    g->summary.bytes += problem ? 0 : t->bytes;
    if (problem)
        error_say(PROGRAM, "%s: %s.", g->o.urls[url].path, problem);
    jsonl_write(
        g->log, "response",
        json_pack("{s:s, s:I, s:s?}", "path", g->o.urls[url].path, "bytes", (json_int_t)t->bytes, "problem", problem),
        xl_udp_now());
}

/* ---- Sessions ---- */

static void save_session(void *user, const char *server_name, const uint8_t *session, size_t len) {
    get *g = user;
    const xl_sessions kept = xl_session_file_sessions(g->sessions);
    kept.save(kept.user, server_name, session, len);
    g->has_new_session = true;
}

static size_t load_session(void *user, const char *server_name, uint8_t *session, size_t cap) {
    const xl_sessions kept = xl_session_file_sessions(((const get *)user)->sessions);
    return kept.load(kept.user, server_name, session, cap);
}

/* ---- One connection ---- */

static void wait_for(get *g, uint64_t until) {
    uint64_t now = xl_udp_now(), left = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000), .tv_nsec = (long)(left % 1000000) * 1000};
    struct pollfd fd = {.fd = xl_udp_fd(g->udp), .events = POLLIN};
    (void)ppoll(&fd, 1, &timeout, NULL);
}

/* Adds the bytes received on each path, by local address, so that a path opened anew counts as the same. */
static void count_paths(get *g, const xl_connection *connection, size_t count) {
    xl_path_stats s;
    for (size_t i = 0; i < count; i++) {
        if (xl_connection_path_stats(connection, i, &s) != 0)
            continue;
        for (size_t k = 0; k < g->summary.paths; k++)
            g->summary.received[k] += net_same_ip(&s.local, &g->summary.local[k]) ? s.bytes_received : 0;
    }
}

static void log_connection(get *g, const xl_connection *connection) {
    xl_connection_stats s;
    xl_connection_get_stats(connection, &s);
    count_paths(g, connection, s.path_count);
    jsonl_write(g->log, "connection_closed",
                json_pack("{s:I, s:s, s:b, s:b, s:b, s:I, s:I}", "conn", (json_int_t)g->connections, "alpn",
                          xl_connection_alpn(connection), "resumed", (int)xl_connection_is_resumed(connection),
                          "early_data", (int)xl_connection_is_early_accepted(connection), "multipath", (int)s.multipath,
                          "stream_bytes_received", (json_int_t)s.stream_bytes_received, "datagrams_received",
                          (json_int_t)s.datagrams_received),
                xl_udp_now());
}

static uint64_t limit_of(const get *g) {
    return g->start_us + g->o.time_limit_us;
}

/* Returns why to stop fetching; NULL: continue. */
static const char *reason_to_stop(const get *g, uint64_t now) {
    if (wait_is_ended)
        return "interrupted";
    if (g->cannot_write)
        return CANNOT_WRITE;
    return now >= limit_of(g) ? "the time limit came first" : NULL;
}

static void step(get *g, get_client *client) {
    uint64_t now = xl_udp_now();
    const char *reason = reason_to_stop(g, now);
    xl_udp_receive(g->udp, g->endpoint, now);
    xl_endpoint_handle_timeout(g->endpoint, now);
    get_client_step(client, now);
    if (reason)
        get_client_close(client, reason, now);
    xl_udp_flush(g->udp, g->endpoint, now);
}

/* Whether to wait for a session ticket, which may come after the last body. */
static bool awaits_session(const get *g, size_t next, uint64_t done_at) {
    bool is_of_use = (g->o.split != GET_SPLIT_NONE && next < g->o.url_count) || g->o.session_file;
    const uint64_t now = xl_udp_now();
    return is_of_use && !g->has_new_session && now < done_at + SESSION_WAIT_US && !reason_to_stop(g, now);
}

/* Runs a connection until all its URLs are done. Sends CONNECTION_CLOSE, but does not wait for the closing period. */
static bool run_connection(get *g, size_t first, size_t count) {
    const get_callbacks callbacks = {.user = g, .body = on_body, .done = on_done};
    g->plan.first = first;
    g->plan.count = count;
    g->connections++;
    get_client *client = get_client_start(g->endpoint, &g->plan, &callbacks, xl_udp_now());
    if (!client)
        return error_set(g->error, sizeof g->error, "out of memory");
    uint64_t done_at = XL_NEVER;
    g->has_new_session = false; /* the saved session is used by this connection */
    get_client_step(client, xl_udp_now());
    while (!get_client_is_done(client) || awaits_session(g, first + count, done_at)) {
        xl_udp_flush(g->udp, g->endpoint, xl_udp_now());
        uint64_t until = min_u64(xl_endpoint_next_timeout(g->endpoint), limit_of(g));
        until = min_u64(until, get_client_next_timeout(client));
        wait_for(g, done_at == XL_NEVER ? until : min_u64(until, done_at + SESSION_WAIT_US));
        step(g, client);
        if (done_at == XL_NEVER && get_client_is_done(client))
            done_at = xl_udp_now();
    }
    get_client_close(client, "", xl_udp_now());
    xl_udp_flush(g->udp, g->endpoint, xl_udp_now());
    log_connection(g, get_client_connection(client));
    get_client_free(client);
    return true;
}

static bool run(get *g) {
    const char *reason;
    size_t at = 0, count;
    for (; at < g->o.url_count && !reason_to_stop(g, xl_udp_now()); at += count) {
        bool is_alone = g->o.split == GET_SPLIT_EACH || (g->o.split == GET_SPLIT_FIRST && at == 0);
        count = is_alone ? 1 : g->o.url_count - at;
        if (!run_connection(g, at, count))
            return false;
    }
    for (; at < g->o.url_count && (reason = reason_to_stop(g, xl_udp_now())); at++)
        on_done(g, at, reason);
    return true;
}

/* ---- Set-up ---- */

/* Looks up the server's address; family AF_UNSPEC: any. */
static bool look_up(get *g, int family, xl_addr *out) {
    const get_url *url = &g->o.urls[0];
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = family}, *found = NULL;
    if (g->o.connect[0].family || g->o.connect[1].family) {
        *out = g->o.connect[family == AF_INET6 || !g->o.connect[0].family];
        return true;
    }
    int rv = getaddrinfo(url->host, NULL, &hints, &found);
    if (rv != 0 || !net_from_sockaddr(found->ai_addr, out))
        snprintf(g->error, sizeof g->error, "cannot look up %s: %s", url->host, rv ? gai_strerror(rv) : "no address");
    else
        out->port = url->port;
    if (found)
        freeaddrinfo(found);
    return g->error[0] == '\0';
}

/* Writes the source address that the kernel would use. */
static bool source_of(const xl_addr *remote, xl_addr *local) {
    struct sockaddr_storage sa;
    socklen_t len = net_to_sockaddr(remote, &sa);
    int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&sa, len) == 0;
    len = sizeof sa;
    ok = ok && getsockname(fd, (struct sockaddr *)&sa, &len) == 0 && net_from_sockaddr((struct sockaddr *)&sa, local);
    descriptor_close(&fd);
    local->port = 0;
    return ok;
}

/* Chooses the source address that the kernel would use, or all of mpshell's paths if it is one of them and the scheme
 * uses several paths. False: no route. */
static bool choose_paths(get *g) {
    xl_addr offered[XL_MAX_PATHS];
    bool is_among = false;
    const bool all = quic_settings_use_all_paths(&g->o.settings);
    if (!source_of(&g->plan.server[0], &g->o.local[0]))
        return false;
    g->o.paths = 1;
    const size_t count = net_mpshell_paths(g->plan.server[0].family, offered, XL_MAX_PATHS);
    for (size_t i = 0; i < count; i++)
        is_among |= net_same_ip(&offered[i], &g->o.local[0]);
    if (is_among && all) {
        memcpy(g->o.local, offered, count * sizeof *offered);
        g->o.paths = count;
    } else if (is_among && count > 1 && !g->o.quiet) {
        error_say(PROGRAM, "--scheme %s uses one of mpshell's %zu paths; vanilla-mp uses all.", g->o.settings.name,
                  count);
    }
    if (all && g->o.paths == 1 && !g->o.quiet)
        error_say(PROGRAM, "--scheme %s has one path here; --path ADDR, once for each path, names several.",
                  g->o.settings.name);
    return true;
}

static bool look_up_for_paths(get *g) {
    char text[64];
    for (size_t i = 0; i < g->o.paths; i++) {
        if (!look_up(g, g->o.local[i].family == 6 ? AF_INET6 : AF_INET, &g->plan.server[i]))
            return false;
        if (g->plan.server[i].family != g->o.local[i].family)
            return error_set(g->error, sizeof g->error, "the path from %s needs a --connect of its IP version",
                             xl_addr_format(&g->o.local[i], text, sizeof text));
    }
    if (g->o.paths > 0)
        return true;
    if (!look_up(g, AF_UNSPEC, &g->plan.server[0]))
        return false;
    if (!choose_paths(g))
        return error_set(g->error, sizeof g->error, "there is no route to %s",
                         xl_addr_format(&g->plan.server[0], text, sizeof text));
    for (size_t i = 1; i < g->o.paths; i++)
        g->plan.server[i] = g->plan.server[0];
    return true;
}

static bool open_sockets(get *g) {
    char text[64];
    if (!look_up_for_paths(g))
        return false;
    g->plan.paths = g->summary.paths = g->o.paths;
    memcpy(g->summary.local, g->o.local, sizeof g->summary.local);
    if (!(g->udp = xl_udp_new()))
        return error_set(g->error, sizeof g->error, "cannot open sockets: %s", strerror(errno));
    for (size_t i = 0; i < g->plan.paths; i++) {
        int rv = xl_udp_add_socket(g->udp, &g->o.local[i], &g->plan.local[i]);
        if (rv < 0)
            return error_set(g->error, sizeof g->error, "cannot send from %s: %s",
                             xl_addr_format(&g->o.local[i], text, sizeof text), strerror(-rv));
    }
    return true;
}

static bool open_credentials(get *g) {
    const xl_sessions sessions = {.user = g, .save = save_session, .load = load_session};
    g->credentials = quic_settings_credentials(g->o.insecure ? NULL : g->o.ca_file, g->error, sizeof g->error);
    xl_set_time_of_day(xl_udp_time_of_day_ns);
    if (!g->credentials || xl_credentials_keep_sessions(g->credentials, &sessions) != 0 ||
        (g->o.early_data && xl_credentials_allow_early_data(g->credentials) != 0))
        return false;
    return !g->o.ciphers || xl_credentials_set_ciphers(g->credentials, g->o.ciphers) == 0 ||
           error_set(g->error, sizeof g->error,
                     "--ciphers takes aes128, aes256 and chacha20 with commas between them, not '%s'", g->o.ciphers);
}

static bool open_endpoint(get *g) {
    const xl_log_options logs = {.qlog_dir = g->o.qlog_dir, .keylog_file = g->o.keylog_file};
    xl_config c;
    int rv = 0;
    xl_config_init(&c);
    quic_settings_configure(&g->o.settings, &c);
    c.alpn = g->o.alpn;
    c.limits.packets_per_key = g->o.packets_per_key;
    c.limits.confirm_timeout_us = HANDSHAKE_US;
    if (!(g->logs = xl_log_files_open(&logs, g->error, sizeof g->error)) || !open_credentials(g) ||
        !random_key_make(&g->o.seed, "client", c.random_key, g->error, sizeof g->error))
        return false;
    c.random_packet_numbers = !g->o.seed.given;
    c.log = xl_log_files_log(g->logs);
    c.credentials = g->credentials;
    g->endpoint = xl_endpoint_new(&c, g->start_us, &rv);
    return g->endpoint || error_set(g->error, sizeof g->error, "cannot start: %s",
                                    rv == XL_ERR_MEMORY ? "out of memory" : "the transport refuses the settings");
}

/* Creates --dir and checks that it is writable, before anything is fetched. */
static bool open_folder(get *g) {
    if (!g->o.dir)
        return true;
    const bool is_there = mkdir(g->o.dir, 0777) == 0 || errno == EEXIST;
    int fd = is_there ? open(g->o.dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool ok = fd >= 0 && access(g->o.dir, W_OK | X_OK) == 0;
    if (!ok)
        snprintf(g->error, sizeof g->error, "cannot write to the folder %s of --dir: %s", g->o.dir, strerror(errno));
    descriptor_close(&fd);
    return ok;
}

static bool open_all(get *g, int argc, char **argv) {
    g->start_us = xl_udp_now();
    g->summary.count = g->o.url_count;
    if (!open_folder(g))
        return false;
    g->plan = (get_plan){
        .alpn = g->o.alpn, .urls = g->o.urls, .events = g->o.path_events, .event_count = g->o.path_event_count};
    g->targets = calloc(g->o.url_count, sizeof *g->targets);
    g->sessions = xl_session_file_open(g->o.session_file);
    if (!g->targets || !g->sessions)
        return error_set(g->error, sizeof g->error, "out of memory");
    for (size_t i = 0; i < g->o.url_count; i++)
        g->targets[i].fd = -1;
    if (g->o.out_file && !(g->log = jsonl_open(g->o.out_file, g->start_us)))
        return error_set(g->error, sizeof g->error, "cannot write %s: %s", g->o.out_file, strerror(errno));
    jsonl_write_start(g->log, argc, argv, json_object());
    random_key_warn(&g->o.seed, PROGRAM, g->log, g->start_us);
    return open_sockets(g) && open_endpoint(g);
}

static void close_all(get *g) {
    xl_endpoint_free(g->endpoint);
    xl_udp_free(g->udp);
    xl_credentials_free(g->credentials);
    xl_log_files_close(g->logs);
    free(g->targets);
    if (!xl_session_file_close(g->sessions, g->error, sizeof g->error))
        error_say(PROGRAM, "%s.", g->error);
    free(g->o.urls);
}

static void tell_summary(get *g) {
    char text[GET_SUMMARY_BYTES];
    get_summary *s = &g->summary;
    s->us = xl_udp_now() - g->start_us;
    json_t *paths = json_array();
    for (size_t i = 0; i < s->paths; i++)
        json_array_append_new(paths, json_pack("{s:s, s:I}", "local", xl_addr_format(&s->local[i], text, sizeof text),
                                               "bytes_received", (json_int_t)s->received[i]));
    jsonl_write(g->log, "summary",
                json_pack("{s:I, s:I, s:I, s:I, s:o}", "connections", (json_int_t)g->connections, "complete",
                          (json_int_t)s->complete, "failed", (json_int_t)g->failed, "bytes", (json_int_t)s->bytes,
                          "paths", paths),
                xl_udp_now());
    get_summary_text(s, text);
    if (!g->o.quiet && s->complete > 0)
        printf(PROGRAM ": %s.\n", text);
}

int main(int argc, char **argv) {
    static get g;
    if (!get_options_parse(argc, argv, &g.o, g.error)) {
        error_say(PROGRAM, "%s", g.error);
        free(g.o.urls);
        return 2;
    }
    if (g.o.help) {
        get_options_print_usage();
        return 0;
    }
    wait_catch_end(NULL);
    int status = 2;
    if (!open_all(&g, argc, argv) || !run(&g)) {
        error_say(PROGRAM, "%s.", g.error);
    } else {
        status = g.summary.complete == g.o.url_count ? 0 : 1;
        tell_summary(&g);
    }
    status = jsonl_end(g.log, PROGRAM, g.o.out_file, status);
    close_all(&g);
    return status;
}
