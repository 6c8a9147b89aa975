#include "balancer/health.h"

#include <string.h>

#define LONG_HEADER   0xc0
#define CID_BYTES_AT  5
#define CID_AT        6
#define NO_ROTATION   0xe0 /* rotation of a CID without configuration: any worker responds */
#define RESERVED_BYTE 0x1a /* versions 0x?a?a?a?a are reserved to force Version Negotiation (RFC 9000 section 15) */

void health_init(health *h, uint64_t interval_us, size_t servers, uint64_t now) {
    *h = (health){.interval_us = interval_us, .count = servers};
    for (size_t i = 0; i < servers; i++)
        h->server[i] = (health_server){.probe_at = now};
}

void health_move(health *h, const size_t moved[], size_t servers, uint64_t now) {
    const health old = *h;
    health_init(h, old.interval_us, servers, now);
    for (size_t i = 0; i < old.count; i++)
        if (moved[i] != SIZE_MAX)
            h->server[moved[i]].is_down = old.server[i].is_down;
}

bool health_hear(health *h, size_t server) {
    health_server *s = &h->server[server];
    bool was_down = s->is_down;
    s->unanswered = 0;
    s->is_down = false;
    return was_down;
}

bool health_refuse(health *h, size_t server) {
    health_server *s = &h->server[server];
    bool was_down = s->is_down;
    s->is_down = h->interval_us > 0; /* without probes nothing would detect that it is up again */
    return s->is_down && !was_down;
}

bool health_check(health *h, size_t server, uint64_t now) {
    const health_server *s = &h->server[server];
    return s->unanswered >= HEALTH_SILENT_PROBES && now >= s->probe_at && health_refuse(h, server);
}

uint64_t health_next(const health *h) {
    uint64_t next = XL_NEVER;
    for (size_t i = 0; h->interval_us > 0 && i < h->count; i++)
        next = h->server[i].probe_at < next ? h->server[i].probe_at : next;
    return next;
}

bool health_probe(health *h, size_t server, const uint8_t random[2 * HEALTH_ID_BYTES], uint64_t now,
                  uint8_t probe[HEALTH_PROBE_BYTES]) {
    health_server *s = &h->server[server];
    if (h->interval_us == 0 || now < s->probe_at)
        return false;
    s->probe_at = now + h->interval_us;
    s->unanswered++;
    memcpy(s->id, random, HEALTH_ID_BYTES);
    memset(probe, 0, HEALTH_PROBE_BYTES);
    probe[0] = LONG_HEADER;
    memset(probe + 1, RESERVED_BYTE, 4);
    probe[CID_BYTES_AT] = HEALTH_ID_BYTES;
    memcpy(probe + CID_AT, random + HEALTH_ID_BYTES, HEALTH_ID_BYTES);
    probe[CID_AT] |= NO_ROTATION;
    probe[CID_AT + HEALTH_ID_BYTES] = HEALTH_ID_BYTES;
    memcpy(probe + CID_AT + HEALTH_ID_BYTES + 1, s->id, HEALTH_ID_BYTES);
    return true;
}

bool health_is_answer(const health *h, size_t server, const uint8_t *data, size_t len) {
    return len > CID_AT + HEALTH_ID_BYTES && (data[0] & 0x80) && memcmp(data + 1, "\0\0\0\0", 4) == 0 &&
           data[CID_BYTES_AT] == HEALTH_ID_BYTES && memcmp(data + CID_AT, h->server[server].id, HEALTH_ID_BYTES) == 0;
}
