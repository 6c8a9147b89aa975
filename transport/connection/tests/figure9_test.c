/* Figure 9 of the paper: how a path is initialised and closed, message by message, read back from the qlogs of both
 * ends. And that none of it happens if one side does not offer multipath. */
#include "testing/pair.h"

static pair_log logs[2]; /* client, server */

static void *open_log(void *user, bool is_server, const uint8_t *odcid, size_t len) {
    (void)user;
    (void)odcid;
    (void)len;
    return &logs[is_server];
}

static void start(pair *p, uint64_t seed, bool client, bool server) {
    pair_init_multipath(p, seed, 2, 20000);
    p->client_config.scheme.enable_multipath = client;
    p->server_config.scheme.enable_multipath = server;
    p->client_config.log = p->server_config.log = (xl_log){.qlog_open = open_log, .qlog_write = pair_log_write};
    for (int i = 0; i < 2; i++)
        pair_limit(&p->link[i], 2500000, 0);
    pair_establish(p);
}

static void finish(pair *p) {
    pair_free(p); /* writes the rest of the logs */
    for (int i = 0; i < 2; i++) {
        free(logs[i].text);
        logs[i] = (pair_log){0};
    }
}

static bool line_has(const char *line, size_t len, const char *what) {
    return !what || memmem(line, len, what, strlen(what));
}

/* Returns the offset behind the first record after `from` that contains all three strings; fails if there is none. */
static size_t then(const pair_log *l, size_t from, const char *event, const char *path, const char *content) {
    for (const char *line = l->text + from; *line;) {
        const char *end = strchrnul(line, '\n');
        size_t len = (size_t)(end - line);
        if (line_has(line, len, event) && line_has(line, len, path) && line_has(line, len, content))
            return (size_t)(end - l->text) + (*end != 0);
        line = end + (*end != 0);
    }
    fail_msg("nothing with %s, %s and %s follows", event, path, content);
    return 0;
}

#define SENT     "\"quic:packet_sent\""
#define RECEIVED "\"quic:packet_received\""
#define ON_0     "\"path\":0,"
#define ON_1     "\"path\":1,"
#define FRAME(f) "\"frame_type\":\"" f "\""

TEST(a_path_is_initialised_message_by_message) {
    pair p;
    start(&p, 300, true, true);
    pair_run(&p, 300000);
    pair_transfer(&p, 2000000, 20000000);
    assert_int_equal(0, xl_connection_close_path(p.cc, 1, p.now));
    pair_run(&p, 500000);
    xl_endpoint_free(p.client);
    xl_endpoint_free(p.server);
    p.client = p.server = NULL;

    const pair_log *c = &logs[0], *s = &logs[1];
    /* The handshake: both offer multipath. Both issue connection IDs; a path needs one in each direction. */
    size_t at = then(c, 0, "\"quic:parameters_set\"", "\"initiator\":\"local\"", "\"enable_multipath\":true");
    at = then(c, at, "\"quic:parameters_set\"", "\"initiator\":\"remote\"", "\"enable_multipath\":true");
    then(c, at, SENT, ON_0, FRAME("new_connection_id"));
    at = then(c, at, RECEIVED, ON_0, FRAME("new_connection_id"));
    /* The client opens path 1 by a challenge, and answers the server's. */
    at = then(c, at, "\"multipath:path_new\"", ON_1, "\"why\":\"opened\"");
    at = then(c, at, SENT, ON_1, FRAME("path_challenge"));
    at = then(c, at, RECEIVED, ON_1, FRAME("path_response"));
    then(c, at, "\"multipath:path_validated\"", ON_1, "PATH_RESPONSE");
    at = then(c, at, SENT, ON_1, FRAME("path_response"));
    /* Data comes on path 1 and is acknowledged by ACK_MP. */
    at = then(c, at, RECEIVED, ON_1, FRAME("stream"));
    at = then(c, at, SENT, ON_1, FRAME("ack_mp"));
    /* The path is closed: PATH_STATUS(Abandon) both ways, the connection IDs are retired. */
    at = then(c, at, "\"multipath:path_closed\"", ON_1, "closed by the application");
    then(c, at, SENT, ON_0, FRAME("retire_connection_id"));
    at = then(c, at, SENT, FRAME("path_status"), "abandon");
    at = then(c, at, RECEIVED, FRAME("path_status"), "abandon");

    at = then(s, 0, "\"quic:parameters_set\"", "\"initiator\":\"remote\"", "\"enable_multipath\":true");
    then(s, at, SENT, ON_0, FRAME("new_connection_id"));
    at = then(s, at, RECEIVED, ON_0, FRAME("new_connection_id"));
    at = then(s, at, RECEIVED, ON_1, FRAME("path_challenge"));
    then(s, at, SENT, ON_1, FRAME("path_challenge"));
    at = then(s, at, SENT, ON_1, FRAME("path_response"));
    at = then(s, at, RECEIVED, ON_1, FRAME("path_response"));
    at = then(s, at, "\"multipath:path_validated\"", ON_1, "PATH_RESPONSE");
    at = then(s, at, SENT, ON_1, FRAME("stream"));
    at = then(s, at, RECEIVED, ON_1, FRAME("ack_mp"));
    at = then(s, at, RECEIVED, FRAME("path_status"), "abandon");
    at = then(s, at, SENT, FRAME("path_status"), "abandon");
    finish(&p);
}

TEST(no_data_goes_on_a_path_before_its_validation) {
    pair p;
    start(&p, 301, true, true);
    size_t i = pair_ask(&p, 2000000); /* at once: there is data to send while path 1 is validated */
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    xl_endpoint_free(p.client);
    xl_endpoint_free(p.server);
    p.client = p.server = NULL;
    const char *validated = strstr(logs[1].text, "multipath:path_validated\",\"data\":{\"path\":1,");
    assert_non_null(validated);
    size_t first = then(&logs[1], 0, SENT, ON_1, FRAME("stream"));
    assert_true(logs[1].text + first > validated);
    finish(&p);
}

TEST(without_the_offer_of_both_there_is_no_multipath) {
    for (int k = 0; k < 2; k++) {
        pair p;
        start(&p, 302, k == 0, k == 1);
        pair_run(&p, 300000);
        assert_false(xl_connection_is_multipath(p.cc) || xl_connection_is_multipath(p.sc));
        assert_true(pair_finish(&p, pair_ask(&p, 500000), 20000000) != UINT64_MAX);
        xl_endpoint_free(p.client);
        xl_endpoint_free(p.server);
        p.client = p.server = NULL;
        for (int i = 0; i < 2; i++) {
            then(&logs[i], 0, "\"quic:parameters_set\"", NULL, "\"enable_multipath\":false");
            assert_null(strstr(logs[i].text, "ack_mp"));
            assert_null(strstr(logs[i].text, "path_status"));
            assert_null(strstr(logs[i].text, "path_challenge"));
            assert_null(strstr(logs[i].text, ON_1));
        }
        assert_int_equal(0, p.link[1].packets[0] + p.link[1].packets[1]);
        finish(&p);
    }
}

TEST_MAIN(NULL, NULL)
