/* Dark paths towards ends that are not libxlink, on the virtual clock. The other end is libxlink here, changed to
 * behave like others: one retransmits nothing of a dark path until the path is abandoned, one acknowledges everything
 * on its first path, one repairs by itself. */
#include "testing/pair.h"

typedef enum { SENDS_NOTHING_AGAIN, ACKS_ON_FIRST_PATH, REPAIRS } other_kind;

#define OUTAGE_AT 700000

/* Starts two paths of 8 Mbps with RFC 10069; the other end does not send our private transport parameter. */
static void start(pair *p, bool server_is_other) {
    pair_init_multipath(p, 300, 2, 20000);
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
    pair_capture_qlog(p);
    for (size_t i = 0; i < 2; i++) {
        pair_limit(&p->link[i], 1000000, 100000);
        pair_delay(&p->link[i], 20000 + 5000 * i);
    }
    pair_settle(p, 300000);
    (server_is_other ? p->cc : p->sc)->qoe.has_field = false;
}

/* Disables the other end's probe timeouts: what is in flight stays there until an acknowledgement or the end of the
 * path. */
static void withhold(xl_connection *c, uint64_t now) {
    xl_conn_enter(c, now); /* its timers change */
    for (size_t i = 0; i < c->path_count; i++)
        if (xl_path_is_open(c->path[i]))
            c->path[i]->flight.last_eliciting_at = c->path[i]->flight.awaited_since = now;
}

/* Makes the other end acknowledge on the first path that is not abandoned, dark or not. */
static void acknowledge_on_the_first(pair *p) {
    xl_connection *c = p->cc;
    bool has_first = false;
    xl_conn_enter(c, p->now);
    for (size_t i = 0; i < c->path_count; i++) {
        xl_path *q = c->path[i];
        bool is_first = !has_first && xl_path_is_open(q);
        has_first |= is_first;
        q->acked_here_at = p->now;
        q->last_received_at = is_first ? p->now : 0;
        q->flight.pto_count = 0;
    }
}

static void behave(pair *p, other_kind kind) {
    if (kind == SENDS_NOTHING_AGAIN)
        withhold(p->sc, p->now);
    else if (kind == ACKS_ON_FIRST_PATH)
        acknowledge_on_the_first(p);
}

static void run(pair *p, other_kind kind, uint64_t duration_us) {
    for (uint64_t end = p->now + duration_us; p->now < end; pair_run(p, 1000))
        behave(p, kind);
}

static unsigned closed_paths(const xl_connection *c) {
    unsigned n = 0;
    for (size_t i = 0; i < c->path_count; i++)
        n += c->path[i]->state == XL_PATH_CLOSED;
    return n;
}

/* Downloads while a path goes dark for good in the middle. */
static void download_with(other_kind kind, size_t dark, uint64_t outage_at) {
    pair p;
    start(&p, kind != ACKS_ON_FIRST_PATH);
    p.client_config.scheme.ack_path = kind == ACKS_ON_FIRST_PATH ? XL_ACK_FASTEST : XL_ACK_ORIGINAL;
    assert_int_equal(0, xl_endpoint_reconfigure(p.client, &p.client_config.scheme, p.now));
    size_t i = pair_ask(&p, 3000000);
    run(&p, kind, outage_at);
    assert_false(p.request[i].done);
    pair_set_dark(&p.link[dark], true);
    run(&p, kind, 8000000);
    assert_true(p.request[i].done && !p.request[i].failed);
    assert_false(p.client_closed || p.server_closed);
    if (kind == REPAIRS)
        assert_int_equal(0, closed_paths(p.cc) + closed_paths(p.sc));
    else if (outage_at == OUTAGE_AT)
        assert_true(closed_paths(p.cc) >= 1 && closed_paths(p.sc) >= 1);
    pair_free(&p);
}

TEST(an_end_that_sends_nothing_again_is_told_which_path_is_dark) {
    for (size_t dark = 0; dark < 2; dark++)
        download_with(SENDS_NOTHING_AGAIN, dark, OUTAGE_AT);
}

