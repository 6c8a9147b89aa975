/* Wi-Fi: saturation throughput by Bianchi's model, aggregation by a published one, shared airtime, and properties of
 * every packet under any settings. */
#include <math.h>
#include <stdio.h>

#include "emulator/link/air.h"
#include "emulator/link/testing/bench.h"

/* Both directions of a Wi-Fi link. */
typedef struct {
    link_air *air;
    link_bench *way[2];
    uint64_t now, due[2], arrived_bytes[2];
    uint32_t sent[2], newest[2];
    uint64_t received[2];
} wifi_bench;

static link_wifi wifi_of(const char *text) {
    link_wifi wifi;
    char wanted[240];
    if (!link_wifi_parse(&wifi, text, wanted, sizeof wanted))
        fail_msg("%s: %s", text, wanted);
    return wifi;
}

static wifi_bench open_bench(const link_wifi *wifi, uint64_t seed, link_config config) {
    wifi_bench b = {.air = link_air_new(wifi, seed)};
    assert_non_null(b.air);
    config.air = b.air;
    for (int way = 0; way < 2; way++) {
        config.is_downlink = way == 1;
        config.seed = link_seed(seed, 0, (uint32_t)way);
        b.way[way] = bench_new("1gbps", config);
    }
    return b;
}

static void close_bench(wifi_bench *b) {
    for (int way = 0; way < 2; way++) {
        bench_check_balance(b->way[way]);
        bench_free(b->way[way]);
    }
    link_air_free(b->air);
}

static void send(wifi_bench *b, int way, uint32_t count, uint32_t bytes) {
    bench_send_many(b->way[way], b->sent[way] + 1, count, bytes, b->now);
    b->sent[way] += count;
}

/* Takes the due packets and checks that they leave in order, and after their arrival. */
static void drain(wifi_bench *b) {
    for (int way = 0; way < 2; way++) {
        emulated_link *link = b->way[way]->link;
        link_advance(link, b->now);
        for (link_packet *p = link_pull(link); p; p = link_pull(link)) {
            assert_true(numbered_number(p) >= b->newest[way] && numbered_number(p) <= b->sent[way]);
            assert_true(p->due_us >= b->due[way] && p->due_us <= b->now && p->due_us > p->arrival_us);
            b->newest[way] = numbered_number(p);
            b->due[way] = p->due_us;
            b->received[way]++;
            b->arrived_bytes[way] += p->length;
            link_departed(link, p, p->due_us);
        }
    }
}

/* Drives both links, on time, up to `until`. */
static void pass(wifi_bench *b, uint64_t until) {
    for (;;) {
        uint64_t up = link_next_deadline(b->way[0]->link), down = link_next_deadline(b->way[1]->link);
        uint64_t next = up < down ? up : down;
        if (next > until)
            break;
        b->now = next > b->now ? next : b->now;
        drain(b);
    }
    b->now = until;
    drain(b);
}

/* Keeps the directions full up to `until`. mbps: received Mbps of IP bytes. */
static void saturate(wifi_bench *b, bool up, bool down, uint32_t bytes, uint64_t until, double mbps[2]) {
    const bool is_full[2] = {up, down};
    const uint64_t start = b->now, before[2] = {b->arrived_bytes[0], b->arrived_bytes[1]};
    while (b->now < until) {
        for (int way = 0; way < 2; way++) {
            uint64_t queued = link_get_stats(b->way[way]->link).queued_packets;
            if (is_full[way] && queued < 128)
                send(b, way, 256, bytes);
        }
        pass(b, b->now + 2 * MS);
    }
    for (int way = 0; way < 2; way++)
        mbps[way] = (double)(b->arrived_bytes[way] - before[way]) * 8 / (double)(b->now - start);
}

/* ---- Bianchi, IEEE JSAC 18(3), 2000 ---- */

