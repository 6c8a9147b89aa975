#include "tests/unit.h"
#include "server/ffprobe.h"

#include <string.h>

static uint64_t end;
static char error[256];

static bool read_text(const char *text) {
    end = 0;
    error[0] = '\0';
    return ffprobe_first_frame(text, strlen(text), &end, error, sizeof error);
}

TEST(the_first_video_packet_ends_the_first_frame) {
    assert_true(read_text(
        "{\"packets\": [\n"
        " {\"codec_type\": \"audio\", \"stream_index\": 1, \"size\": \"371\", \"pos\": \"48\", \"flags\": \"K__\"},\n"
        " {\"codec_type\": \"video\", \"stream_index\": 0, \"size\": \"41000\", \"pos\": \"419\", \"flags\": "
        "\"K__\"},\n"
        " {\"codec_type\": \"video\", \"stream_index\": 0, \"size\": \"900\", \"pos\": \"41419\", \"flags\": "
        "\"___\"}]}"));
    assert_int_equal(end, 41419);
    /* The output of -select_streams v:0 -show_entries packet=size,pos. */
    assert_true(read_text(" \n{\"packets\": [{\"size\": \"1000\", \"pos\": \"5000\"}]}"));
    assert_int_equal(end, 6000);
    assert_true(read_text("{\"frames\": [{\"media_type\": \"video\", \"pkt_pos\": \"48\", \"pkt_size\": \"2\"}]}"));
    assert_int_equal(end, 50);
}

TEST(csv_and_compact_output_say_the_same) {
    assert_true(read_text("packet,codec_type=audio,stream_index=1,size=371,pos=48,flags=K__\r\n"
                          "packet,codec_type=video,stream_index=0,pts=0,size=41000,pos=419,flags=K__\r\n"
                          "packet,codec_type=video,stream_index=0,pts=1,size=900,pos=41419,flags=___\r\n"));
    assert_int_equal(end, 41419);
    assert_true(read_text("packet|codec_type=video|size=10|pos=20|flags=K__"));
    assert_int_equal(end, 30);
}

TEST(what_cannot_be_used_is_named_with_its_place) {
    static const struct {
        const char *text, *phrase;
    } table[] = {
        {"", "lists no packet of a video"},
        {"{\"packets\": []}", "lists no packet of a video"},
        {"{\"streams\": []}", "lists no packet of a video"},
        {"{\"packets\": [{\"codec_type\": \"audio\", \"size\": \"1\", \"pos\": \"2\"}]}", "lists no packet of a video"},
        {"{\"packets\": [\n{,", "line 2: "},
        {"{\"packets\": [{\"size\": \"1000\"}]}", "packet 1 has no pos or no size"},
        {"{\"packets\": [{\"size\": \"1000\", \"pos\": \"N/A\"}]}", "packet 1 has pos N/A"},
        {"{\"packets\": [{\"size\": \"0\", \"pos\": \"1\"}]}", "must be numbers of bytes"},
        {"{\"packets\": [{\"size\": \"99999999999999999999\", \"pos\": \"1\"}]}", "must be numbers of bytes"},
        {"{\"packets\": [1, 2]}", "packet 1 has no pos or no size"},
        {"{\"packets\": [{\"size\": \"9\", \"pos\": \"1\", \"flags\": \"___\"}]}", "no key frame"},
        {"packet,audio,1,0\npacket,video,0,0,41000,419,K__\n", "have no names"},
        {"\npacket,codec_type=video,size=x,pos=1", "line 2 has pos 1 and size x"},
        {"no table at all", "lists no packet of a video"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_false(read_text(table[i].text));
        if (!strstr(error, table[i].phrase))
            fail_msg("%s: %s", table[i].text, error);
    }
}

TEST_MAIN(NULL, NULL)
