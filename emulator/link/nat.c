#include "emulator/link/nat.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/rng.h"
#include "emulator/link/text.h"

#define DEFAULT_TIMEOUT_US UINT64_C(300000000) /* RFC 4787 section 4.3: 5 minutes or more */
#define SESSIONS           4096u               /* at one time; a new one replaces the longest idle one */
#define BUCKETS            4096u
#define FIRST_PORT         1024u
#define NONE               0u /* no session; numbers begin at 1 */

#define IP_MIN   20u
#define ICMP_MIN 8u
#define ICMP     1u
#define TCP      6u
#define UDP      17u

/* ---- rules ---- */

static const char *const kinds[] = {"independent", "address", "address-port", NULL}; /* link_nat_kind */

#define FIELD(member) SETTING_FIELD(link_nat_rules, member)
static const setting rows[] = {{"mapping", SETTING_CHOICE, FIELD(mapping), .words = kinds},
                               {"filtering", SETTING_CHOICE, FIELD(filtering), .words = kinds},
                               {"timeout", SETTING_MS, FIELD(timeout_us), .most = LINK_MS_MOST},
                               {0}};

bool link_nat_parse(void *rules, const char *text, char *wanted, size_t cap) {
    const bool off = strcmp(text, "off") == 0;
    link_nat_rules parsed = {.filtering = LINK_NAT_ADDRESS, .timeout_us = DEFAULT_TIMEOUT_US};
    bool given[sizeof rows / sizeof rows[0]] = {false};
    if (!off && (!link_text_read(rows, &parsed, text, given) || parsed.timeout_us == 0))
        return error_set(wanted, cap,
                         "mapping=KIND:filtering=KIND:timeout=MS or some of them, or off; KIND is "
                         "independent, address or address-port");
    *(link_nat_rules *)rules = off ? (link_nat_rules){0} : parsed;
    return true;
}

/* ---- sessions ---- */

typedef struct {
    uint8_t ip[4];
    uint16_t port;
} nat_host;

/* Traffic between an inner and a remote host. Sessions of one mapping have the same outer port. */
typedef struct {
    nat_host inner, remote;
    uint16_t outer_port;
    uint8_t protocol;
    uint64_t used_us;                /* time of the last packet from inside */
    uint32_t next_inner, next_outer; /* in the chain of a bucket */
    uint32_t older, newer;           /* by used_us */
} nat_session;

struct link_nat {
    link_nat_rules rules;
    link_rng rng;
    uint64_t now, mappings;
    uint32_t by_inner[BUCKETS], by_outer[BUCKETS]; /* chains by inner host, by outer port */
    uint32_t oldest, newest, unused;               /* unused: a chain by next_inner */
    nat_session session[SESSIONS + 1];
};

static bool is_same_host(const nat_host *a, const nat_host *b) {
    return memcmp(a->ip, b->ip, 4) == 0 && a->port == b->port;
}

/* Whether a mapping or filter of this kind treats a and b alike. */
static bool is_alike(link_nat_kind kind, const nat_host *a, const nat_host *b) {
    return kind == LINK_NAT_INDEPENDENT ||
           (memcmp(a->ip, b->ip, 4) == 0 && (kind == LINK_NAT_ADDRESS || a->port == b->port));
}

static uint32_t *chain_of_inner(link_nat *nat, uint8_t protocol, const nat_host *inner) {
    uint32_t ip;
    memcpy(&ip, inner->ip, 4);
    return &nat->by_inner[link_mix64((uint64_t)ip << 24 | (uint64_t)inner->port << 8 | protocol) % BUCKETS];
}

static uint32_t *chain_of_outer(link_nat *nat, uint16_t port) {
    return &nat->by_outer[port % BUCKETS];
}

/* Returns the link of the chain that holds session n. */
static uint32_t *place_in_inner(link_nat *nat, uint32_t n) {
    uint32_t *at = chain_of_inner(nat, nat->session[n].protocol, &nat->session[n].inner);
    while (*at != n)
        at = &nat->session[*at].next_inner;
    return at;
}

static uint32_t *place_in_outer(link_nat *nat, uint32_t n) {
    uint32_t *at = chain_of_outer(nat, nat->session[n].outer_port);
    while (*at != n)
        at = &nat->session[*at].next_outer;
    return at;
}

static void leave_order(link_nat *nat, uint32_t n) {
    const nat_session *s = &nat->session[n];
    *(s->older != NONE ? &nat->session[s->older].newer : &nat->oldest) = s->newer;
    *(s->newer != NONE ? &nat->session[s->newer].older : &nat->newest) = s->older;
}

static void join_order(link_nat *nat, uint32_t n) {
    nat_session *s = &nat->session[n];
    s->used_us = nat->now;
    s->older = nat->newest;
    s->newer = NONE;
    *(nat->newest != NONE ? &nat->session[nat->newest].newer : &nat->oldest) = n;
    nat->newest = n;
}

