/* Handshakes through the endpoints, with real keys: several clients, Retry, Version Negotiation, and an attacker on the
 * path who changes datagrams (also in Initial packets, whose keys are public), drops and repeats them, and sends its
 * own packets. Properties besides those of live.h: at most 3 times the bytes received from an address are sent to it
 * before it is validated; the number of connections is bounded; every handshake succeeds or fails. */
#include "tests/fuzz/forge.h"
#include "tests/fuzz/repeatable.h"

#define OPERATIONS      100
#define MAX_CONNECTIONS 6

static void run(live *l, uint64_t duration_us) {
    xl_endpoint_stats stats;
    live_run(l, duration_us);
    xl_endpoint_get_stats(l->p.server, &stats);
    FUZZ_CHECK(stats.connections <= MAX_CONNECTIONS);
}

/* ---- what somebody on the way does ---- */

static pair_datagram *choose_datagram(live *l) {
    pair_datagram *q = l->p.queue;
    for (unsigned n = fuzz_u8(l->in) % 4; n > 0 && q && q->next; n--)
        q = q->next;
    return q;
}

static void change_bytes(fuzz_input *in, uint8_t *data, size_t len) {
    for (unsigned n = 1 + fuzz_u8(in) % 4; n > 0 && len > 0; n--) {
        size_t at = fuzz_u16(in) % len;
        data[at] = fuzz_u8(in);
    }
}

/* Changes the frames of an Initial packet, mostly a ClientHello or ServerHello, and protects it with its keys. */
static void bend_initial(live *l, pair_datagram *q) {
    const xl_connection *from = q->to_server ? l->p.cc : l->p.sc;
    const xl_keys *keys = from ? from->level[XL_LEVEL_INITIAL].write : NULL;
    uint64_t pn;
    size_t pn_len;
    uint8_t *payload;
    xl_packet_header h;
    if (!keys && l->p.cc->level[XL_LEVEL_INITIAL].read && !q->to_server)
        keys = l->p.cc->level[XL_LEVEL_INITIAL].read; /* the server has no connection yet */
    if (!keys || xl_packet_parse(q->data, q->d.len, XL_LOCAL_CID_BYTES, &h) != 0 || h.type != XL_PACKET_INITIAL ||
        xl_keys_unmask(keys, q->data, h.total_len, h.pn_offset, &pn, &pn_len) != 0)
        return;
    ssize_t n = xl_keys_open(keys, 0, pn, q->data, h.total_len, h.pn_offset, pn_len, &payload);
    if (n <= 0)
        return;
    change_bytes(l->in, payload, (size_t)n < 700 ? (size_t)n : 700);
    xl_keys_protect(keys, 0, pn, q->data, h.pn_offset, pn_len, (size_t)n);
}

static void lose(live *l, pair_datagram *q) {
    pair_datagram **where = &l->p.queue;
    while (*where != q)
        where = &(*where)->next;
    *where = q->next;
    free(q);
}

static void interfere(live *l) {
    fuzz_input *in = l->in;
    uint8_t how = fuzz_u8(in);
    pair_datagram *q = choose_datagram(l);
    if (!q)
        return;
    switch (how % 6) {
    case 0:
    case 1:
    case 2:
        bend_initial(l, q);
        break;
    case 3:
        change_bytes(in, q->data, q->d.len);
        break;
    case 4:
        q->d.len = 1 + fuzz_u16(in) % q->d.len;
        break;
    default:
        lose(l, q);
    }
}

static void forge_retry(live *l) {
    fuzz_input *in = l->in;
    uint8_t packet[256], tag[16];
    xl_cid scid = {.len = fuzz_u8(in) % 21};
    const uint8_t *token;
    size_t token_len;
    fuzz_fill(in, scid.id, scid.len);
    token = fuzz_bytes(in, 100, &token_len);
    uint8_t bits = fuzz_u8(in);
    if (l->p.client_closed || l->p.cc->local_cids.count == 0)
        return;
    xl_writer w = xl_writer_of(packet, sizeof packet);
    xl_packet_put_retry(&w, XL_VERSION_1, &l->p.cc->local_cids.at[0].cid, &scid, token, token_len, bits);
    FUZZ_CHECK(!w.failed &&
               xl_retry_tag(XL_VERSION_1, &l->p.cc->handshake.odcid, packet, (size_t)(w.p - packet), tag) == 0);
    tag[0] ^= bits >= 0xf0;
    xl_write_bytes(&w, tag, sizeof tag);
    live_deliver(l, false, &l->p.link[0].client, &l->p.link[0].server, packet, (size_t)(w.p - packet));
}