/* Solves equations (7) and (9) for tau, by bisection: p of (9) rises with tau, and tau of (7) falls with p. */
static double solve_tau(double w, unsigned m, unsigned n) {
    double low = 0, high = 1;
    for (int i = 0; i < 100; i++) {
        double tau = (low + high) / 2, p = 1 - pow(1 - tau, n - 1);
        double sum = 0;
        for (unsigned k = 0; k < m; k++)
            sum += pow(2 * p, k);
        double by_p = 2 / (1 + w + p * w * sum);
        *(tau < by_p ? &low : &high) = tau;
    }
    return low;
}

/* Equation (13): payload bits per us of all stations, for success and collision times in us. */
static double saturation(double w, unsigned m, unsigned n, double payload_bits, double slot, double ts, double tc) {
    double tau = solve_tau(w, m, n), ptr = 1 - pow(1 - tau, n), ps = n * tau * pow(1 - tau, n - 1) / ptr;
    return ps * ptr * payload_bits / ((1 - ptr) * slot + ptr * ps * ts + ptr * (1 - ps) * tc);
}

/* Returns the simulated Mbps of n stations: one MPDU per transmission, all of the same length, 255 retries. */
static double simulated(link_wifi wifi, unsigned n, uint32_t bytes, uint64_t seconds) {
    double mbps[2];
    wifi.others = n - 2;
    wifi.frames = 1;
    wifi.retries = 255;
    wifi.others_us = wifi.preamble_us + (link_wifi_bits(bytes - 4) * 1000000 + wifi.rate_bps - 1) / wifi.rate_bps;
    wifi_bench b = open_bench(&wifi, 7 + n, (link_config){.queue = NULL});
    saturate(&b, true, true, bytes, seconds * S, mbps);
    close_bench(&b);
    return (mbps[0] + mbps[1]) / 2 * n;
}

static void check_saturation(const link_wifi *wifi, uint32_t bytes, uint64_t seconds, double tolerance) {
    const unsigned stations[] = {2, 5, 10, 20};
    unsigned m = 0;
    while ((wifi->cw_min + 1) << m < wifi->cw_max + 1)
        m++;
    for (size_t i = 0; i < sizeof stations / sizeof stations[0]; i++) {
        unsigned n = stations[i];
        double tc =
            wifi->preamble_us + (double)link_wifi_bits(bytes - 4) * 1e6 / (double)wifi->rate_bps + wifi->difs_us;
        double ts = tc + wifi->sifs_us + wifi->ack_us;
        double model = saturation(wifi->cw_min + 1, m, n, (bytes - 4) * 8.0, wifi->slot_us, ts, tc);
        double here = simulated(*wifi, n, bytes, seconds * n);
        print_message("%u stations: model %.4f, simulated %.4f Mbps: %+.2f %%\n", n, model, here,
                      100 * (here / model - 1));
        if (fabs(here / model - 1) > tolerance)
            fail_msg("%u stations: %f by the model, %f simulated", n, model, here);
    }
}

/* Within 3.5 %: over longer runs of 2 to 50 stations the difference is -0.4 to +1.5 % for Bianchi's parameters, and
 * -2.4 to +2.3 % for CW 15. It comes from the model, in which collisions are independent and counters run while others
 * send; in the standard they stop (Tinnirello et al., IEEE TVT 59(3), 2010). The rest, some 1 %, is chance. */
TEST(saturation_is_that_of_bianchi) {
    link_wifi ofdm = wifi_of("rate=54");
    check_saturation(&ofdm, 1500, 8, 0.035);
    /* Bianchi's table II: FHSS at 1 Mbps; payloads of 8184 bits with 272 of MAC header. */
    link_wifi fhss = {.rate_bps = 1000000, .slot_us = 50, .sifs_us = 28, .difs_us = 128, .preamble_us = 128};
    fhss.ack_us = 128 + 112;
    fhss.cw_min = 31;
    fhss.cw_max = 1023;
    fhss.airtime_us = 1;
    check_saturation(&fhss, 1027, 100, 0.035);
}