TEST(an_end_that_acknowledges_on_its_first_path_is_told_that_it_is_dark) {
    for (uint64_t at = 300000; at <= 1300000; at += 100000)
        download_with(ACKS_ON_FIRST_PATH, 0, at);
}

TEST(a_path_stays_where_the_other_end_repairs_by_itself) {
    for (size_t dark = 0; dark < 2; dark++)
        download_with(REPAIRS, dark, OUTAGE_AT);
}

PAIR_TEST(a_path_that_was_given_up_returns_when_it_answers) {
    start(p, true);
    pair_ask(p, 3000000);
    run(p, SENDS_NOTHING_AGAIN, OUTAGE_AT);
    pair_set_dark(&p->link[1], true);
    run(p, SENDS_NOTHING_AGAIN, 8000000);
    assert_int_equal(1, closed_paths(p->sc));
    pair_set_dark(&p->link[1], false);
    size_t i = pair_ask(p, 6000000);
    run(p, SENDS_NOTHING_AGAIN, 8000000);
    assert_int_equal(3, p->sc->path_count); /* the same addresses, another path ID */
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[2]->state);
    assert_true(pair_server_path(p, 2).stream_bytes_sent > 1000000);
    assert_true(p->request[i].done && !p->request[i].failed);
}

/* Automatic path management too leaves a dark path alone while data comes: the other end may still retransmit what was
 * in flight there, and would forget it with the path. */
PAIR_TEST(managed_paths_are_not_abandoned_while_data_comes) {
    start(p, true);
    ((xl_config *)p->cc->config)->limits.path_management.enabled = true;
    ((xl_config *)p->cc->config)->limits.path_management.abandon_us = 1000000;
    size_t i = pair_ask(p, 5000000);
    run(p, SENDS_NOTHING_AGAIN, OUTAGE_AT);
    pair_set_dark(&p->link[1], true);
    run(p, SENDS_NOTHING_AGAIN, 3300000);
    assert_int_equal(XL_PATH_SUSPECT, p->cc->path[1]->state);
    assert_int_equal(0, closed_paths(p->cc));
    run(p, SENDS_NOTHING_AGAIN, 6000000);
    assert_true(p->request[i].done && !p->request[i].failed);
}

/* Both are dark: neither is given up, since nothing comes on either, and both go on afterwards. */
PAIR_TEST(paths_that_are_dark_together_stay) {
    start(p, true);
    size_t i = pair_ask(p, 3000000);
    run(p, REPAIRS, OUTAGE_AT);
    pair_set_dark(&p->link[0], true);
    pair_set_dark(&p->link[1], true);
    run(p, REPAIRS, 5000000);
    pair_set_dark(&p->link[0], false);
    pair_set_dark(&p->link[1], false);
    run(p, REPAIRS, 15000000);
    assert_true(p->request[i].done && !p->request[i].failed);
    assert_int_equal(0, closed_paths(p->cc) + closed_paths(p->sc));
}

/* The server takes a while to answer. Its silence on every path is no outage. */
PAIR_TEST(a_slow_application_costs_no_path) {
    start(p, true);
    uint64_t id, before = p->link[0].packets[0] + p->link[1].packets[0];
    uint8_t half[4] = {0};
    assert_int_equal(0, xl_stream_open(p->cc, true, &id));
    assert_int_equal(4, xl_stream_send(p->cc, id, half, 4, false, NULL)); /* without the rest there is no answer */
    assert_int_equal(0, xl_stream_open(p->sc, true, &id));
    assert_int_equal(4, xl_stream_send(p->sc, id, half, 4, true, NULL)); /* the client never answers this one */
    run(p, REPAIRS, 5000000);
    assert_int_equal(0, closed_paths(p->cc) + closed_paths(p->sc));
    assert_true(p->link[0].packets[0] + p->link[1].packets[0] < before + 100);
}

TEST_MAIN(NULL, NULL)
