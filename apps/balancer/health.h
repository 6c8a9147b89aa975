/* Which servers are up, sans-IO.
 *
 * Each server receives one probe per interval, a packet of a reserved version, to which a QUIC server responds with
 * Version Negotiation without keeping state (RFC 9000 section 6). A server is down if its port is closed, or if
 * HEALTH_SILENT_PROBES probes were sent since something was received from it (a response, or a datagram for a client),
 * the last of them an interval ago. It is up again with the next datagram from it. Datagrams of clients do not count,
 * because anybody can send some that no server responds to. Nor does time in which no probe was sent: a balancer that
 * did not run for a while has asked nobody. */
#pragma once

#include "balancer/lb_file.h"

#define HEALTH_SILENT_PROBES 3
#define HEALTH_PROBE_BYTES   1200 /* a server may ignore a shorter one (RFC 9000 section 6.1) */
#define HEALTH_ID_BYTES      8    /* random in each probe, so that only its receiver can respond */

typedef struct {
    uint64_t probe_at;
    unsigned unanswered;         /* probes since something was received */
    uint8_t id[HEALTH_ID_BYTES]; /* of the last probe */
    bool is_down;
} health_server;

typedef struct {
    uint64_t interval_us; /* 0: no probes, and no server is down */
    size_t count;
    health_server server[LB_SERVERS_MAX];
} health;

/* All servers are up, and due for a probe. */
void health_init(health *, uint64_t interval_us, size_t servers, uint64_t now);
/* Applies the servers' new indices of router_update(). A server that is down stays down. All are due for a probe. */
void health_move(health *, const size_t moved[], size_t servers, uint64_t now);
/* These return true if the server goes up or down. health_hear(): a datagram came from it. */
bool health_hear(health *, size_t server);
bool health_refuse(health *, size_t server); /* the server's port is closed */
bool health_check(health *, size_t server, uint64_t now);
/* Returns when to call health_check() and health_probe() next; XL_NEVER: never. */
uint64_t health_next(const health *);
/* Writes a probe, to be sent by the caller, if one is due. `random`: bytes for its two connection IDs. */
bool health_probe(health *, size_t server, const uint8_t random[2 * HEALTH_ID_BYTES], uint64_t now,
                  uint8_t probe[HEALTH_PROBE_BYTES]);
/* Whether the datagram is the response to the server's last probe. */
bool health_is_answer(const health *, size_t server, const uint8_t *data, size_t len);
