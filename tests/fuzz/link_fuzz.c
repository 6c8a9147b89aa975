/* A link with any settings, under any pattern of arrivals, changes and pauses. Properties: packets are conserved (in +
 * duplicates = out + dropped + inside); they leave unchanged, in order, and not too early; bytes do not exceed delivery
 * opportunities; the log is complete. */
#include "tests/fuzz/input.h"
#include "emulator/link/link.h"
#include "emulator/link/testing/change.h"
#include "emulator/link/testing/numbered.h"
#include "emulator/link/queue.h"

#define PACKETS    2000
#define FLOWS      5
#define OPERATIONS 400

typedef struct {
    link_trace trace[2];
    link_steps delays;
    link_light_trace light;
    link_rrc rrc;
    link_pool *pool;
    emulated_link *link;
    link_log log;
    link_config config;
    uint64_t now, lines[128]; /* lines: of the log, by kind */
    uint64_t arrived, drops_in_log, cross_drops_in_log;
    uint32_t length[PACKETS], newest[FLOWS];
    uint8_t flow[PACKETS];
    uint64_t entered_us[PACKETS], last_due;
    uint8_t copies[PACKETS];
    bool by_flow, in_order;
    uint64_t changed_us[OPERATIONS]; /* times of changes of trace or rate */
    unsigned changes;
} bench;

static void take_log(void *user, const char *text, size_t length) {
    bench *b = user;
    const char *end = text + length;
    FUZZ_CHECK(length > 0 && end[-1] == '\n');
    while (text < end) {
        unsigned long long t, n;
        char kind;
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        char line[128];
        size_t len = (size_t)(newline - text);
        FUZZ_CHECK(len < sizeof line);
        memcpy(line, text, len);
        line[len] = 0;
        FUZZ_CHECK(sscanf(line, "%llu %c %llu", &t, &kind, &n) == 3 && t <= b->now / 1000);
        FUZZ_CHECK(strchr("#+-dcsx", kind) != NULL);
        b->lines[(int)kind]++;
        b->drops_in_log += kind == 'd' ? n : 0;
        b->cross_drops_in_log += kind == 'x' ? n : 0;
        text = newline + 1;
    }
}

static const char *choose_queue(fuzz_input *in) {
    static const char *const queues[] = {"infinite",
                                         "droptail:packets=3",
                                         "droptail:bytes=4000",
                                         "droptail:packets=10:bytes=20000",
                                         "drophead:packets=4",
                                         "drophead:bytes=3000",
                                         "codel:target=5:interval=20",
                                         "codel:target=1:interval=5:packets=20",
                                         "pie:packets=20:qdelay_ref=5:max_burst=1",
                                         "pie:packets=10",
                                         "fq_codel:target=2:interval=10:flows=4",
                                         "fq_codel:packets=10"};
    return queues[fuzz_below(in, sizeof queues / sizeof queues[0])];
}

static void choose_trace(link_trace *trace, fuzz_input *in) {
    char text[512], error[256];
    size_t at = 0;
    uint32_t ms = 0;
    uint8_t lines = fuzz_u8(in);
    if (lines >= 0xc0) {
        *trace = link_trace_constant(1 + fuzz_number(in) % 100000000);
        return;
    }
    for (unsigned i = 0; i < 1 + lines % 40u; i++) {
        uint8_t gap = fuzz_u8(in);
        ms += gap < 0xf0 ? gap % 16 : gap;
        at += (size_t)snprintf(text + at, sizeof text - at, "%u\n", ms + (i == lines % 40u && ms == 0));
    }
    FUZZ_CHECK(link_trace_parse(trace, "t", text, at, error, sizeof error));
}