/* ---- aggregation ---- */

/* Returns the Mbps of a downlink alone. */
static double alone(link_wifi wifi, uint32_t bytes, uint64_t seconds) {
    double mbps[2];
    wifi_bench b = open_bench(&wifi, 3, (link_config){.queue = NULL});
    saturate(&b, false, true, bytes, seconds * S, mbps);
    close_bench(&b);
    return mbps[1];
}

/* Table 1 of Høiland-Jørgensen et al., USENIX ATC 2017: the rate of a station that is alone on the medium, from the
 * measured mean size of its aggregates: 28,557 bytes at 144.4 Mbps give 126.8 Mbps, 2914 bytes at 7.2 Mbps give 6.5.
 * Here aggregates have whole packets, 28,500 and 3000 bytes, and block ACKs use 24 Mbps: a difference of 3 %. */
TEST(aggregation_gives_the_published_rates) {
    const struct {
        const char *wifi;
        double mbps;
    } rows[] = {{"good:frames=19", 126.8}, {"rate=7.2:frames=2:airtime=5.4", 6.5}};
    for (size_t i = 0; i < 2; i++) {
        link_wifi wifi = wifi_of(rows[i].wifi);
        double here = alone(wifi, 1504, 10);
        print_message("%s: published %.1f, here %.1f Mbps\n", rows[i].wifi, rows[i].mbps, here);
        if (fabs(here / rows[i].mbps - 1) > 0.03)
            fail_msg("%s: %f", rows[i].wifi, here);
    }
}

/* A transmission of k packets takes exactly DIFS, the mean backoff of 7.5 slots, preamble, data, SIFS and ACK. */
TEST(aggregation_raises_throughput_as_computed) {
    double last = 0;
    for (uint32_t k = 1; k <= 64; k *= 2) {
        link_wifi wifi = wifi_of("rate=300:airtime=5.4");
        wifi.frames = k;
        double us = wifi.difs_us + 7.5 * wifi.slot_us + wifi.preamble_us + wifi.sifs_us + wifi.ack_us;
        double expected = 1500 * 8 * k / (us + ceil(k * 1544 * 8 / 300.0)), here = alone(wifi, 1504, 4);
        if (fabs(here / expected - 1) > 0.02)
            fail_msg("%u frames: %f, not %f", k, here, expected);
        assert_true(here > last);
        last = here;
    }
    /* The limit of airtime applies if it is the smaller one: 4 ms at 65 Mbps are 21 packets. */
    link_wifi slow = wifi_of("rate=65:frames=64"), same = wifi_of("rate=65:frames=21:airtime=5.4");
    assert_true(fabs(alone(slow, 1504, 4) / alone(same, 1504, 4) - 1) < 0.001);
}

/* ---- one medium ---- */

TEST(both_directions_share_airtime) {
    link_wifi wifi = wifi_of("good");
    double down[2], both[2], up[2];
    wifi_bench b = open_bench(&wifi, 5, (link_config){.delay_us = 3 * MS});
    saturate(&b, false, true, 1504, 5 * S, down);
    saturate(&b, true, true, 1504, 15 * S, both);
    pass(&b, b.now + 10 * S); /* deliver the rest */
    saturate(&b, true, false, 1504, b.now + 5 * S, up);
    close_bench(&b);
    assert_true(down[0] == 0 && up[1] == 0);
    assert_true(fabs(up[0] / down[1] - 1) < 0.02); /* either has all of it if it is alone */
    assert_true(fabs((both[0] + both[1]) / down[1] - 1) < 0.06);
    assert_true(both[1] < 0.6 * down[1] && both[0] < 0.6 * down[1]);
}

/* NemFi (Mishra et al., CCR 51(3), 2021): one direction alone carries as much as both together, which share it evenly.
 * A cellular link has separate capacity for each direction. */
