#include "endpoint/admission.h"

#include <stdlib.h>

#include "endpoint/answers.h"

#define MIN_INITIAL_DCID 8

static bool is_full(size_t connections, const xl_limits *limits) {
    return connections >= limits->max_per_client;
}

static bool has_to_prove(const xl_endpoint *ep, const xl_client *client) {
    const xl_limits *limits = &ep->config.limits;
    return limits->retry_always || ep->half_open >= limits->retry_above ||
           (client && is_full(client->connections, limits));
}

/* Whether the Initial has a token of NEW_TOKEN that was not used before, as far as the server remembers (RFC 9000
 * section 8.1.4). Remembers the token. */
static bool is_fresh_token(xl_endpoint *ep, const xl_packet_header *h, const xl_addr *client, uint64_t date) {
    if (!xl_token_is_valid(ep->keys.retry, h->token, h->token_len, client, date))
        return false;
    if (!ep->used_tokens && !(ep->used_tokens = calloc(1, sizeof *ep->used_tokens)))
        return false;
    bool was_used = xl_outstanding_take(ep->used_tokens, h->token, h->token_len, "");
    xl_outstanding_add(ep->used_tokens, h->token, h->token_len, "");
    return !was_used;
}

bool xl_endpoint_admit(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t now, xl_cid *odcid,
                       bool *is_retried, bool *is_proven) {
    if (in->len < XL_MIN_DATAGRAM)
        return false;
    *odcid = h->dcid;
    const xl_limits *limits = &ep->config.limits;
    const xl_client *client = limits->max_per_client ? xl_clients_find(&ep->clients, &in->remote) : NULL;
    uint64_t date = xl_endpoint_date(ep, now);
    xl_token_verdict verdict = xl_retry_check(ep->keys.retry, h, &in->remote, date, odcid);
    *is_retried = verdict == XL_TOKEN_VALID;
    *is_proven = *is_retried || is_fresh_token(ep, h, &in->remote, date);
    if (!*is_retried && h->dcid.len < MIN_INITIAL_DCID)
        return false;
    if (verdict == XL_TOKEN_INVALID) {
        xl_answer_refusal(ep, in, h, XL_QERR_INVALID_TOKEN, now);
        return false;
    }
    if (!*is_proven && has_to_prove(ep, client)) {
        xl_answer_retry(ep, in, h, now);
        return false;
    }
    bool has_room = ep->count < limits->max_connections && !(client && is_full(client->proven, limits));
    if (!has_room) {
        xl_answer_refusal(ep, in, h, XL_QERR_CONNECTION_REFUSED, now);
        ep->stats.refused++;
    }
    return has_room;
}

void xl_endpoint_count_client(xl_endpoint *ep, xl_connection *c, const xl_addr *remote, bool is_proven) {
    c->slot.is_proven = is_proven;
    if (ep->config.limits.max_per_client)
        c->slot.client = xl_clients_add(&ep->clients, remote, is_proven);
}
