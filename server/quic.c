/* HTTP/3 over libxlink: one wildcard socket for all connections. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/error.h"
#include "base/text_file.h"
#include "server/forward.h"
#include "server/http3_service.h"
#include "server/process.h"
#include "xlink/log_files.h"
#include "xlink/udp.h"

#define FORWARDS_PER_ROUND 64
#define CLOCK_SKEW_ALLOWED 86400 /* seconds that a client's clock may be behind for the self-signed certificate */

struct server_service {
    server *owner;
    xl_log_files *logs;
    xl_credentials *credentials;
    xl_udp *udp;
    xl_endpoint *endpoint;
    http3_service *http3;
    xl_deployment deployment; /* a worker's, with its way to the others */
    server_watch watch, inbox;
    bool watching, watching_inbox, told_left_out;
    uint8_t *passed_on; /* FORWARD_DATAGRAM_MAX */
};

static void quic_ready(server_watch *watch, uint32_t events, uint64_t now) {
    (void)events;
    server_service *s = watch->user;
    xl_udp_receive(s->udp, s->endpoint, now);
    http3_service_process(s->http3, now);
}

/* Reads datagrams that reached another worker. */
static void inbox_ready(server_watch *watch, uint32_t events, uint64_t now) {
    (void)events;
    server_service *s = watch->user;
    xl_datagram head;
    for (int i = 0; i < FORWARDS_PER_ROUND && forward_receive(watch->fd, &head, s->passed_on); i++)
        xl_endpoint_receive(s->endpoint, &head, s->passed_on, now);
    http3_service_process(s->http3, now);
}

static void pass_on(void *user, unsigned worker, const xl_datagram *head, const uint8_t *data) {
    server_service *s = user;
    (void)forward_send(s->owner->worker->outbox[worker], head, data);
}

static void tell_left_out(server_service *s, uint64_t now) {
    if (s->told_left_out || xl_log_files_left_out(s->logs) == 0)
        return;
    s->told_left_out = true;
    const json_int_t limit = (json_int_t)s->owner->config.qlog_files;
    jsonl_write(s->owner->log, "qlogs_left_out", json_pack("{s:I}", "qlog_files", limit), now);
}

static void quic_step(server_service *s, uint64_t now) {
    http3_service_process(s->http3, now);
    xl_udp_flush(s->udp, s->endpoint, now);
    tell_left_out(s, now);
}

static uint64_t quic_next_timeout(const server_service *s) {
    return xl_endpoint_next_timeout(s->endpoint);
}

static void quic_stop(server_service *s, uint64_t now) {
    http3_service_close(s->http3, now);
    xl_udp_flush(s->udp, s->endpoint, now);
    http3_service_finish(s->http3, now);
}

static void quic_add_totals(const server_service *s, server_totals *totals) {
    http3_service_add_totals(s->http3, totals);
}

static void quic_free(server_service *s) {
    if (s->watching)
        server_watch_remove(s->owner, &s->watch);
    if (s->watching_inbox)
        server_watch_remove(s->owner, &s->inbox);
    free(s->passed_on);
    http3_service_free(s->http3);
    xl_endpoint_free(s->endpoint);
    xl_udp_free(s->udp);
    xl_credentials_free(s->credentials);
    xl_log_files_close(s->logs);
    free(s);
}

static bool load_credentials(server_service *s, const server_config *config, char *error) {
    if (!config->cert_file) {
        s->credentials = xl_credentials_self_signed_p256(HTTP3_SERVER_NAME, config->random_key,
                                                         (uint64_t)time(NULL) - CLOCK_SKEW_ALLOWED);
        if (!s->credentials)
            snprintf(error, SERVER_ERROR_BYTES, "cannot make a self-signed certificate");
        return s->credentials != NULL;
    }
    if (!config->key_file)
        return error_set(error, SERVER_ERROR_BYTES, "--cert needs --key");
    char *cert = text_file_read(config->cert_file, error, SERVER_ERROR_BYTES);
    char *key = cert ? text_file_read(config->key_file, error, SERVER_ERROR_BYTES) : NULL;
    if (key) {
        s->credentials = xl_credentials_server(cert, key);
        if (!s->credentials)
            snprintf(error, SERVER_ERROR_BYTES, "%s and %s are not a certificate and its key in PEM form",
                     config->cert_file, config->key_file);
        memset(key, 0, strlen(key));
    }
    free(cert);
    free(key);
    return s->credentials != NULL;
}

/* All workers, and servers of one deployment, resume each other's sessions. */
static bool issue_tickets(server_service *s, const server_config *config, char *error) {
    const xl_deployment *d = s->owner->lb ? &s->owner->deployment : NULL;
    xl_static_keys keys;
    xl_set_time_of_day(xl_udp_time_of_day_ns);
    bool ok = d || xl_static_keys_from(config->random_key, &keys) == 0;
    ok = ok && xl_credentials_issue_tickets(s->credentials, d ? d->keys.ticket : keys.ticket) == 0 &&
         (!config->early_data || xl_credentials_allow_early_data(s->credentials) == 0);
    memset(&keys, 0, sizeof keys);
    return ok || error_set(error, SERVER_ERROR_BYTES, "cannot make the key of session tickets");
}

