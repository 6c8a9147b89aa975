#include "tests/unit.h"
#include "path/cids.h"
#include "wire/frame.h"

#define LIMIT 4

static xl_cid cid_of(uint64_t sequence) {
    return (xl_cid){8, {0xc1, 0xd0, (uint8_t)(sequence >> 8), (uint8_t)sequence}};
}

static uint64_t learn_as(xl_cids *cids, uint64_t sequence, uint64_t retire_prior_to, uint64_t name,
                         bool *in_use_retired) {
    xl_cid cid = cid_of(name);
    uint8_t token[16] = {(uint8_t)name};
    return xl_cids_learn(cids, sequence, retire_prior_to, &cid, token, LIMIT, in_use_retired);
}

static uint64_t learn(xl_cids *cids, uint64_t sequence, uint64_t retire_prior_to) {
    bool in_use_retired;
    return learn_as(cids, sequence, retire_prior_to, sequence, &in_use_retired);
}

static bool is_queued(const xl_cids *cids, uint64_t sequence) {
    for (size_t i = 0; i < cids->retire_count; i++)
        if (cids->retire_queue[i] == sequence)
            return true;
    return false;
}

/* The peer's handshake CID, in use, and 1, 2, 3 beside it. */
static xl_cids remote_with_four(void) {
    xl_cids cids;
    xl_cids_init(&cids);
    bool in_use_retired;
    xl_cid first = cid_of(0);
    assert_int_equal(xl_cids_learn(&cids, 0, 0, &first, NULL, LIMIT, &in_use_retired), 0);
    assert_int_equal(xl_cids_take_unused(&cids)->sequence, 0);
    for (uint64_t s = 1; s <= 3; s++)
        assert_int_equal(learn(&cids, s, 0), 0);
    return cids;
}

#define CIDS_TEST(name) TEST_MADE(name, xl_cids, cids, xl_cids_init, (void))

CIDS_TEST(issued_cids_count_up_until_full) {
    const uint8_t token[16] = {7};
    for (uint64_t i = 0; i < XL_CIDS_MAX; i++) {
        xl_cid cid = cid_of(i);
        xl_cid_entry *entry = xl_cids_issue(cids, &cid, i == 0 ? NULL : token);
        assert_int_equal(entry->sequence, i);
        assert_int_equal(entry->has_token, i != 0);
    }
    xl_cid cid = cid_of(99);
    assert_null(xl_cids_issue(cids, &cid, token));
    cid = cid_of(5);
    assert_int_equal(xl_cids_find(cids, &cid)->sequence, 5);
    assert_true(xl_cid_equal(&xl_cids_by_sequence(cids, 7)->cid, &(xl_cid){8, {0xc1, 0xd0, 0, 7}}));
    cid.len = 7;
    assert_null(xl_cids_find(cids, &cid));
}

CIDS_TEST(the_oldest_that_the_peer_left_is_asked_back) {
    const uint8_t token[16] = {7};
    for (uint64_t i = 0; i < 3; i++) {
        xl_cid cid = cid_of(i);
        xl_cids_issue(cids, &cid, token)->in_use = i < 2;
    }
    assert_true(xl_cids_has_spare(cids));
    xl_cids_by_sequence(cids, 2)->in_use = true;
    assert_false(xl_cids_has_spare(cids));
    assert_false(xl_cids_ask_back(cids, 0)); /* it uses that one */
    assert_int_equal(xl_cids_active(cids), 3);
    assert_true(xl_cids_ask_back(cids, 2));
    assert_int_equal(cids->retire_prior_to, 1);
    assert_int_equal(xl_cids_active(cids), 2);
    assert_int_equal(cids->count, 3); /* its late packets still come */
    assert_true(xl_cids_ask_back(cids, 2));
    assert_false(xl_cids_ask_back(cids, 2));
    assert_int_equal(cids->retire_prior_to, 2);
}

