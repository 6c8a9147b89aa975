/* After the TLS handshake: tickets, and handshakes that resume a session. */
#include "testing/tls_pair.h"

typedef struct {
    uint8_t session[XL_SESSION_MAX_BYTES];
    size_t len;
    unsigned saved, loaded;
    char name[32];
} session_store;

static void save(void *user, const char *server_name, const uint8_t *session, size_t len) {
    session_store *s = user;
    assert_true(len <= sizeof s->session);
    memcpy(s->session, session, len);
    s->len = len;
    s->saved++;
    snprintf(s->name, sizeof s->name, "%s", server_name);
}

static size_t load(void *user, const char *server_name, uint8_t *session, size_t cap) {
    session_store *s = user;
    assert_true(s->len <= cap);
    assert_string_equal(server_name, "railyard.test");
    memcpy(session, s->session, s->len);
    s->loaded++;
    return s->len;
}

#define MESSAGE_BYTES 1000
static const uint8_t TICKET_KEY[XL_TICKET_KEY_BYTES] = {7, 1};

static void open_resuming_pair(pair *p, session_store *store, const uint8_t *ticket_key, const char *alpn) {
    const xl_sessions sessions = {.user = store, .save = save, .load = load};
    open_pair(p);
    assert_int_equal(xl_credentials_keep_sessions(p->client_credentials, &sessions), 0);
    assert_int_equal(xl_credentials_keep_sessions(p->server_credentials, &sessions), XL_ERR_ARGUMENT);
    assert_int_equal(xl_credentials_issue_tickets(p->server_credentials, ticket_key), 0);
    assert_int_equal(xl_credentials_issue_tickets(p->client_credentials, ticket_key), XL_ERR_ARGUMENT);
    close_end(&p->client);
    close_end(&p->server);
    memset(&p->client, 0, sizeof p->client);
    memset(&p->server, 0, sizeof p->server);
    open_end(&p->client, false, p->client_credentials, alpn);
    open_end(&p->server, true, p->server_credentials, "h3,hq-interop");
}

/* Runs a handshake and delivers the server's tickets. Returns the size of the server's flight under the handshake
 * keys. */
static size_t run_with_tickets(pair *p, size_t step) {
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    const size_t flight = p->server.out_len[XL_LEVEL_HANDSHAKE];
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_true(xl_tls_is_complete(p->client.tls) && xl_tls_is_complete(p->server.tls));
    assert_true(p->server.out_len[XL_LEVEL_APP] > 0);
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    return flight;
}

TEST(a_session_is_saved_and_resumed_without_a_certificate) {
    const size_t steps[] = {WHOLE_FLIGHTS, 1, 100};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        session_store store = {0};
        pair p;
        open_resuming_pair(&p, &store, TICKET_KEY, "h3");
        const size_t whole = run_with_tickets(&p, steps[i]);
        assert_false(xl_tls_is_resumed(p.client.tls) || xl_tls_is_resumed(p.server.tls));
        assert_int_equal(store.saved, 1);
        assert_string_equal(store.name, "railyard.test");
        close_pair(&p);

        open_resuming_pair(&p, &store, TICKET_KEY, "h3");
        const size_t resumed = run_with_tickets(&p, steps[i]);
        assert_true(xl_tls_is_resumed(p.client.tls) && xl_tls_is_resumed(p.server.tls));
        assert_true(resumed + 200 < whole); /* no certificate, no signature */
        assert_agreed(&p, XL_AEAD_AES_128_GCM);
        assert_int_equal(store.saved, 2);
        close_pair(&p);
    }
}

TEST(a_session_of_another_key_or_protocol_or_form_gives_a_full_handshake) {
    static const uint8_t other_key[XL_TICKET_KEY_BYTES] = {8};
    session_store good = {0};
    pair p;
    open_resuming_pair(&p, &good, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    close_pair(&p);
    for (size_t i = 0; i < 2 + good.len; i += i < 12 ? 1 : 37) {
        session_store store = good;
        if (i >= 2)
            store.len = i - 2; /* cut off */
        open_resuming_pair(&p, &store, i == 0 ? other_key : TICKET_KEY, i == 1 ? "hq-interop" : "h3");
        run_with_tickets(&p, WHOLE_FLIGHTS);
        assert_false(xl_tls_is_resumed(p.client.tls) || xl_tls_is_resumed(p.server.tls));
        close_pair(&p);
    }
}

TEST(tickets_are_bounded_and_what_is_no_ticket_is_refused) {
    session_store store = {0};
    pair p;
    open_resuming_pair(&p, &store, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    uint8_t ticket[MESSAGE_BYTES] = {GNUTLS_HANDSHAKE_NEW_SESSION_TICKET, 0, 0, 60};
    for (int i = 0; i < 20; i++) /* damaged content: no session, and no crash */
        assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, 64), 0);
    ticket[1] = 0xff; /* 16 MB, announced */
    for (int i = 0; i < 100; i++)
        assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, i == 0 ? 4 : sizeof ticket), 0);
    assert_int_equal(store.saved, 1);
    close_pair(&p);
    open_resuming_pair(&p, &store, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    ticket[0] = GNUTLS_HANDSHAKE_KEY_UPDATE;
    assert_true(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, 4) < 0);
    close_pair(&p);
}

/* RFC 9001 section 4.4. */
PAIR_TEST(a_request_for_a_certificate_after_the_handshake_is_a_violation) {
    session_store store = {0};
    open_resuming_pair(p, &store, TICKET_KEY, "h3");
    run_with_tickets(p, WHOLE_FLIGHTS);
    const uint8_t request[] = {GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST, 0, 0, 3, 0, 0, 0};
    assert_true(xl_tls_receive(p->client.tls, XL_LEVEL_APP, request, sizeof request) < 0);
    assert_true(xl_tls_is_violation(p->client.tls));
}

PAIR_TEST(session_tickets_are_taken_and_ignored) {
    open_pair(p);
    handshake(p, WHOLE_FLIGHTS);
    const uint8_t tickets[] = {4, 0, 0, 3, 'a', 'b', 'c', 4, 0, 0, 0, 4, 0, 0, 1, 'd'};
    assert_int_equal(xl_tls_receive(p->client.tls, XL_LEVEL_APP, tickets, sizeof tickets), 0);
    for (size_t i = 0; i < sizeof tickets; i++)
        assert_int_equal(xl_tls_receive(p->client.tls, XL_LEVEL_APP, tickets + i, 1), 0);
    assert_true(xl_tls_is_complete(p->client.tls));
    /* A client must not send tickets. */
    assert_true(xl_tls_receive(p->server.tls, XL_LEVEL_APP, tickets, sizeof tickets) < 0);
    assert_int_equal(xl_tls_alert(p->server.tls), ALERT_UNEXPECTED_MESSAGE);
}

TEST_MAIN(NULL, NULL)
