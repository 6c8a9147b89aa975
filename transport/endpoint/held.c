#include "endpoint/held.h"

#include <stdlib.h>
#include <string.h>

#include "connection/receive.h"

void xl_held_add(xl_endpoint *ep, const xl_datagram *in, const xl_packet_header *h, const uint8_t *data, uint64_t now) {
    if (!xl_credentials_have_early(ep->config.credentials) || in->len > XL_HELD_BYTES)
        return;
    if (!ep->held && !(ep->held = calloc(XL_HELD_MAX, sizeof *ep->held)))
        return;
    xl_held *oldest = &ep->held[ep->held_next++ % XL_HELD_MAX];
    *oldest = (xl_held){.head = *in, .dcid = h->dcid, .until = now + XL_HELD_US};
    memcpy(oldest->data, data, in->len);
}

void xl_held_take(xl_endpoint *ep, xl_connection *c, const xl_packet_header *h, const xl_datagram *in, uint64_t now) {
    for (size_t i = 0; ep->held && i < XL_HELD_MAX; i++) {
        xl_held *d = &ep->held[(ep->held_next + i) % XL_HELD_MAX];
        bool is_its = d->head.len > 0 && d->until >= now && xl_cid_equal(&d->dcid, &h->dcid) &&
                      xl_addr_equal(&d->head.remote, &in->remote);
        if (!is_its)
            continue;
        xl_conn_receive(c, &d->head, NULL, d->data, now);
        d->head.len = 0;
    }
}