CIDS_TEST(the_peer_retires_only_what_was_issued) {
    const uint8_t token[16] = {0};
    for (uint64_t i = 0; i < 3; i++) {
        xl_cid cid = cid_of(i);
        xl_cids_note_announced(cids, xl_cids_issue(cids, &cid, token));
    }
    xl_cid gone;
    bool was_present;
    assert_int_equal(xl_cids_retired_by_peer(cids, 3, &gone, &was_present), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(xl_cids_retired_by_peer(cids, 1, &gone, &was_present), 0);
    assert_true(was_present);
    assert_true(xl_cid_equal(&gone, &(xl_cid){8, {0xc1, 0xd0, 0, 1}}));
    assert_null(xl_cids_by_sequence(cids, 1));
    assert_non_null(xl_cids_by_sequence(cids, 2));
    assert_int_equal(xl_cids_retired_by_peer(cids, 1, &gone, &was_present), 0); /* the frame came twice */
    assert_false(was_present);
    xl_cid next = cid_of(3); /* a retired number is not issued again */
    assert_int_equal(xl_cids_issue(cids, &next, token)->sequence, 3);
    assert_int_equal(xl_cids_retired_by_peer(cids, 3, &gone, &was_present), XL_QERR_PROTOCOL_VIOLATION); /* not sent */
    assert_false(was_present);
    xl_cids_by_sequence(cids, 3)->was_sent = true; /* and lost, it seems */
    assert_int_equal(xl_cids_retired_by_peer(cids, 3, &gone, &was_present), 0);
}

CIDS_TEST(unused_cids_are_taken_in_order_of_sequence) {
    assert_null(xl_cids_take_unused(cids));
    assert_int_equal(learn(cids, 2, 0), 0);
    assert_int_equal(learn(cids, 0, 0), 0);
    assert_int_equal(learn(cids, 1, 0), 0);
    for (uint64_t s = 0; s < 3; s++) {
        xl_cid_entry *entry = xl_cids_take_unused(cids);
        assert_int_equal(entry->sequence, s);
        assert_true(entry->in_use);
    }
    assert_null(xl_cids_take_unused(cids));
}

TEST(equal_duplicates_are_fine_and_contradictions_are_violations) {
    xl_cids cids = remote_with_four();
    bool in_use_retired;
    assert_int_equal(learn(&cids, 2, 0), 0);
    assert_int_equal(cids.count, 4);
    assert_int_equal(learn_as(&cids, 2, 0, 77, &in_use_retired), XL_QERR_PROTOCOL_VIOLATION); /* other CID */
    assert_int_equal(learn_as(&cids, 9, 0, 2, &in_use_retired), XL_QERR_PROTOCOL_VIOLATION);  /* other number */
    xl_cid cid = cid_of(2);
    const uint8_t other_token[16] = {99};
    assert_int_equal(xl_cids_learn(&cids, 2, 0, &cid, other_token, LIMIT, &in_use_retired), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(learn(&cids, 4, 5), XL_QERR_FRAME_ENCODING);
    assert_int_equal(cids.count, 4);
    assert_int_equal(cids.retire_count, 0);
}

TEST(the_active_connection_id_limit_holds) {
    xl_cids cids = remote_with_four();
    assert_int_equal(learn(&cids, 4, 0), XL_QERR_CONNECTION_ID_LIMIT);
    cids = remote_with_four();
    assert_int_equal(learn(&cids, 4, 1), 0); /* 0 makes room for 4 */
    assert_int_equal(cids.count, 4);
    cids = remote_with_four();
    xl_cids_retire(&cids, 3);
    assert_int_equal(learn(&cids, 4, 0), 0);
    /* The table itself is a limit too. */
    xl_cids_init(&cids);
    bool in_use_retired;
    for (uint64_t s = 0; s <= XL_CIDS_MAX; s++) {
        xl_cid cid = cid_of(s);
        const uint8_t token[16] = {0};
        assert_int_equal(xl_cids_learn(&cids, s, 0, &cid, token, 1000, &in_use_retired),
                         s < XL_CIDS_MAX ? 0 : XL_QERR_CONNECTION_ID_LIMIT);
    }
}

TEST(retire_prior_to_queues_those_below_and_tells_of_those_in_use) {
    xl_cids cids = remote_with_four();
    bool in_use_retired = false;
    assert_int_equal(learn_as(&cids, 4, 2, 4, &in_use_retired), 0);
    assert_true(in_use_retired);
    assert_int_equal(cids.count, 3);
    assert_int_equal(cids.retire_count, 2);
    assert_true(is_queued(&cids, 0) && is_queued(&cids, 1));
    assert_null(xl_cids_by_sequence(&cids, 0));
    assert_int_equal(learn_as(&cids, 5, 3, 5, &in_use_retired), 0);
    assert_false(in_use_retired); /* 2 was not in use */
    assert_true(is_queued(&cids, 2));
    assert_int_equal(learn_as(&cids, 6, 1, 6, &in_use_retired), 0); /* a smaller one, arrived late, has no effect */
    assert_int_equal(cids.retire_prior_to, 3);
    assert_int_equal(cids.retire_count, 3);
}

CIDS_TEST(a_late_cid_below_retire_prior_to_is_retired_at_once) {
    assert_int_equal(learn(cids, 5, 5), 0);
    assert_int_equal(learn(cids, 3, 0), 0);
    assert_null(xl_cids_by_sequence(cids, 3));
    assert_int_equal(cids->retire_count, 1);
    assert_int_equal(cids->retire_queue[0], 3);
    cids->retire_count = 0; /* sent */
    assert_int_equal(learn(cids, 3, 0), 0);
    assert_int_equal(cids->retire_count, 0); /* "unless it has already done so" */
}

TEST(a_late_copy_of_the_frame_does_not_revive_a_retired_cid) {
    xl_cids cids = remote_with_four();
    xl_cids_retire(&cids, 2);
    assert_true(is_queued(&cids, 2));
    cids.retire_count = 0; /* sent */
    assert_int_equal(learn(&cids, 2, 0), 0);
    assert_null(xl_cids_by_sequence(&cids, 2));
    xl_cids_retire(&cids, 2); /* the packet with the frame was lost */
    xl_cids_retire(&cids, 2);
    assert_int_equal(cids.retire_count, 1);
    xl_cids_retire(&cids, 1000); /* never known */
    assert_int_equal(cids.retire_count, 1);
    xl_cids_retire(&cids, 3);
    xl_cids_retire(&cids, 3); /* queued only once, also behind others */
    assert_int_equal(cids.retire_count, 2);
    assert_int_equal(learn(&cids, 3, 0), 0);
    assert_null(xl_cids_by_sequence(&cids, 3));
    assert_non_null(xl_cids_by_sequence(&cids, 1)); /* in the middle between what went */
}

TEST(a_peer_cannot_grow_the_retire_queue_without_end) {
    xl_cids cids = remote_with_four();
    uint64_t error = 0;
    uint64_t s = 4;
    for (; s < 1000 && error == 0; s++)
        error = learn(&cids, s, s); /* each retires all before it, and no RETIRE_CONNECTION_ID is sent */
    assert_int_equal(error, XL_QERR_CONNECTION_ID_LIMIT);
    assert_true(s > 4 * LIMIT);
    for (uint64_t below = 0; below < s - 2; below++) /* of the accepted ones none was forgotten */
        assert_true(is_queued(&cids, below));
}

TEST_MAIN(NULL, NULL)
