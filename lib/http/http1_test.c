#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "http/http1.h"

/* Parses a heap copy of exact size, so that the sanitizer detects reads beyond it. */
static ssize_t request_bytes(const char *text, size_t len, http1_request *out) {
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    size_t scanned = 0;
    ssize_t n = http1_parse_request(copy, len, &scanned, out);
    free(copy);
    return n;
}

static ssize_t request(const char *text, http1_request *out) {
    return request_bytes(text, strlen(text), out);
}

static ssize_t response(const char *text, http1_response *out) {
    size_t scanned = 0, len = strlen(text);
    char *copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, text, len);
    ssize_t n = http1_parse_response(copy, len, &scanned, out);
    free(copy);
    return n;
}

TEST(a_request_gives_method_target_and_range) {
    http1_request r;
    const char *text = "GET /synthetic/100 HTTP/1.1\r\nHost: a\r\nRANGE:  bytes=0-9 \r\nX: y\r\n\r\n";
    assert_int_equal(request(text, &r), strlen(text));
    assert_string_equal(r.method, "GET");
    assert_string_equal(r.target, "/synthetic/100");
    assert_string_equal(r.range, "bytes=0-9");
    assert_true(r.keep_alive);
}

/* RFC 9112 section 3.2.2. */
TEST(a_target_in_absolute_form_is_taken_as_its_path) {
    const char *const table[][2] = {
        {"http://a/x?y=http://b/", "/x?y=http://b/"},
        {"HTTP://[::1]:80/x", "/x"},
        {"http://a", "/"},
        {"http://a?y", "/?y"},
        {"http:///x", "http:///x"}, /* no host */
        {"http://u@a/x", "http://u@a/x"},
        {"https://a/x", "https://a/x"}, /* not served here */
        {"/http://a/x", "/http://a/x"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        http1_request r;
        char text[200];
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", table[i][0]);
        assert_int_equal(request(text, &r), strlen(text));
        assert_string_equal(r.target, table[i][1]);
    }
}

/* RFC 9110 section 13.1.5: the client's parts may be of another version. */
TEST(a_range_under_a_condition_is_none) {
    http1_request r;
    assert_true(request("GET / HTTP/1.1\r\nHost:\r\nIf-Range: \"a\"\r\nRange: bytes=0-9\r\n\r\n", &r) > 0);
    assert_string_equal(r.range, "");
    assert_true(request("GET / HTTP/1.1\r\nHost:\r\nRange: bytes=0-9\r\nif-range: x\r\n\r\n", &r) > 0);
    assert_string_equal(r.range, "");
}

TEST(keep_alive_follows_version_and_connection_field) {
    http1_request r;
    assert_true(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo , Close\r\n\r\n", &r) > 0);
    assert_false(r.keep_alive);
    assert_true(request("GET / HTTP/1.0\r\n\r\n", &r) > 0);
    assert_false(r.keep_alive);
    assert_true(request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &r) > 0);
    assert_true(r.keep_alive);
}

TEST(pipelined_requests_are_taken_one_by_one) {
    const char *text = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HT";
    http1_request r;
    size_t scanned = 0, at = 0, len = strlen(text);
    ssize_t n = http1_parse_request(text, len, &scanned, &r);
    assert_true(n > 0);
    assert_string_equal(r.target, "/1");
    at += (size_t)n;
    scanned = 0;
    n = http1_parse_request(text + at, len - at, &scanned, &r);
    assert_true(n > 0);
    assert_string_equal(r.method, "HEAD");
    assert_string_equal(r.target, "/2");
    at += (size_t)n;
    scanned = 0;
    assert_int_equal(http1_parse_request(text + at, len - at, &scanned, &r), 0);
}

TEST(a_request_may_come_byte_by_byte) {
    const char *text = "\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    http1_request r;
    size_t scanned = 0;
    for (size_t len = 0; len < strlen(text); len++)
        assert_int_equal(http1_parse_request(text, len, &scanned, &r), 0);
    assert_int_equal(http1_parse_request(text, strlen(text), &scanned, &r), strlen(text));
    assert_string_equal(r.target, "/x");
}

TEST(malformed_requests_get_the_status_that_says_why) {
    const struct {
        const char *text;
        ssize_t status;
    } table[] = {
        {"\r\n\r\n\r\n\r\n\r\n\r\n\r\n", -400},
        {"GET\r\n\r\n", -400},
        {"GET /\r\n\r\n", -400},
        {"GET  HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {"GET / a HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", -400},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", -400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", -505},
        {"GET / HTTP/0.9\r\n\r\n", -505},
        {"GET / HTTP/11\r\n\r\n", -400},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\n\r\n", -400}, /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x02\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", -400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", -400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", -413},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", -501},
        {"AVERYLONGMETHODNAMEINDEED / HTTP/1.1\r\nHost: a\r\n\r\n", -501},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        http1_request r;
        ssize_t got = request(table[i].text, &r);
        if (got != table[i].status)
            print_error("row %zu: %zd, not %zd\n", i, got, table[i].status);
        assert_int_equal(got, table[i].status);
    }
    http1_request r;
    const char nul[] = "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n";
    assert_int_equal(request_bytes(nul, sizeof nul - 1, &r), -400);
}

TEST(heads_are_bounded) {
    http1_request r;
    char big[HTTP1_MAX_HEAD_BYTES + 100];
    memset(big, 'a', sizeof big);
    assert_int_equal(request_bytes(big, HTTP1_MAX_HEAD_BYTES - 1, &r), 0);
    assert_int_equal(request_bytes(big, HTTP1_MAX_HEAD_BYTES, &r), -431);
    memcpy(big, "GET /", 5);
    memcpy(big + 5 + HTTP1_MAX_TARGET_BYTES, " HTTP/1.1\r\nHost: a\r\n\r\n", 23);
    assert_int_equal(request(big, &r), -414);
    char many[4096] = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 0; i < HTTP1_MAX_FIELDS; i++)
        strcat(many, "X: y\r\n");
    strcat(many, "\r\n");
    assert_int_equal(request(many, &r), -431);
    /* A Range that is too long is ignored. */
    char range[400] = "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=";
    memset(range + strlen(range), '1', 200);
    strcat(range, "-\r\n\r\n");
    assert_true(request(range, &r) > 0);
    assert_string_equal(r.range, "");
}

