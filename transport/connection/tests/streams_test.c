/* Streams that end before their data was read: they are forgotten, and their credit goes back (RFC 9000 sections 3.5
 * and 4.5). */
#include "testing/pair.h"

PAIR_TEST(a_stream_that_is_reset_before_it_was_read_is_forgotten) {
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    for (int k = 0; k < 40; k++) { /* more than may be open at once */
        uint64_t id;
        assert_int_equal(0, xl_stream_open(p->cc, false, &id));
        assert_int_equal(10, xl_stream_send(p->cc, id, (const uint8_t *)"unreadable", 10, false, NULL));
        pair_flush(p);
        assert_int_equal(0, xl_stream_reset(p->cc, id, 7)); /* arrives with the data */
        pair_run(p, 100000);
        assert_int_equal(0, p->cc->streams.count);
        assert_int_equal(0, p->sc->streams.count);
    }
}

PAIR_TEST(what_a_reset_stream_never_delivers_gives_its_credit_back) {
    static const uint8_t data[40000];
    pair_init(p, 2, 1, 10000);
    p->server_config.limits.max_data = 60000;
    pair_establish(p);
    p->link[0].dark[0] = true;
    for (int k = 0; k < 2; k++) {
        uint64_t id;
        assert_int_equal(0, xl_stream_open(p->cc, false, &id));
        xl_stream_send(p->cc, id, data, sizeof data, true, NULL);
        p->cc->path[0]->flight.probes = 60; /* all of it, whatever the window */
        pair_flush(p);
        assert_int_equal(0, xl_stream_reset(p->cc, id, 7));
    }
    assert_int_equal(0, xl_flow_out_left(&p->cc->streams.flow_out));
    p->link[0].dark[0] = false;
    pair_run(p, 5000000);
    assert_true(xl_flow_out_left(&p->cc->streams.flow_out) > 0);
    assert_true(pair_finish(p, pair_ask(p, 1000), 20000000) != UINT64_MAX);
}

PAIR_TEST(what_arrives_on_a_stopped_stream_gives_its_credit_back) {
    pair_init(p, 3, 1, 20000);
    p->client_config.limits.max_data = 10000; /* less than an initial window */
    pair_establish(p);
    pair_run(p, 100000);
    size_t unwanted = pair_ask(p, 1000000);
    pair_run(p, 30000);
    assert_int_equal(0, xl_flow_out_left(&p->sc->streams.flow_out)); /* all is on its way */
    assert_int_equal(0, p->request[unwanted].received);
    assert_int_equal(0, xl_stream_stop(p->cc, p->request[unwanted].id, 9));
    assert_true(pair_finish(p, pair_ask(p, 50000), 20000000) != UINT64_MAX);
    assert_int_equal(0, p->request[unwanted].received);
    assert_int_equal(0, p->cc->streams.count);
}

PAIR_TEST(a_stream_that_is_stopped_when_all_of_it_has_come_is_forgotten) {
    pair_init(p, 4, 1, 10000);
    pair_establish(p);
    pair_request *q = &p->request[pair_ask(p, 5000)];
    q->used = false; /* nobody reads it */
    pair_run(p, 200000);
    assert_int_equal(1, p->cc->streams.count);
    uint64_t packets = p->link[0].packets[0];
    assert_int_equal(0, xl_stream_stop(p->cc, q->id, 9));
    assert_int_equal(0, p->cc->streams.count);
    pair_run(p, 200000);
    assert_int_equal(packets, p->link[0].packets[0]); /* there is nothing to be stopped any more */
}

TEST_MAIN(NULL, NULL)
