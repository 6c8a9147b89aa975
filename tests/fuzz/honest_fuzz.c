/* Two correct ends. The input chooses both schemes, then events of the links and calls of the applications: outages,
 * losses, rates, NAT rebinding, paths that are added, removed, on standby or migrated, key updates, 0-RTT. Properties:
 *
 *     neither end detects an error of the other;
 *     every response arrives completely and correctly;
 *     no packet number is used twice with one key on one path;
 *     timers advance, datagrams and memory are bounded;
 *     after the links work again, every response is complete within three minutes, and every path that is open at the
 *     client works at both ends.
 *
 * There is no idle timeout, so that only progress counts. At the end the client pings every five seconds, because a
 * server cannot reach a client whose NAT binding has expired. */
#include "testing/early_world.h"
#include "connection/key_update.h"
#include "connection/path_table.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/repeatable.h"

#define OPERATIONS      80
#define REQUESTS        12
#define MOST_ANSWER     150000
#define MOST_MOMENT     4096
#define MOST_STEPS      64
#define MOST_DATAGRAMS  200000
#define MOST_MEMORY     (96u << 20)
#define NO_TIMEOUT_US   UINT64_C(100000000000)
#define HEALED_FOR_US   180000000
#define KEEPALIVE_US    5000000
#define NONCES          (1u << 18)
#define SLOWEST_B_PER_S 12000
#define DATAGRAM_BYTES  1000

