/* Path IDs: limits, unique IDs, connection IDs per path, abandonment. */

#include "tests/unit.h"
#include "path/path_ids.h"
#include "wire/frame.h"

typedef struct {
    xl_cids local, remote;
    xl_path_ids ids;
} book;

static void begin(book *b, uint64_t peer_max) {
    xl_cids_init(&b->local);
    xl_cids_init(&b->remote);
    xl_path_ids_init(&b->ids, &b->local, &b->remote, peer_max);
}

static xl_cid cid_of(uint8_t n) {
    return (xl_cid){.len = 4, .id = {n, n, n, n}};
}

TEST(path_0_is_the_handshakes_and_the_next_unused_id_is_1) {
    book b;
    begin(&b, 3);
    assert_ptr_equal(xl_path_ids_find(&b.ids, 0)->local, &b.local);
    assert_ptr_equal(xl_path_ids_find(&b.ids, 0)->remote, &b.remote);
    assert_int_equal(xl_path_ids_unused(&b.ids)->id, 1);
}

TEST(no_id_above_the_peers_limit_is_unused) {
    book b;
    begin(&b, 2);
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_equal(xl_path_ids_unused(&b.ids)->id, id);
        xl_path_ids_unused(&b.ids)->is_used = true;
    }
    assert_null(xl_path_ids_unused(&b.ids));
    assert_int_equal(xl_path_ids_raise_peer_max(&b.ids, 2, 3), 0);
    assert_int_equal(xl_path_ids_unused(&b.ids)->id, 3);
}

TEST(no_id_above_our_own_limit_is_unused_whatever_the_peer_allows) {
    book b;
    begin(&b, XL_PATH_ID_MAX);
    for (int i = 1; i < XL_PATH_IDS_MAX; i++)
        xl_path_ids_unused(&b.ids)->is_used = true;
    assert_null(xl_path_ids_unused(&b.ids));
}