static void forget(link_nat *nat, uint32_t n) {
    *place_in_inner(nat, n) = nat->session[n].next_inner;
    *place_in_outer(nat, n) = nat->session[n].next_outer;
    leave_order(nat, n);
    nat->session[n].next_inner = nat->unused;
    nat->unused = n;
}

/* Advances to `now` and ends sessions that were idle for the timeout. */
static void pass(link_nat *nat, uint64_t now) {
    nat->now = now > nat->now ? now : nat->now;
    while (nat->oldest != NONE && nat->now - nat->session[nat->oldest].used_us >= nat->rules.timeout_us)
        forget(nat, nat->oldest);
}

static bool is_taken(link_nat *nat, uint8_t protocol, const nat_host *inner, uint16_t port) {
    for (uint32_t n = *chain_of_outer(nat, port); n != NONE; n = nat->session[n].next_outer) {
        const nat_session *s = &nat->session[n];
        if (s->outer_port == port && s->protocol == protocol && memcmp(s->inner.ip, inner->ip, 4) == 0)
            return true;
    }
    return false;
}

/* Draws a random port (RFC 6056) that is free. There are far more ports than sessions. */
static uint16_t draw_port(link_nat *nat, uint8_t protocol, const nat_host *inner) {
    uint16_t port;
    do {
        port = (uint16_t)(FIRST_PORT + link_rng_next(&nat->rng) % (UINT16_MAX + 1u - FIRST_PORT));
    } while (is_taken(nat, protocol, inner, port));
    nat->mappings++;
    return port;
}

static uint32_t open_session(link_nat *nat, uint8_t protocol, const nat_host *inner, const nat_host *remote,
                             uint32_t of_mapping) {
    uint16_t port = of_mapping != NONE ? nat->session[of_mapping].outer_port : draw_port(nat, protocol, inner);
    if (nat->unused == NONE)
        forget(nat, nat->oldest);
    uint32_t n = nat->unused;
    nat_session *s = &nat->session[n];
    nat->unused = s->next_inner;
    *s = (nat_session){.inner = *inner, .remote = *remote, .outer_port = port, .protocol = protocol};
    uint32_t *of_inner = chain_of_inner(nat, protocol, inner), *of_outer = chain_of_outer(nat, port);
    s->next_inner = *of_inner;
    s->next_outer = *of_outer;
    *of_inner = *of_outer = n;
    join_order(nat, n);
    return n;
}

/* Returns the session of a packet from inside, new if there is none, and marks it as used now. */
static uint32_t use_session(link_nat *nat, uint8_t protocol, const nat_host *inner, const nat_host *remote) {
    uint32_t of_mapping = NONE;
    for (uint32_t n = *chain_of_inner(nat, protocol, inner); n != NONE; n = nat->session[n].next_inner) {
        const nat_session *s = &nat->session[n];
        if (s->protocol != protocol || !is_same_host(&s->inner, inner))
            continue;
        if (is_same_host(&s->remote, remote)) {
            leave_order(nat, n);
            join_order(nat, n);
            return n;
        }
        if (is_alike(nat->rules.mapping, &s->remote, remote))
            of_mapping = n;
    }
    return open_session(nat, protocol, inner, remote, of_mapping);
}

/* Returns the session that lets in a packet from outside, by a filter of this kind, or NONE. */
static uint32_t find_session(link_nat *nat, link_nat_kind filtering, uint8_t protocol, const nat_host *outer,
                             const nat_host *remote) {
    for (uint32_t n = *chain_of_outer(nat, outer->port); n != NONE; n = nat->session[n].next_outer) {
        const nat_session *s = &nat->session[n];
        if (s->outer_port == outer->port && s->protocol == protocol && memcmp(s->inner.ip, outer->ip, 4) == 0 &&
            is_alike(filtering, &s->remote, remote))
            return n;
    }
    return NONE;
}

/* ---- packets ---- */

