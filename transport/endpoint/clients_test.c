#include "tests/unit.h"
#include "endpoint/clients.h"

static const uint64_t key[2] = {1, 2};

static xl_addr v4(uint8_t last, uint16_t port) {
    return (xl_addr){.family = 4, .ip = {192, 0, 2, last}, .port = port};
}

static xl_addr v6(uint8_t subnet, uint8_t last) {
    return (xl_addr){.family = 6, .ip = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, subnet, 0, 0, 0, 0, 0, 0, 0, last}};
}

TEST(connections_are_counted_by_client_and_proof) {
    xl_clients t;
    assert_int_equal(0, xl_clients_init(&t, 10, key));
    xl_addr a = v4(1, 1000), again = v4(1, 2000), other = v4(2, 1000);
    assert_null(xl_clients_find(&t, &a));
    xl_client *c = xl_clients_add(&t, &a, false);
    assert_ptr_equal(c, xl_clients_add(&t, &again, true));
    assert_null(xl_clients_find(&t, &other));
    assert_int_equal(1, c->proven);
    assert_int_equal(2, c->connections);
    c->proven++; /* the first one too */
    xl_clients_remove(&t, c, true);
    assert_ptr_equal(c, xl_clients_find(&t, &a));
    xl_clients_remove(&t, c, true);
    assert_null(xl_clients_find(&t, &a));
    xl_clients_free(&t);
}

TEST(many_clients_are_found_and_forgotten) {
    xl_clients t;
    xl_client *c[256];
    assert_int_equal(0, xl_clients_init(&t, 1, key)); /* four in a bucket */
    for (unsigned i = 0; i < 256; i++)
        assert_non_null(c[i] = xl_clients_add(&t, &(xl_addr){.family = 4, .ip = {10, 0, 0, (uint8_t)i}}, true));
    for (unsigned i = 0; i < 256; i += 2)
        xl_clients_remove(&t, c[i], true);
    for (unsigned i = 0; i < 256; i++)
        assert_ptr_equal(i % 2 ? c[i] : NULL,
                         xl_clients_find(&t, &(xl_addr){.family = 4, .ip = {10, 0, 0, (uint8_t)i}}));
    xl_clients_free(&t);
}

TEST(an_ipv6_client_is_a_subnet_and_a_mapped_ipv4_address_one_client) {
    xl_addr a = v6(1, 1), near = v6(1, 2), far = v6(2, 1);
    assert_true(xl_addr_same_client(&a, &near));
    assert_false(xl_addr_same_client(&a, &far));
    xl_addr mapped = {.family = 6, .ip = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1}}, next = mapped;
    next.ip[15] = 2;
    assert_false(xl_addr_same_client(&mapped, &next));
    next = mapped;
    next.port = 9;
    assert_true(xl_addr_same_client(&mapped, &next));
    xl_addr b = v4(1, 1), c = v4(2, 1);
    assert_false(xl_addr_same_client(&b, &c));
    assert_false(xl_addr_same_client(&b, &mapped));
}

TEST_MAIN(NULL, NULL)
