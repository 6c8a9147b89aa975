/* The medium of a Wi-Fi link: one server of airtime for both directions of a path, and for stations of others.
 *
 * Who may send is decided by the distributed coordination function of 802.11 (802.11-2020, 10.3): a station that has
 * something to send waits until the medium was idle for DIFS and for as many slots as its backoff counter says. The
 * counter is uniform in 0 .. CW, and stands still while others send. Two that send in one slot lose all; CW doubles, up
 * to its limit, and begins anew after a success. Stations of others always have something to send.
 *
 * A station sends an A-MPDU of its oldest frames. Each MPDU is lost or not by a Gilbert-Elliott chain; a block ACK
 * says which. Lost ones are sent again, before others, until they are given up. The receiver hands packets on in their
 * order, so one that is missing holds back those behind it.
 *
 * What others do in a time in which this link sends nothing has no result, and is not gone through: at the end of a
 * long silence the medium is at a random place of one of their turns.
 *
 * Sans-IO: times are us since t0. */
#ifndef RAILYARD_LINK_AIR_H
#define RAILYARD_LINK_AIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"
#include "emulator/link/wifi.h"

#define LINK_AIR_NEVER UINT64_MAX

typedef struct link_air link_air;

/* Whose packets a direction of the air carries: a link. */
typedef struct {
    void *user;
    link_packet *(*take)(void *user, uint64_t t);                 /* the next of its queue; NULL: it is empty */
    bool (*waits)(const void *user);                              /* its queue is not empty */
    void (*deliver)(void *user, link_packet *packet, uint64_t t); /* which has arrived, as all before it */
    void (*give_up)(void *user, link_packet *packet, uint64_t t); /* after the last retry */
    void (*sent)(void *user, uint64_t t, uint64_t bytes);         /* a transmission ended; bytes of what arrived */
} link_air_user;

typedef struct {
    uint64_t transmissions;
    uint64_t used;                       /* of them, those with at least one MPDU that arrived */
    uint64_t collisions;                 /* transmissions that another one destroyed */
    uint64_t retries;                    /* MPDUs sent again */
    uint64_t airtime_us;                 /* of transmissions with their block ACKs */
    size_t inside_packets, inside_cross; /* sent or being sent, and not yet delivered; others' traffic among them */
} link_air_stats;

/* NULL: no memory. */
link_air *link_air_new(const link_wifi *set, uint64_t seed);
/* NULL is allowed. Users have left. */
void link_air_free(link_air *air);
/* way: 0 is the uplink, 1 the downlink. */
void link_air_join(link_air *air, unsigned way, const link_air_user *user);
/* Returns the direction's packets to the pool. */
void link_air_leave(link_air *air, unsigned way, link_pool *pool);
/* The user of the other direction; NULL: nobody. */
void *link_air_other(const link_air *air, unsigned way);

/* The direction's queue is not empty any more, since t. */
void link_air_wake(link_air *air, unsigned way, uint64_t t);
/* Whether the direction has packets that are not yet delivered, in the air or in its queue. */
bool link_air_has_work(const link_air *air, unsigned way);
/* When something happens next if nothing else comes; LINK_AIR_NEVER: nothing does. May be in the past, where others
 * began to send. */
uint64_t link_air_next(const link_air *air);
/* Lets it happen. */
void link_air_step(link_air *air);

/* A station that is down sends nothing; its packets wait. */
void link_air_set_up(link_air *air, unsigned way, bool up, uint64_t t);
void link_air_set_rate(link_air *air, unsigned way, uint64_t rate_bps);
link_air_stats link_air_get_stats(const link_air *air, unsigned way);

#endif
