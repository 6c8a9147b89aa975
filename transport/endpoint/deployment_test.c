/* Process octets in connection IDs, packets of another worker, stateless resets of a worker that came back. */
#include "testing/pair.h"
#include "xlink/deployment.h"

typedef struct {
    xl_lb *lb;
    xl_deployment d;
    unsigned forwarded, forwarded_to;
    xl_datagram head;
    uint8_t data[PAIR_MTU];
} worker;

static void note_forward(void *user, unsigned to, const xl_datagram *in, const uint8_t *data) {
    worker *w = user;
    w->forwarded++;
    w->forwarded_to = to;
    w->head = *in;
    memcpy(w->data, data, in->len);
}

static void worker_init(worker *w, unsigned number, unsigned workers, bool encrypted) {
    const xl_lb_config c = {
        .rotation = 1, .server_id_bytes = 2, .nonce_bytes = 6, .has_key = encrypted, .key = "sixteen octets!"};
    int error;
    memset(w, 0, sizeof *w);
    w->lb = xl_lb_new(&c, 1, 1, &error);
    assert_non_null(w->lb);
    w->d = (xl_deployment){.lb = w->lb, .server_id = {0xa0, 7}, .worker = number, .workers = workers};
    uint8_t secret[XL_STATIC_SECRET_BYTES];
    memset(secret, 0x5e, sizeof secret);
    assert_int_equal(0, xl_static_keys_from(secret, &w->d.keys));
    w->d.forward = note_forward;
    w->d.forward_user = w;
}

TEST(a_worker_recognises_its_own_cids) {
    xl_random r;
    xl_random_seed(&r, 1);
    for (unsigned n = 0; n < 5; n++) {
        worker w;
        worker_init(&w, n, 5, n % 2);
        unsigned octets[256] = {0}, different = 0;
        for (int i = 0; i < 1000; i++) {
            uint8_t nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES], id[XL_LB_SERVER_ID_MAX];
            xl_random_bytes(&r, nonce, sizeof nonce);
            size_t len = xl_deployment_make_cid(&w.d, nonce, (uint8_t)xl_random_next(&r), cid);
            assert_int_equal(10, len);
            assert_int_equal(10, xl_deployment_cid_bytes(&w.d, cid[0]));
            assert_int_equal(n, xl_deployment_worker_of(&w.d, cid, len));
            assert_int_equal(2, xl_lb_decode(w.lb, cid, len, id));
            assert_memory_equal(w.d.server_id, id, 2);
            different += octets[cid[len - 1]]++ == 0;
        }
        assert_true(different > 200); /* an observer cannot tell the worker */
        xl_lb_free(w.lb);
    }
}

