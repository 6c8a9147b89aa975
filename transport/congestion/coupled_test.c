#include "tests/unit.h"
#include "congestion/coupled.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

extern const xl_cc_ops xl_cc_lia, xl_cc_olia, xl_cc_balia;

#define MSS 1000

typedef struct {
    alignas(16) uint8_t state[XL_CC_STATE_BYTES];
} controller;

static xl_coupled *inside(controller *c) {
    return (xl_coupled *)(void *)c->state;
}

typedef struct {
    double packets; /* window */
    uint64_t rtt_ms;
    double between_losses; /* bytes */
} path;

static void acknowledge(const xl_cc_ops *cc, controller *c, uint64_t rtt_ms, uint64_t bytes) {
    xl_cc_ack ack = {.now = 9000000, .sent_time = 8000000, .bytes = bytes, .srtt_us = rtt_ms * 1000};
    cc->on_ack(c->state, &ack);
}

/* Paths in congestion avoidance with these windows and RTTs. */
static void make(const xl_cc_ops *cc, xl_cc_group *group, controller *c, const path *p, size_t n) {
    memset(group, 0, sizeof(*group));
    for (size_t i = 0; i < n; i++) {
        cc->init(c[i].state, MSS, 0);
        cc->join(c[i].state, group, i);
        group->member[i].is_active = true;
        acknowledge(cc, &c[i], p[i].rtt_ms, 0);
        inside(&c[i])->reno.ssthresh = 2 * MSS;
        inside(&c[i])->reno.cwnd = p[i].packets * MSS;
        inside(&c[i])->before_loss = p[i].between_losses;
        xl_coupled_publish(inside(&c[i]));
    }
}

/* Returns by how many packets the window of path i grows when one window is acknowledged, with all else constant. */
static double growth(const xl_cc_ops *cc, controller *c, size_t i, const path *p) {
    double before = inside(&c[i])->reno.cwnd;
    acknowledge(cc, &c[i], p[i].rtt_ms, MSS);
    const xl_cc_member *shown = &inside(&c[i])->group->member[i];
    assert_true(shown->window == inside(&c[i])->reno.cwnd); /* what its siblings see */
    assert_true(fabs(shown->rtt_s - (double)p[i].rtt_ms / 1e3) < 1e-9);
    return (inside(&c[i])->reno.cwnd - before) / MSS * p[i].packets;
}

static void expect(double want, double got) {
    if (fabs(want - got) > 0.002)
        fail_msg("%.4f is expected, it is %.4f", want, got);
}

