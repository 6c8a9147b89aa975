/* The figures are the draft's: appendix "Load Balancer Test Vectors" and the worked example of section 5.4.2. (The
 * draft prints nine of the ten digits of the second nonce; it is plaintext, so any tenth will do.) */

#include <stdio.h>
#include <string.h>

#include "tests/unit.h"
#include "testing/random.h"
#include "xlink/quic_lb.h"

static size_t from_hex(const char *hex, uint8_t *out) {
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned octet = 0;
        assert_int_equal(1, sscanf(hex + 2 * i, "%2x", &octet));
        out[i] = (uint8_t)octet;
    }
    return n;
}

typedef struct {
    uint8_t rotation;
    const char *key, *server_id, *nonce, *cid;
} vector;

static const vector vectors[] = {
    {0, NULL, "c4605e", "4504cc4f", "07c4605e4504cc4f"},
    {1, NULL, "350d28b420", "3487d970b2", "2a350d28b4203487d970b2"},
    {0, "8f95f09245765f80256934e50c66207f", "ed793a", "ee080dbf", "0720b1d07b359d3c"},
    {1, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5fab65", "ee080dbf48", "2fcc381bc74cb4fbad2823a3d1f8fed2"},
    {2, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5f", "ee080dbf48c0d1e5",
     "504dd2d05a7b0de9b2b9907afb5ecf8cc3"},
    {3, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5fab", "ee080dbf48c0d1e55d",
     "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"},
    {0, "fdf726a9893ec05c0632d3956680baf0", "31441a", "9c69c275", "0767947d29be054a"},
};

static xl_lb *lb_of(const vector *v, size_t own_octets) {
    uint8_t scratch[XL_MAX_CID_BYTES];
    xl_lb_config c = {.rotation = v->rotation,
                      .server_id_bytes = (uint8_t)from_hex(v->server_id, scratch),
                      .nonce_bytes = (uint8_t)from_hex(v->nonce, scratch),
                      .encode_length = true,
                      .has_key = v->key != NULL};
    int error;
    if (v->key)
        from_hex(v->key, c.key);
    xl_lb *lb = xl_lb_new(&c, 1, own_octets, &error);
    assert_non_null(lb);
    return lb;
}

TEST(cids_are_those_of_the_draft) {
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const vector *v = &vectors[i];
        uint8_t id[XL_MAX_CID_BYTES], nonce[XL_MAX_CID_BYTES], expected[XL_MAX_CID_BYTES], cid[XL_MAX_CID_BYTES];
        size_t id_len = from_hex(v->server_id, id), len = from_hex(v->cid, expected);
        from_hex(v->nonce, nonce);
        /* The length in the first octet is configured on top of the published rotation bits. */
        expected[0] = (uint8_t)(v->rotation << 5 | (uint8_t)(len - 1));
        xl_lb *lb = lb_of(v, 0);
        assert_int_equal(len, xl_lb_encode(lb, id, nonce, 0, cid));
        assert_memory_equal(expected, cid, len);
        uint8_t decoded[XL_LB_SERVER_ID_MAX];
        assert_int_equal(id_len, xl_lb_decode(lb, cid, len, decoded));
        assert_memory_equal(id, decoded, id_len);
        assert_int_equal(XL_ERR_ARGUMENT, xl_lb_decode(lb, cid, len - 1, decoded));
        xl_lb_free(lb);
    }
}

TEST(every_length_comes_back) {
    xl_random r;
    xl_random_seed(&r, 1);
    for (uint8_t id_len = 1; id_len <= XL_LB_SERVER_ID_MAX; id_len++)
        for (uint8_t nonce_len = 4; id_len + nonce_len <= XL_LB_PLAINTEXT_MAX; nonce_len++)
            for (int keyed = 0; keyed < 2; keyed++) {
                xl_lb_config c = {
                    .rotation = 5, .server_id_bytes = id_len, .nonce_bytes = nonce_len, .has_key = keyed != 0};
                xl_random_bytes(&r, c.key, sizeof c.key);
                int error;
                xl_lb *lb = xl_lb_new(&c, 1, 0, &error);
                assert_non_null(lb);
                uint8_t id[XL_LB_SERVER_ID_MAX], nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES], decoded[15];
                xl_random_bytes(&r, id, sizeof id);
                xl_random_bytes(&r, nonce, sizeof nonce);
                int len = xl_lb_encode(lb, id, nonce, 0x1b, cid);
                assert_int_equal(1 + id_len + nonce_len, len);
                assert_int_equal(5 << 5 | 0x1b, cid[0]);
                assert_int_equal(len, xl_lb_cid_bytes(lb, cid[0]));
                assert_int_equal(id_len, xl_lb_decode(lb, cid, (size_t)len, decoded));
                assert_memory_equal(id, decoded, id_len);
                bool in_the_clear = memcmp(cid + 1, id, id_len) == 0 && memcmp(cid + 1 + id_len, nonce, nonce_len) == 0;
                assert_int_equal(!keyed, in_the_clear);
                xl_lb_free(lb);
            }
}

TEST(rotation_bits_choose_the_configuration) {
    xl_lb_config c[2] = {{.rotation = 2, .server_id_bytes = 2, .nonce_bytes = 6, .has_key = true, .key = {1}},
                         {.rotation = 0, .server_id_bytes = 2, .nonce_bytes = 8, .has_key = true, .key = {2}}};
    int error;
    uint8_t id[2] = {0xa0, 0x01}, nonce[8] = {1, 2, 3, 4, 5, 6, 7, 8}, cid[XL_MAX_CID_BYTES], decoded[15];
    xl_lb *old = xl_lb_new(&c[1], 1, 1, &error), *both = xl_lb_new(c, 2, 1, &error);
    assert_non_null(old);
    assert_non_null(both);
    assert_int_equal(11, xl_lb_encode(old, id, nonce, 3, cid));
    assert_int_equal(12, xl_lb_cid_bytes(both, cid[0])); /* the server's own octet counts */
    assert_int_equal(2, xl_lb_decode(both, cid, 12, decoded));
    assert_memory_equal(id, decoded, 2);
    assert_int_equal(9, xl_lb_encode(both, id, nonce, 3, cid));
    assert_int_equal(2, cid[0] >> 5);
    assert_int_equal(XL_ERR_ARGUMENT, xl_lb_decode(old, cid, 10, decoded));
    cid[0] |= 0xe0;
    assert_int_equal(XL_ERR_ARGUMENT, xl_lb_decode(both, cid, 10, decoded));
    assert_int_equal(0, xl_lb_cid_bytes(both, cid[0]));
    xl_lb_free(old);
    xl_lb_free(both);
}

TEST(impossible_configurations_are_refused) {
    const xl_lb_config bad[] = {
        {.rotation = 7, .server_id_bytes = 1, .nonce_bytes = 4},
        {.server_id_bytes = 0, .nonce_bytes = 8},
        {.server_id_bytes = 1, .nonce_bytes = 3},
        {.server_id_bytes = 10, .nonce_bytes = 10},
        {.server_id_bytes = 9, .nonce_bytes = 10 /* + own octet */},
    };
    int error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(xl_lb_new(&bad[i], 1, 1, &error));
        assert_int_equal(XL_ERR_ARGUMENT, error);
    }
    const xl_lb_config twice[2] = {{.server_id_bytes = 1, .nonce_bytes = 4}, {.server_id_bytes = 1, .nonce_bytes = 5}};
    assert_null(xl_lb_new(twice, 2, 0, &error));
    assert_null(xl_lb_new(twice, 0, 0, &error));
}

TEST_MAIN(NULL, NULL)
