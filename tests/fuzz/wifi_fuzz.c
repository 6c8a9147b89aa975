/* Both directions of a Wi-Fi link, with any settings, traffic, outages and rates. Properties: packets are conserved,
 * and leave in order and not too early; the log is complete; departures do not depend on the times of the driver's
 * calls. */
#include "tests/fuzz/input.h"
#include "emulator/link/air.h"
#include "emulator/link/link.h"
#include "emulator/link/testing/change.h"
#include "emulator/link/testing/numbered.h"

#define PACKETS    1500
#define OPERATIONS 200

typedef struct {
    link_air *air;
    link_pool *pool;
    link_trace trace;
    emulated_link *link[2];
    link_log log[2];
    uint64_t now, lines[2][128], drops_in_log[2], last_due[2], hash[2];
    uint32_t sent, newest[2];
    uint64_t entered_us[PACKETS];
    bool in_order;
} bench;

static void take_log(bench *b, int way, const char *text, size_t length) {
    const char *end = text + length;
    while (text < end) {
        unsigned long long t, n;
        char kind;
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        FUZZ_CHECK(newline && newline - text < 100);
        FUZZ_CHECK(sscanf(text, "%llu %c %llu", &t, &kind, &n) == 3 && t <= b->now / 1000);
        FUZZ_CHECK(strchr("#+-dcsx", kind) != NULL);
        b->lines[way][(int)kind]++;
        b->drops_in_log[way] += kind == 'd' ? n : 0;
        text = newline + 1;
    }
}

static void take_up_log(void *user, const char *text, size_t length) {
    take_log(user, 0, text, length);
}

static void take_down_log(void *user, const char *text, size_t length) {
    take_log(user, 1, text, length);
}

static link_wifi choose_wifi(fuzz_input *in) {
    link_wifi w;
    char wanted[240];
    uint8_t flags = fuzz_u8(in);
    FUZZ_CHECK(link_wifi_parse(&w, flags & 1 ? "congested" : "good", wanted, sizeof wanted));
    w.others = flags & 2 ? fuzz_u8(in) % (LINK_WIFI_OTHERS_MOST + 1) : w.others;
    w.others_us = flags & 2 ? UINT64_C(200) + fuzz_u16(in) : w.others_us;
    w.frames = flags & 4 ? 1 + fuzz_u8(in) % LINK_WIFI_WINDOW : w.frames;
    w.airtime_us = flags & 4 ? UINT64_C(1) + fuzz_u16(in) % 5484 : w.airtime_us;
    if (flags & 8)
        w.loss =
            (link_loss){.good = fuzz_u8(in) / 255.0, .bad = fuzz_u8(in) / 255.0, .p = fuzz_u8(in) / 255.0, .r = 0.3};
    w.retries = flags & 16 ? fuzz_u8(in) : w.retries;
    w.collision = flags & 32 ? fuzz_u8(in) / 255.0 : 0;
    w.rate_bps = flags & 64 ? 100000 + fuzz_number(in) % LINK_WIFI_RATE_MOST : w.rate_bps;
    if (flags & 128) {
        w.suspend_us = 1 + fuzz_u16(in);
        w.every_us = w.suspend_us + 100000;
    }
    return w;
}

static void choose_links(bench *b, fuzz_input *in) {
    static const char *const queues[] = {"infinite", "droptail:packets=9", "drophead:bytes=9000", "codel", "pie",
                                         "fq_codel"};
    static link_log_sink *const sinks[] = {take_up_log, take_down_log};
    link_config c = {.trace = &b->trace, .pool = b->pool, .air = b->air};
    uint8_t flags = fuzz_u8(in);
    char error[256];
    c.queue = queues[fuzz_below(in, sizeof queues / sizeof queues[0])];
    c.delay_us = flags & 1 ? fuzz_u16(in) : 0;
    c.jitter_us = flags & 2 ? fuzz_u16(in) / 4 : 0;
    c.duplicate = flags & 4 ? fuzz_u8(in) / 255.0 : 0;
    c.reorder = flags & 8 ? fuzz_u8(in) / 255.0 : 0;
    c.reorder_us = 1000;
    c.loss.good = flags & 16 ? fuzz_u8(in) / 255.0 : 0;
    c.cross.rate_bps = flags & 32 && c.queue != queues[0] ? 1000 * UINT64_C(100) * fuzz_u8(in) : 0;
    b->in_order = !(flags & 8) && c.queue != queues[5];
    for (int way = 0; way < 2; way++) {
        link_log_init(&b->log[way], sinks[way], b);
        c.log = &b->log[way];
        c.is_downlink = way == 1;
        c.seed = link_seed(flags, 0, (uint32_t)way);
        b->link[way] = link_new(&c, error, sizeof error);
        FUZZ_CHECK(b->link[way] != NULL);
    }
}