typedef struct {
    world w;
    fuzz_input in;
    size_t asked, datagrams;
    bool is_excused; /* an end abandoned the last path, which closes the connection */
    size_t memory_before;
    struct {
        uint8_t tag[16];
        bool used, to_server;
    } * nonce; /* per packet sent: without encryption, the tag consists of key, path and packet number */
    size_t nonces;
} honest;

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t memory_used(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

/* ---- what is sent ---- */

static void note_nonce(honest *h, bool to_server, const uint8_t *tag) {
    uint64_t at = to_server;
    for (int i = 0; i < 16; i++)
        at = (at ^ tag[i]) * UINT64_C(0x100000001b3);
    at ^= at >> 29;
    for (at %= NONCES; h->nonce[at].used; at = (at + 1) % NONCES)
        FUZZ_CHECK(h->nonce[at].to_server != to_server || memcmp(h->nonce[at].tag, tag, 16) != 0);
    memcpy(h->nonce[at].tag, tag, 16);
    h->nonce[at].used = true;
    h->nonce[at].to_server = to_server;
    FUZZ_CHECK(++h->nonces < NONCES / 2);
}

/* Whether it may be a stateless reset, which has an unknown connection ID and may repeat with the same token. */
static bool is_stateless_reset(const honest *h, bool to_server, const xl_packet_header *header) {
    const xl_endpoint *receiver = to_server ? h->w.p.server : h->w.p.client;
    return header->type == XL_PACKET_1RTT && !xl_cid_map_get(&receiver->map, &header->dcid);
}

static void note_packets(honest *h, bool to_server, const uint8_t *data, size_t len) {
    xl_packet_header header;
    while (len > 0 && xl_packet_parse(data, len, XL_LOCAL_CID_BYTES, &header) == 0) {
        if (header.type != XL_PACKET_RETRY && header.type != XL_PACKET_VERSION_NEGOTIATION &&
            !is_stateless_reset(h, to_server, &header))
            note_nonce(h, to_server, data + header.total_len - 16);
        data += header.total_len;
        len -= header.total_len;
    }
}

static void flush(honest *h) {
    pair *p = &h->w.p;
    uint8_t buf[PAIR_MTU + 64];
    unsigned sent = 0;
    for (bool busy = true; busy;) {
        busy = false;
        pair_events(p);
        for (int to_server = 0; to_server < 2; to_server++) {
            xl_datagram d;
            while (xl_endpoint_transmit(to_server ? p->client : p->server, buf, PAIR_MTU, &d, p->now) > 0) {
                FUZZ_CHECK(++sent < MOST_MOMENT);
                FUZZ_CHECK(++h->datagrams < MOST_DATAGRAMS);
                note_packets(h, to_server, buf, d.len);
                fuzz_note_number(d.len);
                pair_enqueue(p, to_server, &d, buf);
                busy = true;
            }
        }
    }
}

/* ---- what must hold at any time ---- */

static bool is_last_path(const xl_event *e) {
    return e->error_code == 0 && strcmp(e->reason, "the last path was closed") == 0;
}

static void check(honest *h) {
    const pair *p = &h->w.p;
    const xl_event *ends[] = {p->client_closed ? &p->client_close : NULL, p->server_closed ? &p->server_close : NULL};
    for (int i = 0; i < 2; i++) {
        if (!ends[i])
            continue;
        h->is_excused |= is_last_path(ends[i]);
        if (!h->is_excused)
            fprintf(stderr, "%s closed: %s, error %llu\n", i ? "server" : "client", ends[i]->reason,
                    (unsigned long long)ends[i]->error_code);
        FUZZ_CHECK(h->is_excused && ends[i]->error_code == 0);
    }
    for (size_t i = 0; i < PAIR_REQUESTS; i++)
        FUZZ_CHECK(!p->request[i].failed && p->request[i].received <= p->request[i].size);
    FUZZ_CHECK(memory_used() <= h->memory_before + MOST_MEMORY);
}

static bool is_over(const honest *h) {
    return h->is_excused;
}

static void moment(honest *h) {
    pair *p = &h->w.p;
    for (int steps = 0; pair_next(p) <= p->now; steps++) {
        FUZZ_CHECK(steps < MOST_STEPS);
        pair_deliver_due(p);
        xl_endpoint_handle_timeout(p->client, p->now);
        xl_endpoint_handle_timeout(p->server, p->now);
        flush(h);
    }
    check(h);
}

static void run(honest *h, uint64_t duration_us) {
    pair *p = &h->w.p;
    uint64_t end = p->now + duration_us;
    flush(h);
    moment(h);
    while (!is_over(h) && pair_next(p) <= end) {
        FUZZ_CHECK(pair_next(p) > p->now);
        p->now = pair_next(p);
        moment(h);
    }
    p->now = end;
}

/* ---- what the input chooses ---- */

static const char *nth(const char *(*name)(size_t), uint8_t v) {
    const char *names[32];
    size_t n = 0;
    for (size_t i = 0; name(i) && n < 32; i++)
        if (name != xl_scheduler_name || !xl_scheduler_is_reference(name(i)))
            names[n++] = name(i);
    return names[v % n];
}

static void choose_scheme(honest *h, xl_scheme *c) {
    uint8_t flags = fuzz_u8(&h->in);
    c->scheduler = nth(xl_scheduler_name, fuzz_u8(&h->in));
    c->reinjection = nth(xl_reinjection_name, fuzz_u8(&h->in));
    c->cc = nth(xl_cc_name, fuzz_u8(&h->in));
    c->ack_path = flags & 1 ? XL_ACK_FASTEST : XL_ACK_ORIGINAL;
    c->qoe_control = flags & 2;
    c->rescue = flags & 4;
    c->suspect = !(flags & 8);
    c->reinjection_unconditional = flags & 16;
    c->qoe_carrier = (xl_qoe_carrier)(flags >> 5 & 3);
    c->max_reinjections = flags & 128 ? 3 : 1;
}

static void choose_config(honest *h, xl_config *c) {
    choose_scheme(h, &c->scheme);
    uint8_t flags = fuzz_u8(&h->in), more = fuzz_u8(&h->in);
    xl_limits *l = &c->limits;
    l->path_management.enabled = flags & 1;
    l->path_management.abandon_us = 2000000;
    l->migrate_back = flags & 2;
    l->migrate_ptos = flags >> 2 & 1;
    l->enable_ecn = flags & 8;
    l->grease = flags & 16;
    l->spin_bit = flags & 32;
    l->enable_ack_frequency = flags & 64;
    l->max_datagram_frame_bytes = flags & 128 ? DATAGRAM_BYTES : 0;
    l->path_mtu_bytes = more & 1 ? 1200 : PAIR_MTU;
    l->max_data = more & 2 ? 20000 : 1 << 20;
    l->max_stream_data = more & 4 ? 10000 : 1 << 19;
    l->max_streams_bidi = more & 8 ? 3 : 100;
    l->versions = more & 16 ? XL_VERSIONS_BOTH : XL_VERSIONS_1;
    l->retry_always = more & 32;
    l->issue_tokens = more & 64;
    c->random_packet_numbers = more & 128;
    l->idle_timeout_us = l->handshake_timeout_us = l->confirm_timeout_us = NO_TIMEOUT_US;
    c->null_crypto = true;
}

/* ---- what happens ---- */

static void change_link(honest *h) {
    uint8_t which = fuzz_u8(&h->in), v = fuzz_u8(&h->in);
    pair_link *l = &h->w.p.link[which % h->w.p.link_count];
    switch (which >> 4) {
    case 0:
    case 1:
    case 2:
        l->dark[0] = v & 1;
        l->dark[1] = v & 2;
        break;
    case 3:
        l->delay_us[0] = 500 * (uint64_t)v;
        break;
    case 4:
        l->delay_us[1] = 500 * (uint64_t)v;
        break;
    case 5:
        l->loss = v / 300.0;
        break;
    case 6:
        l->bytes_per_s[v & 1] = SLOWEST_B_PER_S + 5000 * (uint64_t)v;
        break;
    case 7:
        l->reorder = v / 256.0;
        break;
    case 8:
        l->queue_us = 20000 + 4000 * (uint64_t)v;
        break;
    case 9:
        l->mtu = v & 1 ? 1200 + v : 0;
        break;
    case 10:
        l->ce = v / 256.0;
        l->bleaches = v & 1;
        break;
    default: /* a new NAT binding, another address of the NAT, or no NAT; it would break a handshake */
        if (!h->w.p.cc->handshake.is_confirmed)
            break;
        /* Each link has its own ports, because a NAT gives a binding to one client only. */
        l->nat = v < 32 ? (xl_addr){0}
                        : pair_addr((uint8_t)(v & 1 ? 200 : l->client.ip[3]),
                                    (uint16_t)(6000 + 256 * (which % h->w.p.link_count) + v));
    }
}

/* Makes a request, if the server's stream limit allows it. */
static void ask(honest *h) {
    uint64_t size = 1 + fuzz_u16(&h->in) * 7u % MOST_ANSWER;
    pair *p = &h->w.p;
    if (h->asked >= REQUESTS || !xl_conn_is_live(p->cc))
        return;
    uint64_t id;
    uint8_t text[8];
    pair_request *q = &p->request[h->asked];
    if (xl_stream_open(p->cc, true, &id) != 0)
        return;
    for (int i = 0; i < 8; i++)
        text[i] = (uint8_t)(size >> (56 - 8 * i));
    *q = (pair_request){.used = true, .id = id, .size = size, .started = p->now};
    FUZZ_CHECK(xl_stream_send(p->cc, id, text, 8, true, NULL) == 8);
    h->asked++;
}

static size_t open_paths(const xl_connection *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->path_count; i++)
        n += xl_path_may_carry_data(c->path[i]);
    return n;
}