static void forge_versions(live *l) {
    fuzz_input *in = l->in;
    uint8_t packet[256];
    if (l->p.client_closed || l->p.cc->local_cids.count == 0)
        return;
    size_t n = xl_packet_put_version_negotiation(packet, sizeof packet, &l->p.cc->local_cids.at[0].cid,
                                                 &l->p.cc->handshake.odcid, XL_VERSIONS_BOTH, fuzz_u8(in));
    change_bytes(in, packet, n);
    live_deliver(l, false, &l->p.link[0].client, &l->p.link[0].server, packet, n);
}

/* Sends a first packet with any version and token, from any address. With padding it has a client's minimum size. */
static void forge_first(live *l) {
    fuzz_input *in = l->in;
    uint8_t packet[PAIR_MTU] = {0};
    xl_cid dcid = {.len = fuzz_u8(in) % 21}, scid = {.len = fuzz_u8(in) % 21};
    size_t token_len, length_at;
    xl_keys *client, *server;
    fuzz_fill(in, dcid.id, dcid.len < 4 ? dcid.len : 4);
    const uint8_t *token = fuzz_bytes(in, 64, &token_len);
    xl_writer w = xl_writer_of(packet, sizeof packet - XL_AEAD_TAG);
    xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_INITIAL, &dcid, &scid, token, token_len, 0, 4, packet, &length_at);
    size_t pn_offset = (size_t)(w.p - packet) - 4, header = (size_t)(w.p - packet);
    for (unsigned n = fuzz_u8(in) % 3; n > 0 && !w.failed; n--) {
        size_t len;
        uint64_t offset = fuzz_number(in) & XL_VARINT_MAX;
        const uint8_t *data = fuzz_bytes(in, 300, &len);
        xl_frame_put_crypto_header(&w, offset, len);
        xl_write_bytes(&w, data, len);
    }
    if (w.failed || xl_keys_initial(XL_VERSION_1, &dcid, &client, &server) != 0)
        return;
    uint8_t small = fuzz_u8(in);
    while (w.p - packet < (small < 0xe0 ? 1200 : 60) - XL_AEAD_TAG || (size_t)(w.p - packet) < header + 4)
        xl_write_u8(&w, 0);
    size_t len = (size_t)(w.p - packet);
    xl_packet_set_length(packet, length_at, len - pn_offset + XL_AEAD_TAG);
    if (small & 1)
        packet[4] = small; /* another version */
    xl_keys_protect(client, 0, 0, packet, pn_offset, 4, len - header);
    xl_keys_free(client);
    xl_keys_free(server);
    xl_addr victim = live_victim(fuzz_u8(in));
    live_deliver(l, true, &l->p.link[0].server, &victim, packet, len + XL_AEAD_TAG);
}

static void one_more_client(live *l) {
    const pair_link *link = &l->p.link[fuzz_u8(l->in) % l->p.link_count];
    const char *const names[] = {"localhost", "example.org", "192.0.2.1"};
    xl_endpoint_connect(l->p.client, names[fuzz_u8(l->in) % 3], &link->client, &link->server, XL_TECH_LTE, l->p.now);
}

static void operate(live *l) {
    uint8_t op = fuzz_u8(l->in);
    switch (op % 12) {
    case 0:
    case 1:
        run(l, 1000 * (uint64_t)fuzz_u8(l->in));
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        interfere(l);
        break;
    case 6:
        forge_packet(l);
        break;
    case 7:
        forge_retry(l);
        break;
    case 8:
        forge_versions(l);
        break;
    case 9:
        forge_first(l);
        break;
    case 10:
        one_more_client(l);
        break;
    default:
        if (op & 0x80)
            forge_noise(l);
        else
            forge_from_sight(l);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    live *l = malloc(sizeof *l);
    FUZZ_CHECK(l != NULL);
    fuzz_repeat_tls();
    uint8_t shape = fuzz_u8(&in);
    live_init(l, &in, 1 + (shape >> 6), 1 + (shape & 1));
    pair *p = &l->p;
    p->client_config.null_crypto = p->server_config.null_crypto = shape & 2;
    p->client_config.scheme.enable_multipath = p->server_config.scheme.enable_multipath = shape & 4;
    p->server_config.limits.retry_always = shape & 8;
    p->server_config.limits.retry_above = shape & 16 ? 1 : 256;
    p->server_config.limits.max_connections = MAX_CONNECTIONS;
    p->server_config.alpn = shape & 32 ? "other" : p->client_config.alpn;
    pair_connect(p);
    live_flush(l);
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0 && !live_is_over(l); i++)
        operate(l);
    run(l, 45000000); /* a handshake may take 30 s */
    FUZZ_CHECK(p->client_closed || p->cc->handshake.is_complete || live_is_over(l));
    live_free(l);
    free(l);
    return 0;
}