static bool make_credentials(server_service *s, const server_config *config, char *error) {
    if (!load_credentials(s, config, error) || (!config->without_tickets && !issue_tickets(s, config, error)))
        return false;
    bool ok = !config->ciphers || xl_credentials_set_ciphers(s->credentials, config->ciphers) == 0;
    return ok || error_set(error, SERVER_ERROR_BYTES,
                           "--ciphers takes aes128, aes256 and chacha20 with commas between them, not '%.60s'",
                           config->ciphers);
}

static void log_record(void *user, const char *event, json_t *fields, uint64_t now) {
    jsonl_write(((server *)user)->log, event, fields, now);
}

static uint64_t next_connection(void *user) {
    return server_next_connection(user);
}

/* Sets the process's part in the deployment. Each process has its own random key, also with --seed: with the key of an
 * earlier process it would issue the same connection IDs again. */
static bool join_deployment(server_service *s, xl_config *c, char *error) {
    s->deployment = s->owner->deployment;
    s->deployment.forward = s->owner->worker ? pass_on : NULL;
    s->deployment.forward_user = s;
    c->deployment = &s->deployment;
    return random_key_make(&(random_seed){0}, "server", c->random_key, error, SERVER_ERROR_BYTES);
}

static bool make_endpoint(server_service *s, const server_config *config, uint64_t now, char *error) {
    xl_config c;
    http3_service_configure(config, &c);
    c.limits.issue_tokens = !config->without_tickets;
    c.epoch_us = xl_udp_time_of_day_ns() / 1000 - now;
    if (s->owner->lb && !join_deployment(s, &c, error))
        return false;
    c.preferred_address_v4 = config->preferred[0];
    c.preferred_address_v6 = config->preferred[1];
    c.credentials = s->credentials;
    c.log = xl_log_files_log(s->logs);
    int rv = 0;
    s->endpoint = xl_endpoint_new(&c, now, &rv);
    if (!s->endpoint)
        return error_set(error, SERVER_ERROR_BYTES, "cannot start: %s",
                         rv == XL_ERR_MEMORY ? "out of memory" : "the transport refuses the settings");
    const http3_service_hooks hooks = {.user = s->owner, .log = log_record, .next_connection = next_connection};
    s->http3 = http3_service_new(s->endpoint, s->owner->catalogue, &hooks);
    if (!s->http3)
        snprintf(error, SERVER_ERROR_BYTES, "out of memory");
    return s->http3 != NULL;
}

static bool watch_inbox(server_service *s, const server_worker *worker) {
    s->passed_on = malloc(FORWARD_DATAGRAM_MAX);
    s->inbox = (server_watch){.fd = worker->inbox, .ready = inbox_ready, .user = s};
    s->watching_inbox = s->passed_on && server_watch_add(s->owner, &s->inbox);
    return s->watching_inbox;
}

static bool listen_on(server_service *s, const server_config *config, xl_addr *bound, char *error) {
    char text[64];
    const server_worker *worker = s->owner->worker;
    s->udp = xl_udp_new();
    int rv = -errno;
    if (s->udp && worker)
        rv = xl_udp_adopt_socket(s->udp, worker->udp, &worker->udp_bound);
    else if (s->udp)
        rv = xl_udp_add_socket(s->udp, &config->quic_addr, bound);
    const xl_addr *at = &config->quic_addr,
                  *others[] = {&config->quic_too, &config->preferred[0], &config->preferred[1]};
    for (size_t i = 0; rv >= 0 && i < sizeof others / sizeof *others; i++) {
        xl_addr unused;
        if (others[i]->family)
            rv = xl_udp_add_socket(s->udp, at = others[i], &unused);
    }
    if (rv < 0)
        return error_set(error, SERVER_ERROR_BYTES, "cannot listen on %s: %s", xl_addr_format(at, text, sizeof text),
                         strerror(-rv));
    s->watch = (server_watch){.fd = xl_udp_fd(s->udp), .ready = quic_ready, .user = s};
    s->watching = server_watch_add(s->owner, &s->watch);
    return (s->watching && (!worker || watch_inbox(s, worker))) ||
           error_set(error, SERVER_ERROR_BYTES, "cannot watch the socket: %s", strerror(errno));
}

static server_service *quic_start(server *owner, uint64_t now, xl_addr *bound, char *error) {
    const server_config *config = &owner->config;
    server_service *s = calloc(1, sizeof *s);
    if (!s)
        return error_null(error, SERVER_ERROR_BYTES, "out of memory");
    s->owner = owner;
    const xl_log_options logs = {
        .qlog_dir = config->qlog_dir, .keylog_file = config->keylog_file, .qlog_files = config->qlog_files};
    s->logs = xl_log_files_open(&logs, error, SERVER_ERROR_BYTES);
    if (!s->logs || !make_credentials(s, config, error) || !make_endpoint(s, config, now, error) ||
        !listen_on(s, config, bound, error)) {
        quic_free(s);
        return NULL;
    }
    return s;
}

static void quic_reconfigure(server_service *s, uint64_t now) {
    /* The names were checked when the file was read, so only memory can fail; then the old parameters stay. */
    (void)xl_endpoint_reconfigure(s->endpoint, &s->owner->config.settings.scheme, now);
}

static bool quic_wanted(const server_config *config) {
    return config->quic_addr.family;
}

const server_service_ops server_quic_service = {
    .name = "quic",
    .wanted = quic_wanted,
    .start = quic_start,
    .next_timeout = quic_next_timeout,
    .step = quic_step,
    .reconfigure = quic_reconfigure,
    .stop = quic_stop,
    .add_totals = quic_add_totals,
    .free = quic_free,
};
