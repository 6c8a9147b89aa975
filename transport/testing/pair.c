#include "testing/pair.h"

#define PAIR_MOST_BYTES 16384

/* Returns up to PAIR_MOST_BYTES of a stream's content from an offset on: part of a pattern that is too long to match
 * itself by chance. Whole parts are compared, because a loop over bytes costs more than the connections do. */
static const uint8_t *pair_bytes(uint64_t stream, uint64_t offset) {
    enum { PERIOD = 32768 };
    static uint8_t pattern[PERIOD + PAIR_MOST_BYTES];
    static bool is_made;
    for (size_t i = 0; i < sizeof pattern && !is_made; i++)
        pattern[i] = (uint8_t)(i % PERIOD * 2654435761u >> 7);
    is_made = true;
    return pattern + (stream * 1009 + offset) % PERIOD;
}

static void *pair_qlog_open(void *user, bool is_server, const uint8_t *odcid, size_t len) {
    (void)odcid;
    (void)len;
    return is_server ? user : NULL;
}

void pair_log_write(void *sink, const char *text, size_t len) {
    pair_log *l = sink;
    if (l->len + len >= l->room) {
        l->room = 2 * (l->len + len) + 1;
        l->text = realloc(l->text, l->room);
        assert_non_null(l->text);
    }
    memcpy(l->text + l->len, text, len);
    l->len += len;
    l->text[l->len] = 0;
}

void pair_seed(xl_config *config, uint64_t seed) {
    assert_int_equal(0, xl_random_key_from_seed(seed, "pair", config->random_key));
}

void pair_init(pair *p, uint64_t seed, size_t links, uint64_t delay_us) {
    memset(p, 0, sizeof *p);
    p->now = PAIR_START;
    xl_random_seed(&p->random, seed);
    xl_config_init(&p->client_config);
    xl_config_init(&p->server_config);
    p->client_credentials = xl_credentials_client(NULL);
    pair_seed(&p->client_config, seed);
    pair_seed(&p->server_config, seed + 1);
    p->server_credentials = xl_credentials_self_signed("localhost", p->server_config.random_key, 1700000000);
    p->server_config.is_server = true;
    p->client_config.credentials = p->client_credentials;
    p->server_config.credentials = p->server_credentials;
    p->client_config.limits.max_udp_payload_bytes = p->server_config.limits.max_udp_payload_bytes = PAIR_MTU;
    p->client_config.limits.path_mtu_bytes = p->server_config.limits.path_mtu_bytes = PAIR_MTU;
    p->link_count = links;
    for (size_t i = 0; i < links; i++)
        p->link[i] = (pair_link){
            .client = pair_addr((uint8_t)(i + 2), 4000), .server = pair_addr(1, 443), .delay_us = {delay_us, delay_us}};
}

void pair_multipath(pair *p, const char *scheduler, const char *reinjection) {
    p->client_config.scheme.enable_multipath = p->server_config.scheme.enable_multipath = true;
    p->client_config.scheme.scheduler = p->server_config.scheme.scheduler = scheduler;
    p->client_config.scheme.reinjection = p->server_config.scheme.reinjection = reinjection;
}

void pair_init_multipath(pair *p, uint64_t seed, size_t links, uint64_t delay_us) {
    pair_init(p, seed, links, delay_us);
    pair_multipath(p, "minrtt", "none");
}

void pair_capture_qlog(pair *p) {
    p->server_config.log = (xl_log){.user = &p->qlog, .qlog_open = pair_qlog_open, .qlog_write = pair_log_write};
}

void pair_connect(pair *p) {
    int error;
    p->client = xl_endpoint_new(&p->client_config, p->now, &error);
    p->server = xl_endpoint_new(&p->server_config, p->now, &error);
    assert_non_null(p->client);
    assert_non_null(p->server);
    p->cc = xl_endpoint_connect(p->client, "localhost", &p->link[0].client, &p->link[0].server, XL_TECH_WIFI, p->now);
    assert_non_null(p->cc);
    for (size_t i = 1; i < p->link_count; i++)
        assert_int_equal((int)i,
                         xl_connection_add_path(p->cc, &p->link[i].client, &p->link[i].server, XL_TECH_LTE, p->now));
}

