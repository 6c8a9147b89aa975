/* A peer with valid keys that sends arbitrary frames: the other side closes or carries on, and stays bounded. */
#include "testing/pair.h"

/* Half of the runs stay near what is allowed, and so get deeper before the connection is closed. */
static bool gentle;

static uint64_t pick(xl_random *r) {
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     8,
                                     63,
                                     64,
                                     100,
                                     1200,
                                     16383,
                                     65536,
                                     UINT64_C(1) << 30,
                                     UINT64_C(1) << 60,
                                     XL_VARINT_MAX - 1,
                                     XL_VARINT_MAX};
    uint64_t v = xl_random_next(r);
    if (gentle)
        return (v >> 8) % 8;
    return v % 3 == 0 ? (v >> 8) % 12 : edges[(v >> 8) % (sizeof edges / sizeof edges[0])];
}

/* If gentle, a bidirectional stream of the client. */
static uint64_t pick_stream(xl_random *r) {
    return gentle ? 4 * (xl_random_next(r) % 8) : pick(r);
}

static void put_random_ack(xl_writer *w, xl_random *r, const xl_connection *c) {
    uint64_t known = c->space[XL_LEVEL_APP].largest_received;
    uint64_t largest = xl_random_next(r) % 2 && known != UINT64_MAX ? known : pick(r);
    xl_ack_range range[2] = {{largest > 3 ? largest - 1 : largest, largest}, {0, 0}};
    xl_qoe qoe = {pick(r), pick(r), pick(r), pick(r)};
    bool as_mp = xl_random_next(r) % 2;
    xl_frame_put_ack(w, range, largest > 4 ? 2 : 1, pick(r), as_mp ? XL_FRAME_ACK_MP : XL_FRAME_ACK, pick(r),
                     as_mp && c->qoe.has_field, &qoe);
}

static void put_random_frame(xl_writer *w, xl_random *r, const xl_connection *c) {
    uint8_t bytes[64] = {0}, token[16] = {0};
    xl_cid cid = {.len = (uint8_t)(1 + xl_random_next(r) % 20)};
    xl_random_bytes(r, cid.id, cid.len);
    size_t len = xl_random_next(r) % sizeof bytes;
    static const unsigned harmless[] = {1, 2, 3, 4, 8, 9, 10, 11, 12, 15};
    uint64_t v = xl_random_next(r);
    switch (gentle && v % 64 ? harmless[(v >> 8) % 10] : (v >> 8) % 16) {
    case 0:
        put_random_ack(w, r, c);
        break;
    case 1:
    case 2:
        xl_frame_put_stream_header(w, pick_stream(r), pick(r), len, xl_random_next(r) % 2);
        xl_write_bytes(w, bytes, len);
        break;
    case 3:
        XL_FRAME_PUT(w, XL_FRAME_RESET_STREAM, pick_stream(r), pick(r), pick(r));
        break;
    case 4:
        XL_FRAME_PUT(w, XL_FRAME_STOP_SENDING, pick_stream(r), pick(r));
        break;
    case 5:
        XL_FRAME_PUT(w, XL_FRAME_MAX_DATA + xl_random_next(r) % 8, pick(r), pick(r));
        break;
    case 6:
    case 7:
        xl_frame_put_new_cid(w, XL_FRAME_NEW_CONNECTION_ID, 0, pick(r), pick(r) % 4, &cid, token);
        break;
    case 8:
        XL_FRAME_PUT(w, XL_FRAME_RETIRE_CONNECTION_ID, 0, pick(r));
        break;
    case 9:
    case 10:
        xl_frame_put_path(w, XL_FRAME_PATH_CHALLENGE + xl_random_next(r) % 2, bytes);
        break;
    case 11:
        XL_FRAME_PUT(w, XL_FRAME_PATH_STATUS, pick(r) % 4, pick(r), pick(r) % 3, pick(r));
        break;
    case 12: {
        xl_qoe qoe = {pick(r), pick(r), pick(r), pick(r)};
        xl_frame_put_qoe(w, pick(r), &qoe);
        break;
    }
    case 13:
        xl_frame_put_crypto_header(w, pick(r), len);
        xl_write_bytes(w, bytes, len);
        break;
    case 14:
        xl_write_bytes(w, cid.id, cid.len); /* no frame at all */
        break;
    default:
        xl_write_varint(w, XL_FRAME_PING);
    }
}

/* Sends one packet of random frames from the client; its own ledger treats it as a PING. */
static void send_hostile(pair *p, xl_random *r) {
    uint8_t buf[PAIR_MTU + 64];
    xl_builder b;
    xl_path *path = p->cc->path[xl_random_next(r) % p->link_count];
    xl_conn_enter(p->cc, p->now);
    if (!path->cids.has_remote || !xl_builder_begin(&b, p->cc, path, XL_LEVEL_APP, buf, PAIR_MTU))
        return;
    for (uint64_t n = 1 + xl_random_next(r) % 4; n > 0; n--)
        put_random_frame(&b.w, r, p->cc);
    b.w.failed = false;
    b.ack_eliciting = true;
    size_t len = xl_builder_finish(&b);
    pair_enqueue(p, true, &(xl_datagram){.local = path->local, .remote = path->remote, .len = len}, buf);
}

TEST(random_frames_with_valid_keys_do_no_harm) {
    unsigned closed = 0, survived = 0, packets = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        pair p;
        xl_random r;
        xl_random_seed(&r, seed * 7919);
        gentle = seed % 2 == 0;
        pair_init(&p, seed, 2, 5000);
        if (seed % 3)
            pair_multipath(&p, "xlink", "frame");
        pair_settle(&p, 50000);
        pair_ask(&p, 200000);
        for (int k = 0; k < 60 && !p.server_closed && !p.client_closed; k++) {
            send_hostile(&p, &r);
            packets++;
            pair_run(&p, 3000);
        }
        if (p.sc) {
            assert_true(p.sc->streams.count <=
                        2 * (p.server_config.limits.max_streams_bidi + p.server_config.limits.max_streams_uni));
            assert_true(p.sc->path_count <= XL_MAX_PATHS);
        }
        pair_run(&p, 3000000);
        closed += p.server_closed;
        survived += !p.server_closed;
        pair_free(&p);
    }
    assert_true(packets > 500);
    assert_true(closed > 75); /* most break a rule sooner or later */
    assert_int_equal(150, closed + survived);
}

TEST_MAIN(NULL, NULL)
