/* The route of packets through several links: a path's own link, then bottlenecks that several paths may share.
 *
 *     client -- wifi --+
 *                      +-- core -- server          wifi: via=core, lte: via=core
 *     client -- lte ---+
 *
 * Uplink packets pass wifi and then core, downlink packets core and then wifi. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/link.h"
#include "emulator/link/settings.h"

#define LINK_VIA_MOST         4        /* bottlenecks on one route */
#define LINK_BOTTLENECKS_MOST 16       /* of an emulation */
#define LINK_BOTTLENECK_SEED  0x10000u /* "path" of the first bottleneck in link_seed() */

/* The numbers of links, in the order in which packets pass them. */
typedef struct {
    uint16_t links[1 + LINK_VIA_MOST];
    uint8_t count; /* at least 1 */
} link_route;

/* The bottlenecks behind a path's link in one direction, by their numbers, from client to server. */
typedef struct {
    uint16_t bottlenecks[LINK_VIA_MOST];
    uint8_t count;
} link_via;

/* Parses the setting `via`, "core:edge", into numbers of `names`, in this order. False with one sentence in error if a
 * name is unknown or given twice, or there are too many. NULL: no bottlenecks. */
bool link_via_parse(link_via *via, const char *text, const char *const *names, size_t name_count, char *error,
                    size_t error_size);
/* The same for both directions of a path. */
bool link_vias_parse(link_via via[2], const link_settings settings[2], const char *const *names, size_t name_count,
                     char *error, size_t error_size);

/* Returns the route through a path's own link, number `own`, and its bottlenecks. The links of bottleneck n have the
 * numbers first + 2 n (client to server) and first + 2 n + 1 (server to client). */
link_route link_route_make(size_t own, const link_via *via, size_t first, bool to_server);

/* Puts a packet at the start of its route. route: number of the route, for the driver. */
static inline void link_route_begin(link_packet *packet, size_t route) {
    packet->route = (uint16_t)route;
    packet->hop = 0;
}

/* Returns the number of the link that a pulled packet of this route enters next; -1: it has arrived. */
static inline int link_route_next(const link_route *route, const link_packet *packet) {
    return packet->hop + 1 < route->count ? route->links[packet->hop + 1] : -1;
}

/* Moves a packet that was pulled from a link into another one at `now`. */
static inline void link_route_forward(emulated_link *from, emulated_link *to, link_packet *packet, uint64_t now) {
    link_passed(from, packet, now);
    packet->hop++;
    link_enqueue(to, packet, now);
}
