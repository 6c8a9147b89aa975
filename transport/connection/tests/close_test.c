/* The end of a connection: CONNECTION_CLOSE, and the event of a failed handshake. */
#include "testing/attack.h"

/* RFC 9000 section 19.19. The server's log has the frame that it sent. */
TEST(connection_close_names_the_frame_that_caused_it) {
    static const struct {
        uint8_t frame[4];
        size_t len;
        const char *logged;
    } cases[] = {{{XL_FRAME_HANDSHAKE_DONE}, 1, "\"trigger_frame_type\":30"},
                 {{XL_FRAME_STREAM_DATA_BLOCKED, 3, 0}, 3, "\"trigger_frame_type\":21"},
                 {{XL_FRAME_RESET_STREAM, 0x40}, 2, "\"trigger_frame_type\":4"},
                 {{0x21}, 1, "\"trigger_frame_type\":33"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attack a;
        memset(&a, 0, sizeof a);
        pair_init(&a.p, 7, 1, 5000);
        pair_capture_qlog(&a.p);
        pair_establish(&a.p);
        a.to_server = true;
        a.w = xl_writer_of(a.frames, sizeof a.frames);
        xl_write_bytes(&a.w, cases[i].frame, cases[i].len);
        deliver(&a);
        pair_run(&a.p, 1000000);
        xl_endpoint_free(a.p.server); /* writes the rest of the log */
        a.p.server = NULL;
        assert_non_null(strstr(a.p.qlog.text, cases[i].logged));
        pair_free(&a.p);
    }
}

TEST_MAIN(NULL, NULL)
