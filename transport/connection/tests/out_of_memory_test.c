#include "testing/pair.h"

/* The linker's --wrap=calloc redirects the library's calls of calloc() here. */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool is_exhausted;

void *__wrap_calloc(size_t count, size_t size) {
    return is_exhausted ? NULL : __real_calloc(count, size);
}

/* As many packets are in flight as the table of sent packets holds: it has to grow, and cannot. */
PAIR_TEST(a_failed_allocation_is_told_as_such) {
    pair_init(p, 1, 1, 100000);
    pair_capture_qlog(p);
    pair_establish(p);
    pair_ask(p, 8000000);
    pair_run(p, 250000);
    is_exhausted = true;
    xl_datagram d;
    uint8_t data[PAIR_MTU];
    for (unsigned i = 0; i < 2000 && !p->server_closed; i++) {
        pair_run(p, 10000);
        pair_events(p);
    }
    is_exhausted = false;
    assert_true(p->server_closed);
    assert_int_equal(XL_CLOSE_INTERNAL, p->server_close.close_reason);
    assert_int_equal(XL_QERR_INTERNAL, p->server_close.error_code);
    assert_string_equal("out of memory", p->server_close.reason);
    assert_int_equal(0, xl_endpoint_transmit(p->server, data, sizeof data, &d, p->now));
    xl_connection_free(p->server_close.connection); /* its qlog is complete */
    assert_non_null(strstr(p->qlog.text, "connection_closed\",\"data\":{\"reason\":\"out of memory\"}"));
    assert_null(strstr(p->qlog.text, "idle timeout"));
}

TEST_MAIN(NULL, NULL)