TEST(clients_choices_are_spread_evenly_and_for_good) {
    worker w;
    worker_init(&w, 0, 4, true);
    xl_random r;
    xl_random_seed(&r, 2);
    unsigned share[4] = {0};
    for (int i = 0; i < 40000; i++) {
        uint8_t cid[XL_MAX_CID_BYTES];
        size_t len = 8 + xl_random_next(&r) % 13;
        xl_random_bytes(&r, cid, len);
        unsigned to = xl_deployment_worker_of(&w.d, cid, len);
        assert_true(to < 4);
        assert_int_equal(to, xl_deployment_worker_of(&w.d, cid, len));
        share[to]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(share[i], 9500, 10500);
    w.d.keys.cid_hash.word[1] ^= 1; /* without the secret nobody can aim at a worker */
    unsigned moved = 0;
    for (int i = 0; i < 1000; i++) {
        uint8_t cid[8];
        xl_random_bytes(&r, cid, sizeof cid);
        unsigned to = xl_deployment_worker_of(&w.d, cid, sizeof cid);
        w.d.keys.cid_hash.word[1] ^= 1;
        moved += to != xl_deployment_worker_of(&w.d, cid, sizeof cid);
        w.d.keys.cid_hash.word[1] ^= 1;
    }
    assert_in_range(moved, 650, 850);
    xl_lb_free(w.lb);
}

typedef struct {
    worker *w;
    unsigned short_headers, elsewhere;
} watch;

static void look_at_cid(void *user, bool to_server, uint8_t *data, size_t len) {
    watch *seen = user;
    if (!to_server || data[0] & 0x80)
        return;
    assert_true(len > 11);
    seen->short_headers++;
    seen->elsewhere += xl_deployment_worker_of(&seen->w->d, data + 1, 10) != seen->w->d.worker;
}

TEST(every_cid_of_a_connection_names_its_worker) {
    worker w;
    worker_init(&w, 2, 4, true);
    watch seen = {.w = &w};
    pair p;
    pair_init_multipath(&p, 5, 3, 10000);
    p.server_config.deployment = &w.d;
    p.tamper = look_at_cid;
    p.tamper_user = &seen;
    /* The CID that the client chose may belong to any worker: this endpoint got the packet, whatever the kernel would
     * do. */
    pair_connect(&p);
    xl_datagram d;
    uint8_t first[PAIR_MTU];
    size_t n = xl_endpoint_transmit(p.client, first, PAIR_MTU, &d, p.now);
    xl_datagram in = {.local = d.remote, .remote = d.local, .len = n, .forwarded = true};
    xl_endpoint_receive(p.server, &in, first, p.now);
    pair_handshake(&p);
    size_t i = pair_ask(&p, 300000);
    pair_finish(&p, i, 5000000);
    assert_true(p.response[0].size == 300000);
    for (size_t k = 0; k < 3; k++)
        assert_true(pair_server_path(&p, k).bytes_received > 0);
    assert_true(seen.short_headers > 20);
    assert_int_equal(0, seen.elsewhere);
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(p.server, &stats);
    assert_int_equal(0, stats.misrouted);
    assert_int_equal(1, stats.forwarded);
    pair_free(&p);
    xl_lb_free(w.lb);
}

/* Hands the server one short header packet with a CID of `from`. */
static size_t stray_packet(pair *p, const worker *from, bool forwarded, uint8_t out[PAIR_MTU]) {
    uint8_t data[100], nonce[XL_LB_NONCE_MAX] = {3, 1, 4, 1, 5, 9, 2, 6};
    xl_random_bytes(&p->random, data, sizeof data);
    data[0] = 0x40;
    xl_deployment_make_cid(&from->d, nonce, 9, data + 1);
    xl_datagram in = {.local = p->link[0].server, .remote = p->link[0].client, .len = 100, .forwarded = forwarded};
    xl_datagram to;
    xl_endpoint_receive(p->server, &in, data, p->now);
    return xl_endpoint_transmit(p->server, out, PAIR_MTU, &to, p->now);
}

TEST(a_packet_of_another_worker_is_passed_on_not_answered) {
    worker self, other;
    worker_init(&self, 0, 3, false);
    worker_init(&other, 2, 3, false);
    pair p;
    pair_init(&p, 6, 1, 10000);
    p.server_config.deployment = &self.d;
    pair_connect(&p);
    uint8_t out[PAIR_MTU];
    xl_endpoint_stats stats;
    assert_int_equal(0, stray_packet(&p, &other, false, out));
    assert_int_equal(1, self.forwarded);
    assert_int_equal(2, self.forwarded_to);
    assert_int_equal(100, self.head.len);
    assert_true(xl_addr_equal(&self.head.remote, &p.link[0].client));
    xl_endpoint_get_stats(p.server, &stats);
    assert_int_equal(1, stats.misrouted);
    assert_int_equal(0, stats.stateless_resets);
    /* Forwarded to this worker: neither forwarded again nor answered. */
    assert_int_equal(0, stray_packet(&p, &other, true, out));
    assert_int_equal(1, self.forwarded);
    /* Its own CID, of a connection that is gone. */
    assert_true(stray_packet(&p, &self, false, out) > 20);
    assert_int_equal(1, self.forwarded);
    /* No callback to forward it: still no answer. */
    self.d.forward = NULL;
    assert_int_equal(0, stray_packet(&p, &other, false, out));
    pair_free(&p);
    xl_lb_free(self.lb);
    xl_lb_free(other.lb);
}

/* Anybody who sees a CID could get its token from any server that shares the secret, and end the connection with it. */
TEST(a_server_is_silent_about_the_connections_of_another) {
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        worker own, other, unknown;
        worker_init(&own, 0, 1, encrypted);
        worker_init(&other, 0, 1, encrypted);
        other.d.server_id[1] = 8;
        worker_init(&unknown, 0, 1, false);
        xl_lb_free(unknown.lb);
        int error;
        unknown.d.lb = unknown.lb =
            xl_lb_new(&(xl_lb_config){.rotation = 4, .server_id_bytes = 2, .nonce_bytes = 6}, 1, 1, &error);
        pair p;
        pair_init(&p, 8, 1, 10000);
        p.server_config.deployment = &own.d;
        pair_connect(&p);
        uint8_t out[PAIR_MTU];
        assert_int_equal(0, stray_packet(&p, &other, false, out));
        assert_int_equal(0, stray_packet(&p, &unknown, false, out));
        assert_true(stray_packet(&p, &own, false, out) > 20);
        xl_endpoint_stats stats;
        xl_endpoint_get_stats(p.server, &stats);
        assert_int_equal(1, stats.stateless_resets);
        pair_free(&p);
        xl_lb_free(own.lb);
        xl_lb_free(other.lb);
        xl_lb_free(unknown.lb);
    }
}

TEST(a_new_process_resets_the_connections_of_the_old_one) {
    worker w;
    worker_init(&w, 0, 1, true);
    pair p;
    pair_init_multipath(&p, 7, 2, 10000);
    p.server_config.deployment = &w.d;
    pair_settle(&p, 100000);
    xl_endpoint_free(p.server);
    pair_seed(&p.server_config, 12345); /* nothing in common but the secret */
    int error;
    p.server = xl_endpoint_new(&p.server_config, p.now, &error);
    p.sc = NULL;
    pair_ask(&p, 1000);
    pair_run(&p, 500000);
    assert_true(p.client_closed);
    assert_string_equal("stateless reset", p.client_close.reason);
    pair_free(&p);
    xl_lb_free(w.lb);
}

TEST(a_deployment_that_cannot_work_is_refused) {
    worker w;
    worker_init(&w, 0, 2, false);
    assert_null(xl_deployment_check(&w.d));
    w.d.worker = 2;
    assert_non_null(xl_deployment_check(&w.d));
    w.d.worker = 0;
    w.d.workers = XL_WORKERS_MAX + 1;
    assert_non_null(xl_deployment_check(&w.d));
    w.d.workers = 1;
    xl_lb_free(w.lb);
    int error;
    xl_lb_config c = {.server_id_bytes = 1, .nonce_bytes = 5};
    w.d.lb = w.lb = xl_lb_new(&c, 1, 1, &error);
    assert_non_null(strstr(xl_deployment_check(&w.d), "fewer than seven"));
    xl_lb_free(w.lb);
    c.nonce_bytes = 8;
    w.d.lb = w.lb = xl_lb_new(&c, 1, 0, &error);
    assert_non_null(strstr(xl_deployment_check(&w.d), "process octet"));
    xl_lb_free(w.lb);
}

TEST_MAIN(NULL, NULL)
