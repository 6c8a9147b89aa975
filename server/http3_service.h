/* The server's side of HTTP/3 over libxlink, sans-IO: it handles the events of an endpoint. The driver (server/quic.c,
 * emulator/sim) owns the datagrams and the time. */
#pragma once

#include <stdint.h>

#include <jansson.h>

#include "server/catalogue.h"
#include "server/server.h"
#include "xlink/xlink.h"

/* Name of the self-signed certificate and value of the field "server". */
#define HTTP3_SERVER_NAME "xlink-server"

typedef struct {
    void *user;
    /* Writes one record of the server's log. Steals the reference to fields, also on failure. */
    void (*log)(void *user, const char *event, json_t *fields, uint64_t now);
    /* Returns the number of a new connection in the log. */
    uint64_t (*next_connection)(void *user);
} http3_service_hooks;

typedef struct http3_service http3_service;

/* Sets an endpoint's configuration, except credentials and log. */
void http3_service_configure(const server_config *, xl_config *);

/* The catalogue and the endpoint must outlive the service. NULL: out of memory. */
http3_service *http3_service_new(xl_endpoint *, catalogue *, const http3_service_hooks *);
/* Runs the endpoint's timers that are due and handles its events; the driver transmits afterwards. */
void http3_service_process(http3_service *, uint64_t now);
/* Ends the service in two steps: close() closes all connections, then the driver transmits, and finish() logs and frees
 * the connections. */
void http3_service_close(http3_service *, uint64_t now);
void http3_service_finish(http3_service *, uint64_t now);
/* After http3_service_finish(). */
void http3_service_add_totals(const http3_service *, server_totals *);
void http3_service_free(http3_service *); /* may be NULL */