TEST(one_direction_alone_carries_what_both_do_together) {
    static const char *const settings[] = {"good", "good:frames=1", "congested:others=0", "rate=26"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        link_wifi wifi = wifi_of(settings[i]);
        double alone[2], both[2];
        wifi_bench b = open_bench(&wifi, 5, (link_config){.delay_us = 3 * MS});
        saturate(&b, false, true, 1504, 10 * S, alone);
        saturate(&b, true, true, 1504, 40 * S, both);
        close_bench(&b);
        assert_true(fabs((both[0] + both[1]) / alone[1] - 1) < 0.06);
        assert_true(fabs(both[0] / both[1] - 1) < 0.05);
    }
}

/* One other station takes half of the medium, two take two thirds. */
TEST(others_take_their_share) {
    double whole = alone(wifi_of("rate=65"), 1504, 5);
    double half = alone(wifi_of("rate=65:others=1"), 1504, 20), third = alone(wifi_of("rate=65:others=2"), 1504, 20);
    assert_true(fabs(half / whole - 0.5) < 0.04);
    assert_true(fabs(third / whole - 0.333) < 0.04);
}

/* ---- losses ---- */

TEST(lost_frames_are_sent_again_in_order) {
    link_wifi wifi = wifi_of("good:p=0.02:r=0.2"); /* 9 % of the MPDUs */
    wifi_bench b = open_bench(&wifi, 9, (link_config){.queue = NULL});
    double mbps[2];
    saturate(&b, true, true, 1504, 10 * S, mbps);
    pass(&b, b.now + 10 * S);
    for (int way = 0; way < 2; way++) {
        link_stats s = link_get_stats(b.way[way]->link);
        assert_true(s.retry_drops < s.departed_packets / 1000 && s.inside_packets == 0);
        assert_int_equal(b.received[way] + s.retry_drops, b.sent[way]);
        double lost = (double)s.air.retries / (double)(s.air.retries + s.departed_packets);
        double in_collisions = (double)s.air.collisions / (double)s.air.transmissions;
        if (fabs(lost - (in_collisions + (1 - in_collisions) * 0.0909)) > 0.015)
            fail_msg("%f lost, with %f in collisions", lost, in_collisions);
    }
    close_bench(&b);
}

TEST(frames_are_given_up) {
    link_wifi wifi = wifi_of("good:good=1:retries=3:frames=1");
    wifi_bench b = open_bench(&wifi, 9, (link_config){.queue = NULL});
    send(&b, 1, 100, 1504);
    pass(&b, S);
    link_stats s = link_get_stats(b.way[1]->link);
    assert_int_equal(s.retry_drops, 100);
    assert_int_equal(s.air.transmissions, 400);
    assert_int_equal(s.air.retries, 300);
    assert_int_equal(s.air.used + b.received[1], 0);
    close_bench(&b);
}

/* With `collision=0.5`, half of the transmissions are lost as a whole. */
TEST(collisions_can_be_a_probability) {
    link_wifi wifi = wifi_of("good:collision=0.5");
    wifi_bench b = open_bench(&wifi, 9, (link_config){.queue = NULL});
    double mbps[2];
    saturate(&b, false, true, 1504, 10 * S, mbps);
    link_stats s = link_get_stats(b.way[1]->link);
    assert_true(fabs((double)s.air.collisions / (double)s.air.transmissions - 0.5) < 0.02);
    close_bench(&b);
}

/* ---- time ---- */

TEST(nothing_is_sent_in_a_suspension) {
    link_wifi wifi = wifi_of("good:suspend=200:every=2000");
    wifi_bench b = open_bench(&wifi, 1, (link_config){.queue = NULL});
    uint64_t longest = 0, last = 0;
    for (uint64_t ms = 0; ms < 20000; ms += 5) {
        send(&b, 1, 1, 1504);
        uint64_t before = b.received[1];
        pass(&b, ms * MS + 5 * MS);
        uint64_t at = b.due[1] % (2 * S);
        assert_true(at < 1800 * MS + 5 * MS || at > 1999 * MS || b.received[1] == before);
        longest = b.due[1] - last > longest ? b.due[1] - last : longest;
        last = b.due[1];
    }
    assert_in_range(longest, 195 * MS, 260 * MS);
    close_bench(&b);
}

