#include <string.h>

#include "tests/unit.h"
#include "scheduler/clairvoyant.h"
#include "scheduler/scheduler.h"

#define NOW 1000000u
#define MTU 1000u

/* A network of two paths: datagrams leave a queue every apart_us and arrive delay_us later. */
typedef struct {
    uint64_t delay_us, apart_us, free_at;
    size_t inside, asked;
    uint64_t supposed; /* in this question, when the queue is free */
    uint64_t full_until;
} way;

static struct {
    way there[2], back[2];
    xl_addr local[2], remote;
    xl_pacer pacer[2];
    uint64_t ssthresh[2];
} net;

static void *ask(void *user, const xl_addr *from, const xl_addr *to) {
    (void)user;
    bool is_back = xl_addr_equal(from, &net.remote);
    const xl_addr *own = is_back ? to : from;
    way *w = &(is_back ? net.back : net.there)[own->port];
    w->asked = 0;
    w->supposed = w->free_at;
    return w;
}

static bool inside(void *handle, size_t *bytes, uint64_t *arrives_at) {
    way *w = handle;
    if (w->asked == w->inside)
        return false;
    *bytes = MTU;
    *arrives_at = w->free_at - (w->inside - ++w->asked) * w->apart_us + w->delay_us;
    return true;
}

static uint64_t send_one(void *handle, size_t bytes, uint64_t at) {
    way *w = handle;
    (void)bytes;
    if (at < w->full_until)
        return XL_NEVER;
    if (w->apart_us == 0)
        return at + w->delay_us;
    w->supposed = (w->supposed > at ? w->supposed : at) + w->apart_us;
    return w->supposed + w->delay_us;
}

static const xl_foresight foresight = {.ask = ask, .inside = inside, .send = send_one};

/* Path 0 has an RTT of 10 ms and 1 ms a packet, path 1 100 ms and 4 ms. */
static xl_scheduler_view view_of(uint64_t unsent_packets) {
    memset(&net, 0, sizeof(net));
    xl_scheduler_view v = {.count = 2, .now = NOW};
    net.remote.port = 99;
    v.unsent_bytes = v.first_bytes = unsent_packets * (MTU - 40);
    for (int i = 0; i < 2; i++) {
        net.local[i].port = (uint16_t)i;
        net.there[i] = (way){.delay_us = i ? 100000 : 10000, .apart_us = i ? 4000 : 1000, .free_at = NOW};
        net.back[i] = (way){.delay_us = i ? 100000 : 10000};
        v.path[i] = (xl_scheduler_path){.index = i,
                                        .has_window = true,
                                        .has_rtt = true,
                                        .srtt_us = 20000,
                                        .mtu_bytes = MTU,
                                        .window_bytes = 10 * MTU};
    }
    return v;
}

static void fill_window(xl_scheduler_view *v, size_t i) {
    v->path[i].in_flight_bytes = v->path[i].window_bytes;
    v->path[i].has_window = false;
    net.there[i].inside = 10;
    net.there[i].free_at = NOW + 10 * net.there[i].apart_us;
}

/* Swaps path 0 and path 1. */
static void swap_paths(xl_scheduler_view *v) {
    way there = net.there[0], back = net.back[0];
    xl_scheduler_path path = v->path[0];
    net.there[0] = net.there[1];
    net.back[0] = net.back[1];
    v->path[0] = v->path[1];
    net.there[1] = there;
    net.back[1] = back;
    v->path[1] = path;
    v->path[0].index = 0;
    v->path[1].index = 1;
}

static xl_scheduler_decision decide(const xl_scheduler_view *v) {
    xl_scheduler_decision d;
    memset(&d, 0xee, sizeof d);
    xl_foreseen known = {.network = &foresight};
    for (size_t i = 0; i < v->count; i++)
        known.path[i] = (xl_foreseen_path){&net.local[i], &net.remote, &net.pacer[i], net.ssthresh[i]};
    xl_scheduler_find("clairvoyant")->decide_foreseeing(NULL, v, &known, &d);
    return d;
}

TEST(the_packet_goes_where_it_arrives_first) {
    xl_scheduler_view v = view_of(1000);
    v.path[1].srtt_us = 10000; /* RTTs say otherwise */
    xl_scheduler_decision d = decide(&v);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.order[0], 0);
    net.there[0].free_at = NOW + 300000; /* an outage */
    d = decide(&v);
    assert_int_equal(d.order[0], 1);
    assert_int_equal(d.for_later, 0);
}

/* Path 0 alone sends its window of 10 packets each round trip of 21 ms, the first after 11 ms: 49 arrive before path
 * 1's at 104 ms. */
