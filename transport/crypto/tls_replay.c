/* Accepts 0-RTT data once for each ticket (RFC 8446 section 8.1, RFC 9001 section 9.2), independent of the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crypto/tls_internal.h"

#define EXT_PRE_SHARED_KEY 41
#define AGE_TOLERANCE_S    1
#define REPLAY_WINDOW_MS   UINT32_MAX /* of the library; xl_outstanding prevents replays */

/* ---- Time of day ---- */

/* The clock by which GnuTLS judges the age of a ticket. */
static uint64_t (*time_of_day)(void);

void xl_set_time_of_day(uint64_t (*ns)(void)) {
    time_of_day = ns;
}

uint64_t xl_tls_time_of_day_ns(void) {
    return time_of_day ? time_of_day() : 0;
}

/* ---- Issued tickets ---- */

void xl_tls_remember_issued(const xl_tls *tls, const uint8_t *message, size_t len) {
    xl_tls_ticket t;
    if (tls->credentials->outstanding && !tls->was_retried && xl_tls_read_ticket(message, len, &t))
        xl_outstanding_add(tls->credentials->outstanding, t.ticket, t.ticket_len, tls->alpn);
}

/* Finds the ticket of a ClientHello: the identity of pre_shared_key, if it is the only one. If there were several,
 * GnuTLS would not say which one it accepts, and this code might take another one. 0-RTT data belongs to the first (RFC
 * 8446 section 4.2.10). */
void xl_tls_find_identity(xl_tls *tls, const uint8_t *message, size_t len) {
    xl_reader r = xl_reader_of(message, len);
    tls->identity_len = 0;
    xl_read_bytes(&r, MESSAGE_HEADER + 2 + CLIENT_RANDOM_BYTES);
    xl_read_bytes(&r, xl_read_u8(&r));
    xl_read_bytes(&r, xl_tls_read_u16(&r));
    xl_read_bytes(&r, xl_read_u8(&r));
    xl_tls_read_u16(&r);
    size_t type;
    xl_reader ext;
    while (xl_tls_next_extension(&r, &type, &ext)) {
        if (type != EXT_PRE_SHARED_KEY)
            continue;
        const size_t all = xl_tls_read_u16(&ext), identity_len = xl_tls_read_u16(&ext);
        tls->identity = xl_read_bytes(&ext, identity_len);
        tls->identity_len = ext.failed || all != 2 + identity_len + 4 ? 0 : identity_len;
    }
}

/* GnuTLS calls this for 0-RTT data with an authentic ticket. Negative: refuses the data, but resumes the session. */
static int on_early_ticket(void *user, time_t expires, const gnutls_datum_t *key, const gnutls_datum_t *data) {
    (void)expires, (void)key, (void)data;
    xl_outstanding *issued = user;
    gnutls_datum_t alpn;
    char name[ALPN_MAX + 1];
    if (!xl_tls_driven || !xl_tls_driven->callbacks.early_keys || xl_tls_driven->identity_len == 0 ||
        gnutls_alpn_get_selected_protocol(xl_tls_driven->session, &alpn) != 0)
        return GNUTLS_E_DB_ENTRY_EXISTS;
    snprintf(name, sizeof name, "%.*s", (int)alpn.size, (const char *)alpn.data);
    return xl_outstanding_take(issued, xl_tls_driven->identity, xl_tls_driven->identity_len, name)
               ? 0
               : GNUTLS_E_DB_ENTRY_EXISTS;
}

/* Clients that count the age of a ticket in whole seconds (Go, rustls) are up to a second ahead, and GnuTLS 3.7 refuses
 * 0-RTT data of a ticket that is older by its client's count than by its own. So while it processes a ClientHello, the
 * library's clock is a second ahead too. The function that replaces this clock is not in its headers; without it such
 * data is refused. Replays are prevented without the clock. */
extern void _gnutls_global_set_gettime_function(void (*)(struct timespec *)) __attribute__((weak));

static void time_for_gnutls(struct timespec *t) {
    const uint64_t ns = xl_tls_time_of_day_ns();
    t->tv_sec = (time_t)(ns / UINT64_C(1000000000)) + (xl_tls_takes_client_hello ? AGE_TOLERANCE_S : 0);
    t->tv_nsec = (long)(ns % UINT64_C(1000000000));
}

int xl_credentials_allow_early_data(xl_credentials *c) {
    if (c->is_server ? !c->issues_tickets : !c->sessions.load)
        return XL_ERR_ARGUMENT;
    if (c->is_server && !c->anti_replay) {
        /* Set the clock before: the library refuses tickets that are older than its check of replays. */
        if (_gnutls_global_set_gettime_function && time_of_day)
            _gnutls_global_set_gettime_function(time_for_gnutls);
        c->outstanding = calloc(1, sizeof *c->outstanding);
        if (!c->outstanding || gnutls_anti_replay_init(&c->anti_replay) != 0)
            return XL_ERR_MEMORY;
        gnutls_anti_replay_set_window(c->anti_replay, REPLAY_WINDOW_MS);
        gnutls_anti_replay_set_ptr(c->anti_replay, c->outstanding);
        gnutls_anti_replay_set_add_function(c->anti_replay, on_early_ticket);
    }
    c->allows_early = true;
    return 0;
}

int xl_tls_accept_early_data(const xl_tls *tls) {
    gnutls_anti_replay_enable(tls->session, tls->credentials->anti_replay);
    return gnutls_record_set_max_early_data_size(tls->session, QUIC_EARLY_DATA);
}
