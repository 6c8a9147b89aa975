/* A connected pair. The input chooses the scheme, then events: forged packets to both ends, time, outages and NAT
 * rebinding of links, and calls of the applications. Properties: see live.h. */
#include "tests/fuzz/forge.h"
#include "tests/fuzz/repeatable.h"

#define OPERATIONS 200

/* Returns a scheduler that needs no knowledge of the links' future. */
static const char *nth_scheduler(uint8_t v) {
    const char *names[32];
    size_t n = 0;
    for (size_t i = 0; xl_scheduler_name(i) && n < 32; i++)
        if (!xl_scheduler_is_reference(xl_scheduler_name(i)))
            names[n++] = xl_scheduler_name(i);
    return names[v % n];
}

static const char *nth_cc(uint8_t v) {
    size_t n = 0;
    while (xl_cc_name(n))
        n++;
    return xl_cc_name(v % n);
}

static const char *nth_reinjection(uint8_t v) {
    static const char *const names[] = {"none", "appending", "stream", "frame"};
    return names[v % 4];
}

static void choose_scheme(xl_scheme *c, xl_limits *limits, fuzz_input *in) {
    uint8_t flags = fuzz_u8(in), more = fuzz_u8(in);
    c->enable_multipath = flags & 1;
    c->enable_migration = flags & 2;
    c->scheduler = nth_scheduler(fuzz_u8(in));
    c->reinjection = nth_reinjection(flags >> 2);
    c->cc = nth_cc(fuzz_u8(in));
    c->ack_path = flags & 0x10 ? XL_ACK_FASTEST : XL_ACK_ORIGINAL;
    c->qoe_control = flags & 0x20;
    c->reinjection_unconditional = flags & 0x40;
    c->qoe_extrapolation = !(flags & 0x80);
    c->qoe_carrier = (xl_qoe_carrier)(more & 3);
    limits->path_management.enabled = more & 4;
    limits->migrate_back = more & 8;
    limits->migrate_ptos = (more >> 4) & 3;
    c->max_reinjections = (uint8_t)(1 + (more >> 6));
    c->rescue = more & 0x20;
    c->rescue_gain_us = 50000;
    c->rescue_permille = 100;
}

static void choose_limits(xl_config *config, fuzz_input *in) {
    xl_limits *c = &config->limits;
    uint8_t v = fuzz_u8(in);
    if (v & 1)
        c->max_data = 4000;
    if (v & 2)
        c->max_stream_data = 3000;
    if (v & 4)
        c->max_streams_bidi = 3;
    if (v & 8)
        c->idle_timeout_us = 2000000;
    c->retry_always = v & 16;
    if (v & 32)
        config->log = (xl_log){0};
    c->migrate_back_us = v & 64 ? 3000000 : 0;
    if (v & 128)
        config->preferred_address_v4 = pair_addr(1, 444);
}

static void change_link(live *l) {
    fuzz_input *in = l->in;
    uint8_t which = fuzz_u8(in), v = fuzz_u8(in);
    pair_link *link = &l->p.link[which % l->p.link_count];
    switch (which >> 5) {
    case 0:
        link->dark[0] = v & 1;
        link->dark[1] = v & 2;
        break;
    case 1:
        pair_delay(link, 500 * (uint64_t)v);
        break;
    case 2:
        link->loss = v / 512.0;
        break;
    case 3:
        link->bytes_per_s[0] = link->bytes_per_s[1] = 10000 + 20000 * (uint64_t)v;
        break;
    case 4: /* a new NAT binding, another address of the NAT, or no NAT */
        link->nat = v == 0 ? (xl_addr){0} : pair_addr((uint8_t)(200 + (v & 1)), (uint16_t)(6000 + v));
        break;
    case 5:
        link->reorder = v / 256.0;
        break;
    default:
        pair_set_dark(link, false);
        link->loss = 0;
    }
}

static void reconfigure(live *l, bool is_server) {
    xl_scheme c = is_server ? l->p.server_config.scheme : l->p.client_config.scheme;
    xl_limits ignored;
    choose_scheme(&c, &ignored, l->in);
    FUZZ_CHECK(xl_endpoint_reconfigure(is_server ? l->p.server : l->p.client, &c, l->p.now) == 0);
}

