/* BBR alone on a link of a given rate and round trip with an endless queue, in virtual time. */
#include "tests/unit.h"
#include "congestion/congestion.h"

#include <stdalign.h>
#include <string.h>

extern const xl_cc_ops xl_cc_bbr;

#define MSS     1000
#define PACKETS 4096 /* at most in flight */
#define RATE    1000000
#define RTT     40000
#define BDP     (RATE / 1000 * RTT / 1000)

typedef struct {
    alignas(16) uint8_t state[XL_CC_STATE_BYTES];
    xl_rate_sampler rate;
    uint64_t now, rtt, link_rate, link_free_at, next_send_at, in_flight, min_rtt;
    uint64_t app_rate; /* bytes/s of the application; 0 = unlimited */
    double app_credit;
    bool loses_next;
    xl_sent_packet packet[PACKETS];
    uint64_t arrival[PACKETS];
    size_t head, tail;
    uint64_t queue_max; /* largest queue in bytes since it was last set to 0 */
    uint64_t in_flight_min;
} flow;

static flow f; /* too large for the stack */

static void begin(uint64_t rate, uint64_t rtt) {
    memset(&f, 0, sizeof f);
    f.now = 1000000;
    f.rtt = rtt;
    f.link_rate = rate;
    f.min_rtt = UINT64_MAX;
    xl_cc_bbr.init(f.state, MSS, f.now);
}

static bool is_in(const char *phase) {
    return strcmp(xl_cc_bbr.phase(f.state), phase) == 0;
}

static void send(void) {
    xl_sent_packet *p = &f.packet[f.tail % PACKETS];
    *p = (xl_sent_packet){.bytes = MSS, .time_us = f.now};
    xl_rate_sent(&f.rate, p, f.in_flight, f.now);
    f.in_flight += MSS;
    xl_cc_bbr.on_sent(f.state, MSS, f.in_flight, f.now);
    uint64_t start = f.link_free_at > f.now ? f.link_free_at : f.now;
    f.link_free_at = start + MSS * 1000000 / f.link_rate;
    f.arrival[f.tail++ % PACKETS] = f.link_free_at + f.rtt;
    uint64_t queue = (start - f.now) * f.link_rate / 1000000;
    f.queue_max = queue > f.queue_max ? queue : f.queue_max;
    uint64_t pace = xl_cc_bbr.pacing_rate(f.state);
    f.next_send_at = f.now + (pace ? MSS * 1000000 / pace : 0);
    f.app_credit -= f.app_rate ? MSS : 0;
}

static void acknowledge(void) {
    const xl_sent_packet *p = &f.packet[f.head++ % PACKETS];
    f.in_flight -= MSS;
    if (f.loses_next) {
        f.loses_next = false;
        xl_rate_lost(&f.rate, MSS);
        return;
    }
    xl_rate_acked(&f.rate, p, f.now);
    xl_rate_sample sample;
    uint64_t rtt = f.now - p->time_us;
    f.min_rtt = rtt < f.min_rtt ? rtt : f.min_rtt;
    xl_rate_take(&f.rate, f.min_rtt, &sample);
    sample.now = f.now;
    sample.rtt_us = rtt;
    sample.in_flight = f.in_flight;
    xl_cc_bbr.on_rate_sample(f.state, &sample);
    f.in_flight_min = f.in_flight < f.in_flight_min ? f.in_flight : f.in_flight_min;
}

/* Runs for `duration`, in steps of at most 100 us, or until BBR is in `phase` (NULL: any). */
static void run(uint64_t duration, const char *phase) {
    uint64_t end = f.now + duration;
    while (f.now < end && !(phase && is_in(phase))) {
        while (f.head < f.tail && f.arrival[f.head % PACKETS] <= f.now)
            acknowledge();
        bool has_data = f.app_rate == 0 || f.app_credit >= MSS;
        while (has_data && f.next_send_at <= f.now && f.in_flight + MSS <= xl_cc_bbr.window(f.state)) {
            send();
            has_data = f.app_rate == 0 || f.app_credit >= MSS;
        }
        if (!has_data)
            xl_rate_mark_app_limited(&f.rate, f.in_flight);
        f.now += 100;
        f.app_credit += (double)f.app_rate / 1e4;
    }
}

TEST(startup_finds_the_rate_and_drain_empties_its_queue) {
    static const uint64_t rates[] = {100000, 1000000, 5000000};
    for (size_t i = 0; i < 3; i++) {
        begin(rates[i], RTT);
        uint64_t bdp = rates[i] / 1000 * RTT / 1000;
        assert_true(is_in("Startup"));
        run(20 * RTT, "Drain"); /* doubles each round trip, then three without growth */
        assert_true(is_in("Drain"));
        assert_true(xl_cc_bbr.pacing_rate(f.state) < rates[i]);
        run(10 * RTT, "ProbeBW");
        assert_true(is_in("ProbeBW"));
        assert_true(f.in_flight <= bdp + 6 * MSS); /* three, a packet's own time on the link, and the first to follow */
    }
}

