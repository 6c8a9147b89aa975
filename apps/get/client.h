/* One connection that fetches a list of resources, over HTTP/3 or HTTP/0.9 (hq-interop), sans-IO, on the caller's
 * endpoint. It makes all requests at once, as far as the server's stream limit allows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemes/path_grammars.h"
#include "xlink/xlink.h"

#define GET_REASON_BYTES 160

typedef struct {
    char authority[256]; /* "example.org:443" */
    char host[256];      /* host for SNI and the certificate */
    uint16_t port;
    const char *path; /* "/a/b?c" */
    char file[256];   /* its file's name in --dir */
} get_url;

typedef struct {
    void *user;
    /* url: index into the plan's urls. */
    void (*body)(void *user, size_t url, const uint8_t *data, size_t len);
    /* Called once per URL. problem: NULL = complete, else a phrase. */
    void (*done)(void *user, size_t url, const char *problem);
} get_callbacks;

typedef struct {
    const char *alpn; /* "h3" or "hq-interop", as in the endpoint's configuration */
    const get_url *urls;
    size_t first, count; /* urls[first] to urls[first + count - 1] are this connection's */
    xl_addr local[XL_MAX_PATHS], server[XL_MAX_PATHS]; /* of each path; the handshake uses the first */
    size_t paths;
    const path_event *events; /* sorted by time after the handshake; names are indices into local */
    size_t event_count;
} get_plan;

typedef struct get_client get_client;

/* The plan and its data must outlive the client. Returns NULL without memory. */
get_client *get_client_start(xl_endpoint *, const get_plan *, const get_callbacks *, uint64_t now);
void get_client_free(get_client *); /* call it before freeing the endpoint */
/* Handles the endpoint's events and everything that is due. */
void get_client_step(get_client *, uint64_t now);
/* Returns the latest time for the next get_client_step(): the next path event, or the next PING to a silent server. */
uint64_t get_client_next_timeout(const get_client *);
/* Starts to close the connection. Incomplete fetches fail with this reason. */
void get_client_close(get_client *, const char *reason, uint64_t now);
bool get_client_is_done(const get_client *); /* done() was called for all URLs */
const xl_connection *get_client_connection(const get_client *);
