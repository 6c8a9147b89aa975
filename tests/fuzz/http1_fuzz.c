/* Heads of HTTP/1.1 messages, complete and piece by piece, and the catalogue's responses to requests. */
#include "tests/fuzz/input.h"
#include "http/http1.h"
#include "server/catalogue.h"

static uint8_t file_byte(uint64_t offset) {
    return (uint8_t)(offset * 7 + 1);
}

static int open_file(void *user, const char *path, uint64_t *size) {
    FUZZ_CHECK(path[0] != '/' && strstr(path, "..") != path && !strstr(path, "/../"));
    *size = 10000;
    (*(int *)user)++;
    return path[0] == 'n' ? CATALOGUE_ABSENT : path[0] == 'b' ? CATALOGUE_BUSY : 3;
}

static ssize_t read_file(void *user, int handle, uint64_t offset, uint8_t *buf, size_t len) {
    (void)user;
    FUZZ_CHECK(handle == 3);
    size_t n = offset < 10000 ? (size_t)(10000 - offset) : 0;
    n = n < len ? n : len;
    for (size_t i = 0; i < n; i++)
        buf[i] = file_byte(offset + i);
    return (ssize_t)n;
}

static void close_file(void *user, int handle) {
    (void)user;
    FUZZ_CHECK(handle == 3);
}

static void answer(const http1_request *request) {
    int opened = 0;
    const catalogue_video video = {.bitrate_bps = 4000000, .fps_milli = 30000};
    const catalogue_files files = {.user = &opened, .open = open_file, .read = read_file, .close = close_file};
    catalogue *c = catalogue_new(&video, &files);
    FUZZ_CHECK(c != NULL);
    catalogue_response r;
    catalogue_respond(c, request->method, request->target, request->range[0] ? request->range : NULL, &r);
    FUZZ_CHECK(http1_reason(r.status)[0] != 0 && r.retry_after == (r.status == 503));
    fuzz_note_number((uint64_t)r.status);
    fuzz_note_number(r.content_length);
    if (r.content_length > 0 && (r.status == 200 || r.status == 206)) {
        FUZZ_CHECK(r.first <= r.last && r.last < r.resource_bytes && r.last - r.first + 1 == r.content_length);
        FUZZ_CHECK(r.frame_bytes == 0 ||
                   (r.frame_position <= r.content_length && r.frame_bytes <= r.content_length - r.frame_position));
        uint64_t left = catalogue_body_left(&r.body);
        FUZZ_CHECK(left == 0 || left == r.content_length);
        uint8_t buf[4096];
        for (int i = 0; i < 8 && left > 0; i++) {
            ssize_t n = catalogue_body_read(&r.body, buf, sizeof buf);
            FUZZ_CHECK(n > 0 && (uint64_t)n <= left && catalogue_body_left(&r.body) == left - (uint64_t)n);
            fuzz_note(buf, (size_t)n);
            left -= (uint64_t)n;
        }
    }
    catalogue_body_close(&r.body);
    catalogue_free(c);
}

static ssize_t parse(bool request, const char *text, size_t len, size_t *scanned, http1_request *q, http1_response *r) {
    return request ? http1_parse_request(text, len, scanned, q) : http1_parse_response(text, len, scanned, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    bool is_request = fuzz_bool(&in);
    size_t step = 1 + fuzz_u8(&in) % 64, left = fuzz_left(&in), scanned = 0;
    uint8_t *text = fuzz_copy(in.p, left);
    http1_request q = {0}, q_pieces = {0};
    http1_response r = {0}, r_pieces = {0};
    ssize_t whole = parse(is_request, (const char *)text, left, &scanned, &q, &r), pieces = 0;
    FUZZ_CHECK(whole <= (ssize_t)left && whole <= HTTP1_MAX_HEAD_BYTES);
    FUZZ_CHECK(whole != 0 || left < HTTP1_MAX_HEAD_BYTES);
    FUZZ_CHECK(whole >= 0 || !is_request || http1_reason((int)-whole)[0] != 0);
    /* Piece by piece, each in memory of exact size. */
    scanned = 0;
    for (size_t have = step; pieces == 0 && have < left + step; have += step) {
        size_t n = have < left ? have : left;
        uint8_t *exact = fuzz_copy(text, n);
        pieces = parse(is_request, (const char *)exact, n, &scanned, &q_pieces, &r_pieces);
        free(exact);
        if (n == left)
            break;
    }
    FUZZ_CHECK((pieces > 0) == (whole > 0) || left == 0);
    fuzz_note_number((uint64_t)whole);
    if (whole > 0) {
        FUZZ_CHECK(pieces == whole);
        FUZZ_CHECK(!is_request || (strcmp(q.method, q_pieces.method) == 0 && strcmp(q.target, q_pieces.target) == 0 &&
                                   strcmp(q.range, q_pieces.range) == 0 && q.keep_alive == q_pieces.keep_alive));
        FUZZ_CHECK(is_request ||
                   (r.status == r_pieces.status && r.content_length == r_pieces.content_length &&
                    r.has_content_range == r_pieces.has_content_range && r.range_first == r_pieces.range_first));
        if (is_request)
            answer(&q);
    }
    free(text);
    return 0;
}
