/* The path MTU of a connection: RFC 9000 section 14, RFC 8899. */
#include "testing/pair.h"

/* A link of 20 Mbps and 40 ms that carries datagrams of up to `mtu` bytes; the ends do not know that. */
static void start(pair *p, size_t mtu) {
    pair_init(p, 11, 2, 20000);
    p->link_count = 1;
    p->client_config.limits.path_mtu_bytes = p->server_config.limits.path_mtu_bytes = 0;
    for (size_t i = 0; i < 2; i++) {
        pair_limit(&p->link[i], 2500000, 200000);
        p->link[i].mtu = mtu;
    }
}

static void connect_ends(pair *p) {
    pair_establish(p);
    assert_true(p->cc->handshake.is_confirmed);
}

static uint64_t size_of(pair *p, size_t path) {
    return pair_server_path(p, path).mtu_bytes;
}

/* Returns a download, in the middle of which the size is found. */
static size_t begin_download(pair *p) {
    start(p, 1452);
    connect_ends(p);
    size_t i = pair_ask(p, 10000000);
    pair_run(p, 1000000);
    assert_int_equal(1452, size_of(p, 0));
    return i;
}

TEST(a_download_finds_what_its_path_carries) {
    const size_t mtu[] = {1200, 1252, 1322, 1372, 1400, 1452};
    for (size_t i = 0; i < sizeof mtu / sizeof mtu[0]; i++) {
        pair p;
        start(&p, mtu[i]);
        connect_ends(&p);
        assert_int_equal(1200, size_of(&p, 0));
        uint64_t took = pair_finish(&p, pair_ask(&p, 5000000), 10000000);
        assert_true(took < 2700000); /* 2 s by the link's rate: a search of some round trips does not delay it */
        assert_in_range(size_of(&p, 0), mtu[i] < 1208 ? 1200 : mtu[i] - 7, mtu[i]);
        /* Lost MTU probes are no congestion. */
        assert_true(p.sc->path[0]->cc.ops->ssthresh(p.sc->path[0]->cc.state) == UINT64_MAX || mtu[i] == 1452 ||
                    pair_server_path(&p, 0).cwnd_bytes > 60000);
        pair_free(&p);
    }
}

PAIR_TEST(a_path_that_becomes_a_black_hole_for_large_packets_is_left_at_1200) {
    size_t i = begin_download(p);
    p->link[0].mtu = 1372;
    assert_true(pair_finish(p, i, 15000000) != UINT64_MAX);
    assert_in_range(size_of(p, 0), 1365, 1372);
}

PAIR_TEST(an_outage_leaves_the_size_as_it_is) {
    size_t i = begin_download(p);
    for (int k = 0; k < 3; k++) {
        pair_set_dark(&p->link[0], true);
        pair_run(p, 700000);
        pair_set_dark(&p->link[0], false);
        pair_run(p, 700000);
        assert_int_equal(1452, size_of(p, 0));
    }
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
}

PAIR_TEST(each_path_has_a_size_of_its_own) {
    start(p, 1452);
    p->link_count = 2;
    p->link[1].mtu = 1300;
    pair_multipath(p, "roundrobin", "none");
    connect_ends(p);
    assert_true(pair_finish(p, pair_ask(p, 8000000), 10000000) != UINT64_MAX);
    assert_int_equal(1452, size_of(p, 0));
    assert_in_range(size_of(p, 1), 1293, 1300);
}

PAIR_TEST(a_path_that_moves_to_another_host_starts_anew) {
    size_t i = begin_download(p);
    p->link[0].nat = pair_addr(77, 4001);
    p->link[0].mtu = 1250;
    assert_true(pair_finish(p, i, 15000000) != UINT64_MAX);
    assert_in_range(size_of(p, 0), 1243, 1250);
}

PAIR_TEST(what_the_kernel_refuses_lowers_the_size_at_once) {
    size_t i = begin_download(p);
    p->link[0].mtu = 1372;
    xl_datagram refused = {.local = p->link[0].server, .remote = p->link[0].client, .len = 1452};
    xl_endpoint_too_large(p->server, &refused, p->now);
    assert_int_equal(1200, size_of(p, 0));
    assert_true(pair_finish(p, i, 15000000) != UINT64_MAX);
    assert_in_range(size_of(p, 0), 1365, 1372);
}

TEST_MAIN(NULL, NULL)