TEST(a_named_id_above_our_limit_is_a_violation_and_a_forgotten_one_is_ignored) {
    book b;
    xl_path_id *p;
    begin(&b, 7);
    assert_int_equal(xl_path_ids_named(&b.ids, XL_PATH_IDS_MAX, &p), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(xl_path_ids_named(&b.ids, 3, &p), 0);
    assert_non_null(p);
    xl_path_ids_forget(&b.ids, p);
    assert_int_equal(xl_path_ids_named(&b.ids, 3, &p), 0);
    assert_null(p);
    assert_int_equal(xl_path_ids_named(&b.ids, XL_PATH_IDS_MAX, &p), 0);
    assert_non_null(p);
}

TEST(a_forgotten_id_raises_our_limit_and_never_comes_back) {
    book b;
    begin(&b, XL_PATH_ID_MAX);
    for (uint64_t id = 1; id < 1000; id++) {
        xl_path_id *p = xl_path_ids_unused(&b.ids);
        assert_int_equal(p->id, id);
        p->is_used = true;
        xl_path_ids_abandon(p, XL_QERR_NO_ERROR);
        xl_path_ids_forget(&b.ids, p);
        assert_true(b.ids.max_pending);
        assert_int_equal(b.ids.local_max, XL_PATH_IDS_MAX - 1 + id);
    }
}

TEST(the_last_id_of_all_is_followed_by_none) {
    book b;
    begin(&b, XL_PATH_ID_MAX);
    b.ids.local_max = XL_PATH_ID_MAX;
    for (int i = 1; i < XL_PATH_IDS_MAX; i++)
        xl_path_ids_forget(&b.ids, xl_path_ids_find(&b.ids, (uint64_t)i));
    assert_int_equal(b.ids.local_max, XL_PATH_ID_MAX);
    assert_false(b.ids.max_pending);
    assert_null(xl_path_ids_unused(&b.ids));
}

TEST(a_cid_belongs_to_one_path_id) {
    book b;
    bool retired;
    xl_path_id *of = NULL;
    const uint8_t token[16] = {1};
    xl_cid a = cid_of(1), c = cid_of(2);
    begin(&b, 7);
    xl_path_id *one = xl_path_ids_find(&b.ids, 1), *two = xl_path_ids_find(&b.ids, 2);
    xl_cids_issue(one->local, &a, token);
    xl_cids_issue(two->local, &c, token);
    assert_int_equal(xl_path_ids_find_local(&b.ids, &c, &of)->sequence, 0);
    assert_ptr_equal(of, two);
    assert_int_equal(xl_cids_learn(one->remote, 0, 0, &a, token, 8, &retired), 0);
    assert_true(xl_path_ids_has_elsewhere(&b.ids, 2, &a));
    assert_false(xl_path_ids_has_elsewhere(&b.ids, 1, &a));
}

TEST(an_abandoned_id_has_none_of_the_peers_cids_and_still_ours) {
    book b;
    bool retired;
    const uint8_t token[16] = {1};
    xl_cid a = cid_of(1), c = cid_of(2);
    begin(&b, 7);
    xl_path_id *p = xl_path_ids_unused(&b.ids);
    p->is_used = true;
    xl_cids_issue(p->local, &a, token);
    xl_cids_learn(p->remote, 0, 0, &c, token, 8, &retired);
    xl_path_ids_abandon(p, XL_QERR_PATH_UNSTABLE_OR_POOR);
    xl_path_ids_abandon(p, XL_QERR_NO_ERROR);
    assert_true(p->abandon_pending);
    assert_int_equal(p->abandon_error, XL_QERR_PATH_UNSTABLE_OR_POOR);
    assert_int_equal(p->remote->count, 0);
    assert_int_equal(p->remote->retire_count, 0); /* no frame says so */
    assert_int_equal(p->local->count, 1);
}

TEST(an_id_that_was_abandoned_before_its_first_use_is_not_used) {
    book b;
    begin(&b, 7);
    xl_path_ids_abandon(xl_path_ids_find(&b.ids, 1), XL_QERR_NO_ERROR);
    assert_int_equal(xl_path_ids_unused(&b.ids)->id, 2);
}

TEST(the_status_with_the_highest_sequence_number_counts) {
    book b;
    begin(&b, 7);
    xl_path_id *p = xl_path_ids_find(&b.ids, 0);
    xl_path_id_take_status(p, 0, XL_STATUS_STANDBY);
    assert_int_equal(p->status, XL_STATUS_STANDBY);
    xl_path_id_take_status(p, 2, XL_STATUS_AVAILABLE);
    assert_int_equal(p->status, XL_STATUS_AVAILABLE);
    xl_path_id_take_status(p, 1, XL_STATUS_STANDBY);
    xl_path_id_take_status(p, 2, XL_STATUS_STANDBY);
    assert_int_equal(p->status, XL_STATUS_AVAILABLE);
}

TEST(the_peers_limit_only_rises_and_stays_within_32_bits) {
    book b;
    begin(&b, 4);
    assert_int_equal(xl_path_ids_raise_peer_max(&b.ids, 4, 6), 0);
    assert_int_equal(xl_path_ids_raise_peer_max(&b.ids, 4, 5), 0); /* overtaken */
    assert_int_equal(b.ids.peer_max, 6);
    assert_int_equal(xl_path_ids_raise_peer_max(&b.ids, 4, 3), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(xl_path_ids_raise_peer_max(&b.ids, 4, (uint64_t)XL_PATH_ID_MAX + 1), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(b.ids.peer_max, 6);
}

/* PATH_CIDS_BLOCKED would have a number of more than 62 bits, and the frame would be cut. */
TEST(after_the_last_connection_id_of_a_path_none_is_asked_for) {
    static const uint8_t token[16] = {1};
    const uint64_t last = (UINT64_C(1) << 62) - 1;
    const xl_cid first = cid_of(1), second = cid_of(2);
    book b;
    bool in_use_retired;
    begin(&b, 7);
    xl_path_id *p = xl_path_ids_find(&b.ids, 1);
    assert_int_equal(xl_cids_learn(p->remote, last - 1, 0, &first, token, 4, &in_use_retired), 0);
    xl_path_id_note_blocked(p);
    assert_true(p->cids_blocked_pending);
    p->cids_blocked_pending = false; /* sent */
    assert_int_equal(xl_cids_learn(p->remote, last, 0, &second, token, 4, &in_use_retired), 0);
    xl_path_id_note_blocked(p);
    assert_false(p->cids_blocked_pending);
}

TEST_MAIN(NULL, NULL)
