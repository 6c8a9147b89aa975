/* One of the many clients of xlink-load: an endpoint with a socket for each path, one connection, a few requests. */
#ifndef LOAD_CLIENT_H
#define LOAD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random_key.h"
#include "schemes/quic_settings.h"
#include "xlink/xlink.h"

typedef enum {
    LOAD_RUNNING,
    LOAD_COMPLETE,       /* all requests answered in full, no path still in validation */
    LOAD_RESET,          /* by a stateless reset */
    LOAD_TIMEOUT,        /* idle timeout, or no answer to the handshake */
    LOAD_CLOSED_BY_PEER, /* by CONNECTION_CLOSE */
    LOAD_FAILED,         /* a refused request, wrong bytes, an error on this side */
    LOAD_TIME_LIMIT,     /* --time-limit came first */
    LOAD_OUTCOMES
} load_outcome;
const char *load_outcome_name(load_outcome);

/* What all clients share. */
typedef struct {
    xl_addr server;
    xl_addr path[XL_MAX_PATHS]; /* base address of each path */
    unsigned prefix[XL_MAX_PATHS];
    size_t paths;
    quic_settings settings;
    const char *url;
    char authority[64], host[64]; /* of the server: host is what its certificate has to name */
    uint64_t requests;            /* of each; 0: until this changes */
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

/* What one client saw; times in µs, 0 for what did not happen. */
typedef struct {
    load_outcome outcome;
    char reason[96];
    uint64_t began, connected_after, ended_after;
    uint64_t requests_done, bytes, longest_request_us;
    size_t path_count;
    load_path path[XL_MAX_PATHS];
} load_result;

/* Opens the sockets and starts the handshake; NULL with one phrase in error. The plan must outlive it. */
load_client *load_client_start(const load_plan *, uint64_t number, uint64_t now, char *error, size_t error_cap);
void load_client_free(load_client *); /* NULL is fine */
int load_client_fd(const load_client *);
/* Datagrams have come, or its next timeout has. */
void load_client_step(load_client *, uint64_t now);
uint64_t load_client_next_timeout(const load_client *);
/* Nothing more will happen: the result is final. */
bool load_client_is_over(const load_client *);
void load_client_give_up(load_client *, uint64_t now); /* outcome LOAD_TIME_LIMIT unless there is one */
const load_result *load_client_result(const load_client *);

#endif
