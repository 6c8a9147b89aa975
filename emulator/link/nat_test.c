/* The rules of RFC 4787, and thousands of random packets. */

#include "emulator/link/testing/bench.h"
#include "emulator/link/nat.h"
#include "emulator/link/rng.h"

#define CLIENT  2
#define SERVER  9
#define ANOTHER 8
#define WITHOUT 0 /* a UDP checksum */

static link_pool *pool;
static link_packet *packet;

static int open_packet(void **state) {
    (void)state;
    pool = link_pool_new(0);
    packet = link_pool_get(pool);
    return 0;
}

static int close_packet(void **state) {
    (void)state;
    link_pool_free(pool);
    return 0;
}

static link_nat *nat_of(const char *text) {
    link_nat_rules rules;
    char wanted[160];
    assert_true(link_nat_parse(&rules, text, wanted, sizeof wanted));
    return link_nat_new(&rules, 1);
}

static uint16_t get_u16(const uint8_t *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put_u16(uint8_t *p, uint16_t value) {
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

/* The receiver's sum of RFC 1071: 0xffff if the checksum is right. */
static uint16_t sum(const uint8_t *bytes, size_t length, uint32_t start) {
    for (size_t i = 0; i + 1 < length; i += 2)
        start += get_u16(bytes + i);
    while (start >> 16)
        start = (start & 0xffff) + (start >> 16);
    return (uint16_t)start;
}

static uint16_t transport_sum(const uint8_t *data, size_t length) {
    uint32_t pseudo = data[9] + (uint32_t)(length - 20);
    return sum(data + 20, length - 20, pseudo + sum(data + 12, 8, 0));
}

/* Makes a packet of 60 bytes from one host to another. */
static void fill(uint8_t protocol, uint8_t from, uint16_t from_port, uint8_t to, uint16_t to_port) {
    uint8_t *d = packet->data;
    memset(d, 0, 60);
    packet->length = 60;
    packet->checksum_start = 0;
    d[0] = 0x45;
    d[9] = protocol;
    d[12] = d[16] = 100;
    d[15] = from;
    d[19] = to;
    put_u16(d + 20, from_port);
    put_u16(d + 22, to_port);
    d[50] = 7; /* payload */
    uint8_t *checksum = d + (protocol == 6 ? 36 : 26);
    put_u16(checksum, (uint16_t)~transport_sum(d, 60));
}

/* Only the port and the checksum have changed. */
static void expect_only(const uint8_t *before, size_t port) {
    size_t checksum = before[9] == 6 ? 36 : 26;
    for (size_t i = 0; i < 60; i++)
        if (i / 2 != port / 2 && i / 2 != checksum / 2)
            assert_int_equal(packet->data[i], before[i]);
    assert_int_equal(transport_sum(packet->data, 60), 0xffff);
}

/* Translates a packet from inside. Returns its outer port. */
static uint16_t out_by(link_nat *nat, uint8_t protocol, uint16_t port, uint8_t to, uint16_t to_port, uint64_t now) {
    uint8_t before[60];
    fill(protocol, CLIENT, port, to, to_port);
    memcpy(before, packet->data, sizeof before);
    link_nat_out(nat, packet, now);
    expect_only(before, 20);
    return get_u16(packet->data + 20);
}

static uint16_t out(link_nat *nat, uint16_t port, uint8_t to, uint16_t to_port, uint64_t now) {
    return out_by(nat, 17, port, to, to_port, now);
}

/* Translates a packet from outside. Returns its inner port; 0: it is dropped. */
static uint16_t in_by(link_nat *nat, uint8_t protocol, uint16_t outer, uint8_t from, uint16_t from_port, uint64_t now) {
    uint8_t before[60];
    fill(protocol, from, from_port, CLIENT, outer);
    memcpy(before, packet->data, sizeof before);
    if (!link_nat_in(nat, packet, now))
        return 0;
    expect_only(before, 22);
    return get_u16(packet->data + 22);
}

static uint16_t in(link_nat *nat, uint16_t outer, uint8_t from, uint16_t from_port, uint64_t now) {
    return in_by(nat, 17, outer, from, from_port, now);
}

TEST(a_mapping_is_kept_for_what_its_kind_says) {
    static const struct {
        const char *rules;
        bool other_port, other_address; /* whether they have the same outer port */
    } cases[] = {
        {"mapping=independent", true, true}, {"mapping=address", true, false}, {"mapping=address-port", false, false}};
    for (size_t i = 0; i < 3; i++) {
        link_nat *nat = nat_of(cases[i].rules);
        uint16_t outer = out(nat, 5000, SERVER, 443, 0);
        assert_true(outer >= 1024);
        assert_int_equal(out(nat, 5000, SERVER, 443, 1), outer);
        assert_int_equal(out(nat, 5000, SERVER, 80, 2) == outer, cases[i].other_port);
        assert_int_equal(out(nat, 5000, ANOTHER, 443, 3) == outer, cases[i].other_address);
        assert_true(out(nat, 5001, SERVER, 443, 4) != outer);
        assert_true(out_by(nat, 6, 5000, SERVER, 443, 5) != outer); /* TCP has its own mapping */
        link_nat_free(nat);
    }
}

TEST(a_filter_lets_in_what_its_kind_says) {
    static const struct {
        const char *rules;
        bool other_port, other_address;
    } cases[] = {{"filtering=independent", true, true},
                 {"filtering=address", true, false},
                 {"filtering=address-port", false, false}};
    for (size_t i = 0; i < 3; i++) {
        link_nat *nat = nat_of(cases[i].rules);
        uint16_t outer = out(nat, 5000, SERVER, 443, 0);
        assert_int_equal(in(nat, outer, SERVER, 443, 1), 5000);
        assert_int_equal(in(nat, outer, SERVER, 80, 1), cases[i].other_port ? 5000 : 0);
        assert_int_equal(in(nat, outer, ANOTHER, 443, 1), cases[i].other_address ? 5000 : 0);
        assert_int_equal(in(nat, (uint16_t)(outer + 1), SERVER, 443, 1), 0);
        assert_int_equal(in_by(nat, 6, outer, SERVER, 443, 1), 0);
        link_nat_free(nat);
    }
}

/* Packets from outside do not refresh a mapping (RFC 4787 section 4.3: packets from inside do). */
TEST(a_mapping_ends_when_nothing_came_from_inside_for_the_timeout) {
    link_nat *nat = nat_of("timeout=30000");
    uint16_t outer = out(nat, 5000, SERVER, 443, 0);
    assert_int_equal(out(nat, 5000, SERVER, 443, 29 * S), outer);
    assert_int_equal(in(nat, outer, SERVER, 443, 58 * S), 5000);
    assert_int_equal(in(nat, outer, SERVER, 443, 59 * S), 0);
    uint16_t next = out(nat, 5000, SERVER, 443, 60 * S);
    assert_true(next != outer);
    assert_int_equal(in(nat, outer, SERVER, 443, 60 * S), 0);
    assert_int_equal(in(nat, next, SERVER, 443, 60 * S), 5000);
    assert_int_equal(link_nat_mappings(nat), 2);
    link_nat_free(nat);
}

TEST(rebinding_forgets_all) {
    link_nat *nat = nat_of("mapping=independent");
    uint16_t outer = out(nat, 5000, SERVER, 443, 0);
    link_nat_rebind(nat);
    assert_int_equal(in(nat, outer, SERVER, 443, 1), 0);
    assert_true(out(nat, 5000, SERVER, 443, 2) != outer);
    link_nat_free(nat);
}

TEST(ports_are_those_of_the_seed) {
    link_nat_rules rules = {.timeout_us = S};
    link_nat *nats[3] = {link_nat_new(&rules, 1), link_nat_new(&rules, 1), link_nat_new(&rules, 2)};
    uint16_t outer[3];
    for (size_t i = 0; i < 3; i++)
        outer[i] = out(nats[i], 5000, SERVER, 443, 0);
    assert_int_equal(outer[0], outer[1]);
    assert_int_not_equal(outer[0], outer[2]);
    for (size_t i = 0; i < 3; i++)
        link_nat_free(nats[i]);
}

/* With more hosts than room, a new one replaces the one that was idle the longest. */
TEST(a_full_table_forgets_the_oldest) {
    link_nat *nat = nat_of("mapping=independent");
    uint16_t first = out(nat, 1, SERVER, 443, 0), second = out(nat, 2, SERVER, 443, 0), last = 0;
    for (uint16_t port = 3; port <= 4097; port++)
        last = out(nat, port, SERVER, 443, port);
    assert_int_equal(in(nat, first, SERVER, 443, 5000), 0);
    assert_int_equal(in(nat, second, SERVER, 443, 5000), 2);
    assert_int_equal(in(nat, last, SERVER, 443, 5000), 4097);
    link_nat_free(nat);
}

TEST(checksums_that_are_not_there_are_left_alone) {
    link_nat *nat = nat_of("mapping=independent");
    fill(17, CLIENT, 5000, SERVER, 443);
    put_u16(packet->data + 26, WITHOUT);
    link_nat_out(nat, packet, 0);
    assert_int_equal(get_u16(packet->data + 26), WITHOUT);
    fill(17, CLIENT, 5000, SERVER, 443);
    packet->checksum_start = 20; /* the checksum is still to be written */
    uint16_t pseudo = get_u16(packet->data + 26);
    link_nat_out(nat, packet, 0);
    assert_int_equal(get_u16(packet->data + 26), pseudo);
    assert_int_not_equal(get_u16(packet->data + 20), 5000);
    link_nat_free(nat);
}

TEST(what_has_no_ports_passes_unchanged) {
    link_nat *nat = nat_of("mapping=independent");
    static const struct {
        size_t at;
        uint8_t value;
        uint32_t length;
    } cases[] = {{0, 0x60, 60}, {9, 1, 60},    {9, 47, 60}, {7, 1, 60}, {6, 1, 60},
                 {0, 0x44, 60}, {0, 0x4f, 60}, {9, 17, 27}, {9, 6, 39}, {9, 17, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t before[60];
        fill(17, CLIENT, 5000, SERVER, 443);
        packet->data[cases[i].at] = cases[i].value;
        packet->length = cases[i].length;
        memcpy(before, packet->data, 60);
        link_nat_out(nat, packet, 0);
        assert_memory_equal(before, packet->data, 60);
        assert_true(link_nat_in(nat, packet, 0));
        assert_memory_equal(before, packet->data, 60);
    }
    assert_int_equal(link_nat_mappings(nat), 0);
    link_nat_free(nat);
}

/* "Port unreachable", which quotes a packet as it left the NAT. */
static bool let_error_in(link_nat *nat, uint16_t outer, uint16_t server_port) {
    uint8_t quoted[28], *d = packet->data;
    fill(17, CLIENT, outer, SERVER, server_port);
    memcpy(quoted, d, sizeof quoted);
    fill(17, SERVER, 0, CLIENT, 0);
    d[9] = 1;
    d[20] = d[21] = 3;
    put_u16(d + 22, 0);
    memcpy(d + 28, quoted, sizeof quoted);
    packet->length = 56;
    put_u16(d + 22, (uint16_t)~sum(d + 20, 36, 0));
    return link_nat_in(nat, packet, 1);
}

TEST(an_error_is_for_who_sent_what_it_quotes) {
    link_nat *nat = nat_of("mapping=independent");
    uint16_t outer = out(nat, 5000, SERVER, 443, 0);
    assert_true(let_error_in(nat, outer, 443));
    assert_int_equal(get_u16(packet->data + 48), 5000);
    assert_int_equal(sum(packet->data + 20, 36, 0), 0xffff);
    assert_false(let_error_in(nat, outer, 80));
    assert_false(let_error_in(nat, (uint16_t)(outer + 1), 443));
    link_nat_free(nat);
}

/* ---- any packets ---- */

#define ROUNDS 20000
#define PORTS  12u

/* A model of the rules: the newest outer port of each pair of hosts, and when it was used. */
typedef struct {
    uint16_t outer[PORTS][2][2]; /* inner port, remote address, remote port; 0: none */
    uint64_t used_us[PORTS][2][2];
} nat_model;

static bool is_alive(const nat_model *t, uint64_t timeout, size_t i, size_t a, size_t p, uint64_t now) {
    return t->outer[i][a][p] != 0 && now - t->used_us[i][a][p] < timeout;
}

static bool is_in_scope(link_nat_kind kind, bool same_address, bool same_port) {
    return kind == LINK_NAT_INDEPENDENT || (same_address && (kind == LINK_NAT_ADDRESS || same_port));
}

/* Returns the outer port that a packet from inside must have; 0: a new one. */
static uint16_t expected_out(const nat_model *t, const link_nat_rules *r, size_t i, size_t a, size_t p, uint64_t now) {
    for (size_t k = 0; k < 4; k++)
        if (is_alive(t, r->timeout_us, i, k / 2, k % 2, now) && is_in_scope(r->mapping, k / 2 == a, k % 2 == p))
            return t->outer[i][k / 2][k % 2];
    return 0;
}

static uint16_t expected_in(const nat_model *t, const link_nat_rules *r, uint16_t outer, size_t a, size_t p,
                            uint64_t now) {
    for (size_t i = 0; i < PORTS; i++)
        for (size_t k = 0; k < 4; k++)
            if (t->outer[i][k / 2][k % 2] == outer && is_alive(t, r->timeout_us, i, k / 2, k % 2, now) &&
                is_in_scope(r->filtering, k / 2 == a, k % 2 == p))
                return (uint16_t)(1000 + i);
    return 0;
}

static bool is_free(const nat_model *t, uint64_t timeout, uint16_t outer, uint64_t now) {
    for (size_t i = 0; i < PORTS; i++)
        for (size_t k = 0; k < 4; k++)
            if (t->outer[i][k / 2][k % 2] == outer && is_alive(t, timeout, i, k / 2, k % 2, now))
                return false;
    return true;
}

static void play(link_nat_rules rules, uint64_t seed) {
    static nat_model t;
    link_rng rng = {seed};
    link_nat *nat = link_nat_new(&rules, seed);
    uint64_t now = 0;
    memset(&t, 0, sizeof t);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t draw = link_rng_next(&rng);
        size_t i = draw % PORTS, a = draw >> 8 & 1, p = draw >> 9 & 1;
        uint8_t remote = a ? SERVER : ANOTHER;
        uint16_t port = p ? 443 : 80;
        now += draw >> 16 & 63;
        if ((draw >> 32) % 500 == 0) {
            link_nat_rebind(nat);
            memset(&t, 0, sizeof t);
        } else if (draw >> 10 & 1) {
            uint16_t expected = expected_out(&t, &rules, i, a, p, now);
            uint16_t outer = out(nat, (uint16_t)(1000 + i), remote, port, now);
            assert_true(expected != 0 ? outer == expected : outer >= 1024 && is_free(&t, rules.timeout_us, outer, now));
            t.outer[i][a][p] = outer;
            t.used_us[i][a][p] = now;
        } else {
            uint16_t outer = t.outer[i][draw >> 11 & 1][draw >> 12 & 1];
            assert_int_equal(in(nat, outer, remote, port, now), expected_in(&t, &rules, outer, a, p, now));
        }
    }
    link_nat_free(nat);
}

TEST(every_packet_is_translated_as_the_rules_say) {
    for (unsigned kinds = 0; kinds < 9; kinds++)
        play((link_nat_rules){(link_nat_kind)(kinds / 3), (link_nat_kind)(kinds % 3), 2000}, kinds);
}

/* Random bytes, cut anywhere: nothing is read or written beyond them, and their number stays the same. */
TEST(any_bytes_are_taken) {
    link_rng rng = {7};
    link_nat *nat = nat_of("mapping=address:filtering=independent:timeout=1");
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t length = (uint32_t)(link_rng_next(&rng) % 80);
        uint8_t *exact = malloc(length + 1);
        for (uint32_t i = 0; i < length; i++)
            exact[i] = (uint8_t)link_rng_next(&rng);
        if (length > 9 && round % 4) {
            exact[0] = (uint8_t)(0x40 | (exact[0] & 7));
            exact[6] = exact[7] = 0;
            exact[9] = (const uint8_t[]){1, 6, 17}[round % 3];
        }
        if (length > 20 && round % 3 == 0)
            exact[20] = 3;
        memset(packet->data, 0xa5, sizeof packet->data);
        memcpy(packet->data, exact, length);
        packet->length = length;
        packet->checksum_start = 0;
        if (round % 2)
            link_nat_out(nat, packet, round);
        else
            (void)link_nat_in(nat, packet, round);
        assert_int_equal(packet->length, length);
        for (uint32_t i = length; i < length + 60; i++)
            assert_int_equal(packet->data[i], 0xa5);
        free(exact);
    }
    link_nat_free(nat);
}

TEST(rules_are_read) {
    link_nat_rules r;
    char wanted[160];
    assert_true(link_nat_parse(&r, "timeout=1.5", wanted, sizeof wanted));
    assert_true(r.timeout_us == 1500 && r.mapping == LINK_NAT_INDEPENDENT && r.filtering == LINK_NAT_ADDRESS);
    assert_true(link_nat_parse(&r, "filtering=address-port:mapping=address", wanted, sizeof wanted));
    assert_true(r.timeout_us == 300 * S && r.mapping == LINK_NAT_ADDRESS && r.filtering == LINK_NAT_ADDRESS_PORT);
    assert_true(link_nat_parse(&r, "off", wanted, sizeof wanted));
    assert_int_equal(r.timeout_us, 0);
    static const char *const bad[] = {"on",        "timeout=0",          "timeout=", "timeout=1:timeout=2",
                                      "mapping=x", "mapping=address-po", "mapping",  "filtering=addresss"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(link_nat_parse(&r, bad[i], wanted, sizeof wanted));
}

/* ---- on links ---- */

static link_packet *through(link_bench *link, uint64_t now) {
    link_packet *sent = link_pool_get(link->pool);
    memcpy(sent->data, packet->data, 60);
    sent->length = 60;
    sent->checksum_start = 0;
    link_enqueue(link->link, sent, now);
    link_advance(link->link, now + 100 * MS);
    return link_pull(link->link);
}

TEST(both_directions_of_a_path_share_it) {
    link_nat *nat = nat_of("timeout=30000");
    link_bench *up = bench_new("1mbps", (link_config){.nat = nat});
    link_bench *down = bench_new("1mbps", (link_config){.nat = nat, .is_downlink = true});
    fill(17, CLIENT, 5000, SERVER, 443);
    link_packet *sent = through(up, 0);
    uint16_t outer = get_u16(sent->data + 20);
    assert_int_not_equal(outer, 5000);
    link_departed(up->link, sent, 100 * MS);
    fill(17, SERVER, 443, CLIENT, outer);
    link_packet *answer = through(down, 100 * MS);
    assert_int_equal(get_u16(answer->data + 22), 5000);
    link_departed(down->link, answer, 200 * MS);
    CHANGE(down->link, 300 * MS, .rebinds = true);
    assert_null(through(down, 300 * MS));
    assert_int_equal(link_get_stats(down->link).nat_drops, 1);
    assert_int_equal(link_get_stats(down->link).nat_mappings, 0);
    assert_int_equal(link_get_stats(up->link).nat_mappings, 1);
    bench_check_balance(down);
    bench_free(up);
    bench_free(down);
    link_nat_free(nat);
}

TEST_MAIN(open_packet, close_packet)