static void choose_config(bench *b, fuzz_input *in) {
    link_config *c = &b->config;
    uint8_t flags = fuzz_u8(in), more = fuzz_u8(in);
    char error[256];
    choose_trace(&b->trace[0], in);
    choose_trace(&b->trace[1], in);
    c->trace = &b->trace[0];
    c->pool = b->pool;
    c->log = &b->log;
    c->queue = choose_queue(in);
    c->once = flags & 1;
    c->start_offset_ms = flags & 2 ? fuzz_number(in) & UINT32_MAX : 0;
    c->delay_us = flags & 4 ? fuzz_u16(in) : 0;
    c->jitter_us = flags & 8 ? fuzz_u16(in) / 4 : 0;
    if (flags & 16) {
        c->reorder = fuzz_u8(in) / 255.0;
        c->reorder_us = 1 + fuzz_u16(in);
    }
    if (flags & 32) {
        c->loss.good = fuzz_u8(in) / 1000.0;
        c->loss.bad = fuzz_u8(in) / 255.0;
        c->loss.p = fuzz_u8(in) / 255.0;
        c->loss.r = fuzz_u8(in) / 255.0;
    }
    if (flags & 64) {
        c->onoff = (link_onoff){.is_random = more & 1, .count = 2};
        c->onoff.us[0] = 1 + fuzz_u16(in);
        c->onoff.us[1] = 1 + fuzz_u16(in);
    }
    c->duplicate = flags & 128 ? fuzz_u8(in) / 255.0 : 0;
    c->seed = more;
    static const char delays[] = "0,3\n20,8.5\n50,0.2\n120,3\n";
    if (more & 2) {
        FUZZ_CHECK(
            link_text_parse(&link_delay_trace_form, &b->delays, "d", delays, sizeof delays - 1, error, sizeof error));
        c->delay_trace = &b->delays;
        c->hold_delay = more & 4;
    }
    static const char rows[] = "0 9 0 0 4 4 30\n20 3 0\n50 40\n120 9\n";
    c->opportunity_bytes = more & 16 ? 1400 : 0;
    if (more & 8) {
        FUZZ_CHECK(link_text_parse(&link_light_trace_form, &b->light, "l", rows, sizeof rows - 1, error, sizeof error));
        c->light.trace = &b->light;
        c->light.gap_us = more * 100;
    }
    if (more & 32 && !link_queue_is_infinite(c->queue)) {
        c->cross = (link_cross){.rate_bps = UINT64_C(1000) * fuzz_u16(in), .random_gaps = more & 64};
        c->cross.bytes = LINK_CROSS_BYTES_LEAST + fuzz_u8(in) * 5u;
        c->cross.onoff = more & 128 ? (link_onoff){.is_random = true, .count = 2, .us = {9000, 5000}} : c->onoff;
    }
    if (more & 32)
        c->grants = (link_grants){.sr_us = 1 + more * 40u,
                                  .grant_us = flags * 20u,
                                  .report_us = 4000,
                                  .idle_us = 5000,
                                  .first_bytes = more * 10u};
    if (more & 4) {
        c->radio = (link_radio){.promotion_us = 1 + flags * 40u, .tail_us = 1 + more * 100u};
        b->rrc = link_rrc_make(&c->radio, flags & 1 ? 1 + more * 200u : 0, more);
        c->rrc = b->rrc.paging_us > 0 ? &b->rrc : NULL;
        c->is_downlink = flags & 2;
    }
    if (more & 64 && !(more & 8))
        c->leo = (link_leo){.period_us = 20000,
                            .phase_us = 3000,
                            .step_us = more * 10,
                            .pause_us = 5000,
                            .burst_us = 1000,
                            .loss = more / 255.0};
    b->by_flow = strncmp(c->queue, "fq", 2) == 0;
    b->in_order = !(flags & 16);
}

static bool has_changed_at(const bench *b, uint64_t us) {
    for (unsigned i = 0; i < b->changes; i++)
        if (b->changed_us[i] == us)
            return true;
    return false;
}

static void check_departure(bench *b, const link_packet *p) {
    const uint32_t n = numbered_number(p);
    FUZZ_CHECK(n < b->arrived && p->length == b->length[n] && p->data[21] == b->flow[n]);
    FUZZ_CHECK(++b->copies[n] <= 2);
    /* The first opportunity of a new trace may be at the time of the change, and serves waiting packets. */
    bool at_once = b->config.light.trace || has_changed_at(b, p->due_us);
    FUZZ_CHECK(p->due_us > p->arrival_us || (p->due_us == p->arrival_us && at_once));
    FUZZ_CHECK(p->arrival_us >= b->entered_us[n] && p->due_us <= b->now);
    FUZZ_CHECK(p->due_us >= b->last_due);
    b->last_due = p->due_us;
    uint32_t *newest = &b->newest[b->by_flow ? b->flow[n] : 0];
    FUZZ_CHECK(!b->in_order || n >= *newest);
    *newest = n;
    fuzz_note_number(n);
    fuzz_note_number(p->due_us);
}

static void check_balance(const bench *b) {
    link_stats s = link_get_stats(b->link);
    FUZZ_CHECK(s.arrived_packets + s.duplicates == s.departed_packets + s.queue_drops + s.random_losses + s.off_losses +
                                                       s.oversize_drops + s.memory_drops + s.nat_drops +
                                                       s.inside_packets);
    FUZZ_CHECK(s.opportunities_used <= s.opportunities && s.queued_packets <= s.inside_packets + s.cross_inside);
    FUZZ_CHECK(b->config.light.trace || s.departed_bytes <= s.opportunities * LINK_OPPORTUNITY_BYTES);
    FUZZ_CHECK(link_pool_in_use(b->pool) == s.inside_packets + s.cross_inside);
}

static void drain(bench *b) {
    unsigned most = PACKETS * 2;
    link_advance(b->link, b->now);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        FUZZ_CHECK(most-- > 0);
        check_departure(b, p);
        link_departed(b->link, p, b->now);
    }
    check_balance(b);
    FUZZ_CHECK(link_next_deadline(b->link) > b->now); /* all due packets have left */
}

