#include "tests/unit.h"
#include "balancer/flows.h"

static const xl_addr local = {.family = 4, .ip = {192, 0, 2, 1}, .port = 443};
static unsigned closed;

static void on_closed(void *user, flow *f) {
    (void)user;
    (void)f;
    closed++;
}

static xl_addr client_of(unsigned i) {
    return (xl_addr){.family = 4, .ip = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}, .port = 999};
}

static flows *table_of(size_t most) {
    closed = 0;
    return flows_new(most, 1000, 5000, 42, on_closed, NULL);
}

/* Adds an established flow. */
static flow *established(flows *t, unsigned i, size_t server, uint64_t now) {
    xl_addr c = client_of(i);
    flow *f = flows_add(t, &c, &local, server, now);
    assert_non_null(f);
    flows_used_by_server(t, f, now);
    flows_used_by_client(t, f, true, now);
    assert_true(f->established);
    return f;
}

TEST(flows_are_found_by_client_and_server) {
    flows *t = table_of(1000);
    for (unsigned i = 0; i < 300; i++) {
        xl_addr c = client_of(i / 2);
        assert_null(flows_find(t, &c, &local, i % 2));
        flow *f = flows_add(t, &c, &local, i % 2, 0);
        assert_ptr_equal(f, flows_find(t, &c, &local, i % 2));
    }
    xl_addr c = client_of(3), other = client_of(3);
    assert_null(flows_find(t, &c, &other, 0)); /* another address of the balancer */
    flows_remove(t, flows_find(t, &c, &local, 0));
    assert_null(flows_find(t, &c, &local, 0));
    assert_non_null(flows_find(t, &c, &local, 1));
    flows_free(t);
    assert_int_equal(300, closed);
}

TEST(a_flood_of_new_flows_pushes_out_new_flows_only) {
    flows *t = table_of(20);
    for (unsigned i = 0; i < 8; i++)
        established(t, i, 0, i);
    for (unsigned i = 100; i < 1100; i++) {
        xl_addr c = client_of(i);
        flow *f = flows_add(t, &c, &local, 0, i);
        assert_non_null(f);
        flows_used_by_client(t, f, false, i);
        flows_used_by_server(t, f, i); /* servers respond to forged addresses too */
    }
    flows_stats s;
    flows_get_stats(t, &s);
    assert_int_equal(18, s.now); /* 8 established flows, and new flows in half of the table */
    assert_int_equal(990, s.evicted);
    for (unsigned i = 0; i < 8; i++) {
        xl_addr c = client_of(i);
        assert_non_null(flows_find(t, &c, &local, 0));
    }
    flows_free(t);
    assert_int_equal(1008, closed);
}

TEST(a_table_full_of_established_flows_refuses) {
    flows *t = table_of(4);
    for (unsigned i = 0; i < 4; i++)
        established(t, i, 0, 0);
    xl_addr c = client_of(9);
    assert_null(flows_add(t, &c, &local, 0, 1));
    flows_stats s;
    flows_get_stats(t, &s);
    assert_int_equal(1, s.refused);
    assert_int_equal(4, s.established);
    assert_int_equal(XL_NEVER, flows_expire(t, 5000));
    assert_non_null(flows_add(t, &c, &local, 0, 5000));
    flows_free(t);
}

TEST(only_an_answer_to_the_server_establishes) {
    flows *t = table_of(10);
    xl_addr c = client_of(1);
    flow *f = flows_add(t, &c, &local, 0, 0);
    flows_used_by_client(t, f, true, 0); /* a guessed CID, before the server has sent anything */
    assert_false(f->established);
    flows_used_by_server(t, f, 0);
    flows_used_by_client(t, f, false, 0);
    assert_false(f->established);
    flows_used_by_client(t, f, true, 0);
    assert_true(f->established);
    flows_free(t);
}

TEST(idle_flows_expire_each_class_by_its_own_time) {
    flows *t = table_of(10);
    xl_addr c = client_of(1);
    flows_add(t, &c, &local, 0, 100);
    flow *old = established(t, 2, 0, 200);
    assert_int_equal(1100, flows_expire(t, 1000));
    assert_int_equal(5200, flows_expire(t, 1100));
    assert_int_equal(1, closed);
    flows_used_by_server(t, old, 4000);
    assert_int_equal(9000, flows_expire(t, 5300));
    assert_int_equal(XL_NEVER, flows_expire(t, 9000));
    assert_int_equal(2, closed);
    flows_free(t);
}

TEST(flows_follow_their_servers) {
    flows *t = table_of(100);
    for (unsigned i = 0; i < 30; i++)
        established(t, i, i % 3, 0);
    const size_t moved[] = {1, SIZE_MAX, 0};
    flows_move(t, moved);
    assert_int_equal(10, closed);
    for (unsigned i = 0; i < 30; i++) {
        xl_addr c = client_of(i);
        for (size_t server = 0; server < 3; server++)
            assert_int_equal(i % 3 != 1 && server == moved[i % 3], flows_find(t, &c, &local, server) != NULL);
    }
    flows_free(t);
}

TEST_MAIN(NULL, NULL)