void pair_free(pair *p) {
    xl_endpoint_free(p->client);
    xl_endpoint_free(p->server);
    xl_credentials_free(p->client_credentials);
    xl_credentials_free(p->server_credentials);
    pair_drop_queue(p);
    free(p->qlog.text);
}

void pair_inject(pair *p, bool to_server, const pair_link *l, uint8_t *data, size_t len) {
    xl_datagram d = {.local = l->server, .remote = l->client, .len = len};
    if (!to_server)
        d = (xl_datagram){.local = l->client, .remote = l->server, .len = len};
    xl_endpoint_receive(to_server ? p->server : p->client, &d, data, p->now);
}

void pair_drop_queue(pair *p) {
    while (p->queue) {
        pair_datagram *next = p->queue->next;
        free(p->queue);
        p->queue = next;
    }
}

static double pair_draw(pair *p) {
    return (double)(xl_random_next(&p->random) >> 11) / 9007199254740992.0;
}

pair_link *pair_link_of(pair *p, const xl_addr *client) {
    for (size_t i = 0; i < p->link_count; i++)
        if (xl_addr_equal(&p->link[i].client, client))
            return &p->link[i];
    return NULL;
}

/* The link that a datagram takes: from a client's own address, or to the one that the server sees. */
static pair_link *pair_route(pair *p, bool to_server, const xl_datagram *d) {
    for (size_t i = 0; i < p->link_count && !to_server; i++)
        if (p->link[i].nat.family && xl_addr_equal(&p->link[i].nat, &d->remote))
            return &p->link[i];
    pair_link *l = pair_link_of(p, to_server ? &d->local : &d->remote);
    return !to_server && l && l->nat.family ? NULL : l; /* the NAT has forgotten its old binding */
}

void pair_enqueue(pair *p, bool to_server, const xl_datagram *d, const uint8_t *data) {
    pair_link *l = pair_route(p, to_server, d);
    int dir = to_server ? 0 : 1;
    if (!l)
        return;
    l->packets[dir]++;
    l->bytes[dir] += d->len;
    l->marked[dir] += d->ecn != XL_IP_NOT_ECT;
    if ((l->mtu && d->len > l->mtu) || (l->drops_marked && d->ecn))
        return;
    if (p->unreachable.family && xl_addr_equal(to_server ? &d->remote : &d->local, &p->unreachable))
        return;
    uint64_t at = p->now;
    pair_link *neck = l->bottleneck ? l->bottleneck : l;
    if (neck->bytes_per_s[dir]) {
        uint64_t start = neck->busy_until[dir] > p->now ? neck->busy_until[dir] : p->now;
        if (neck->queue_us && start - p->now > neck->queue_us)
            return;
        if (neck->early_drop > 0 && pair_draw(p) * (double)neck->queue_us < neck->early_drop * (double)(start - p->now))
            return;
        neck->longest_wait_us = start - p->now > neck->longest_wait_us ? start - p->now : neck->longest_wait_us;
        at = neck->busy_until[dir] = start + (d->len + 28) * 1000000 / neck->bytes_per_s[dir];
    }
    if (l->dark[dir] || pair_draw(p) < l->loss)
        return;
    at += l->delay_us[dir];
    if (pair_draw(p) < l->reorder)
        at += xl_random_next(&p->random) % (l->delay_us[dir] + 1);
    pair_datagram *q = malloc(sizeof *q);
    q->at = at;
    q->order = p->order++;
    q->to_server = to_server;
    q->d = (xl_datagram){.local = d->remote, .remote = d->local, .len = d->len};
    q->d.ecn = l->bleaches ? XL_IP_NOT_ECT : d->ecn;
    if (q->d.ecn && l->ce > 0 && pair_draw(p) < l->ce)
        q->d.ecn = XL_IP_CE;
    if (l->nat.family && to_server)
        q->d.remote = l->nat;
    else if (l->nat.family)
        q->d.local = l->client;
    memcpy(q->data, data, d->len);
    if (p->tamper)
        p->tamper(p->tamper_user, to_server, q->data, d->len);
    pair_datagram **where = &p->queue;
    while (*where && ((*where)->at < q->at || ((*where)->at == q->at && (*where)->order < q->order)))
        where = &(*where)->next;
    q->next = *where;
    *where = q;
}

