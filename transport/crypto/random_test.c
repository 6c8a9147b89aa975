/* The generator against the published vectors, and the independence of its purposes and streams. */
#include <stdlib.h>
#include <string.h>
#include "tests/unit.h"
#include "crypto/kdf.h"
#include "crypto/random.h"

static const uint8_t KEY[XL_RANDOM_KEY_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8};

static void assert_hex(const uint8_t *bytes, size_t len, const char *hex) {
    assert_int_equal(strlen(hex), 2 * len);
    for (size_t i = 0; i < len; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        assert_int_equal(bytes[i], strtoul(pair, NULL, 16));
    }
}

TEST(sub_keys_are_hkdf_expand_of_rfc_5869) {
    uint8_t input[22], salt[13], info[10], prk[32], out[42];
    memset(input, 0x0b, sizeof input);
    for (size_t i = 0; i < sizeof salt; i++)
        salt[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof info; i++)
        info[i] = (uint8_t)(0xf0 + i);
    assert_int_equal(xl_kdf_extract_sha256(salt, sizeof salt, input, sizeof input, prk), 0);
    assert_hex(prk, sizeof prk, "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"); /* A.1 */
    assert_int_equal(xl_kdf_expand_sha256(prk, sizeof prk, info, sizeof info, out, sizeof out), 0);
    assert_hex(out, sizeof out, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    uint8_t subkey[XL_SUBKEY_BYTES], expected[XL_SUBKEY_BYTES];
    assert_int_equal(xl_random_subkey(prk, "purpose", subkey, sizeof subkey), 0);
    assert_int_equal(
        xl_kdf_expand_sha256(prk, sizeof prk, (const uint8_t *)"railyard purpose", 16, expected, sizeof expected), 0);
    assert_memory_equal(subkey, expected, sizeof subkey);
}

/* RFC 8439, appendix A.1: the nonces there begin with four zero bytes, which are the high half of our block counter. */
TEST(a_stream_is_the_chacha20_key_stream_of_rfc_8439) {
    uint8_t subkey[XL_SUBKEY_BYTES] = {0}, out[64];
    xl_drbg *d = xl_drbg_from_subkey(subkey);
    assert_non_null(d);
    xl_drbg_stream s = xl_drbg_stream_of(d, 0);
    xl_drbg_bytes(&s, out, sizeof out); /* vector 1 */
    assert_hex(out, sizeof out,
               "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
               "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
    xl_drbg_bytes(&s, out, sizeof out); /* vector 2: the next block */
    assert_hex(out, sizeof out,
               "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
               "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    s = xl_drbg_stream_of(d, UINT64_C(2) << 56);
    xl_drbg_bytes(&s, out, sizeof out); /* vector 5: another nonce */
    assert_hex(out, sizeof out,
               "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
               "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d");
    xl_drbg_free(d);
    memset(subkey, 0, sizeof subkey);
    subkey[1] = 0xff;
    d = xl_drbg_from_subkey(subkey);
    s = xl_drbg_stream_of(d, 0);
    s.block = 2;
    xl_drbg_bytes(&s, out, 16); /* vector 4 */
    assert_hex(out, 16, "72d54dfbf12ec44b362692df94137f32");
    xl_drbg_free(d);
}

TEST(a_draw_begins_a_new_block_and_long_ones_go_on) {
    xl_drbg *d = xl_drbg_new(KEY, "test");
    xl_drbg_stream s = xl_drbg_stream_of(d, 5), whole = s;
    uint8_t blocks[4 * 64], out[3 * 64];
    xl_drbg_bytes(&whole, blocks, sizeof blocks);
    xl_drbg_bytes(&s, out, 1);
    assert_memory_equal(out, blocks, 1);
    xl_drbg_bytes(&s, out, 65); /* two blocks */
    assert_memory_equal(out, blocks + 64, 65);
    uint64_t number = xl_drbg_next(&s);
    for (int i = 0; i < 8; i++)
        assert_int_equal((uint8_t)(number >> (8 * i)), blocks[3 * 64 + i]);
    assert_int_equal(s.block, 4);
    xl_drbg_bytes(&s, out, 0);
    assert_int_equal(s.block, 4);
    xl_drbg_free(d);
}

TEST(sixty_four_bits_take_one_draw) {
    xl_drbg *d = xl_drbg_new(KEY, "test");
    xl_drbg_stream s = xl_drbg_stream_of(d, 5), numbers = s;
    for (int draw = 0; draw < 3; draw++) {
        uint64_t number = xl_drbg_next(&numbers);
        for (int i = 0; i < 64; i++) {
            assert_int_equal(xl_drbg_bit(&s), number >> i & 1);
            assert_int_equal(s.block, numbers.block);
        }
    }
    xl_drbg_free(d);
}

TEST(keys_of_purposes_have_nothing_in_common) {
    static const char *const purposes[] = {"connection IDs",         "path challenges", "packet number skips",
                                           "stateless reset tokens", "retry tokens",    "self-signed key"};
    enum { COUNT = sizeof purposes / sizeof purposes[0] };
    uint8_t subkey[COUNT][XL_SUBKEY_BYTES], again[XL_SUBKEY_BYTES], other[XL_RANDOM_KEY_BYTES];
    memcpy(other, KEY, sizeof other);
    other[31] ^= 0x80;
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(xl_random_subkey(KEY, purposes[i], subkey[i], XL_SUBKEY_BYTES), 0);
        assert_memory_not_equal(subkey[i], KEY, 8);
        for (size_t k = 0; k < i; k++)
            for (size_t at = 0; at < XL_SUBKEY_BYTES; at += 8)
                assert_memory_not_equal(subkey[i] + at, subkey[k] + at, 8);
        assert_int_equal(xl_random_subkey(KEY, purposes[i], again, sizeof again), 0);
        assert_memory_equal(again, subkey[i], sizeof again);
        assert_int_equal(xl_random_subkey(other, purposes[i], again, sizeof again), 0);
        assert_memory_not_equal(again, subkey[i], 8);
    }
    uint8_t out[XL_SUBKEY_BYTES];
    memset(out, 1, sizeof out);
    assert_int_equal(xl_random_subkey(KEY, "a label that is much longer than any purpose in here", out, sizeof out),
                     XL_ERR_CRYPTO);
    assert_int_equal(out[0], 0);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(streams_share_no_number) {
    enum { STREAMS = 500, DRAWS = 8 };
    static uint64_t drawn[2 * STREAMS * DRAWS];
    size_t n = 0;
    xl_drbg *d[2] = {xl_drbg_new(KEY, "one"), xl_drbg_new(KEY, "two")};
    for (int k = 0; k < 2; k++)
        for (uint64_t i = 0; i < STREAMS; i++) {
            xl_drbg_stream s = xl_drbg_stream_of(d[k], i);
            for (int j = 0; j < DRAWS; j++)
                drawn[n++] = xl_drbg_next(&s);
        }
    qsort(drawn, n, sizeof drawn[0], by_value);
    for (size_t i = 1; i < n; i++)
        assert_true(drawn[i] != drawn[i - 1]);
    xl_drbg_free(d[0]);
    xl_drbg_free(d[1]);
}

TEST(a_seed_gives_one_key_for_each_role) {
    uint8_t server[XL_RANDOM_KEY_BYTES], client[XL_RANDOM_KEY_BYTES], again[XL_RANDOM_KEY_BYTES],
        next[XL_RANDOM_KEY_BYTES];
    assert_int_equal(xl_random_key_from_seed(7, "server", server), 0);
    assert_int_equal(xl_random_key_from_seed(7, "client", client), 0);
    assert_int_equal(xl_random_key_from_seed(7, "server", again), 0);
    assert_int_equal(xl_random_key_from_seed(8, "server", next), 0);
    assert_memory_equal(server, again, sizeof server);
    assert_memory_not_equal(server, client, 8);
    assert_memory_not_equal(server, next, 8);
}

TEST_MAIN(NULL, NULL)