static uint16_t get_u16(const uint8_t *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put_u16(uint8_t *p, uint16_t value) {
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

/* RFC 1624, equation 3. */
static void update_checksum(uint8_t *at, uint16_t before, uint16_t after) {
    uint32_t sum = (uint32_t)(uint16_t)~get_u16(at) + (uint16_t)~before + after;
    sum = (sum & 0xffff) + (sum >> 16);
    put_u16(at, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
}

/* Returns the offset of the ports of a UDP or TCP packet over IPv4 that has the first `more` bytes of the transport
 * header; 0 for other packets. */
static size_t ports_of(const uint8_t *ip, size_t length, size_t more) {
    if (length < IP_MIN || ip[0] >> 4 != 4 || (ip[9] != UDP && ip[9] != TCP))
        return 0;
    bool is_later_fragment = (ip[6] & 0x1f) != 0 || ip[7] != 0;
    size_t header = (size_t)(ip[0] & 15) * 4;
    return is_later_fragment || header < IP_MIN || length < header + more ? 0 : header;
}

/* The same for a packet with the whole transport header, whose checksum can be changed. */
static size_t ports_to_change(const link_packet *packet) {
    size_t at = ports_of(packet->data, packet->length, 8);
    return at != 0 && packet->data[9] == TCP && packet->length < at + 20 ? 0 : at;
}

static nat_host host_at(const uint8_t *ip, const uint8_t *port) {
    nat_host h = {.port = get_u16(port)};
    memcpy(h.ip, ip, 4);
    return h;
}

/* Changes the checksum too, unless it is still to be written (it will cover the new port) or 0 in UDP (unused). */
static void change_port(link_packet *packet, size_t transport, size_t at, uint16_t port) {
    uint8_t *data = packet->data, *checksum = data + transport + (data[9] == TCP ? 16 : 6);
    uint16_t before = get_u16(data + at);
    put_u16(data + at, port);
    if (packet->checksum_start != 0 || (data[9] == UDP && get_u16(checksum) == 0))
        return;
    update_checksum(checksum, before, port);
    if (data[9] == UDP && get_u16(checksum) == 0)
        put_u16(checksum, 0xffff);
}

void link_nat_out(link_nat *nat, link_packet *packet, uint64_t now) {
    size_t at = ports_to_change(packet);
    pass(nat, now);
    if (at == 0)
        return;
    const uint8_t *data = packet->data;
    const nat_host inner = host_at(data + 12, data + at), remote = host_at(data + 16, data + at + 2);
    uint32_t n = use_session(nat, data[9], &inner, &remote);
    change_port(packet, at, at, nat->session[n].outer_port);
}

/* Translates an ICMP error, which goes to the sender of the packet that it quotes (RFC 5508 section 4). */
static bool let_error_in(link_nat *nat, link_packet *packet, size_t icmp) {
    uint8_t *data = packet->data, *quoted = data + icmp + ICMP_MIN;
    size_t at = ports_of(quoted, packet->length - icmp - ICMP_MIN, 4);
    if (at == 0)
        return true;
    const nat_host outer = host_at(quoted + 12, quoted + at), remote = host_at(quoted + 16, quoted + at + 2);
    uint32_t n = find_session(nat, LINK_NAT_ADDRESS_PORT, quoted[9], &outer, &remote);
    if (n == NONE)
        return false;
    put_u16(quoted + at, nat->session[n].inner.port);
    if (packet->checksum_start == 0)
        update_checksum(data + icmp + 2, outer.port, nat->session[n].inner.port);
    return true;
}

static bool is_icmp_error(const uint8_t *data, size_t length, size_t *icmp) {
    *icmp = length >= IP_MIN ? (size_t)(data[0] & 15) * 4 : 0;
    bool is_icmp = length >= IP_MIN && data[0] >> 4 == 4 && data[9] == ICMP && *icmp >= IP_MIN &&
                   (data[6] & 0x1f) == 0 && data[7] == 0 && length >= *icmp + ICMP_MIN;
    return is_icmp && (data[*icmp] == 3 || data[*icmp] == 11 || data[*icmp] == 12);
}

bool link_nat_in(link_nat *nat, link_packet *packet, uint64_t now) {
    size_t at = ports_to_change(packet), icmp;
    pass(nat, now);
    if (at == 0)
        return !is_icmp_error(packet->data, packet->length, &icmp) || let_error_in(nat, packet, icmp);
    const uint8_t *data = packet->data;
    const nat_host outer = host_at(data + 16, data + at + 2), remote = host_at(data + 12, data + at);
    uint32_t n = find_session(nat, nat->rules.filtering, data[9], &outer, &remote);
    if (n != NONE)
        change_port(packet, at, at + 2, nat->session[n].inner.port);
    return n != NONE;
}

/* ---- life ---- */

link_nat *link_nat_new(const link_nat_rules *rules, uint64_t seed) {
    link_nat *nat = calloc(1, sizeof *nat);
    if (!nat)
        return NULL;
    nat->rules = *rules;
    nat->rng.state = seed;
    for (uint32_t n = SESSIONS; n >= 1; n--) {
        nat->session[n].next_inner = nat->unused;
        nat->unused = n;
    }
    return nat;
}

void link_nat_free(link_nat *nat) {
    free(nat);
}

void link_nat_rebind(link_nat *nat) {
    while (nat->oldest != NONE)
        forget(nat, nat->oldest);
}

uint64_t link_nat_mappings(const link_nat *nat) {
    return nat->mappings;
}
