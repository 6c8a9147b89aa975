/* The medium of a Wi-Fi link: both directions of a path and the stations of others share its airtime.
 *
 * The distributed coordination function of 802.11 (802.11-2020, 10.3) decides who may send. A station with packets
 * waits until the medium has been idle for DIFS plus `backoff counter` slots. The counter is uniform in 0 .. CW, and
 * stops while others send. If two stations send in one slot, both lose everything and CW doubles, up to its limit;
 * after a success, or when a packet is given up, CW starts again at its minimum. Stations of others always have
 * packets.
 *
 * A station sends an A-MPDU of its oldest frames. A Gilbert-Elliott chain decides which MPDUs are lost, and a block ACK
 * reports it. Lost MPDUs are sent again, before new ones, until they are given up. The receiver delivers in order, so a
 * missing packet holds back the later ones.
 *
 * While this link sends nothing, the transmissions of others have no effect and are not simulated: at the end of a long
 * silence the medium is at a random point of one of them.
 *
 * Sans-IO: times are us since t0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/packet.h"
#include "emulator/link/wifi.h"

#define LINK_AIR_NEVER UINT64_MAX

typedef struct link_air link_air;

/* Callbacks of the link whose packets a direction carries. */
typedef struct {
    void *user;
    link_packet *(*take)(void *user, uint64_t t);                 /* next packet of its queue; NULL: it is empty */
    bool (*waits)(const void *user);                              /* whether its queue has packets */
    void (*deliver)(void *user, link_packet *packet, uint64_t t); /* in order, at the receiver */
    void (*give_up)(void *user, link_packet *packet, uint64_t t); /* after the last retry */
    void (*sent)(void *user, uint64_t t, uint64_t bytes);         /* a transmission ended; `bytes` of it arrived */
} link_air_user;

typedef struct {
    uint64_t transmissions;
    uint64_t used;                       /* transmissions of which at least one MPDU arrived */
    uint64_t collisions;                 /* transmissions lost as a whole: same slot as another, or `collision` */
    uint64_t retries;                    /* MPDUs sent again */
    uint64_t airtime_us;                 /* of transmissions with their block ACKs */
    size_t inside_packets, inside_cross; /* taken from the queue, not yet delivered; others' traffic of it */
} link_air_stats;

/* Returns NULL without memory. */
link_air *link_air_new(const link_wifi *set, uint64_t seed);
/* NULL is allowed. Users must have left. */
void link_air_free(link_air *air);
/* way: 0 is the uplink, 1 the downlink. */
void link_air_join(link_air *air, unsigned way, const link_air_user *user);
/* Returns the direction's packets to the pool. */
void link_air_leave(link_air *air, unsigned way, link_pool *pool);
/* The user of the other direction; NULL: nobody. */
void *link_air_other(const link_air *air, unsigned way);

/* Says that the direction's queue is no longer empty, since t. */
void link_air_wake(link_air *air, unsigned way, uint64_t t);
/* Whether the direction has packets that are not yet delivered, in the air or in its queue. */
bool link_air_has_work(const link_air *air, unsigned way);
/* Returns the time of the next event if no packet comes; LINK_AIR_NEVER: there is none. It may be in the past if others
 * began to send. */
uint64_t link_air_next(const link_air *air);
/* Handles that event. */
void link_air_step(link_air *air);

/* A direction that is down sends nothing; its packets wait. */
void link_air_set_up(link_air *air, unsigned way, bool up, uint64_t t);
void link_air_set_rate(link_air *air, unsigned way, uint64_t rate_bps);
link_air_stats link_air_get_stats(const link_air *air, unsigned way);