static void send(bench *b, uint32_t length, uint8_t flow) {
    if (b->arrived == PACKETS)
        return;
    uint32_t n = (uint32_t)b->arrived++;
    link_packet *p = numbered_packet(b->pool, flow & 4 ? 6 : 4, flow, n, length);
    FUZZ_CHECK(p != NULL);
    b->length[n] = length;
    b->flow[n] = flow;
    b->entered_us[n] = b->now;
    link_enqueue(b->link, p, b->now);
}

static void pass(bench *b, uint64_t us) {
    uint64_t end = b->now + us;
    for (unsigned i = 0; i < 64 && link_next_deadline(b->link) < end; i++) { /* a driver that is on time, then late */
        b->now = link_next_deadline(b->link) > b->now ? link_next_deadline(b->link) : b->now;
        drain(b);
    }
    b->now = end;
    drain(b);
}

static void change(bench *b, fuzz_input *in) {
    link_loss loss = {.good = fuzz_u8(in) / 255.0};
    loss.p = fuzz_u8(in) / 100.0;
    switch (fuzz_u8(in) % 9) {
    case 0:
        CHANGE(b->link, b->now, .has_state = true, .is_up = fuzz_bool(in));
        break;
    case 1:
        CHANGE(b->link, b->now, .has_loss = link_loss_is_valid(&loss), .loss = loss);
        break;
    case 2:
        CHANGE(b->link, b->now, .has_delay = true, .delay_us = fuzz_u16(in));
        break;
    case 3:
        CHANGE(b->link, b->now, .trace = &b->trace[fuzz_bool(in)]);
        b->changed_us[b->changes++] = b->now;
        break;
    case 4: {
        uint64_t rate = fuzz_number(in);
        if (rate > 0 && rate <= LINK_TRACE_MAX_RATE_BPS) {
            CHANGE(b->link, b->now, .rate_bps = rate);
            b->changed_us[b->changes++] = b->now;
        }
        break;
    }
    case 5:
        CHANGE(b->link, b->now, .mtu_bytes = LINK_MTU_LEAST + fuzz_u16(in) % (LINK_MTU_MOST - LINK_MTU_LEAST + 1));
        break;
    case 6:
        CHANGE(b->link, b->now, .has_reorder = true, .reorder = fuzz_u8(in) / 255.0, .reorder_us = 1 + fuzz_u16(in));
        b->in_order = false;
        break;
    case 7:
        CHANGE(b->link, b->now, .has_duplicate = true, .duplicate = fuzz_u8(in) / 255.0);
        break;
    default:
        link_refuse(b->link, fuzz_u16(in));
        link_count_missed(b->link, b->now > 5000 ? b->now - 5000 : 0, b->now);
    }
}

static void operate(bench *b, fuzz_input *in) {
    uint8_t op = fuzz_u8(in);
    switch (op & 7) {
    case 0:
        for (unsigned n = 1 + (op >> 3); n > 0; n--)
            send(b, 1496, 0);
        break;
    case 1:
    case 2:
        send(b, 40u + fuzz_u16(in) % (LINK_PACKET_CAPACITY - 40), (uint8_t)((op >> 3) % FLOWS));
        break;
    case 3:
        pass(b, 1 + fuzz_u16(in));
        break;
    case 4:
        b->now += fuzz_u8(in); /* not drained: the driver is late */
        break;
    case 5:
        pass(b, 1000 * (uint64_t)fuzz_u8(in));
        break;
    case 6:
        drain(b);
        break;
    default:
        change(b, in);
    }
}

static void check_log(bench *b) {
    link_stats s = link_get_stats(b->link);
    link_log_flush(&b->log);
    FUZZ_CHECK(b->lines['#'] == s.opportunities && b->lines['-'] == s.departed_packets);
    FUZZ_CHECK(b->drops_in_log == s.queue_drops);
    FUZZ_CHECK(s.cross_packets == s.cross_departed + s.cross_drops + s.cross_inside);
    FUZZ_CHECK(b->lines['s'] == s.cross_departed && b->cross_drops_in_log <= s.cross_drops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    char error[512] = "";
    bench *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b != NULL);
    b->pool = link_pool_new(0);
    link_log_init(&b->log, take_log, b);
    choose_config(b, &in);
    b->link = link_new(&b->config, error, sizeof error);
    FUZZ_CHECK(b->link || error[0] != 0);
    for (int i = 0; b->link && i < OPERATIONS && fuzz_left(&in) > 0; i++)
        operate(b, &in);
    if (b->link) {
        drain(b);
        check_log(b);
        fuzz_note_number(link_get_stats(b->link).queue_drops);
    }
    link_free(b->link);
    FUZZ_CHECK(link_pool_in_use(b->pool) == 0);
    link_pool_free(b->pool);
    link_trace_free(&b->trace[0]);
    link_trace_free(&b->trace[1]);
    link_steps_free(&b->delays);
    link_light_trace_free(&b->light);
    free(b);
    return 0;
}
