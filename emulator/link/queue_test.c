#include <stdio.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/queue.h"

static void put(link_queue *queue, uint32_t length) {
    link_packet *packet = link_pool_get(queue->pool);
    assert_non_null(packet);
    packet->length = length;
    link_queue_enqueue(queue, packet, 0);
}

static uint32_t take(link_queue *queue) {
    link_packet *packet = link_queue_dequeue(queue, 0);
    uint32_t length = !packet ? 0 : packet->length;
    link_pool_put(queue->pool, packet);
    return length;
}

TEST(every_discipline_has_the_functions_that_a_link_calls) {
    size_t count = 0;
    for (; link_queue_disciplines[count]; count++) {
        assert_non_null(link_queue_disciplines[count]->enqueue);
        assert_non_null(link_queue_disciplines[count]->dequeue);
    }
    assert_true(count >= 6);
}

/* Makes a queue with defaults, or with a limit of 50 packets if the discipline needs one. */
static link_queue *with_defaults(const link_queue_discipline *discipline, link_pool *pool) {
    char specification[64], error[256];
    link_queue *queue = link_queue_new(discipline->name, pool, 0, error, sizeof error);
    snprintf(specification, sizeof specification, "%s:packets=50", discipline->name);
    return queue ? queue : link_queue_new(specification, pool, 0, error, sizeof error);
}

/* If a packet were neither delivered nor counted as dropped, the link would wait for it for ever. */
TEST(no_discipline_loses_a_packet_that_it_does_not_count) {
    for (size_t i = 0; link_queue_disciplines[i]; i++) {
        link_pool *pool = link_pool_new(0);
        link_queue *queue = with_defaults(link_queue_disciplines[i], pool);
        if (!queue)
            fail_msg("queue %s starts neither by itself nor with packets=50", link_queue_disciplines[i]->name);
        uint64_t taken = 0;
        for (uint32_t k = 0; k < 1000; k++) {
            put(queue, 100 + k);
            if (k % 3 == 0)
                taken += take(queue) > 0;
        }
        while (take(queue) > 0)
            taken++;
        if (taken + queue->dropped_packets != 1000 || queue->packets > 0 || queue->bytes > 0 ||
            link_pool_in_use(pool) > 0)
            fail_msg("queue %s: of 1000 packets %zu were delivered and %zu dropped by link_queue_drop()",
                     queue->discipline->name, (size_t)taken, (size_t)queue->dropped_packets);
        link_queue_free(queue);
        link_pool_free(pool);
    }
}

TEST(infinite_keeps_everything_in_order) {
    link_pool *pool = link_pool_new(0);
    char error[256];
    link_queue *queue = link_queue_new("infinite", pool, 0, error, sizeof error);
    for (uint32_t i = 1; i <= 1000; i++)
        put(queue, i);
    assert_int_equal(queue->dropped_packets, 0);
    assert_int_equal(queue->fifo.bytes, 1000 * 1001 / 2 + 4 * 1000);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_int_equal(take(queue), i);
    assert_int_equal(take(queue), 0);
    link_queue_free(queue);
    link_pool_free(pool);
}

TEST(droptail_by_packets_drops_the_newest) {
    link_pool *pool = link_pool_new(0);
    char error[256];
    link_queue *queue = link_queue_new("droptail:packets=2", pool, 0, error, sizeof error);
    put(queue, 100);
    put(queue, 200);
    put(queue, 300);
    assert_int_equal(queue->dropped_packets, 1);
    assert_int_equal(queue->dropped_bytes, 304);
    assert_int_equal(take(queue), 100);
    put(queue, 400);
    assert_int_equal(queue->dropped_packets, 1);
    assert_int_equal(take(queue), 200);
    assert_int_equal(take(queue), 400);
    assert_int_equal(take(queue), 0);
    assert_int_equal(link_pool_in_use(pool), 0);
    link_queue_free(queue);
    link_pool_free(pool);
}