static void drain(bench *b) {
    for (int way = 0; way < 2; way++) {
        link_advance(b->link[way], b->now);
        for (link_packet *p = link_pull(b->link[way]); p; p = link_pull(b->link[way])) {
            const uint32_t n = numbered_number(p);
            FUZZ_CHECK(n < b->sent && p->due_us > b->entered_us[n] && p->due_us > p->arrival_us && p->due_us <= b->now);
            FUZZ_CHECK(p->due_us >= b->last_due[way] && (!b->in_order || n >= b->newest[way]));
            b->newest[way] = n;
            b->last_due[way] = p->due_us;
            b->hash[way] = link_mix64(b->hash[way] ^ n ^ p->due_us << 16);
            link_passed(b->link[way], p, p->due_us);
            link_pool_put(b->pool, p);
        }
        link_stats s = link_get_stats(b->link[way]);
        FUZZ_CHECK(s.arrived_packets + s.duplicates == s.departed_packets + s.queue_drops + s.random_losses +
                                                           s.off_losses + s.retry_drops + s.inside_packets);
        FUZZ_CHECK(link_next_deadline(b->link[way]) > b->now);
    }
}

static void send(bench *b, int way, uint32_t length) {
    if (b->sent == PACKETS)
        return;
    link_packet *p = numbered_packet(b->pool, 4, 0, b->sent, length);
    FUZZ_CHECK(p != NULL);
    b->entered_us[b->sent++] = b->now;
    link_enqueue(b->link[way], p, b->now);
}

/* Runs the link until `until`. step 0: the driver calls when something is due; else at least every `step` us. */
static void pass(bench *b, uint64_t until, uint64_t step) {
    while (b->now < until) {
        uint64_t up = link_next_deadline(b->link[0]), down = link_next_deadline(b->link[1]);
        uint64_t next = step > 0 ? b->now + step : up < down ? up : down;
        b->now = next < until ? next : until;
        drain(b);
    }
}

static void operate(bench *b, fuzz_input *in, uint64_t step) {
    uint8_t op = fuzz_u8(in);
    int way = op >> 3 & 1;
    switch (op & 7) {
    case 0:
    case 1:
        for (unsigned n = 1 + (op >> 4); n > 0; n--)
            send(b, way, 1500);
        break;
    case 2:
        send(b, way, 40u + fuzz_u16(in) % 1461);
        break;
    case 3:
        pass(b, b->now + fuzz_u16(in), step);
        break;
    case 4:
        pass(b, b->now + fuzz_u8(in), step);
        break;
    case 5:
        pass(b, b->now + UINT64_C(400) * fuzz_u8(in), step);
        break;
    case 6:
        CHANGE(b->link[way], b->now, .has_state = true, .is_up = op & 16);
        break;
    default:
        CHANGE(b->link[way], b->now, .rate_bps = 100000 + 1000 * (uint64_t)fuzz_u16(in));
    }
}

static uint64_t play(const uint8_t *data, size_t size, uint64_t step) {
    fuzz_input in = fuzz_input_of(data, size);
    bench *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b != NULL);
    const link_wifi wifi = choose_wifi(&in);
    b->pool = link_pool_new(0);
    b->trace = link_trace_constant(wifi.rate_bps);
    b->air = link_air_new(&wifi, 1);
    choose_links(b, &in);
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0; i++)
        operate(b, &in, step);
    drain(b);
    for (int way = 0; way < 2; way++) {
        link_stats s = link_get_stats(b->link[way]);
        link_log_flush(&b->log[way]);
        FUZZ_CHECK(b->lines[way]['-'] == s.departed_packets && s.opportunities_used <= s.opportunities);
        FUZZ_CHECK(b->drops_in_log[way] == s.queue_drops + s.retry_drops);
        FUZZ_CHECK(s.cross_packets == s.cross_departed + s.cross_drops + s.cross_inside);
        b->hash[way] = link_mix64(b->hash[way] ^ s.air.airtime_us ^ s.retry_drops << 40);
        link_free(b->link[way]);
    }
    FUZZ_CHECK(link_pool_in_use(b->pool) == 0);
    link_air_free(b->air);
    link_pool_free(b->pool);
    uint64_t hash = link_mix64(b->hash[0]) ^ b->hash[1];
    free(b);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t on_time = play(data, size, 0), late = play(data, size, 1777);
    FUZZ_CHECK(on_time == late);
    fuzz_note_number(on_time);
    return 0;
}
