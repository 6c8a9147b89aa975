/* Both halves of a stream, with flow control, over a channel that loses, reorders and duplicates. */
#include "tests/unit.h"
#include "testing/test_random.h"
#include "stream/flow.h"
#include "stream/receive.h"
#include "stream/send.h"

#include <string.h>

#define TOTAL   1000000
#define WINDOW  100000
#define CHANNEL 64
#define MTU     1100

typedef struct {
    xl_send_piece piece;
    uint8_t payload[MTU];
} frame;

typedef struct {
    uint64_t rng;
    xl_send send;
    xl_recv recv;
    xl_flow_out credit;
    xl_flow_in window;
    frame channel[CHANNEL];
    size_t in_channel;
    uint64_t written, got, retransmitted, losses;
    bool fin;
} pair;

static uint8_t data[TOTAL], out[TOTAL];

static void application(pair *p) {
    if (p->written < TOTAL) {
        size_t want = (size_t)test_below(&p->rng, 5000);
        if (want > TOTAL - p->written)
            want = (size_t)(TOTAL - p->written);
        ssize_t n = xl_send_write(&p->send, data + p->written, want);
        assert_true(n >= 0);
        p->written += (uint64_t)n;
        if (p->written == TOTAL)
            xl_send_finish(&p->send);
    }
    if (test_below(&p->rng, 3) == 0 && !p->fin) {
        p->got += xl_recv_read(&p->recv, out + p->got, (size_t)test_below(&p->rng, 20000), &p->fin);
        p->window.consumed = p->got;
        if (xl_flow_in_should_update(&p->window))
            xl_flow_out_raise(&p->credit, xl_flow_in_update(&p->window, 0, 0));
    }
}

static void transmit(pair *p) {
    xl_send_piece piece;
    while (p->in_channel < CHANNEL &&
           xl_send_next(&p->send, p->credit.limit, 1 + (size_t)test_below(&p->rng, MTU), &piece)) {
        frame *f = &p->channel[p->in_channel++];
        f->piece = piece;
        xl_send_copy(&p->send, piece.offset, f->payload, piece.len);
        xl_send_mark_sent(&p->send, &piece);
        p->retransmitted += piece.is_retransmission ? piece.len : 0;
        if (p->in_channel < CHANNEL && test_below(&p->rng, 10) == 0)
            p->channel[p->in_channel++] = *f; /* re-injected */
    }
}

static void deliver(pair *p) {
    if (p->in_channel == 0)
        return;
    frame *f = &p->channel[test_below(&p->rng, p->in_channel)];
    xl_send_piece piece = f->piece;
    if (test_below(&p->rng, 5) == 0) {
        xl_send_mark_lost(&p->send, piece.offset, piece.len, piece.fin);
        p->losses++;
    } else {
        uint64_t fresh;
        assert_int_equal(
            xl_recv_insert(&p->recv, piece.offset, f->payload, piece.len, piece.fin, p->window.limit, &fresh), 0);
        if (test_below(&p->rng, 20) == 0) /* the ACK was late: declared lost, then acknowledged */
            xl_send_mark_lost(&p->send, piece.offset, piece.len, piece.fin);
        xl_send_mark_acked(&p->send, piece.offset, piece.len, piece.fin);
    }
    *f = p->channel[--p->in_channel];
}

TEST(a_megabyte_arrives_intact) {
    for (size_t i = 0; i < TOTAL; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16));
    for (uint64_t seed = 0; seed < 5; seed++) {
        static pair p;
        size_t most = 0;
        memset(&p, 0, sizeof p);
        memset(out, 0, sizeof out);
        p.rng = seed;
        xl_send_init(&p.send, 70000);
        xl_recv_init(&p.recv);
        xl_flow_in_init(&p.window, WINDOW, 0);
        xl_flow_out_init(&p.credit, p.window.limit);
        for (int step = 0; step < 100000 && !(p.fin && xl_send_is_done(&p.send)); step++) {
            application(&p);
            transmit(&p);
            deliver(&p);
            most = p.send.cap > most ? p.send.cap : most;
        }
        assert_true(p.fin && xl_send_is_done(&p.send));
        assert_int_equal(p.got, TOTAL);
        assert_memory_equal(out, data, TOTAL);
        assert_true(p.losses > 100 && p.retransmitted > 0);
        assert_int_equal(most, 131072);
        assert_int_equal(p.send.cap, 0);
        assert_true(p.recv.cap <= 131072);
        /* Data still under way changes nothing any more. */
        while (p.in_channel > 0)
            deliver(&p);
        assert_false(xl_send_pending(&p.send, UINT64_MAX));
        xl_send_free(&p.send);
        xl_recv_free(&p.recv);
    }
}

TEST_MAIN(NULL, NULL)
