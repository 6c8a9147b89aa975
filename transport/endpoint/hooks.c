#include "endpoint/hooks.h"

#include <string.h>

#include "connection/receive.h"
#include "endpoint/events.h"
#include "endpoint/ready.h"

#define MAKE_CID_TRIES 16

/* A client that completes its handshake has received packets at its address, which is thereby proven. */
static void prove(xl_connection *c) {
    if (c->slot.client && !c->slot.is_proven)
        c->slot.client->proven++;
    c->slot.is_proven = true;
}

static void on_event(xl_endpoint *ep, const xl_event *e) {
    if (e->type == XL_EVENT_CONNECTED && ep->config.is_server) {
        ep->half_open--;
        prove(e->connection);
    }
    xl_events_add(ep, e);
}

/* Makes another CID if the first collides with one in use, which does happen with the shortest nonce. */
void xl_endpoint_make_cid(xl_endpoint *ep, xl_drbg_stream *random, xl_cid *cid) {
    const xl_deployment *d = ep->config.deployment;
    if (!d) {
        cid->len = XL_LOCAL_CID_BYTES;
        xl_drbg_bytes(random, cid->id, cid->len);
        return;
    }
    int tries = 0;
    do {
        uint8_t drawn[XL_LB_NONCE_MAX + 1];
        xl_drbg_bytes(random, drawn, sizeof drawn);
        *cid = (xl_cid){0};
        cid->len = (uint8_t)xl_deployment_make_cid(d, drawn, drawn[XL_LB_NONCE_MAX], cid->id);
    } while (xl_cid_map_get(&ep->map, cid) && ++tries < MAKE_CID_TRIES);
}

static int on_cid_added(xl_endpoint *ep, const xl_cid *cid, xl_connection *c) {
    return xl_cid_map_put(&ep->map, cid, c);
}

static void on_cid_removed(xl_endpoint *ep, const xl_cid *cid) {
    xl_cid_map_remove(&ep->map, cid);
}

static void on_touched(xl_endpoint *ep, xl_connection *c) {
    xl_timer_heap_touch(&ep->timers, c);
}

int xl_endpoint_reset_token(const xl_endpoint *ep, const xl_cid *cid, uint8_t token[16]) {
    return xl_hmac(ep->keys.reset, sizeof ep->keys.reset, cid->id, cid->len, token, 16) == 0 ? 0 : XL_ERR_CRYPTO;
}

xl_cid xl_endpoint_token_key(const uint8_t token[16]) {
    xl_cid key = {.len = 16};
    memcpy(key.id, token, 16);
    return key;
}

static void on_tokens_changed(xl_endpoint *ep, xl_connection *c) {
    const uint8_t *token[XL_RESET_TOKENS_MAX];
    size_t count = ep->config.is_server ? xl_conn_reset_tokens(c, token) : 0;
    xl_cid_map_remove_all_of(&ep->reset_tokens, c);
    for (size_t i = 0; i < count; i++) {
        const xl_cid key = xl_endpoint_token_key(token[i]);
        (void)xl_cid_map_put(&ep->reset_tokens, &key, c); /* without memory this reset will not be recognised */
    }
}

static int on_make_token(xl_endpoint *ep, const xl_addr *client, uint8_t token[XL_NEW_TOKEN_BYTES]) {
    uint8_t nonce[XL_TOKEN_NONCE_BYTES];
    xl_drbg_bytes(&ep->tokens, nonce, sizeof nonce);
    return xl_token_make(ep->keys.retry, nonce, client, xl_endpoint_date(ep, ep->now), token) == 0 ? 0 : XL_ERR_CRYPTO;
}

xl_connection_hooks xl_endpoint_hooks(xl_endpoint *ep) {
    return (xl_connection_hooks){
        .endpoint = ep,
        .event = on_event,
        .make_cid = xl_endpoint_make_cid,
        .cid_added = on_cid_added,
        .cid_removed = on_cid_removed,
        .wake = xl_ready_add,
        .touched = on_touched,
        .tokens_changed = on_tokens_changed,
        .reset_token = xl_endpoint_reset_token,
        .make_token = on_make_token,
        .send_pool = &ep->send_pool,
        .foresight = ep->foresight,
    };
}
