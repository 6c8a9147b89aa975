/* Versions 1 and 2 of QUIC and compatible version negotiation (RFC 9368, RFC 9369); greasing (RFC 9287, RFC 9000
 * section 18.1); the spin bit (RFC 9000 section 17.4). */
#include "testing/pair.h"
#include "connection/versions.h"

static void init(pair *p, uint64_t seed, xl_versions client, xl_versions server) {
    pair_init(p, seed, 1, 20000);
    p->client_config.limits.versions = client;
    p->server_config.limits.versions = server;
}

static void expect(xl_versions client, xl_versions server, uint32_t version) {
    pair p;
    init(&p, 1, client, server);
    pair_establish(&p);
    assert_true(p.cc->handshake.is_confirmed);
    assert_int_equal(version, xl_connection_quic_version(p.cc));
    assert_int_equal(version, xl_connection_quic_version(p.sc));
    assert_true(pair_finish(&p, pair_ask(&p, 200000), 10000000) != UINT64_MAX);
    pair_free(&p);
}

TEST(a_server_chooses_version_2_where_it_is_offered) {
    expect(XL_VERSIONS_BOTH, XL_VERSIONS_BOTH, XL_VERSION_2);
    expect(XL_VERSIONS_BOTH, XL_VERSIONS_1, XL_VERSION_1);
    expect(XL_VERSIONS_1, XL_VERSIONS_BOTH, XL_VERSION_1);
    expect(XL_VERSIONS_2, XL_VERSIONS_BOTH, XL_VERSION_2);
    expect(XL_VERSIONS_2, XL_VERSIONS_2, XL_VERSION_2);
}

TEST(versions_without_overlap_are_told_by_version_negotiation) {
    const xl_versions sides[2] = {XL_VERSIONS_1, XL_VERSIONS_2};
    for (int i = 0; i < 2; i++) {
        pair p;
        init(&p, 2, sides[i], sides[!i]);
        pair_connect(&p);
        pair_run(&p, 1000000);
        assert_true(p.client_closed && p.client_close.close_reason == XL_CLOSE_VERSION);
        assert_int_equal(0, p.server->count);
        pair_free(&p);
    }
}

TEST(a_version_changes_also_where_packets_are_lost) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        pair p;
        init(&p, seed, XL_VERSIONS_BOTH, XL_VERSIONS_BOTH);
        p.link[0].loss = 0.25;
        p.link[0].reorder = 0.3;
        pair_establish(&p);
        assert_true(p.cc->handshake.is_confirmed);
        assert_int_equal(XL_VERSION_2, xl_connection_quic_version(p.sc));
        pair_free(&p);
    }
}

/* The versions that the handshake authenticates differ from those of the packets: somebody changed them on the way. */
PAIR_TEST(a_version_that_the_handshake_does_not_confirm_is_an_error) {
    init(p, 3, XL_VERSIONS_BOTH, XL_VERSIONS_BOTH);
    pair_establish(p);
    xl_transport_params *of_server = &p->cc->peer_params;
    assert_int_equal(0, xl_conn_agree_on_version(p->cc));
    of_server->chosen_version = XL_VERSION_1;
    assert_int_equal(XL_QERR_VERSION_NEGOTIATION, xl_conn_agree_on_version(p->cc));
    of_server->has_version_information = false;
    assert_int_equal(XL_QERR_VERSION_NEGOTIATION, xl_conn_agree_on_version(p->cc));
    xl_transport_params *of_client = &p->sc->peer_params;
    assert_int_equal(XL_VERSION_1, of_client->chosen_version);
    of_client->chosen_version = XL_VERSION_2; /* but its first packet was of version 1 */
    assert_int_equal(XL_QERR_VERSION_NEGOTIATION, xl_conn_agree_on_version(p->sc));
}

TEST(version_information_has_a_form) {
    const uint8_t good[] = {0x11, 8, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf}, alone[] = {0x11, 4, 0, 0, 0, 1},
                  odd[] = {0x11, 6, 0, 0, 0, 1, 0, 1}, none[] = {0x11, 0}, zero[] = {0x11, 4, 0, 0, 0, 0},
                  zero_available[] = {0x11, 8, 0, 0, 0, 1, 0, 0, 0, 0};
    xl_transport_params tp;
    assert_int_equal(0, xl_transport_params_decode(good, sizeof good, true, &tp));
    assert_true(tp.has_version_information && tp.chosen_version == XL_VERSION_1 && tp.has_v2 && !tp.has_v1);
    assert_int_equal(0, xl_transport_params_decode(alone, sizeof alone, true, &tp));
    assert_int_equal(XL_QERR_TRANSPORT_PARAMETER, xl_transport_params_decode(odd, sizeof odd, true, &tp));
    assert_int_equal(XL_QERR_TRANSPORT_PARAMETER, xl_transport_params_decode(none, sizeof none, true, &tp));
    assert_int_equal(XL_QERR_TRANSPORT_PARAMETER, xl_transport_params_decode(zero, sizeof zero, true, &tp));
    assert_int_equal(XL_QERR_TRANSPORT_PARAMETER,
                     xl_transport_params_decode(zero_available, sizeof zero_available, true, &tp));
}