/* Changes the address of a path's interface, unless another path uses it too. */
static void move_path(honest *h, uint8_t v) {
    pair *p = &h->w.p;
    xl_connection *c = p->cc;
    const xl_path *moving = c->path[v % c->path_count];
    for (size_t i = 0; i < c->path_count; i++)
        if (c->path[i] != moving && c->path[i]->state != XL_PATH_CLOSED &&
            xl_addr_equal(&c->path[i]->local, &moving->local))
            return;
    pair_link *l = pair_link_of(p, &moving->local);
    xl_addr moved = moving->local;
    moved.port++;
    if (l && xl_connection_move_path(c, moving->index, &moved, p->now) == 0)
        l->client = moved;
}

static void close_path(honest *h, xl_connection *c, uint8_t v) {
    if (open_paths(c) > 1)
        xl_connection_close_path(c, v % (int)c->path_count, h->w.p.now);
}

static void send_datagram(honest *h, xl_connection *c, uint8_t v) {
    static const uint8_t zeros[DATAGRAM_BYTES];
    size_t most = xl_connection_datagram_capacity(c), len = v * 4u;
    if (len <= most && most > 0)
        xl_connection_send_datagram(c, zeros, len, v, h->w.p.now);
}

static void call(honest *h) {
    uint8_t what = fuzz_u8(&h->in), v = fuzz_u8(&h->in);
    pair *p = &h->w.p;
    bool is_server = what & 0x80;
    xl_connection *c = is_server ? p->sc : p->cc;
    const pair_link *l = &p->link[v % p->link_count];
    if (!c || !xl_conn_is_live(c))
        return;
    switch (what % 11) {
    case 0:
    case 1:
        if (!is_server)
            xl_connection_add_path(c, &l->client, &l->server, (xl_technology)(v % 5), p->now);
        break;
    case 2:
        close_path(h, c, v);
        break;
    case 3:
    case 4:
        xl_connection_set_path_status(c, v % (int)c->path_count, v & 0x80 ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE,
                                      p->now);
        break;
    case 5:
        xl_connection_ping(c, p->now);
        break;
    case 6:
        xl_conn_enter(c, p->now);
        if (xl_conn_may_update_keys(c))
            FUZZ_CHECK(xl_conn_update_keys(c) == 0);
        break;
    case 7:
        if (!is_server)
            move_path(h, v);
        break;
    case 8:
        if (!is_server)
            xl_connection_set_qoe(
                c, &(xl_qoe){.cached_bytes = v * 1000u, .cached_frames = v, .bps = 1000000, .fps = 30}, p->now);
        break;
    case 9:
        send_datagram(h, c, v);
        break;
    default: {
        xl_scheme s = is_server ? p->server_config.scheme : p->client_config.scheme;
        choose_scheme(h, &s);
        FUZZ_CHECK(xl_endpoint_reconfigure(is_server ? p->server : p->client, &s, p->now) == 0);
    }
    }
}