static void use_streams(live *l, xl_connection *c) {
    fuzz_input *in = l->in;
    static const uint8_t zeros[5000];
    uint64_t id = 0;
    uint8_t what = fuzz_u8(in), v = fuzz_u8(in);
    xl_frame_mark mark = {.position = fuzz_number(in), .priority = v};
    mark.size = fuzz_number(in);
    bool opened = what & 0x80 && xl_stream_open(c, what & 0x40, &id) == 0;
    if (!opened)
        id = v & 31;
    switch (what & 7) {
    case 0:
        xl_stream_reset(c, id, v);
        break;
    case 1:
        xl_stream_stop(c, id, v);
        break;
    case 2:
        xl_stream_set_priority(c, id, v);
        break;
    case 3: {
        size_t most = xl_connection_datagram_capacity(c), len = v * 6u;
        int rv = xl_connection_send_datagram(c, zeros, len, v, l->p.now);
        FUZZ_CHECK(rv == (len > most || most == 0 ? XL_ERR_ARGUMENT : XL_OK) || rv == XL_ERR_QUEUE ||
                   rv == XL_ERR_CLOSED);
        break;
    }
    default:
        FUZZ_CHECK(xl_stream_send(c, id, zeros, v * 16u, what & 0x20, what & 8 ? &mark : NULL) <= (ssize_t)(v * 16u));
        FUZZ_CHECK(xl_stream_send_capacity(c, id) <= UINT64_C(1) << 32);
    }
}

static void ask(live *l) {
    uint64_t id, size = fuzz_number(l->in) << 6;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(size >> (56 - 8 * i));
    if (!l->p.client_closed && xl_stream_open(l->p.cc, true, &id) == 0)
        xl_stream_send(l->p.cc, id, bytes, sizeof bytes, true, NULL);
}

static void call(live *l) {
    fuzz_input *in = l->in;
    uint8_t what = fuzz_u8(in), v = fuzz_u8(in);
    bool is_server = what & 0x80;
    xl_connection *c = is_server ? l->p.sc : l->p.cc;
    const pair_link *link = &l->p.link[v % l->p.link_count];
    if (!c || (is_server ? l->p.server_closed : l->p.client_closed))
        return;
    switch (what & 15) {
    case 0:
        if (!is_server)
            xl_connection_add_path(c, &link->client, &link->server, (xl_technology)(v % 5), l->p.now);
        break;
    case 1:
        xl_connection_close_path(c, v % 9, l->p.now);
        break;
    case 2:
    case 3:
        xl_connection_set_path_status(c, v % 9, (xl_path_status)(v >> 4) % 3, l->p.now);
        break;
    case 4:
    case 5:
    case 6: {
        xl_qoe qoe = forge_qoe(in);
        xl_connection_set_qoe(c, &qoe, l->p.now);
        break;
    }
    case 7:
        xl_connection_ping(c, l->p.now);
        break;
    case 8:
        reconfigure(l, is_server);
        break;
    case 9:
        if (v >= 0xf0)
            xl_connection_close(c, v, "bye", l->p.now);
        break;
    case 10: {
        xl_connection_stats stats;
        xl_path_stats path;
        xl_connection_get_stats(c, &stats);
        xl_connection_path_stats(c, v, &path);
        fuzz_note_number(stats.stream_bytes_sent);
        break;
    }
    case 11:
        xl_conn_enter(c, l->p.now);
        if (xl_conn_may_update_keys(c))
            FUZZ_CHECK(xl_conn_update_keys(c) == 0);
        break;
    default:
        use_streams(l, c);
    }
}

static void operate(live *l) {
    fuzz_input *in = l->in;
    uint8_t op = fuzz_u8(in);
    switch (op % 16) {
    case 0:
    case 1:
    case 2:
        live_run(l, 1 + 1000 * (uint64_t)fuzz_u8(in));
        break;
    case 3:
        live_run(l, 20000 * (uint64_t)fuzz_u8(in));
        break;
    case 4:
        ask(l);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        forge_packet(l);
        break;
    case 9:
    case 10:
        forge_as_own(l);
        break;
    case 11:
        forge_from_sight(l);
        break;
    case 12:
        forge_noise(l);
        break;
    case 13:
        change_link(l);
        break;
    default:
        call(l);
    }
    if (op & 0x80)
        live_run(l, 0);
}

static void harness(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    live *l = malloc(sizeof *l);
    FUZZ_CHECK(l != NULL);
    uint8_t shape = fuzz_u8(&in);
    live_init(l, &in, 1 + (shape >> 6), 1 + shape % PAIR_PATHS);
    choose_scheme(&l->p.client_config.scheme, &l->p.client_config.limits, &in);
    choose_scheme(&l->p.server_config.scheme, &l->p.server_config.limits, &in);
    if (shape & 4) /* both support it, as usual */
        l->p.client_config.scheme.enable_multipath = l->p.server_config.scheme.enable_multipath = true;
    if (shape & 32) /* RFC 10069 */
        l->p.server_config.scheme.dialect = XL_DIALECT_IETF;
    choose_limits(&l->p.client_config, &in);
    choose_limits(&l->p.server_config, &in);
    pair_connect(&l->p);
    if (!(shape & 8)) /* otherwise the input begins before the handshake */
        live_run(l, 150000);
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0 && !live_is_over(l); i++)
        operate(l);
    live_run(l, shape & 16 ? 40000000 : 500000);
    FUZZ_CHECK(!(shape & 16) || live_is_over(l) || !l->p.sc || xl_conn_is_live(l->p.sc) || l->p.server_closed);
    live_free(l);
    free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_repeat_tls();
    harness(data, size);
    return 0;
}
