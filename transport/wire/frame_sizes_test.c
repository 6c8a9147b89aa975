#include "tests/unit.h"
#include "wire/frame_sizes.h"

#include "wire/frame.h"
#include "wire/frame_ietf.h"

static uint8_t buffer[128];
static xl_writer w;

static size_t written(void) {
    assert_false(w.failed);
    const size_t n = (size_t)(w.p - buffer);
    w = xl_writer_of(buffer, sizeof buffer);
    return n;
}

/* The size reserved for a frame is that with the largest value in each field. */
#define EXPECT(bytes, put) (put, assert_int_equal(bytes, written()))
#define MOST               XL_VARINT_MAX

static const uint8_t token[16];
static const xl_cid cid = {.len = 20};

TEST(reserves_are_the_longest_frames_of_rfc_9000) {
    w = xl_writer_of(buffer, sizeof buffer);
    EXPECT(XL_RESET_STREAM_FRAME_BYTES, xl_frame_put_reset_stream(&w, MOST, MOST, MOST));
    EXPECT(XL_STOP_SENDING_FRAME_BYTES, xl_frame_put_stop_sending(&w, MOST, MOST));
    EXPECT(XL_STREAM_FRAME_HEADER_BYTES, xl_frame_put_stream_header(&w, MOST, MOST, 1400, true));
    EXPECT(XL_MAX_DATA_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_MAX_DATA, 0, MOST));
    EXPECT(XL_MAX_STREAM_DATA_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_MAX_STREAM_DATA, MOST, MOST));
    EXPECT(XL_MAX_STREAMS_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_MAX_STREAMS_UNI, 0, MOST));
    EXPECT(XL_STREAM_DATA_BLOCKED_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_STREAM_DATA_BLOCKED, MOST, MOST));
    EXPECT(XL_NEW_CID_FRAME_BYTES, xl_frame_put_new_cid(&w, MOST, MOST, &cid, token));
    EXPECT(XL_RETIRE_CID_FRAME_BYTES, xl_frame_put_retire_cid(&w, MOST));
    EXPECT(XL_PATH_CHALLENGE_FRAME_BYTES, xl_frame_put_path(&w, XL_FRAME_PATH_CHALLENGE, token));
    EXPECT(XL_PATH_RESPONSE_FRAME_BYTES, xl_frame_put_path(&w, XL_FRAME_PATH_RESPONSE, token));
    EXPECT(XL_HANDSHAKE_DONE_FRAME_BYTES, xl_frame_put_handshake_done(&w));
}

TEST(reserves_are_the_longest_frames_of_both_dialects) {
    const xl_qoe qoe = {.cached_bytes = MOST, .cached_frames = MOST, .bps = MOST, .fps = MOST};
    w = xl_writer_of(buffer, sizeof buffer);
    EXPECT(XL_PATH_STATUS_FRAME_BYTES, xl_frame_put_path_status(&w, MOST, MOST, MOST, MOST));
    EXPECT(XL_QOE_FRAME_BYTES, xl_frame_put_qoe(&w, MOST, &qoe));
    EXPECT(XL_PATH_ABANDON_FRAME_BYTES, xl_frame_put_path_abandon(&w, MOST, MOST));
    EXPECT(XL_PATH_PREFERENCE_FRAME_BYTES, xl_frame_put_path_preference(&w, MOST, MOST, true));
    EXPECT(XL_PATH_NEW_CID_FRAME_BYTES, xl_frame_put_path_new_cid(&w, MOST, MOST, MOST, &cid, token));
    EXPECT(XL_PATH_RETIRE_CID_FRAME_BYTES, xl_frame_put_path_retire_cid(&w, MOST, MOST));
    EXPECT(XL_MAX_PATH_ID_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_MAX_PATH_ID, 0, MOST));
    EXPECT(XL_PATHS_BLOCKED_FRAME_BYTES, xl_frame_put_max(&w, XL_FRAME_PATHS_BLOCKED, 0, MOST));
    EXPECT(XL_PATH_CIDS_BLOCKED_FRAME_BYTES, xl_frame_put_path_cids_blocked(&w, MOST, MOST));
}

TEST_MAIN(NULL, NULL)