TEST(a_slow_path_carries_only_what_the_others_cannot_bring_before) {
    for (uint64_t left = 1; left < 80; left++) {
        xl_scheduler_view v = view_of(left);
        xl_scheduler_decision d = decide(&v);
        assert_int_equal(d.order[0], 0);
        assert_int_equal(d.count, left <= 49 ? 1 : 2);
        v.path[0].is_standby = v.path[1].is_standby = true; /* no available path */
        swap_paths(&v);
        d = decide(&v);
        assert_int_equal(d.order[0], 1);
        assert_int_equal(d.count, left <= 49 ? 1 : 2);
        v = view_of(left);
        v.path[0].window_bytes = 1000 * MTU; /* 1 ms a packet: 93 packets before 104 ms */
        assert_int_equal(decide(&v).count, 1);
    }
    xl_scheduler_view v = view_of(49);
    v.unsent_bytes++; /* a packet more */
    assert_int_equal(decide(&v).count, 2);
    v.unsent_bytes = 0; /* copies: as one packet */
    assert_int_equal(decide(&v).count, 1);
}

/* 5 packets are inside. The other 5 have arrived and are acknowledged over the 200 ms of the way back; one of them in
 * time for another packet to arrive before 104 ms. */
TEST(what_has_arrived_is_acknowledged_over_the_time_of_the_way_back) {
    for (uint64_t left = 1; left <= 2; left++) {
        xl_scheduler_view v = view_of(left);
        fill_window(&v, 0);
        net.there[0].inside = 5;
        net.there[0].free_at = NOW + 5 * net.there[0].apart_us;
        net.back[0].delay_us = 200000;
        xl_scheduler_decision d = decide(&v);
        assert_int_equal(d.count, left == 1 ? 0 : 1);
        assert_int_equal(d.waits_for, left == 1 ? 0 : -1);
    }
}

TEST(slow_start_is_foreseen) {
    xl_scheduler_view v = view_of(60);
    assert_int_equal(decide(&v).count, 2);
    net.ssthresh[0] = XL_NEVER; /* 10, 20 and 40 packets in three round trips */
    assert_int_equal(decide(&v).count, 1);
}

TEST(a_full_path_is_waited_for_if_it_brings_all_earlier) {
    xl_scheduler_view v = view_of(10);
    fill_window(&v, 0);
    xl_scheduler_decision d = decide(&v);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.waits_for, 0);
    v.unsent_bytes = v.first_bytes = 100 * MTU;
    d = decide(&v);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.order[0], 1);
    v = view_of(10);
    fill_window(&v, 0);
    net.back[0].delay_us = 200000; /* its acknowledgements come too late */
    d = decide(&v);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.order[0], 1);
}

TEST(a_pacer_delays_what_is_foreseen) {
    xl_scheduler_view v = view_of(20);
    v.path[0].window_bytes = 1000 * MTU;
    assert_int_equal(decide(&v).count, 1);
    xl_pacer_init(&net.pacer[0], MTU, NOW);
    xl_pacer_set_rate(&net.pacer[0], 100000, NOW); /* 10 ms a packet: 9 of them before 104 ms */
    assert_int_equal(decide(&v).count, 2);
}

TEST(a_slow_path_passes_a_stream_that_is_complete_without_it) {
    xl_scheduler_view v = view_of(1000);
    v.first_bytes = 20 * (MTU - 40);
    xl_scheduler_decision d = decide(&v);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.for_later, 1u << 1);
    v.first_bytes = 60 * (MTU - 40);
    assert_int_equal(decide(&v).for_later, 0);
}

TEST(nothing_is_sent_that_a_full_queue_would_drop) {
    xl_scheduler_view v = view_of(1000);
    fill_window(&v, 0);
    v.path[0].has_window = true;
    v.path[0].window_bytes = 1000 * MTU;
    assert_int_equal(decide(&v).order[0], 0);
    net.there[0].full_until = NOW + 30000; /* an acknowledgement comes before that */
    xl_scheduler_decision d = decide(&v);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.order[0], 1);
    v.unsent_bytes = v.first_bytes = MTU; /* there after 41 ms all the same, 104 ms by the other path */
    d = decide(&v);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.waits_for, 0);
}

TEST(it_is_a_reference_and_no_other_is) {
    assert_true(xl_scheduler_is_reference("clairvoyant"));
    assert_false(xl_scheduler_is_reference("earliest") || xl_scheduler_is_reference(NULL));
}

TEST_MAIN(NULL, NULL)
