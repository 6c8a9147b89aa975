/* The end of a connection: CONNECTION_CLOSE, and the event of a failed handshake. */
#include "testing/attack.h"

/* RFC 9000 section 19.19. The server's log has the frame that it sent. */
ATTACK_TEST(connection_close_names_the_frame_that_caused_it) {
    static const struct {
        uint8_t frame[4];
        size_t len;
        const char *logged;
    } cases[] = {{{XL_FRAME_HANDSHAKE_DONE}, 1, "\"trigger_frame_type\":30"},
                 {{XL_FRAME_STREAM_DATA_BLOCKED, 3, 0}, 3, "\"trigger_frame_type\":21"},
                 {{XL_FRAME_RESET_STREAM, 0x40}, 2, "\"trigger_frame_type\":4"},
                 {{0x21}, 1, "\"trigger_frame_type\":33"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attack_init(a, 1);
        pair_capture_qlog(&a->p);
        attack_connect(a, true);
        xl_write_bytes(&a->w, cases[i].frame, cases[i].len);
        deliver(a);
        pair_run(&a->p, 1000000);
        xl_endpoint_free(a->p.server); /* writes the rest of the log */
        a->p.server = NULL;
        assert_non_null(strstr(a->p.qlog.text, cases[i].logged));
    }
}

/* Many stacks send a TLS alert without a reason. */
ATTACK_TEST(an_alert_of_the_peer_without_a_reason_has_its_name) {
    static const struct {
        uint8_t frame[5];
        const char *reason;
    } cases[] = {{{XL_FRAME_CONNECTION_CLOSE, 0x41, 0x28, 0, 0}, "TLS alert: Handshake failed"},
                 {{XL_FRAME_CONNECTION_CLOSE, 0x41, 0xff, 0, 0}, "TLS alert: unknown"},
                 {{XL_FRAME_CONNECTION_CLOSE, 0x42, 0x28, 0, 0}, ""},
                 {{XL_FRAME_APPLICATION_CLOSE, 0x41, 0x28, 0}, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attack_init(a, 1);
        attack_connect(a, true);
        xl_write_bytes(&a->w, cases[i].frame, cases[i].frame[0] == XL_FRAME_APPLICATION_CLOSE ? 4 : 5);
        deliver(a);
        pair_run(&a->p, 1000000);
        assert_true(a->p.server_closed && a->p.server_close.close_reason == XL_CLOSE_PEER);
        assert_string_equal(a->p.server_close.reason, cases[i].reason);
    }
}

TEST_MAIN(NULL, NULL)
