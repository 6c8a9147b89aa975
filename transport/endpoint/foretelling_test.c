/* The random choices of an endpoint that a peer sees reveal nothing of those that it does not see. The peer here knows
 * the generator xoshiro256** (Blackman, Vigna 2018), of which it needs four outputs in a row: if an endpoint drew from
 * it, the peer could foretell each later choice. */
#include "testing/pair.h"
#include "connection/path_table.h"
#include "wire/frame.h"

#define GUESSES 64 /* in one packet */

static uint64_t word_of(const uint8_t *bytes) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | bytes[i];
    return word;
}

/* Returns the state from four outputs in a row; the next xl_random_next() returns the fifth. An output yields the
 * second word of the state, rotated(output / 9, -7) / 5 modulo 2^64; four of these determine the others. */
static xl_random foreteller_of(const uint64_t output[4]) {
    uint64_t a[4];
    for (int i = 0; i < 4; i++)
        a[i] = xl_random_rotate(output[i] * UINT64_C(0x8e38e38e38e38e39), 57) * UINT64_C(0xcccccccccccccccd);
    uint64_t s2 = a[0] ^ a[1] ^ (a[0] << 17), s0 = a[1] ^ a[2] ^ s2; /* with the second output */
    uint64_t s2_next = s2 ^ s0 ^ (a[1] << 17), s0_next = a[2] ^ a[3] ^ s2_next;
    xl_random f = {{s0, a[1], s2, s0_next ^ s0 ^ a[1]}};
    for (int i = 0; i < 3; i++)
        xl_random_next(&f);
    return f;
}

/* Returns the bytes that the server sent to the first link's address. */
static uint64_t sent_to_victim(const pair *p) {
    return p->link[0].bytes[1];
}

/* Sends one packet of the client with `count` PATH_RESPONSE frames, or a PING. */
static void send_guesses(pair *p, const uint64_t *guess, size_t count) {
    uint8_t buf[PAIR_MTU + 64], data[8];
    xl_builder b;
    xl_path *path = p->cc->path[0];
    xl_conn_enter(p->cc, p->now);
    assert_true(xl_builder_begin(&b, p->cc, path, XL_LEVEL_APP, buf, PAIR_MTU));
    xl_write_varint(&b.w, XL_FRAME_PING);
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < 8; k++)
            data[k] = (uint8_t)(guess[i] >> (8 * k));
        xl_frame_put_path(&b.w, XL_FRAME_PATH_RESPONSE, data);
    }
    b.ack_eliciting = true;
    size_t len = xl_builder_finish(&b);
    assert_true(len > 0);
    pair_enqueue(p, true, &(xl_datagram){.local = path->local, .remote = path->remote, .len = len}, buf);
}

/* A client knows eight connection IDs of the server, asks for a large file from a forged address, where it gets
 * nothing, and answers the challenge without having seen it. */
PAIR_TEST(the_servers_cids_do_not_foretell_its_path_challenge) {
    pair_init(p, 900, 1, 10000);
    pair_settle(p, 100000);
    assert_true(p->cc->remote_cids.count >= 6);
    uint64_t seen[5], guess[GUESSES];
    for (size_t i = 0; i < 5; i++) {
        const xl_cid_entry *e = xl_cids_by_sequence(&p->cc->remote_cids, i + 1);
        assert_non_null(e);
        assert_int_equal(8, e->cid.len);
        seen[i] = word_of(e->cid.id);
    }
    xl_random f = foreteller_of(seen);
    for (size_t i = 0; i < GUESSES; i++)
        guess[i] = xl_random_next(&f);

    pair_ask(p, 30000000);
    pair_run(p, 5000); /* the request is on its way, and the answer goes … */
    p->link[0].nat = pair_addr(66, 6666);
    p->link[0].dark[1] = true;
    p->link[0].bytes[0] = p->link[0].bytes[1] = 0;
    send_guesses(p, NULL, 0);
    pair_run(p, 12000);
    assert_true(xl_addr_equal(&p->sc->path[0]->remote, &p->link[0].nat)); /* … to the victim */
    assert_true(p->sc->path[0]->validation.is_outstanding);
    send_guesses(p, guess, GUESSES);
    pair_run(p, 12000);
    assert_false(p->sc->path[0]->validation.is_done && xl_addr_equal(&p->sc->path[0]->remote, &p->link[0].nat));
    pair_run(p, 5000000);
    assert_true(sent_to_victim(p) > 0);
    assert_true(sent_to_victim(p) <= 3 * p->link[0].bytes[0]);
    assert_int_not_equal(guess[0], seen[4]);
}

/* Gets a stateless reset of the server for a packet of no connection. */
static size_t get_reset(pair *p, uint8_t *out, size_t cap) {
    uint8_t data[100] = {0x40, 1, 2, 3, 4, 5, 6, 7, 8};
    xl_datagram to, in = {.local = p->link[0].server, .remote = p->link[0].client, .len = sizeof data};
    xl_endpoint_receive(p->server, &in, data, p->now);
    return xl_endpoint_transmit(p->server, out, cap, &to, p->now);
}