static void operate(honest *h) {
    uint8_t op = fuzz_u8(&h->in);
    switch (op % 8) {
    case 0:
    case 1:
        run(h, 1 + 500 * (uint64_t)fuzz_u8(&h->in));
        break;
    case 2:
        run(h, 20000 * (uint64_t)fuzz_u8(&h->in));
        break;
    case 3:
        ask(h);
        break;
    case 4:
    case 5:
        change_link(h);
        break;
    default:
        call(h);
    }
    if (op & 0x80)
        run(h, 0);
}

/* ---- the end: the links are whole ---- */

static void heal(honest *h) {
    for (size_t i = 0; i < h->w.p.link_count; i++) {
        pair_link *l = &h->w.p.link[i];
        pair_set_dark(l, false);
        l->loss = l->reorder = l->ce = 0;
        l->mtu = 0;
        pair_limit(l, 1000000, 500000);
    }
}

static bool has_all(const honest *h) {
    for (size_t i = 0; i < h->asked; i++)
        if (!h->w.p.request[i].done)
            return false;
    return h->w.p.sc != NULL;
}

static const xl_path *at_server(honest *h, const xl_path *p) {
    return xl_conn_path_by_local_id(h->w.p.sc, p->cids.remote_path_id);
}

static bool is_in_use(const xl_path *p) {
    return p->validation.is_done && (p->state == XL_PATH_ACTIVE || p->state == XL_PATH_STANDBY);
}

