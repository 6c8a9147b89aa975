#include "tests/unit.h"
#include "wire/frame.h"

static uint8_t buffer[128];

#define MOST XL_VARINT_MAX

static const uint8_t token[16];
static const xl_cid cid = {.len = 20};

/* Writes the longest frame of the type: each number is the largest, and the rest has its greatest length. */
static size_t written(uint64_t type) {
    const xl_qoe qoe = {.cached_bytes = MOST, .cached_frames = MOST, .bps = MOST, .fps = MOST};
    xl_writer w = xl_writer_of(buffer, sizeof buffer);
    const xl_frame_info *info = xl_frame_info_of(type);
    if (type == XL_FRAME_NEW_CONNECTION_ID)
        xl_frame_put_new_cid(&w, XL_FRAME_NEW_CONNECTION_ID, 0, MOST, MOST, &cid, token);
    else if (type == XL_FRAME_PATH_NEW_CONNECTION_ID)
        xl_frame_put_new_cid(&w, XL_FRAME_PATH_NEW_CONNECTION_ID, MOST, MOST, MOST, &cid, token);
    else if (type == XL_FRAME_PATH_CHALLENGE || type == XL_FRAME_PATH_RESPONSE)
        xl_frame_put_path(&w, type, token);
    else if (type == XL_FRAME_QOE_CONTROL_SIGNALS)
        xl_frame_put_qoe(&w, MOST, &qoe);
    else
        xl_write_varint(&w, type);
    for (size_t i = 0; i < XL_FRAME_NUMBERS && info->rest_bytes == 0; i++)
        if (info->numbers[i])
            xl_write_varint(&w, MOST);
    assert_false(w.failed);
    return (size_t)(w.p - buffer);
}

TEST(the_size_reserved_for_a_frame_is_that_of_the_longest) {
    static const struct {
        uint64_t first, last;
        size_t bytes;
    } rows[] = {
        {XL_FRAME_RESET_STREAM, XL_FRAME_RESET_STREAM, 25},
        {XL_FRAME_STOP_SENDING, XL_FRAME_STOP_SENDING, 17},
        {XL_FRAME_MAX_DATA, XL_FRAME_MAX_DATA, 9},
        {XL_FRAME_MAX_STREAM_DATA, XL_FRAME_MAX_STREAM_DATA, 17},
        {XL_FRAME_MAX_STREAMS_BIDI, XL_FRAME_DATA_BLOCKED, 9},
        {XL_FRAME_STREAM_DATA_BLOCKED, XL_FRAME_STREAM_DATA_BLOCKED, 17},
        {XL_FRAME_NEW_CONNECTION_ID, XL_FRAME_NEW_CONNECTION_ID, 54},
        {XL_FRAME_RETIRE_CONNECTION_ID, XL_FRAME_PATH_RESPONSE, 9},
        {XL_FRAME_HANDSHAKE_DONE, XL_FRAME_HANDSHAKE_DONE, 1},
        {XL_FRAME_QOE_CONTROL_SIGNALS, XL_FRAME_QOE_CONTROL_SIGNALS, 45},
        {XL_FRAME_PATH_STATUS, XL_FRAME_PATH_STATUS, 36},
        {XL_FRAME_PATH_ABANDON, XL_FRAME_PATH_STATUS_AVAILABLE, 18},
        {XL_FRAME_PATH_NEW_CONNECTION_ID, XL_FRAME_PATH_NEW_CONNECTION_ID, 63},
        {XL_FRAME_PATH_RETIRE_CONNECTION_ID, XL_FRAME_PATH_RETIRE_CONNECTION_ID, 18},
        {XL_FRAME_MAX_PATH_ID, XL_FRAME_PATHS_BLOCKED, 10},
        {XL_FRAME_PATH_CIDS_BLOCKED, XL_FRAME_PATH_CIDS_BLOCKED, 18},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint64_t type = rows[i].first; type <= rows[i].last; type++) {
            assert_int_equal(xl_frame_most_bytes(type), rows[i].bytes);
            assert_int_equal(written(type), rows[i].bytes);
        }
}

TEST(the_size_reserved_for_the_header_of_a_stream_frame_is_that_of_the_longest) {
    xl_writer w = xl_writer_of(buffer, sizeof buffer);
    xl_frame_put_stream_header(&w, MOST, MOST, 1400, true);
    assert_int_equal(w.p - buffer, XL_STREAM_HEADER_BYTES);
}

TEST_MAIN(NULL, NULL)
