/* Packet numbers that begin at random (xl_config.random_packet_numbers). */
#include "testing/attack.h"

#define SPACES      (XL_LEVEL_COUNT + 1) /* of one side: one per level, and the second path's */
#define FIRST_BELOW (1 << 14)

static void start(pair *p, uint64_t seed, xl_dialect dialect, bool is_random) {
    pair_init(p, seed, 2, 5000);
    pair_multipath(p, "roundrobin", "none");
    p->server_config.scheme.dialect = dialect;
    p->client_config.random_packet_numbers = p->server_config.random_packet_numbers = is_random;
    p->link[0].loss = p->link[1].loss = 0.05;
    p->link[0].reorder = p->link[1].reorder = 0.05;
    pair_establish(p);
    size_t asked = pair_ask(p, 500000);
    pair_run(p, 20000000);
    assert_true(p->request[asked].done);
    assert_true(xl_conn_is_live(p->cc) && xl_conn_is_live(p->sc));
}

static void first_numbers(const xl_connection *c, uint64_t first[SPACES]) {
    for (int i = 0; i < XL_LEVEL_COUNT; i++)
        first[i] = c->space[i].ledger.start;
    assert_true(c->path[1]->owns_space);
    first[XL_LEVEL_COUNT] = c->path[1]->space->ledger.start;
}

TEST(they_begin_at_random_in_every_space_of_both_sides) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        pair p;
        uint64_t first[2 * SPACES];
        start(&p, seed, seed % 2 ? XL_DIALECT_XLINK : XL_DIALECT_IETF, true);
        first_numbers(p.cc, first);
        first_numbers(p.sc, first + SPACES);
        uint64_t sum = 0;
        for (int i = 0; i < 2 * SPACES; i++) {
            assert_true(first[i] < FIRST_BELOW);
            for (int j = 0; j < i; j++)
                assert_int_not_equal(first[i], first[j]);
            sum += first[i];
        }
        assert_in_range(sum / (2 * SPACES), FIRST_BELOW / 4, FIRST_BELOW / 4 * 3);
        pair_free(&p);
    }
}

PAIR_TEST(they_begin_at_zero_otherwise) {
    uint64_t first[SPACES];
    start(p, 1, XL_DIALECT_XLINK, false);
    first_numbers(p->cc, first);
    for (int i = 0; i < SPACES; i++)
        assert_int_equal(first[i], 0);
}

static uint64_t error_of_ack_from(int64_t below_first) {
    attack a = {.to_server = true};
    start(&a.p, 3, XL_DIALECT_XLINK, true);
    a.w = xl_writer_of(a.frames, sizeof a.frames);
    const xl_ledger *sent = &a.p.sc->space[XL_LEVEL_APP].ledger;
    const uint64_t largest = sent->largest_acked, first = sent->start;
    xl_write_varint(&a.w, XL_FRAME_ACK);
    xl_write_varint(&a.w, first); /* largest acknowledged: the first packet */
    xl_write_varint(&a.w, 0);
    xl_write_varint(&a.w, 0);
    xl_write_varint(&a.w, (uint64_t)below_first);
    assert_true(largest != UINT64_MAX && largest > first);
    const uint64_t error = outcome(&a);
    attack_free(&a);
    return error;
}

TEST(acknowledging_a_lower_number_is_a_violation) {
    assert_int_equal(error_of_ack_from(0), STILL_OPEN);
    assert_int_equal(error_of_ack_from(1), XL_QERR_PROTOCOL_VIOLATION);
}

TEST_MAIN(NULL, NULL)