PAIR_TEST(a_resets_padding_does_not_foretell_the_rest_of_it) {
    pair_init(p, 901, 1, 10000);
    p->server = xl_endpoint_new(&p->server_config, p->now, &(int){0});
    uint8_t reset[PAIR_MTU];
    size_t len = 0;
    for (int i = 0; i < 100 && len < 6 * 8 + 16 - 4; i++)
        len = get_reset(p, reset, sizeof reset);
    assert_true(len >= 6 * 8 + 12); /* the first word is not whole: two bits of it are the header's */
    uint64_t word[5];
    for (size_t i = 0; i < 5; i++)
        word[i] = word_of(reset + 8 * (i + 1));
    xl_random f = foreteller_of(word);
    uint64_t foretold = xl_random_next(&f);
    size_t known = len - 16 - 40; /* bytes of the last word that are padding */
    for (size_t i = known; i < 8; i++)
        word[4] &= ~(UINT64_C(0xff) << (8 * i)), foretold &= ~(UINT64_C(0xff) << (8 * i));
    assert_true(known >= 4);
    assert_true(foretold != word[4]);
}

/* ---- Purposes and endpoints ---- */

static bool contains(const uint8_t *text, size_t len, const uint8_t *part, size_t part_len) {
    return memmem(text, len, part, part_len) != NULL;
}

PAIR_TEST(a_reset_has_nothing_of_the_keys_in_it) {
    pair_init(p, 902, 1, 10000);
    p->server = xl_endpoint_new(&p->server_config, p->now, &(int){0});
    const xl_static_keys *k = &p->server->keys;
    for (int i = 0; i < 50; i++) {
        uint8_t reset[PAIR_MTU];
        size_t len = get_reset(p, reset, sizeof reset);
        assert_true(len >= 21 && len < 100);
        for (size_t at = 0; at + 4 <= XL_RANDOM_KEY_BYTES; at += 4) {
            assert_false(contains(reset, len, p->server_config.random_key + at, 4));
            assert_false(contains(reset, len, k->reset + at, 4));
            assert_false(contains(reset, len, k->retry + at, 4));
        }
        assert_false(contains(reset, len, (const uint8_t *)&k->cid_hash, 4));
    }
}

/* The choices of a pair's server for its first connection. */
typedef struct {
    xl_cid cid[6];
    uint8_t token[6][16], challenge[8], reset_key[XL_STATIC_SECRET_BYTES];
    unsigned until_skip;
} choices;

static choices choose(pair *p, unsigned strays) {
    choices made = {0};
    uint8_t reset[PAIR_MTU];
    pair_connect(p);
    for (unsigned i = 0; i < strays; i++)
        assert_true(get_reset(p, reset, sizeof reset) > 0);
    pair_handshake(p);
    pair_run(p, 100000);
    for (size_t i = 0; i < 6; i++) {
        made.cid[i] = p->sc->local_cids.at[i].cid;
        memcpy(made.token[i], p->sc->local_cids.at[i].reset_token, 16);
    }
    made.until_skip = p->sc->until_skip;
    xl_conn_enter(p->sc, p->now);
    xl_conn_start_challenge(p->sc, p->sc->path[0]);
    memcpy(made.challenge, p->sc->path[0]->validation.challenge, 8);
    memcpy(made.reset_key, p->server->keys.reset, sizeof made.reset_key);
    return made;
}

/* If one purpose draws more, the streams of the others stay the same. */
TEST(resets_that_were_sent_change_no_other_choice) {
    pair quiet, asked;
    pair_init(&quiet, 903, 1, 10000);
    pair_init(&asked, 903, 1, 10000);
    choices a = choose(&quiet, 0), b = choose(&asked, 37);
    for (size_t i = 0; i < 6; i++)
        assert_true(xl_cid_equal(&a.cid[i], &b.cid[i]));
    assert_memory_equal(a.challenge, b.challenge, 8);
    assert_int_equal(a.until_skip, b.until_skip);
    pair_free(&quiet);
    pair_free(&asked);
}

TEST(two_servers_share_no_choice) {
    pair p, q;
    pair_init(&p, 904, 1, 10000);
    pair_init(&q, 904, 1, 10000);
    q.server_config.random_key[31] ^= 1; /* the smallest difference */
    choices a = choose(&p, 0), b = choose(&q, 0);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++) {
            assert_false(xl_cid_equal(&a.cid[i], &b.cid[k]));
            assert_memory_not_equal(a.token[i], b.token[k], 8);
        }
    assert_memory_not_equal(a.challenge, b.challenge, 8);
    for (size_t i = 0; i < XL_STATIC_SECRET_BYTES; i += 8)
        assert_memory_not_equal(a.reset_key + i, b.reset_key + i, 8);
    pair_free(&p);
    pair_free(&q);
}

PAIR_TEST(an_endpoint_without_a_key_is_refused) {
    int error = 0;
    pair_init(p, 905, 1, 10000);
    memset(p->server_config.random_key, 0, sizeof p->server_config.random_key);
    assert_null(xl_endpoint_new(&p->server_config, p->now, &error));
    assert_int_equal(XL_ERR_ARGUMENT, error);
    p->server_config.random_key[17] = 1;
    p->server = xl_endpoint_new(&p->server_config, p->now, &error);
    assert_non_null(p->server);
}

TEST_MAIN(NULL, NULL)