TEST(probing_keeps_the_link_full_and_the_queue_short) {
    begin(RATE, RTT);
    run(2000000, NULL);
    assert_true(is_in("ProbeBW"));
    f.queue_max = 0;
    uint64_t before = f.rate.delivered, faster = 0, slower = 0;
    for (int i = 0; i < 800; i++) { /* 4 s in steps of 5 ms */
        run(5000, NULL);
        faster += xl_cc_bbr.pacing_rate(f.state) > RATE * 6 / 5;
        slower += xl_cc_bbr.pacing_rate(f.state) < RATE * 4 / 5;
        assert_true(xl_cc_bbr.window(f.state) <= 2 * BDP * 11 / 10 + 3 * MSS);
    }
    assert_in_range(f.rate.delivered - before, RATE * 4 * 97 / 100, RATE * 4 * 101 / 100);
    assert_true(f.queue_max < BDP / 2); /* a quarter of the product by the 1.25, and a little */
    assert_in_range(faster, 50, 200);   /* an eighth of the time would be 100 */
    assert_in_range(slower, 30, 200);
}

TEST(a_rate_that_falls_is_believed_after_ten_round_trips_and_one_that_rises_is_found) {
    begin(RATE, RTT);
    run(2000000, NULL);
    f.link_rate = RATE / 2;
    run(3000000, NULL); /* its own queue makes the round trip up to 160 ms */
    f.queue_max = 0;
    run(1000000, NULL);
    assert_true(f.queue_max < BDP);
    f.link_rate = 2 * RATE;
    run(3000000, NULL);
    uint64_t before = f.rate.delivered;
    run(1000000, NULL);
    assert_in_range(f.rate.delivered - before, 2 * RATE * 95 / 100, 2 * RATE * 101 / 100);
}

TEST(the_round_trip_is_measured_anew_after_ten_seconds) {
    begin(RATE, RTT);
    run(5000000, NULL);
    f.rtt = 60000; /* the path became longer: RTprop is too small now */
    uint64_t since = f.now;
    run(20000000, "ProbeRTT");
    assert_true(is_in("ProbeRTT"));
    assert_true(f.now - since < 10500000);
    f.in_flight_min = UINT64_MAX;
    uint64_t entered = f.now;
    run(1000000, "ProbeBW");
    assert_true(f.in_flight_min <= 4 * MSS);
    assert_in_range(f.now - entered, 200000, 500000);
    run(2000000, NULL);
    uint64_t before = f.rate.delivered; /* the rate was not forgotten meanwhile */
    run(1000000, NULL);
    assert_in_range(f.rate.delivered - before, RATE * 95 / 100, RATE * 101 / 100);
    assert_true(xl_cc_bbr.window(f.state) > 2 * RATE / 1000 * 55);
}

/* The 200 ms are twenty round trips here: more than the filter of the rate remembers. */
TEST(a_probe_of_a_short_round_trip_does_not_make_the_rate_forgotten) {
    begin(RATE, 10000);
    run(5000000, NULL);
    f.rtt = 12000;
    run(20000000, "ProbeRTT");
    assert_true(is_in("ProbeRTT"));
    run(1000000, "ProbeBW");
    run(24000, NULL);
    uint64_t before = f.rate.delivered;
    run(200000, NULL);
    assert_in_range(f.rate.delivered - before, RATE / 5 * 95 / 100, RATE / 5 * 101 / 100);
}

TEST(what_the_application_does_not_send_is_not_the_links_fault) {
    begin(RATE, RTT);
    run(2000000, NULL);
    uint64_t rate = xl_cc_bbr.pacing_rate(f.state);
    f.app_rate = RATE / 20;
    f.app_credit = 0;
    run(5000000, NULL);
    assert_true(xl_cc_bbr.pacing_rate(f.state) > rate / 2);
    f.app_rate = 0;
    uint64_t before = f.rate.delivered;
    run(500000, NULL);
    assert_true(f.rate.delivered - before > RATE / 2 * 85 / 100);
}

TEST(loss_takes_nothing_but_a_round_trip_of_conservation) {
    begin(RATE, RTT);
    run(2000000, NULL);
    uint64_t before = f.rate.delivered;
    for (int i = 0; i < 200; i++) { /* one in a hundred packets, 4 s */
        run(20000, NULL);
        f.loses_next = i % 5 == 0;
    }
    assert_true(f.rate.delivered - before > RATE * 4 * 93 / 100);
    xl_cc_bbr.on_persistent_congestion(f.state, f.now);
    assert_int_equal(4 * MSS, xl_cc_bbr.window(f.state));
    run(1000000, NULL);
    before = f.rate.delivered;
    run(1000000, NULL);
    assert_in_range(f.rate.delivered - before, RATE * 95 / 100, RATE * 101 / 100);
}

TEST_MAIN(NULL, NULL)
