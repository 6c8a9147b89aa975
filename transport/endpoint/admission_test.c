/* Admission: which clients a server accepts when it is full, or when one client has taken much of it. */
#include "testing/pair.h"

typedef struct {
    pair p; /* the configurations and the server */
    xl_endpoint *client;
    uint64_t seed;
} house;

static void house_init(house *h, size_t max_connections, size_t max_per_client) {
    int error;
    pair_init(&h->p, 1, 1, 10000);
    h->p.server_config.limits.max_connections = max_connections;
    h->p.server_config.limits.max_per_client = max_per_client;
    h->p.server = xl_endpoint_new(&h->p.server_config, h->p.now, &error);
    h->client = xl_endpoint_new(&h->p.client_config, h->p.now, &error);
    h->seed = 1000;
    assert_non_null(h->p.server);
    assert_non_null(h->client);
}

static void house_free(house *h) {
    xl_endpoint_free(h->client);
    pair_free(&h->p);
}

static xl_addr client_address(house *h, uint8_t host) {
    return pair_addr(host, (uint16_t)h->seed++);
}

/* Carries datagrams both ways, in no time, until nobody sends. Returns the number of the server's. */
static unsigned talk(house *h) {
    uint8_t buf[PAIR_MTU];
    unsigned answers = 0;
    for (bool busy = true; busy;) {
        xl_datagram d;
        busy = false;
        while ((d.len = xl_endpoint_transmit(h->client, buf, PAIR_MTU, &d, h->p.now)) > 0) {
            xl_datagram in = {.local = d.remote, .remote = d.local, .len = d.len};
            xl_endpoint_receive(h->p.server, &in, buf, h->p.now);
            busy = true;
        }
        while ((d.len = xl_endpoint_transmit(h->p.server, buf, PAIR_MTU, &d, h->p.now)) > 0) {
            xl_datagram in = {.local = d.remote, .remote = d.local, .len = d.len};
            xl_endpoint_receive(h->client, &in, buf, h->p.now);
            answers++;
            busy = true;
        }
    }
    return answers;
}

/* Returns the client's last event: XL_EVENT_CONNECTED or XL_EVENT_CLOSED. */
static xl_event outcome(house *h) {
    xl_event e, last = {.type = XL_EVENT_PATH}, ignored;
    while (xl_endpoint_poll_event(h->p.server, &ignored))
        ;
    while (xl_endpoint_poll_event(h->client, &e))
        if (e.type == XL_EVENT_CONNECTED || e.type == XL_EVENT_CLOSED)
            last = e;
    return last;
}

static xl_event come(house *h, uint8_t host) {
    xl_addr from = client_address(h, host);
    assert_non_null(xl_endpoint_connect(h->client, "localhost", &from, &h->p.link[0].server, XL_TECH_WIFI, h->p.now));
    talk(h);
    return outcome(h);
}

/* Sends a first packet in the name of that host, which does not get the answers. Returns their number. */
static unsigned forge(house *h, uint8_t host) {
    uint8_t buf[PAIR_MTU];
    xl_datagram d;
    unsigned answers = 0;
    xl_addr from = client_address(h, host);
    xl_connection *c = xl_endpoint_connect(h->client, "localhost", &from, &h->p.link[0].server, XL_TECH_WIFI, h->p.now);
    size_t len = xl_endpoint_transmit(h->client, buf, PAIR_MTU, &d, h->p.now);
    xl_connection_free(c);
    xl_datagram in = {.local = h->p.link[0].server, .remote = from, .len = len};
    xl_endpoint_receive(h->p.server, &in, buf, h->p.now);
    while (xl_endpoint_transmit(h->p.server, buf, PAIR_MTU, &d, h->p.now) > 0)
        answers++;
    return answers;
}

static xl_endpoint_stats stats_of(house *h) {
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(h->p.server, &stats);
    return stats;
}

static void assert_refused(xl_event e) {
    assert_int_equal(XL_EVENT_CLOSED, e.type);
    assert_true(e.close_reason == XL_CLOSE_PEER && !e.application_error);
    assert_int_equal(XL_QERR_CONNECTION_REFUSED, e.error_code);
}

TEST(a_server_without_room_says_so_at_once) {
    house h;
    house_init(&h, 2, 0);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_refused(come(&h, 3));
    assert_int_equal(1, stats_of(&h).refused);
    assert_int_equal(2, stats_of(&h).connections);
    house_free(&h);
}

TEST(one_client_does_not_take_the_room_of_the_others) {
    house h;
    house_init(&h, 8, 2);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_refused(come(&h, 2));
    assert_int_equal(1, stats_of(&h).retries);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 3).type);
    xl_connection_free(h.p.server->connection[0]);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_refused(come(&h, 2));
    assert_int_equal(2, stats_of(&h).refused);
    house_free(&h);
}

/* Somebody begins as many handshakes in a client's name as it may have connections; the client itself is still
 * served. */
TEST(a_client_is_not_shut_out_by_others_in_its_name) {
    house h;
    house_init(&h, 8, 2);
    assert_true(forge(&h, 2) > 0);
    assert_true(forge(&h, 2) > 0);
    assert_int_equal(2, stats_of(&h).connections);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    assert_int_equal(2, stats_of(&h).retries);
    assert_refused(come(&h, 2));
    house_free(&h);
}

TEST(refusals_have_a_rate) {
    house h;
    house_init(&h, 1, 0);
    assert_int_equal(XL_EVENT_CONNECTED, come(&h, 2).type);
    unsigned answers = 0;
    for (unsigned i = 0; i < 1500; i++)
        answers += forge(&h, 3);
    assert_int_equal(1000, answers);
    h.p.now += 1000000;
    assert_int_equal(1, forge(&h, 3));
    house_free(&h);
}

TEST_MAIN(NULL, NULL)
