/* A client of xlink-load: an endpoint with one socket per path, one connection, sequential requests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random_key.h"
#include "schemes/quic_settings.h"
#include "xlink/xlink.h"

typedef enum {
    LOAD_RUNNING,
    LOAD_COMPLETE,       /* all responses complete, and no path in validation */
    LOAD_RESET,          /* closed by a stateless reset */
    LOAD_TIMEOUT,        /* idle timeout or handshake timeout */
    LOAD_CLOSED_BY_PEER, /* closed by CONNECTION_CLOSE */
    LOAD_FAILED,         /* refused request, wrong response, or local error */
    LOAD_TIME_LIMIT,     /* not over at --time-limit */
    LOAD_OUTCOMES
} load_outcome;
const char *load_outcome_name(load_outcome);

/* Shared by all clients. */
typedef struct {
    xl_addr server;
    xl_addr path[XL_MAX_PATHS]; /* base address of each path */
    unsigned prefix[XL_MAX_PATHS];
    size_t paths;
    quic_settings settings;
    const char *url;
    char authority[64], host[64]; /* of the server; host: for SNI and the certificate */
    uint64_t requests;            /* per client; 0: no end; may change at any time */
    uint64_t pause_us, ping_us;
    random_seed seed;
    xl_credentials *credentials;
} load_plan;

typedef struct load_client load_client;

typedef struct {
    xl_addr local;
    xl_path_state state;
    uint64_t bytes_received;
} load_path;

/* A client's result. Times in µs; 0: did not happen. */
typedef struct {
    load_outcome outcome;
    char reason[96];
    uint64_t began, connected_after, ended_after;
    uint64_t requests_done, bytes, longest_request_us;
    size_t path_count;
    load_path path[XL_MAX_PATHS];
} load_result;

/* Opens the sockets and starts the handshake. The plan must outlive the client. Returns NULL with a phrase in error. */
load_client *load_client_start(const load_plan *, uint64_t number, uint64_t now, char *error, size_t error_cap);
void load_client_free(load_client *); /* accepts NULL */
int load_client_fd(const load_client *);
/* Call it when load_client_fd() is readable, and at load_client_next_timeout(). */
void load_client_step(load_client *, uint64_t now);
uint64_t load_client_next_timeout(const load_client *);
/* Whether the result is final. */
bool load_client_is_over(const load_client *);
void load_client_give_up(load_client *, uint64_t now); /* ends it, with LOAD_TIME_LIMIT unless it has an outcome */
const load_result *load_client_result(const load_client *);