static void pair_server_fill(pair *p, pair_response *r) {
    while (r->sent < r->size) {
        size_t n = r->size - r->sent < 8192 ? (size_t)(r->size - r->sent) : 8192;
        const xl_frame_mark *mark = p->mark.size && r->sent == 0 ? &p->mark : NULL;
        const uint8_t *bytes = pair_bytes(r->id, r->sent);
        ssize_t took = xl_stream_send(p->sc, r->id, bytes, n, r->sent + n == r->size, mark);
        if (took <= 0)
            return;
        r->sent += (uint64_t)took;
    }
}

static pair_response *pair_response_of(pair *p, uint64_t id) {
    pair_response *spare = NULL;
    for (size_t i = 0; i < PAIR_REQUESTS; i++) {
        if (p->response[i].used && p->response[i].id == id)
            return &p->response[i];
        if (!p->response[i].used && !spare)
            spare = &p->response[i];
    }
    *spare = (pair_response){.used = true, .id = id};
    return spare;
}

static void pair_server_readable(pair *p, uint64_t id) {
    pair_response *r = pair_response_of(p, id);
    uint8_t waste[64];
    bool fin = false;
    ssize_t n;
    while ((n = xl_stream_read(p->sc, id, r->ask_len < 8 ? r->ask + r->ask_len : waste,
                               r->ask_len < 8 ? 8 - r->ask_len : 64, &fin)) > 0)
        r->ask_len += (size_t)n;
    if (!fin || r->has_request)
        return;
    r->has_request = true;
    for (int i = 0; i < 8; i++)
        r->size = r->size << 8 | r->ask[i];
    pair_server_fill(p, r);
}

static void pair_client_readable(pair *p, uint64_t id) {
    uint8_t buf[PAIR_MOST_BYTES];
    bool fin = false;
    ssize_t n;
    for (size_t i = 0; i < PAIR_REQUESTS; i++) {
        pair_request *q = &p->request[i];
        if (!q->used || q->id != id)
            continue;
        while ((n = xl_stream_read(p->cc, id, buf, sizeof buf, &fin)) > 0) {
            if (q->received == 0)
                q->first_at = p->now;
            q->failed |= memcmp(buf, pair_bytes(id, q->received), (size_t)n) != 0;
            q->received += (uint64_t)n;
        }
        if (fin) {
            q->done = true;
            q->done_at = p->now;
        }
    }
}

static void pair_count_datagrams(pair *p, const xl_event *e) {
    p->datagrams_acked += e->type == XL_EVENT_DATAGRAM_ACKED;
    p->datagrams_lost += e->type == XL_EVENT_DATAGRAM_LOST;
}

void pair_events(pair *p) {
    xl_event e;
    while (xl_endpoint_poll_event(p->client, &e)) {
        if (e.type == XL_EVENT_STREAM_READABLE)
            pair_client_readable(p, e.stream_id);
        p->client_migrations += e.type == XL_EVENT_MIGRATED;
        if (e.type == XL_EVENT_PATH)
            p->path_events[e.path_state]++;
        pair_count_datagrams(p, &e);
        if (e.type == XL_EVENT_CLOSED) {
            p->client_closed = true;
            p->client_close = e;
        }
    }
    while (xl_endpoint_poll_event(p->server, &e)) {
        p->stream_events++;
        if (e.type == XL_EVENT_CONNECTED || e.type == XL_EVENT_EARLY)
            p->sc = e.connection;
        if (e.type == XL_EVENT_STREAM_READABLE)
            pair_server_readable(p, e.stream_id);
        if (e.type == XL_EVENT_STREAM_WRITABLE)
            pair_server_fill(p, pair_response_of(p, e.stream_id));
        if (e.type == XL_EVENT_STREAM_DONE)
            pair_response_of(p, e.stream_id)->used = false;
        p->server_migrations += e.type == XL_EVENT_MIGRATED;
        pair_count_datagrams(p, &e);
        if (e.type == XL_EVENT_CLOSED) {
            p->server_closed = true;
            p->server_close = e;
        }
    }
}