/* Whether all open paths of the client work at both ends. tells: print those that do not. */
static bool paths_work(honest *h, bool tells) {
    const xl_connection *c = h->w.p.cc;
    bool all = true;
    for (size_t i = 0; c->multipath && i < c->path_count; i++) {
        const xl_path *p = c->path[i], *q = at_server(h, p);
        bool works = !xl_path_is_open(p) || (q && is_in_use(p) && is_in_use(q));
        if (!works && tells)
            fprintf(stderr, "path %zu: %s at the client, %s at the server\n", i, xl_path_state_name(p->state),
                    q ? xl_path_state_name(q->state) : "unknown");
        all &= works;
    }
    return all;
}

static void finish_honestly(honest *h) {
    pair *p = &h->w.p;
    heal(h);
    uint64_t end = p->now + HEALED_FOR_US;
    do {
        xl_connection_ping(p->cc, p->now);
        run(h, KEEPALIVE_US);
        if (is_over(h))
            return;
    } while (p->now < end && !(has_all(h) && paths_work(h, false)));
    for (size_t i = 0; i < h->asked; i++)
        FUZZ_CHECK(p->request[i].done && p->request[i].received == p->request[i].size);
    FUZZ_CHECK(p->sc && p->cc->handshake.is_confirmed);
    FUZZ_CHECK(paths_work(h, true));
}

/* ---- life ---- */

/* Makes a first connection, whose session the next one resumes with 0-RTT. */
static void meet_before(honest *h) {
    pair *p = &h->w.p;
    pair_connect(p);
    run(h, 1000000);
    FUZZ_CHECK(h->w.kept.len > 0);
    xl_connection_close(p->cc, 0, "see you", p->now);
    h->is_excused = true;
    for (int i = 0; i < 100; i++)
        pair_run(p, 100000);
    h->is_excused = false;
    come_back(&h->w);
}

static void begin(honest *h) {
    pair *p = &h->w.p;
    uint8_t shape = fuzz_u8(&h->in), more = fuzz_u8(&h->in);
    world_init(&h->w, 1);
    p->link_count = 1 + shape % PAIR_PATHS;
    for (size_t i = 0; i < p->link_count; i++)
        p->link[i] = (pair_link){.client = pair_addr((uint8_t)(i + 2), 4000),
                                 .server = pair_addr(1, 443),
                                 .delay_us = {5000 + 7000 * i, 5000 + 7000 * i},
                                 .bytes_per_s = {1000000, 1000000},
                                 .queue_us = 200000};
    choose_config(h, &p->client_config);
    choose_config(h, &p->server_config);
    p->client_config.scheme.enable_multipath = p->server_config.scheme.enable_multipath = !(shape & 4);
    p->client_config.scheme.enable_migration = shape & 4;
    p->server_config.scheme.dialect = shape & 8 ? XL_DIALECT_IETF : XL_DIALECT_XLINK;
    if (more & 1) {
        world_accepts(&h->w);
        size_t links = p->link_count;
        p->link_count = 1;
        meet_before(h);
        p->link_count = links;
        for (size_t i = 1; i < links; i++)
            xl_connection_add_path(p->cc, &p->link[i].client, &p->link[i].server, XL_TECH_LTE, p->now);
    } else {
        pair_connect(p);
    }
    /* Otherwise the input begins before the handshake. Not with Retry, whose token is valid for one address and some
     * seconds. */
    if (!(more & 2) || p->server_config.limits.retry_always)
        run(h, 300000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static honest h;
    fuzz_repeat_tls();
    memset(&h, 0, sizeof h);
    h.in = fuzz_input_of(data, size);
    h.memory_before = memory_used();
    h.nonce = calloc(NONCES, sizeof *h.nonce);
    FUZZ_CHECK(h.nonce != NULL);
    begin(&h);
    for (int i = 0; i < OPERATIONS && fuzz_left(&h.in) > 0 && !is_over(&h); i++)
        operate(&h);
    if (!is_over(&h))
        finish_honestly(&h);
    fuzz_note_number(h.datagrams);
    pair_free(&h.w.p);
    free(h.nonce);
    return 0;
}
