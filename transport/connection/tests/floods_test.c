/* A peer with valid keys that sends many frames of one kind: memory, answers and state stay bounded, and the connection
 * either goes on or is closed with the error that the RFCs name. */
#include "testing/attack.h"

#define PACKETS      400
#define MEMORY_BYTES 65536 /* most that a flood may hold, ledgers of received and acknowledged packets included */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t memory(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

typedef void (*put_fn)(attack *, unsigned packet);

/* Acknowledges all that the victim has sent on path 0, except a number that it skipped. */
static void put_acks(attack *a) {
    xl_space *space = victim(a)->path[0]->space;
    uint64_t pn = space->ledger.next_pn - 1;
    xl_sent_packet *newest = xl_ledger_find(&space->ledger, pn);
    xl_ack_range range = {pn, pn};
    while (range.smallest > 0 && pn - range.smallest < 20 &&
           (newest = xl_ledger_find(&space->ledger, range.smallest - 1)) && newest->state != XL_SENT_SKIPPED)
        range.smallest--;
    newest = xl_ledger_find(&space->ledger, pn);
    if (newest && newest->state != XL_SENT_SKIPPED)
        xl_frame_put_ack(&a->w, &range, 1, 0, XL_FRAME_PATH_ACK, 0, false, NULL);
}

/* Returns the bytes that the victim, a server, sends because of the flood. They do not reach the genuine client, which
 * never sent such frames; the flood acknowledges them in its place. */
static uint64_t flood(attack *a, put_fn put) {
    begin(a, true, XL_DIALECT_IETF, 2);
    pair_run(&a->p, 1000000);
    uint64_t before = a->p.link[0].bytes[1] + a->p.link[1].bytes[1];
    size_t memory_before = memory();
    a->p.link[0].dark[1] = a->p.link[1].dark[1] = true;
    for (unsigned i = 0; i < PACKETS && xl_conn_is_live(victim(a)); i++) {
        put(a, i);
        put_acks(a);
        deliver(a);
        pair_run(&a->p, 1000);
    }
    assert_true(memory() <= memory_before + MEMORY_BYTES);
    return a->p.link[0].bytes[1] + a->p.link[1].bytes[1] - before;
}

static void put_paths_blocked(attack *a, unsigned packet) {
    (void)packet;
    for (int i = 0; i < 100; i++)
        XL_FRAME_PUT(&a->w, XL_FRAME_PATHS_BLOCKED, 0, victim(a)->path_ids->local_max);
}

static void put_cids_blocked(attack *a, unsigned packet) {
    (void)packet;
    for (uint64_t id = 0; id < XL_PATH_IDS_MAX; id++)
        for (int i = 0; i < 10; i++)
            XL_FRAME_PUT(&a->w, XL_FRAME_PATH_CIDS_BLOCKED, id,
                         xl_path_ids_find(victim(a)->path_ids, id)->local->next_sequence);
}

static void put_max_path_id(attack *a, unsigned packet) {
    for (unsigned i = 0; i < 100; i++)
        XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, XL_PATH_IDS_MAX - 1 + 100 * packet + i);
}

static void put_last_max_path_id(attack *a, unsigned packet) {
    (void)packet;
    XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, XL_PATH_ID_MAX);
}

/* Frames that announce limits, or being blocked by one, cost only their acknowledgements. */
ATTACK_TEST(announcements_of_limits_cost_nothing_but_acknowledgements) {
    static const put_fn puts[] = {put_paths_blocked, put_cids_blocked, put_max_path_id, put_last_max_path_id};
    for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++) {
        assert_in_range(flood(a, puts[i]), 1, PACKETS * 60);
        assert_true(xl_conn_is_live(victim(a)));
        assert_true(victim(a)->path_ids->local_max < 2 * XL_PATH_IDS_MAX);
    }
}

/* Each retires all before it, so that there are never more active ones than the limit. */
static void put_new_cids(attack *a, unsigned packet) {
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t sequence = 10 + 20 * packet + i;
        xl_cid cid = {.len = 8, .id = {0xee, (uint8_t)(sequence >> 8), (uint8_t)sequence}};
        xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 2, sequence, sequence, &cid, token);
    }
}

ATTACK_TEST(connection_ids_that_retire_each_other_keep_a_bounded_queue) {
    uint64_t sent = flood(a, put_new_cids);
    assert_in_range(sent, 1, PACKETS * 1500);
    assert_true(!xl_conn_is_live(victim(a)) || xl_path_ids_find(victim(a)->path_ids, 2)->remote->retire_count <= 48);
}

static void put_many_new_cids(attack *a, unsigned packet) {
    for (uint64_t id = 2; id < XL_PATH_IDS_MAX; id++)
        for (uint8_t i = 0; i < 4; i++) {
            uint64_t sequence = 1 + 4 * packet + i;
            xl_cid cid = {.len = 8, .id = {0xdd, (uint8_t)id, (uint8_t)(sequence >> 8), (uint8_t)sequence}};
            xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, id, sequence, 0, &cid, token);
        }
}

ATTACK_TEST(connection_ids_beyond_the_limit_of_a_path_end_the_connection) {
    flood(a, put_many_new_cids);
    assert_int_equal(victim(a)->closing.code, XL_QERR_CONNECTION_ID_LIMIT);
}