TEST(lia_follows_rfc_6356) {
    static const struct {
        path p[3];
        size_t n;
        double packets[3]; /* growth per round trip */
    } cases[] = {
        {{{20, 50, 0}}, 1, {1}},                           /* alone: Reno */
        {{{20, 50, 0}, {20, 50, 0}}, 2, {0.25, 0.25}},     /* alpha = 40 x 20 / 40^2 = 1/2: half a packet for both */
        {{{30, 50, 0}, {10, 50, 0}}, 2, {0.5625, 0.1875}}, /* alpha = 40 x 30 / 40^2; 30 / 40^2 = 0.01875 a packet */
        /* max(10/20^2, 40/200^2) = 0.025; (10/20 + 40/200)^2 = 0.49; 0.05102 a packet: below 1/10, above 1/40. */
        {{{10, 20, 0}, {40, 200, 0}}, 2, {0.5102, 1}},
        {{{20, 50, 0}, {20, 50, 0}, {20, 50, 0}}, 3, {1 / 9.0, 1 / 9.0, 1 / 9.0}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (size_t i = 0; i < cases[k].n; i++) {
            xl_cc_group group;
            controller c[3];
            make(&xl_cc_lia, &group, c, cases[k].p, cases[k].n);
            expect(cases[k].packets[i], growth(&xl_cc_lia, c, i, cases[k].p));
        }
}

TEST(olia_moves_windows_to_good_paths_that_have_small_ones) {
    static const struct {
        path p[3];
        size_t n;
        double packets[3];
    } cases[] = {
        {{{20, 50, 9e5}}, 1, {1}},                                      /* alone: Reno */
        {{{20, 50, 9e5}, {20, 50, 9e5}}, 2, {0.25, 0.25}},              /* w^2 / (2 w)^2, nothing to move */
        {{{30, 50, 9e5}, {10, 50, 1e5}}, 2, {0.5625, 0.0625}},          /* the best has the largest already */
        {{{30, 50, 1e5}, {10, 50, 9e5}}, 2, {0.0625, 0.5625}},          /* -1/2 and +1/2 a round trip */
        {{{10, 50, 4e5}, {10, 100, 9e5}}, 2, {0.4444, 0.1111}},         /* 4/50^2 > 9/100^2; both windows are largest */
        {{{10, 50, 4e5}, {20, 100, 9e5}}, 2, {0.25 + 0.5, 0.25 - 0.5}}, /* the best one has the smaller window */
        /* Two collected paths share, one of them not best: n = 3, +1/6 each, -1/3 for the largest. */
        {{{10, 50, 9e5}, {10, 50, 9e5}, {20, 50, 1e5}}, 3, {1 / 16. + 1 / 6., 1 / 16. + 1 / 6., 1 / 4. - 1 / 3.}},
        {{{10, 50, 9e5}, {10, 50, 1e5}, {20, 50, 1e5}}, 3, {1 / 16. + 1 / 3., 1 / 16., 1 / 4. - 1 / 3.}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (size_t i = 0; i < cases[k].n; i++) {
            xl_cc_group group;
            controller c[3];
            make(&xl_cc_olia, &group, c, cases[k].p, cases[k].n);
            expect(cases[k].packets[i], growth(&xl_cc_olia, c, i, cases[k].p));
        }
}

/* -1/4 packet a round trip after a congestion event: the window falls below ssthresh and does not return by slow
 * start. */
TEST(olia_takes_from_a_window_below_ssthresh) {
    xl_cc_group group;
    controller c[2];
    const path p[] = {{40, 100, 1e5}, {10, 50, 9e5}}, halved = {20, 100, 0};
    make(&xl_cc_olia, &group, c, p, 2);
    xl_cc_olia.on_loss(c[0].state, 7000000, MSS, 7500000);
    expect(0.25 - 0.5, growth(&xl_cc_olia, c, 0, &halved));
    for (int i = 1; i < 60; i++)
        acknowledge(&xl_cc_olia, &c[0], 100, MSS);
    assert_in_range(xl_cc_olia.window(c[0].state), 19200, 19240); /* three round trips */
    assert_true(xl_cc_olia.ssthresh(c[0].state) <= xl_cc_olia.window(c[0].state));
}

TEST(olia_knows_a_path_by_the_bytes_between_its_losses) {
    xl_cc_group group;
    controller c[2];
    const path p[] = {{20, 50, 0}, {20, 50, 0}};
    make(&xl_cc_olia, &group, c, p, 2);
    assert_true(group.member[0].between_losses < 1);
    acknowledge(&xl_cc_olia, &c[0], 50, 7 * MSS);
    assert_true(group.member[0].between_losses == 7 * MSS);
    xl_cc_olia.on_loss(c[0].state, 8500000, MSS, 9100000); /* 7 MSS are now between two losses */
    assert_true(group.member[0].between_losses == 7 * MSS);
    xl_cc_olia.on_loss(c[0].state, 8600000, MSS, 9100000); /* the same event */
    xl_cc_ack ack = {.now = 9300000, .sent_time = 9200000, .bytes = 3 * MSS, .srtt_us = 50000};
    xl_cc_olia.on_ack(c[0].state, &ack);
    assert_true(group.member[0].between_losses == 7 * MSS);
    xl_cc_olia.on_loss(c[0].state, 9200000, MSS, 9400000);
    assert_true(group.member[0].between_losses == 3 * MSS);
}

TEST(balia_balances) {
    xl_cc_group group;
    controller c[2];
    const path alone[] = {{20, 50, 0}};
    make(&xl_cc_balia, &group, c, alone, 1);
    expect(1, growth(&xl_cc_balia, c, 0, alone));
    /* Rates 600 and 200 packets/s: a = 1 and 3. 30^2/40^2; 10^2/40^2 x 4/2 x 7/5. */
    const path p[] = {{30, 50, 0}, {10, 50, 0}};
    make(&xl_cc_balia, &group, c, p, 2);
    expect(0.5625, growth(&xl_cc_balia, c, 0, p));
    make(&xl_cc_balia, &group, c, p, 2);
    expect(0.0625 * 2 * 1.4, growth(&xl_cc_balia, c, 1, p));
    make(&xl_cc_balia, &group, c, p, 2);
    xl_cc_balia.on_loss(c[0].state, 8500000, MSS, 9100000);
    xl_cc_balia.on_loss(c[1].state, 8500000, MSS, 9100000);
    assert_int_equal(15 * MSS, xl_cc_balia.window(c[0].state));      /* the best path: half */
    assert_int_equal(25 * MSS / 10, xl_cc_balia.window(c[1].state)); /* rates 300 and 200, a = 1.5: a quarter is left */
    make(&xl_cc_balia, &group, c, p, 2);
    xl_cc_balia.on_loss(c[1].state, 8500000, MSS, 9100000);
    assert_int_equal(25 * MSS / 10, xl_cc_balia.window(c[1].state)); /* a = 3 counts as 1.5 */
}

TEST(only_the_increase_is_coupled) {
    static const xl_cc_ops *const coupled[] = {&xl_cc_lia, &xl_cc_olia};
    for (size_t k = 0; k < 2; k++) {
        xl_cc_group group;
        controller c[2];
        const path p[] = {{40, 50, 9e5}, {40, 50, 9e5}};
        make(coupled[k], &group, c, p, 2);
        inside(&c[0])->reno.ssthresh = UINT64_MAX; /* slow start */
        acknowledge(coupled[k], &c[0], 50, 5 * MSS);
        assert_int_equal(45 * MSS, coupled[k]->window(c[0].state));
        assert_true(group.member[0].window == 45 * MSS);
        coupled[k]->on_loss(c[0].state, 8500000, MSS, 9100000);
        assert_int_equal(22500, coupled[k]->window(c[0].state));
        assert_int_equal(40 * MSS, coupled[k]->window(c[1].state));
        coupled[k]->on_persistent_congestion(c[0].state, 9200000);
        assert_true(group.member[0].window == 2 * MSS);
    }
}

TEST(paths_that_carry_nothing_do_not_count) {
    static const xl_cc_ops *const coupled[] = {&xl_cc_lia, &xl_cc_olia, &xl_cc_balia};
    for (size_t k = 0; k < 3; k++) {
        xl_cc_group group;
        controller c[2];
        const path p[] = {{20, 50, 9e5}, {20, 50, 9e5}};
        make(coupled[k], &group, c, p, 2);
        group.member[1].is_active = false;
        expect(1, growth(coupled[k], c, 0, p));
        make(coupled[k], &group, c, p, 2);
        coupled[k]->init(c[1].state, MSS, 0); /* reset: it has no RTT yet */
        coupled[k]->join(c[1].state, &group, 1);
        group.member[1].is_active = true;
        expect(1, growth(coupled[k], c, 0, p));
    }
}

TEST(a_controller_without_a_group_is_newreno) {
    static const xl_cc_ops *const coupled[] = {&xl_cc_lia, &xl_cc_olia, &xl_cc_balia};
    for (size_t k = 0; k < 3; k++) {
        controller c;
        coupled[k]->init(c.state, MSS, 0);
        xl_cc_ack ack = {.now = 20000, .sent_time = 1, .bytes = 10 * MSS, .srtt_us = 20000};
        coupled[k]->on_ack(c.state, &ack);
        coupled[k]->on_loss(c.state, 5, MSS, 30000);
        assert_int_equal(10 * MSS, coupled[k]->window(c.state));
        for (int i = 0; i < 10; i++) {
            ack = (xl_cc_ack){.now = 60000, .sent_time = 40000, .bytes = MSS, .srtt_us = 20000};
            coupled[k]->on_ack(c.state, &ack);
        }
        assert_in_range(coupled[k]->window(c.state), 10900, 11000);
    }
}

TEST_MAIN(NULL, NULL)
