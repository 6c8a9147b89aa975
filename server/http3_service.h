/* The server's side of HTTP/3 over libxlink, sans-IO: what to do with the events of an endpoint. The driver
 * (server/quic.c, emulator/sim) owns the datagrams and the time. */
#ifndef SERVER_HTTP3_SERVICE_H
#define SERVER_HTTP3_SERVICE_H

#include <stdint.h>

#include <jansson.h>

#include "server/catalogue.h"
#include "server/server.h"
#include "xlink/xlink.h"

/* Name of the self-signed certificate and value of the field "server". */
#define HTTP3_SERVER_NAME "xlink-server"

typedef struct {
    void *user;
    /* One record of the server's log; takes the reference to fields, also on failure. */
    void (*log)(void *user, const char *event, json_t *fields, uint64_t now);
    /* The number that a new connection has in the log. */
    uint64_t (*next_connection)(void *user);
} http3_service_hooks;

typedef struct http3_service http3_service;

/* Fills in an endpoint's configuration but for credentials and log. */
void http3_service_configure(const server_config *, xl_config *);

/* The catalogue and the endpoint must outlive it. NULL: out of memory. */
http3_service *http3_service_new(xl_endpoint *, catalogue *, const http3_service_hooks *);
/* Runs the endpoint's timers that are due and handles its events; the driver transmits afterwards. */
void http3_service_process(http3_service *, uint64_t now);
/* The end, in two steps with the driver's last transmission between them: closes all connections, then logs and forgets
 * them. */
void http3_service_close(http3_service *, uint64_t now);
void http3_service_finish(http3_service *, uint64_t now);
/* After http3_service_finish(). */
void http3_service_add_totals(const http3_service *, server_totals *);
void http3_service_free(http3_service *); /* NULL is fine */

#endif
