/* For tests: a pair of connections, one of which has a peer that breaks the rules with valid keys. */
#pragma once

#include "testing/pair.h"

#include "connection/builder.h"
#include "connection/state.h"
#include "wire/frame.h"

#define STILL_OPEN UINT64_MAX

typedef struct {
    pair p;
    uint64_t pn;
    bool to_server;
    uint8_t frames[1200];
    xl_writer w;
} attack;

static inline void attack_free(attack *a) {
    pair_free(&a->p);
}

#define ATTACK_TEST(name) TEST_OF(name, attack, a, attack_free)

static inline xl_connection *victim(attack *a) {
    return a->to_server ? a->p.sc : a->p.cc;
}

/* Ends what began before. Configure the pair after this, before attack_connect(). */
static inline void attack_init(attack *a, size_t links) {
    if (a->p.client)
        attack_free(a);
    memset(a, 0, sizeof *a);
    pair_init(&a->p, 1, links, 5000);
}

static inline void attack_connect(attack *a, bool to_server) {
    pair_settle(&a->p, 200000);
    a->to_server = to_server;
    a->pn = 1 << 20; /* beyond those of the genuine sender */
    a->w = xl_writer_of(a->frames, sizeof a->frames);
}

static inline void begin(attack *a, bool to_server, xl_dialect dialect, size_t links) {
    attack_init(a, links);
    pair_multipath(&a->p, "minrtt", "none");
    a->p.server_config.scheme.dialect = dialect;
    attack_connect(a, to_server);
}

/* Sends the frames written so far to the victim in a forged packet, on this path and to this CID of the victim's. */
static inline void deliver_to(attack *a, const xl_cid *dcid, uint64_t path_id, const pair_link *l) {
    pair *p = &a->p;
    uint8_t packet[PAIR_MTU];
    xl_connection *from = a->to_server ? p->cc : p->sc;
    size_t len = (size_t)(a->w.p - a->frames);
    xl_writer w = xl_writer_of(packet, sizeof packet - XL_AEAD_TAG);
    xl_packet_put_short(&w, dcid, false, from->key_update.phase, a->pn, 4);
    size_t pn_offset = (size_t)(w.p - packet) - 4;
    assert_false(a->w.failed);
    xl_write_bytes(&w, a->frames, len);
    assert_true(xl_keys_protect(from->level[XL_LEVEL_APP].write, path_id, a->pn++, packet, pn_offset, 4, len) > 0);
    pair_inject(p, a->to_server, l, packet, pn_offset + 4 + len + XL_AEAD_TAG);
    a->w = xl_writer_of(a->frames, sizeof a->frames);
}

/* Sends them as a packet of the peer's own, on path 0, so that its state stays consistent. */
static inline void deliver(attack *a) {
    pair *p = &a->p;
    uint8_t packet[PAIR_MTU];
    xl_builder b;
    xl_connection *from = a->to_server ? p->cc : p->sc;
    assert_false(a->w.failed);
    xl_conn_enter(from, p->now);
    assert_true(xl_builder_begin(&b, from, from->path[0], XL_LEVEL_APP, packet, PAIR_MTU));
    xl_write_bytes(&b.w, a->frames, (size_t)(a->w.p - a->frames));
    b.ack_eliciting = true;
    pair_inject(p, a->to_server, &p->link[0], packet, xl_builder_finish(&b));
    a->w = xl_writer_of(a->frames, sizeof a->frames);
}

/* Delivers the frames. Returns the error that the victim closes with, or STILL_OPEN. */
static inline uint64_t outcome(attack *a) {
    deliver(a);
    return xl_conn_is_live(victim(a)) ? STILL_OPEN : victim(a)->closing.code;
}

static const uint8_t token[16] = {1, 2, 3};

static inline xl_cid cid_of(uint8_t n) {
    return (xl_cid){.len = 8, .id = {0xcc, n, 1, 2, 3, 4, 5, 6}};
}
