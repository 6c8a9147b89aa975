#include "path/mtu.h"

#define MAX_PROBES      3    /* RFC 8899 section 5.1.2 */
#define COMMON_SIZE     1452 /* IPv6 on Ethernet: tried first */
#define ETHERNET_MTU    1500
#define RESOLUTION      8         /* the search ends when `failed` exceeds `size` by no more bytes */
#define BLACK_HOLE_LOST 4         /* large packets lost */
#define RAISE_TIMER_US  600000000 /* RFC 8899 section 5.1.1 */

static void restart_search(xl_mtu *m) {
    m->failed = m->most + 1;
    m->probe = 0;
    m->tries = 0;
    m->next_at = 0;
    m->small_arrived = false;
    m->large_lost = 0;
}

void xl_mtu_init(xl_mtu *m, uint64_t base, uint64_t most) {
    *m = (xl_mtu){.base = base, .most = most, .size = base};
    restart_search(m);
}

static bool is_complete(const xl_mtu *m) {
    if (m->size >= m->most)
        return true;
    /* Few links have sizes between Ethernet and jumbo frames. */
    if (m->size >= COMMON_SIZE && m->failed <= m->most && m->failed > ETHERNET_MTU)
        return true;
    return m->failed - m->size <= RESOLUTION;
}

static uint64_t candidate(const xl_mtu *m) {
    if (m->failed > m->most)
        return m->size < COMMON_SIZE && COMMON_SIZE < m->most ? COMMON_SIZE : m->most;
    return m->size + (m->failed - m->size) / 2;
}

uint64_t xl_mtu_next_probe(const xl_mtu *m, uint64_t now) {
    if (m->size >= m->most || m->probe || now < m->next_at)
        return 0;
    if (!is_complete(m))
        return candidate(m);
    return m->next_at ? m->most : 0; /* the raise timer: the path may carry more by now */
}

void xl_mtu_probe_sent(xl_mtu *m, uint64_t bytes) {
    if (is_complete(m))
        restart_search(m);
    m->probe = bytes;
}

static void end_step(xl_mtu *m, uint64_t now) {
    m->probe = 0;
    m->tries = 0;
    if (is_complete(m))
        m->next_at = now + RAISE_TIMER_US;
}

void xl_mtu_probe_acked(xl_mtu *m, uint64_t bytes, uint64_t now) {
    if (bytes > m->size && bytes < m->failed)
        m->size = bytes;
    if (bytes == m->probe)
        end_step(m, now);
}

void xl_mtu_probe_lost(xl_mtu *m, uint64_t bytes, bool too_large, uint64_t now) {
    if (bytes != m->probe)
        return;
    m->probe = 0;
    if (!too_large && ++m->tries < MAX_PROBES)
        return;
    if (bytes < m->failed)
        m->failed = bytes;
    end_step(m, now);
}

void xl_mtu_packet_acked(xl_mtu *m, uint64_t bytes, uint64_t sent_at) {
    if (bytes > m->base) {
        m->small_arrived = false;
        m->large_lost = 0;
    } else if (!m->small_arrived) {
        m->small_arrived = true;
        m->small_sent_at = sent_at;
    }
}

bool xl_mtu_packet_lost(xl_mtu *m, uint64_t bytes, uint64_t sent_at) {
    if (bytes <= m->base || !m->small_arrived || sent_at <= m->small_sent_at)
        return false;
    if (++m->large_lost < BLACK_HOLE_LOST)
        return false;
    m->size = m->base;
    restart_search(m); /* from the largest size, because an outage looks the same */
    return true;
}

bool xl_mtu_too_large(xl_mtu *m, uint64_t bytes, uint64_t now) {
    if (bytes == m->probe) {
        xl_mtu_probe_lost(m, bytes, true, now);
        return false;
    }
    if (bytes <= m->base || bytes > m->size)
        return false;
    m->size = m->base;
    restart_search(m);
    m->failed = bytes;
    return true;
}