/* Abandons all path IDs but those in use, again and again. Each is released three PTOs after it was abandoned. */
static void put_abandons(attack *a, unsigned packet) {
    (void)packet;
    const xl_path_ids *ids = victim(a)->path_ids;
    for (uint64_t id = 2; id <= ids->local_max; id++)
        for (int i = 0; i < 5; i++)
            XL_FRAME_PUT(&a->w, XL_FRAME_PATH_ABANDON, id, id);
}

ATTACK_TEST(abandoning_all_unused_paths_is_answered_once_for_each) {
    assert_in_range(flood(a, put_abandons), 1, PACKETS * 100);
    const xl_path_ids *ids = victim(a)->path_ids;
    assert_true(xl_conn_is_live(victim(a)));
    assert_in_range(ids->local_max, XL_PATH_IDS_MAX, 200);
    assert_int_equal(victim(a)->path_count, 2);
}

static void put_challenges(attack *a, unsigned packet) {
    for (unsigned i = 0; i < 100; i++)
        xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){(uint8_t)packet, (uint8_t)i});
}

/* On both paths; no answer is acknowledged. */
ATTACK_TEST(challenges_on_all_paths_get_no_more_than_the_windows_allow) {
    begin(a, true, XL_DIALECT_IETF, 2);
    pair_run(&a->p, 1000000);
    for (int i = 0; i < 2; i++)
        a->p.link[i].dark[1] = true;
    uint64_t before = a->p.link[0].bytes[1] + a->p.link[1].bytes[1];
    xl_cid cid[2];
    for (uint64_t id = 0; id < 2; id++)
        cid[id] = xl_path_ids_find(a->p.sc->path_ids, id)->local->at[0].cid;
    for (unsigned i = 0; i < PACKETS; i++) {
        put_challenges(a, i);
        deliver_to(a, &cid[i % 2], i % 2, &a->p.link[i % 2]);
        pair_flush(&a->p);
    }
    for (int i = 0; i < 2; i++) /* a few answers may exceed the window, for honest peers when it is full */
        assert_in_range(a->p.sc->path[i]->flight.bytes, 2400, xl_path_window(a->p.sc->path[i]) + 10 * PAIR_MTU);
    /* The rest is acknowledgements. */
    assert_true(a->p.link[0].bytes[1] + a->p.link[1].bytes[1] - before < PACKETS * 300);
}

/* Every other packet number of the second path. */
ATTACK_TEST(gaps_in_packet_numbers_of_a_path_are_kept_up_to_a_limit) {
    begin(a, true, XL_DIALECT_IETF, 2);
    pair_run(&a->p, 1000000);
    xl_cid cid = xl_path_ids_find(a->p.sc->path_ids, 1)->local->at[0].cid;
    for (unsigned i = 0; i < PACKETS; i++) {
        xl_write_varint(&a->w, XL_FRAME_PING);
        deliver_to(a, &cid, 1, &a->p.link[1]);
        a->pn += 3;
    }
    assert_in_range(a->p.sc->path[1]->space->received.count, 32, 64);
}

/* A receiver that acknowledges everything up to the newest packet, even what did not arrive, so that the sender would
 * not slow down. */
ATTACK_TEST(acknowledgements_of_what_did_not_arrive_are_found_out_on_each_path) {
    for (int path = 0; path < 2; path++) {
        begin(a, true, XL_DIALECT_IETF, 2);
        pair_run(&a->p, 300000);
        pair_ask(&a->p, 20000000);
        for (int i = 0; i < 20000 && xl_conn_is_live(a->p.sc); i++) {
            const xl_path *p = a->p.sc->path[path];
            uint64_t newest = p->space->ledger.next_pn - 1;
            xl_ack_range range = {newest > 40 ? newest - 40 : 0, newest};
            xl_frame_put_ack(&a->w, &range, 1, 0, XL_FRAME_PATH_ACK, p->cids.remote_path_id, false, NULL);
            deliver(a);
            pair_step(&a->p);
        }
        assert_int_equal(a->p.sc->closing.code, XL_QERR_PROTOCOL_VIOLATION);
    }
}

static void put_immediate_acks(attack *a, unsigned packet) {
    (void)packet;
    for (int i = 0; i < 500; i++)
        xl_write_varint(&a->w, XL_FRAME_PING);
}

ATTACK_TEST(many_frames_in_a_packet_are_acknowledged_once) {
    assert_in_range(flood(a, put_immediate_acks), 1, PACKETS * 60);
}

/* RFC 9000 section 19.13. */
ATTACK_TEST(a_blocked_stream_that_the_peer_cannot_send_on_is_an_error) {
    static const struct {
        uint64_t stream, outcome;
    } cases[] = {{3, XL_QERR_STREAM_STATE}, /* the server's own unidirectional one */
                 {1, XL_QERR_STREAM_STATE}, /* the server never opened it */
                 {4 * 1000, XL_QERR_STREAM_LIMIT},
                 {0, STILL_OPEN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(a, true, XL_DIALECT_IETF, 1);
        XL_FRAME_PUT(&a->w, XL_FRAME_STREAM_DATA_BLOCKED, cases[i].stream, 100);
        assert_int_equal(outcome(a), cases[i].outcome);
    }
}

TEST_MAIN(NULL, NULL)
