/* Migration of a single-path connection (RFC 9000 section 9). */
#pragma once

#include "path/path.h"

typedef struct {
    int to;                   /* client: candidate that is being probed; -1: none */
    int preferred;            /* client: path to the server's preferred address that is being validated; -1: none */
    int left;                 /* client: path left for that address; its late packets still count; -1: none */
    uint64_t expecting_since; /* client: when the latest request was sent; XL_NEVER: with the next transmit */
    uint64_t probe_bytes;     /* stream bytes received when the candidate's first challenge was made */
    uint64_t retry_at;        /* when the last attempt ended */
    int last;                 /* candidate that was probed last, so that all take turns */
    bool asks_primary;        /* a challenge on the first path, which is not in use, is unanswered */
    uint64_t primary_ask_at;  /* time of the next such challenge */
    uint64_t primary_ok_since, primary_ok_at; /* first and latest of its unbroken answers; ok_at 0: none */
    bool has_old_cid;                         /* client: the CID of the path that was left is not retired yet */
    uint64_t old_seq;                         /* its sequence number */
    uint64_t old_cid_until; /* when it will be retired; XL_NEVER: nothing has arrived on the new path yet */
    uint64_t count;
} xl_migration;

void xl_conn_migration_timer(xl_connection *); /* does what is due */
uint64_t xl_conn_migration_deadline(const xl_connection *);
/* Moves to p: congestion window and RTT start again (RFC 9000 section 9.4), and what was in flight is sent again. */
void xl_conn_migrate_to(xl_connection *, xl_path *, const char *why);
/* Client: validates p, which leads from the local address in use to the server's preferred one, and moves there
 * (section 9.6). If p does not answer, the connection stays. */
void xl_conn_migrate_to_preferred(xl_connection *, xl_path *p);
void xl_conn_migration_validated(xl_connection *, xl_path *);
/* A non-probing packet arrived on p. */
void xl_conn_migration_followed(xl_connection *, const xl_path *);
/* A challenge on p was not answered in time. Returns whether migration has dealt with that. */
bool xl_conn_migration_unanswered(xl_connection *, xl_path *);
/* The same after the last challenge. */
bool xl_conn_migration_probe_failed(xl_connection *, xl_path *);