void pair_flush(pair *p) {
    uint8_t buf[PAIR_MTU + 64];
    xl_datagram d;
    bool busy = true;
    while (busy) {
        busy = false;
        pair_events(p);
        while (xl_endpoint_transmit(p->client, buf, PAIR_MTU, &d, p->now) > 0) {
            pair_enqueue(p, true, &d, buf);
            busy = true;
        }
        while (xl_endpoint_transmit(p->server, buf, PAIR_MTU, &d, p->now) > 0) {
            pair_enqueue(p, false, &d, buf);
            busy = true;
        }
    }
}

void pair_deliver_due(pair *p) {
    while (p->queue && p->queue->at <= p->now) {
        pair_datagram *q = p->queue;
        p->queue = q->next;
        xl_endpoint_receive(q->to_server ? p->server : p->client, &q->d, q->data, p->now);
        free(q);
    }
}

uint64_t pair_next(const pair *p) {
    uint64_t a = xl_endpoint_next_timeout(p->client), b = xl_endpoint_next_timeout(p->server), at = a < b ? a : b;
    return p->queue && p->queue->at < at ? p->queue->at : at;
}

bool pair_step(pair *p) {
    pair_flush(p);
    uint64_t at = pair_next(p);
    if (at == XL_NEVER)
        return false;
    p->now = at > p->now ? at : p->now;
    pair_deliver_due(p);
    xl_endpoint_handle_timeout(p->client, p->now);
    xl_endpoint_handle_timeout(p->server, p->now);
    pair_flush(p);
    return true;
}

void pair_run(pair *p, uint64_t duration_us) {
    uint64_t end = p->now + duration_us;
    for (;;) {
        pair_flush(p);
        if (pair_next(p) > end)
            break;
        pair_step(p);
    }
    p->now = end;
}

size_t pair_ask(pair *p, uint64_t size) {
    uint8_t ask[8];
    for (int i = 0; i < 8; i++)
        ask[i] = (uint8_t)(size >> (56 - 8 * i));
    for (size_t i = 0; i < PAIR_REQUESTS; i++) {
        pair_request *q = &p->request[i];
        if (q->used)
            continue;
        *q = (pair_request){.used = true, .size = size, .started = p->now};
        assert_int_equal(0, xl_stream_open(p->cc, true, &q->id));
        assert_int_equal(8, xl_stream_send(p->cc, q->id, ask, 8, true, NULL));
        return i;
    }
    fail_msg("no request slot left");
    return 0;
}

void pair_handshake(pair *p) {
    uint64_t end = p->now + 30000000;
    while (!(p->sc && p->cc->handshake.is_confirmed) && p->now < end && !p->client_closed)
        if (!pair_step(p))
            break;
}

void pair_establish(pair *p) {
    pair_connect(p);
    pair_handshake(p);
}

void pair_settle(pair *p, uint64_t duration_us) {
    pair_establish(p);
    pair_run(p, duration_us);
}

uint64_t pair_finish(pair *p, size_t i, uint64_t limit_us) {
    uint64_t end = p->now + limit_us;
    pair_request *q = &p->request[i];
    while (!q->done && p->now < end && !p->client_closed)
        if (!pair_step(p))
            break;
    if (!q->done)
        return UINT64_MAX;
    assert_false(q->failed);
    assert_int_equal(q->size, q->received);
    return q->done_at - q->started;
}

void pair_transfer(pair *p, uint64_t size, uint64_t limit_us) {
    assert_true(pair_finish(p, pair_ask(p, size), limit_us) != UINT64_MAX);
}

xl_path_stats pair_server_path(pair *p, size_t i) {
    xl_path_stats s = {0};
    xl_connection_path_stats(p->sc, i, &s);
    return s;
}
