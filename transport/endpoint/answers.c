#include "endpoint/answers.h"

#include <string.h>

#include "endpoint/hooks.h"

#define REFUSALS_US   1000000
#define REFUSALS_MOST 1000
#define RESET_MIN     22 /* a stateless reset has at least 21 bytes and is shorter than what it answers (10.3) */

static xl_stateless *next_stateless(xl_endpoint *ep, const xl_datagram *in) {
    if (ep->stateless_count == XL_STATELESS_MAX)
        return NULL;
    xl_stateless *s = &ep->stateless[ep->stateless_count];
    s->to = (xl_datagram){.local = in->local, .remote = in->remote};
    return s;
}

void xl_answer_version_negotiation(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h) {
    xl_stateless *s = next_stateless(ep, in);
    if (!s || in->len < XL_MIN_DATAGRAM)
        return;
    s->to.len = xl_packet_put_version_negotiation(s->data, sizeof s->data, &h->scid, &h->dcid,
                                                  ep->config.limits.versions, (uint8_t)xl_drbg_next(&ep->headers));
    ep->stateless_count += s->to.len > 0;
}

void xl_answer_reset(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h) {
    const xl_deployment *d = ep->config.deployment;
    xl_stateless *s = next_stateless(ep, in);
    if (!s || in->len < RESET_MIN || (d && !xl_deployment_is_own(d, h->dcid.id, h->dcid.len)))
        return;
    size_t len = in->len - 1 < 64 ? in->len - 1 : 42 + xl_drbg_next(&ep->resets) % 22;
    xl_drbg_bytes(&ep->resets, s->data, len);
    s->data[0] = (uint8_t)((s->data[0] & 0x3f) | 0x40);
    if (xl_endpoint_reset_token(ep, &h->dcid, s->data + len - 16) != 0)
        return;
    s->to.len = len;
    ep->stateless_count++;
    ep->stats.stateless_resets++;
}

void xl_answer_retry(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t now) {
    xl_stateless *s = next_stateless(ep, in);
    if (!s)
        return;
    xl_cid scid;
    xl_endpoint_make_cid(ep, &ep->stray_cids, &scid);
    s->to.len = xl_retry_put(ep->keys.retry, h, &in->remote, &scid, (uint8_t)xl_drbg_next(&ep->headers),
                             xl_endpoint_date(ep, now), s->data, sizeof s->data);
    ep->stateless_count += s->to.len > 0;
    ep->stats.retries += s->to.len > 0;
}

/* Each refusal costs a derivation of keys. Only some are sent each second; other clients get no answer. */
static bool may_refuse(xl_endpoint *ep, uint64_t now) {
    if (ep->refusals == 0 || now - ep->refusals_since >= REFUSALS_US) {
        ep->refusals_since = now;
        ep->refusals = 0;
    }
    return ep->refusals++ < REFUSALS_MOST;
}

void xl_answer_refusal(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, uint64_t code, uint64_t now) {
    xl_stateless *s = may_refuse(ep, now) ? next_stateless(ep, in) : NULL;
    if (!s)
        return;
    s->to.len = xl_retry_put_refusal(h, code, s->data, sizeof s->data);
    ep->stateless_count += s->to.len > 0;
}

size_t xl_answer_take(xl_endpoint *ep, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_stateless *s = &ep->stateless[--ep->stateless_count];
    if (s->to.len > cap)
        return 0;
    memcpy(buf, s->data, s->to.len);
    *out = s->to;
    return out->len;
}