/* Every truncation and every single damaged byte of a valid head may have any result except a crash, a hang or a read
 * beyond the end. */
TEST(damaged_heads_never_hurt) {
    const char *text = "GET /synthetic/100 HTTP/1.1\r\nHost: a:1\r\nRange: bytes=0-9\r\nConnection: close, x\r\n\r\n";
    const char *answer = "HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/100\r\n\r\n";
    const char damage[] = {'\0', '\r', '\n', ' ', ':', ',', '-', '/', '9', (char)0xff, '\t'};
    for (size_t i = 0; i < strlen(text); i++) {
        http1_request r;
        assert_int_equal(request_bytes(text, i, &r), 0);
        for (size_t d = 0; d < sizeof damage; d++) {
            char copy[256];
            strcpy(copy, text);
            copy[i] = damage[d];
            ssize_t n = request_bytes(copy, strlen(text), &r);
            assert_true(n <= (ssize_t)strlen(text) && n > -600);
            assert_non_null(memchr(r.target, '\0', sizeof r.target));
        }
    }
    for (size_t i = 0; i < strlen(answer); i++) {
        for (size_t d = 0; d < sizeof damage; d++) {
            char copy[256];
            strcpy(copy, answer);
            copy[i] = damage[d];
            size_t scanned = 0;
            http1_response r;
            ssize_t n = http1_parse_response(copy, strlen(answer), &scanned, &r);
            assert_true(n <= (ssize_t)strlen(answer));
            assert_true(!r.has_content_range || r.range_first <= r.range_last);
        }
    }
}

TEST(a_response_gives_status_length_and_range) {
    http1_response r;
    const char *text = "HTTP/1.1 206 Partial Content\r\ncontent-length: 10\r\nContent-Range: bytes 5-14/100\r\n\r\n";
    assert_int_equal(response(text, &r), strlen(text));
    assert_int_equal(r.status, 206);
    assert_true(r.has_content_length && r.content_length == 10);
    assert_true(r.has_content_range && r.range_first == 5 && r.range_last == 14 && r.range_total == 100);
    assert_true(r.keep_alive);
    assert_true(response("HTTP/1.1 404\r\nConnection: close\r\n\r\n", &r) > 0);
    assert_int_equal(r.status, 404);
    assert_false(r.has_content_length);
    assert_false(r.keep_alive);
}

TEST(malformed_responses_are_refused) {
    const char *bad[] = {
        "\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 999 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1-200 OK\r\n\r\n",
        "HTTP/1-1 200 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n",
        "HTTP/x.1 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/3.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n",
    };
    http1_response r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(response(bad[i], &r) < 0);
    const char *no_range[] = {
        "HTTP/1.1 206 P\r\nContent-Range: bytes 9-5/100\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-100/100\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes */100\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: lines 5-9/100\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5/9-100\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-9\r\n\r\n",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5/9\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof no_range / sizeof no_range[0]; i++) {
        assert_true(response(no_range[i], &r) > 0);
        assert_false(r.has_content_range);
    }
    assert_true(response("HTTP/1.1 599\r\nContent-Range: bytes 99-99/100\r\n\r\n", &r) > 0);
    assert_true(r.has_content_range && r.status == 599 && r.range_first == 99);
    assert_true(response("HTTP/1.1 206\r\nContent-Range: bytes 5-9/*\r\n\r\n", &r) > 0);
    assert_true(r.has_content_range && r.range_last == 9 && r.range_total == UINT64_MAX);
}

TEST_MAIN(NULL, NULL)
