/* Which servers answer: sans-IO.
 *
 * Each server is asked once in an interval, by a packet of a version that does not exist, which a QUIC server answers
 * by Version Negotiation without keeping state (RFC 9000 section 6). A server is down when its port is closed, or when
 * nothing has come from it for HEALTH_SILENT_INTERVALS: no answer, and no datagram for a client. It is up again with
 * the next datagram from it. What clients send decides nothing: anybody can send what no server answers.
 */
#ifndef BALANCER_HEALTH_H
#define BALANCER_HEALTH_H

#include "balancer/lb_file.h"

#define HEALTH_SILENT_INTERVALS 3
#define HEALTH_PROBE_BYTES      1200 /* a server may ignore a shorter one (section 6.1) */
#define HEALTH_ID_BYTES         8    /* random, of each probe: only who sees it can answer */

typedef struct {
    uint64_t heard_at, probe_at;
    uint8_t id[HEALTH_ID_BYTES]; /* of the last probe */
    bool is_down;
} health_server;

typedef struct {
    uint64_t interval_us; /* 0: servers are not asked, and none is down */
    size_t count;
    health_server server[LB_SERVERS_MAX];
} health;

/* All servers are up, and due for a probe. */
void health_init(health *, uint64_t interval_us, size_t servers, uint64_t now);
/* Servers have new indices, as router_update() says: one that is down stays down. All are due for a probe. */
void health_move(health *, const size_t moved[], size_t servers, uint64_t now);
/* Each of these: true where it changes whether the server is up. */
bool health_hear(health *, size_t server, uint64_t now);
bool health_refuse(health *, size_t server); /* its port is closed */
bool health_check(health *, size_t server, uint64_t now);
/* When to call health_check() and send probes again; XL_NEVER: not at all. */
uint64_t health_next(const health *);
/* Whether a probe is due; then it is written, and must be sent. `random` is as long as the two IDs in it. */
bool health_probe(health *, size_t server, const uint8_t random[2 * HEALTH_ID_BYTES], uint64_t now,
                  uint8_t probe[HEALTH_PROBE_BYTES]);
/* Whether the datagram answers the last probe of the server. */
bool health_is_answer(const health *, size_t server, const uint8_t *data, size_t len);

#endif
