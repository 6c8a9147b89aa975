/* The endpoint, inside: which connection a datagram belongs to, accepting, version negotiation, stateless reset. */
#ifndef XL_ENDPOINT_ENDPOINT_H
#define XL_ENDPOINT_ENDPOINT_H

#include "connection/connection.h"
#include "endpoint/cid_map.h"
#include "xlink/deployment.h"

#define XL_ENDPOINT_NAMES 4
#define XL_STATELESS_MAX  256 /* answers waiting that belong to no connection */

typedef struct {
    xl_datagram to;
    uint8_t data[128];
} xl_stateless;

struct xl_endpoint {
    xl_config config;
    char *names[XL_ENDPOINT_NAMES]; /* owned copies of the configuration's strings */
    xl_random random;
    uint8_t reset_key[32];
    xl_cid_map map;
    xl_connection **connection;
    size_t count, cap;
    xl_connection *ready_head, *ready_tail;
    xl_event *event; /* ring */
    size_t event_head, event_count, event_cap;
    xl_stateless stateless[XL_STATELESS_MAX];
    size_t stateless_count;
    xl_endpoint_stats stats;
};

#endif
