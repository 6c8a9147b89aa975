/* One connection that fetches a list of resources, over HTTP/3 or over HTTP/0.9 (hq-interop): sans-IO, on the caller's
 * endpoint. All requests are made at once, as far as the server lets streams be opened. */
#ifndef GET_CLIENT_H
#define GET_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemes/path_grammars.h"
#include "xlink/xlink.h"

#define GET_REASON_BYTES 160

typedef struct {
    char authority[256]; /* "example.org:443" */
    char host[256];      /* its host: SNI, and what the certificate has to name */
    uint16_t port;
    const char *path; /* "/a/b?c" */
    char file[256];   /* its name in --dir */
} get_url;

typedef struct {
    void *user;
    /* url: index into the list. */
    void (*body)(void *user, size_t url, const uint8_t *data, size_t len);
    /* Once for each URL. problem: NULL = all of it came, else one phrase. */
    void (*done)(void *user, size_t url, const char *problem);
} get_callbacks;

typedef struct {
    const char *alpn; /* "h3" or "hq-interop": that of the endpoint */
    const get_url *urls;
    size_t first, count; /* urls[first] to urls[first + count - 1] are this connection's */
    xl_addr local[XL_MAX_PATHS], server[XL_MAX_PATHS]; /* of each path; the connection begins with the first one */
    size_t paths;
    const path_event *events; /* by time, which counts from the end of the handshake; a name is an index into local */
    size_t event_count;
} get_plan;

typedef struct get_client get_client;

/* What the plan points to must outlive the client. NULL: out of memory. */
get_client *get_client_start(xl_endpoint *, const get_plan *, const get_callbacks *, uint64_t now);
void get_client_free(get_client *); /* before the endpoint */
/* Hands over the endpoint's events and does what is due. */
void get_client_step(get_client *, uint64_t now);
/* When get_client_step() is to be called again at the latest: at the next event of a path, or to ask a server that
 * is silent whether it is there. */
uint64_t get_client_next_timeout(const get_client *);
/* Starts to close the connection: what is not done fails with this reason. */
void get_client_close(get_client *, const char *reason, uint64_t now);
bool get_client_is_done(const get_client *); /* every URL is settled */
const xl_connection *get_client_connection(const get_client *);

#endif