/* Returns the mean wait of single packets, which come every `gap`. */
static double lone_wait(uint64_t gap, unsigned packets) {
    link_wifi wifi = wifi_of("good:others=2:busy=1");
    wifi_bench b = open_bench(&wifi, 4, (link_config){.queue = NULL});
    double sum = 0;
    for (unsigned i = 0; i < packets; i++) {
        uint64_t at = b.now;
        send(&b, 1, 1, 1504);
        for (pass(&b, at + gap); b.received[1] <= i; pass(&b, b.now + MS))
            ;
        sum += (double)(b.due[1] - at);
    }
    close_bench(&b);
    return sum / packets;
}

/* Leaving out transmissions of others after a silence does not change a packet's wait, and needs no time. */
TEST(a_silence_is_short) {
    double gone_through = lone_wait(15 * MS, 10000), left_out = lone_wait(1000 * S, 10000);
    print_message("a lone packet waits %.1f us, after a long silence %.1f\n", gone_through, left_out);
    assert_true(fabs(left_out / gone_through - 1) < 0.03);
}

/* A packet that comes during another station's 4 ms contends with that station's next transmission. With two counters
 * of 16 values, the other one's is smaller in 120 of 256 cases, and they collide in 16. */
TEST(a_lone_packet_that_finds_the_medium_busy_contends) {
    const uint64_t gaps[] = {50 * MS, 10 * S};
    for (size_t i = 0; i < 2; i++) {
        link_wifi wifi = wifi_of("good:others=1:busy=4");
        wifi_bench b = open_bench(&wifi, 6, (link_config){.queue = NULL});
        unsigned second = 0, packets = 10000;
        for (unsigned k = 0; k < packets; k++) {
            uint64_t at = b.now;
            send(&b, 1, 1, 1504);
            pass(&b, at + gaps[i] + k % 41 * 100);
            second += b.due[1] - at > 4500;
        }
        double share = (double)second / packets, busy = 0.97;
        print_message("after %llu ms %.3f wait for a second transmission\n", (unsigned long long)(gaps[i] / MS), share);
        assert_true(fabs(share - busy * 136 / 256) < 0.03);
        close_bench(&b);
    }
}

TEST(a_station_that_is_down_waits) {
    link_wifi wifi = wifi_of("good");
    double mbps[2];
    wifi_bench b = open_bench(&wifi, 2, (link_config){.queue = NULL});
    send(&b, 0, 10, 1504);
    pass(&b, 20); /* during contention */
    CHANGE(b.way[0]->link, b.now, .has_state = true, .is_up = false);
    saturate(&b, false, true, 1504, S, mbps);
    assert_int_equal(b.received[0], 0);
    assert_true(mbps[1] > 120);
    CHANGE(b.way[0]->link, b.now, .has_state = true, .is_up = true);
    pass(&b, b.now + S);
    assert_int_equal(b.received[0], 10);
    CHANGE(b.way[1]->link, b.now, .rate_bps = 14440000);
    saturate(&b, false, true, 1504, b.now + S, mbps);
    assert_in_range((uint64_t)mbps[1], 12, 14);
    close_bench(&b);
}

/* ---- any settings, any traffic ---- */

static uint64_t below(link_rng *rng, uint64_t n) {
    return link_rng_next(rng) % n;
}