TEST(droptail_by_bytes_counts_4_more_a_packet) {
    link_pool *pool = link_pool_new(0);
    char error[256];
    link_queue *fits = link_queue_new("droptail:bytes=3008", pool, 0, error, sizeof error);
    link_queue *tight = link_queue_new("droptail:bytes=3007", pool, 0, error, sizeof error);
    for (int i = 0; i < 2; i++) {
        put(fits, 1500);
        put(tight, 1500);
    }
    assert_int_equal(fits->dropped_packets, 0);
    assert_int_equal(tight->dropped_packets, 1);
    put(tight, 1499); /* 1504 + 1503 = 3007: a smaller one still fits */
    assert_int_equal(tight->dropped_packets, 1);
    link_queue_free(fits);
    link_queue_free(tight);
    assert_int_equal(link_pool_in_use(pool), 0);
    link_pool_free(pool);
}

TEST(droptail_with_two_limits_keeps_both) {
    link_pool *pool = link_pool_new(0);
    char error[256];
    link_queue *queue = link_queue_new("droptail:packets=2:bytes=1000", pool, 0, error, sizeof error);
    assert_string_equal(queue->description, "droptail [packets=2, bytes=1000]");
    put(queue, 997);
    assert_int_equal(queue->dropped_packets, 1);
    put(queue, 10);
    put(queue, 10);
    put(queue, 10);
    assert_int_equal(queue->dropped_packets, 2);
    link_queue_free(queue);
    link_pool_free(pool);
}

TEST(tells_what_is_wrong_with_a_specification) {
    static const struct {
        const char *specification;
        const char *what;
    } cases[] = {
        {"", "unknown queue discipline"},
        {"codl", "known are infinite, codel"},
        {"droptailpackets=3", "unknown queue discipline"},
        {"droptail", "needs a limit"},
        {"droptail:", "needs a limit"},
        {"droptail:packets", "does not understand \"packets\""},
        {"droptail:packets=", "takes packets of 1 to 1000000000000"},
        {"droptail:packets=0", "not \"packets=0\""},
        {"droptail:packets=-1", "takes packets of 1 to"},
        {"droptail:packets=1x", "takes packets of 1 to"},
        {"droptail:packets=99999999999999999999", "takes packets of 1 to"},
        {"codel:target=0", "takes target of 0.001 to 3600000 ms, not"},
        {"droptail:frames=3", "options: packets=N, bytes=N"},
        {"infinite:packets=3", "options: none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char error[256] = "";
        assert_null(link_queue_new(cases[i].specification, NULL, 0, error, sizeof error));
        assert_non_null(strstr(error, cases[i].what));
    }
}

/* Returns how many packets of `length` a queue holds before it drops one. */
static uint64_t room_of(const char *specification, uint32_t length) {
    link_pool *pool = link_pool_new(0);
    char error[256];
    link_queue *queue = link_queue_new(specification, pool, 0, error, sizeof error);
    assert_non_null(queue);
    uint64_t room = 0;
    for (put(queue, length); queue->dropped_packets == 0; put(queue, length))
        room++;
    link_queue_free(queue);
    link_pool_free(pool);
    return room;
}

TEST(managed_queues_have_limits_of_their_own) {
    assert_int_equal(room_of("codel", 100), 1000);
    assert_int_equal(room_of("codel:packets=7", 100), 7);
    assert_int_equal(room_of("codel:bytes=1040", 100), 10);
    assert_int_equal(room_of("pie", 100), 1000);
    assert_int_equal(room_of("pie:bytes=1040", 100), 10);
    assert_int_equal(room_of("fq_codel", 100), 10240);
    assert_int_equal(room_of("fq_codel:packets=7", 100), 7);
    assert_int_equal(room_of("fq_codel:packets=100000", 4092), (32 << 20) / 4096);
}

TEST(the_pool_keeps_its_limit_and_reuses_packets) {
    link_pool *pool = link_pool_new(2);
    link_packet *a = link_pool_get(pool);
    link_packet *b = link_pool_get(pool);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(link_pool_get(pool));
    link_pool_put(pool, a);
    assert_ptr_equal(link_pool_get(pool), a);
    assert_int_equal(link_pool_in_use(pool), 2);
    link_pool_free(pool);
}

TEST_MAIN(NULL, NULL)