/* RFC 9368 section 4: a client could not have chosen it otherwise. */
TEST(a_client_lists_the_version_that_it_has_chosen) {
    const uint8_t absent[] = {0x11, 8, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf},
                  present[] = {0x11, 12, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1};
    xl_transport_params tp;
    assert_int_equal(0, xl_transport_params_decode(present, sizeof present, false, &tp));
    assert_int_equal(XL_QERR_TRANSPORT_PARAMETER, xl_transport_params_decode(absent, sizeof absent, false, &tp));
    assert_int_equal(0, xl_transport_params_decode(absent, sizeof absent, true, &tp));
}

/* ---- Bits of the first byte ---- */

typedef struct {
    unsigned packets[2], without_quic_bit[2], spins[2];
    bool last_spin[2];
} bits;

static void look(void *user, bool to_server, uint8_t *data, size_t len) {
    bits *b = user;
    int side = to_server ? 0 : 1;
    bool spin = data[0] & 0x20;
    (void)len;
    if (data[0] & 0x80)
        return;
    b->packets[side]++;
    b->without_quic_bit[side] += !(data[0] & 0x40);
    b->spins[side] += b->packets[side] > 1 && spin != b->last_spin[side];
    b->last_spin[side] = spin;
}

static bits download(pair *p, uint64_t duration_us) {
    bits b = {0};
    p->tamper = look;
    p->tamper_user = &b;
    p->link[0].bytes_per_s[1] = 1000000;
    p->link[0].queue_us = 30000;
    pair_establish(p);
    pair_ask(p, 50000000);
    pair_run(p, duration_us);
    p->tamper = NULL;
    return b;
}

TEST(the_quic_bit_is_random_where_both_sides_take_that) {
    pair p;
    init(&p, 4, XL_VERSIONS_1, XL_VERSIONS_1);
    p.client_config.limits.grease = p.server_config.limits.grease = true;
    bits b = download(&p, 1000000);
    for (int side = 0; side < 2; side++)
        assert_in_range(b.without_quic_bit[side], b.packets[side] / 3, b.packets[side] * 2 / 3);
    assert_int_equal(0, p.cc->stats.datagrams_dropped + p.sc->stats.datagrams_dropped);
    assert_int_equal(27, p.cc->local_params.reserved_id % 31);
    pair_free(&p);
    for (int who = 0; who < 2; who++) {
        init(&p, 5, XL_VERSIONS_1, XL_VERSIONS_1);
        (who ? &p.client_config : &p.server_config)->limits.grease = true;
        b = download(&p, 500000);
        assert_int_equal(0, b.without_quic_bit[0] + b.without_quic_bit[1]);
        assert_true(b.packets[1] > 100);
        pair_free(&p);
    }
}

PAIR_TEST(a_packet_without_the_quic_bit_is_dropped_where_it_was_not_agreed) {
    init(p, 6, XL_VERSIONS_1, XL_VERSIONS_1);
    pair_establish(p);
    p->cc->peer_params.grease_quic_bit = true; /* the client believes what the server never said */
    p->client->config.limits.grease = true;
    uint64_t dropped = p->sc->stats.datagrams_dropped, received = p->sc->stats.datagrams_received;
    for (int i = 0; i < 40; i++) {
        xl_connection_ping(p->cc, p->now);
        pair_run(p, 100000);
    }
    assert_true(p->sc->stats.datagrams_received + p->sc->stats.datagrams_dropped > received + dropped);
    assert_true(p->cc->path[0]->stats.packets_lost > 5);
}

TEST(the_spin_bit_turns_once_a_round_trip) {
    pair p;
    for (uint64_t seed = 7;; seed++) { /* until neither side is the 1 in 16 that disables it */
        init(&p, seed, XL_VERSIONS_1, XL_VERSIONS_1);
        p.client_config.limits.spin_bit = p.server_config.limits.spin_bit = true;
        bits b = download(&p, 2000000);
        bool both = p.cc->spins && p.sc->spins;
        if (both) /* 40 ms and up to 30 ms in the queue: 2 s are 28 to 50 turns */
            for (int side = 0; side < 2; side++)
                assert_in_range(b.spins[side], 25, 51);
        pair_free(&p);
        if (both)
            break;
    }
    init(&p, 7, XL_VERSIONS_1, XL_VERSIONS_1);
    bits b = download(&p, 1000000);
    assert_int_equal(0, b.spins[0] + b.spins[1]);
    pair_free(&p);
}

TEST(one_connection_in_sixteen_does_not_spin) {
    unsigned without = 0;
    for (uint64_t seed = 1; seed <= 320; seed++) {
        pair p;
        init(&p, seed, XL_VERSIONS_1, XL_VERSIONS_1);
        p.client_config.limits.spin_bit = true;
        pair_connect(&p);
        without += !p.cc->spins;
        pair_free(&p);
    }
    assert_in_range(without, 8, 36); /* 20 expected */
}

TEST_MAIN(NULL, NULL)