static link_wifi random_wifi(link_rng *rng) {
    char text[200];
    snprintf(text, sizeof text,
             "rate=%u:others=%u:busy=%.1f:frames=%u:airtime=%.1f:p=%.2f:r=%.2f:retries=%u:collision=%.1f%s",
             6 + (unsigned)below(rng, 300), (unsigned)below(rng, 5), 0.1 + (double)below(rng, 40) / 10,
             1 + (unsigned)below(rng, 64), 0.1 + (double)below(rng, 50) / 10, (double)below(rng, 30) / 100,
             0.1 + (double)below(rng, 90) / 100, (unsigned)below(rng, 9), (double)below(rng, 6) / 10,
             below(rng, 3) == 0 ? ":suspend=30:every=200" : "");
    return wifi_of(text);
}

/* Plays one random case. Returns a hash of the departures and their times. step: interval of the driver in us; 0: it is
 * always on time. */
static uint64_t play(uint64_t seed, uint64_t step) {
    static const char *const queues[] = {"droptail:packets=50", "codel", "fq_codel", "drophead:packets=9"};
    link_rng rng = {seed};
    link_wifi wifi = random_wifi(&rng);
    link_config config = {
        .queue = queues[below(&rng, 4)], .delay_us = below(&rng, 20000), .jitter_us = below(&rng, 3000)};
    config.duplicate = below(&rng, 2) ? 0.1 : 0;
    config.cross.rate_bps = below(&rng, 2) ? 2000000 : 0;
    wifi_bench b = open_bench(&wifi, seed, config);
    uint64_t hash = seed;
    for (unsigned round = 0; round < 60; round++) {
        uint64_t until = b.now + below(&rng, 30000);
        send(&b, (int)below(&rng, 2), (uint32_t)below(&rng, 60), 64 + (uint32_t)below(&rng, 1440));
        for (uint64_t at = b.now + step; step > 0 && at < until; at += step) {
            b.now = at;
            drain(&b);
        }
        pass(&b, until);
        if (below(&rng, 9) == 0)
            CHANGE(b.way[below(&rng, 2)]->link, b.now, .has_state = true, .is_up = below(&rng, 3) > 0);
        for (int way = 0; way < 2; way++)
            hash = link_mix64(hash ^ b.received[way] ^ b.due[way] << 20);
    }
    link_stats up = link_get_stats(b.way[0]->link), down = link_get_stats(b.way[1]->link);
    assert_true(up.air.airtime_us + down.air.airtime_us <= 2 * b.now + 40000); /* a collision counts twice */
    assert_true(up.air.used <= up.air.transmissions && down.air.used <= down.air.transmissions);
    hash = link_mix64(hash ^ up.air.airtime_us ^ down.air.retries << 30 ^ up.cross_departed << 50);
    close_bench(&b);
    return hash;
}

TEST(whatever_the_steps_of_the_driver) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t on_time = play(seed, 0);
        if (play(seed, 1 + seed * 37 % 4000) != on_time)
            fail_msg("seed %llu: steps of the driver changed what left when", (unsigned long long)seed);
        assert_true(play(seed, 0) == on_time);
    }
}

/* ---- the setting ---- */

TEST(settings_are_read) {
    link_wifi wifi;
    char wanted[240];
    static const char *const bad[] = {
        "",           "fair",           "good:good",      "others=65",           "frames=0",
        "frames=65",  "airtime=6",      "rate=0",         "suspend=200",         "p=1.1",
        "off:rate=3", "retries=256",    "busy=0",         "rate=1e12",           "every=2000",
        "good:",      "congested:rate", "collision=-0.1", "suspend=90:every=100"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (link_wifi_parse(&wifi, bad[i], wanted, sizeof wanted))
            fail_msg("%s is taken", bad[i]);
    assert_int_equal(wifi_of("off").rate_bps, 0);
    assert_int_equal(wifi_of("good").rate_bps, 144400000);
    assert_int_equal(wifi_of("congested:others=4:busy=1.5").others, 4);
    assert_int_equal(wifi_of("congested:others=4:busy=1.5").others_us, 1500);
    assert_int_equal(wifi_of("suspend=200:every=2000").every_us, 2 * S);
}

TEST_MAIN(NULL, NULL)
