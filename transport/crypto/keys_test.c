/* Packet protection against the vectors of RFC 9001 appendix A and the multipath nonce. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit.h"
#include "crypto/keys.h"

static size_t from_hex(const char *hex, uint8_t *out, size_t cap) {
    const size_t n = strlen(hex) / 2;
    assert_true(n <= cap);
    for (size_t i = 0; i < n; i++) {
        const char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return n;
}

static void assert_hex(const uint8_t *actual, const char *expected) {
    uint8_t bytes[512];
    const size_t n = from_hex(expected, bytes, sizeof bytes);
    assert_memory_equal(actual, bytes, n);
}

static xl_cid cid_of(const char *hex) {
    xl_cid cid = {0};
    cid.len = (uint8_t)from_hex(hex, cid.id, sizeof cid.id);
    return cid;
}

typedef struct {
    xl_keys *client, *server;
} initial_keys;

static void make_rfc_initial_keys(initial_keys *k) {
    const xl_cid odcid = cid_of("8394c8f03e515708");
    assert_int_equal(xl_keys_initial(XL_VERSION_1, &odcid, &k->client, &k->server), 0);
}

static void free_initial_keys(initial_keys *k) {
    xl_keys_free(k->client);
    xl_keys_free(k->server);
}

#define RFC_KEYS_TEST(name) TEST_MADE(name, initial_keys, k, make_rfc_initial_keys, free_initial_keys)

static xl_keys *rfc_chacha_keys(void) {
    uint8_t secret[32];
    from_hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b", secret, sizeof secret);
    xl_keys *keys = xl_keys_from_secret(XL_VERSION_1, XL_AEAD_CHACHA20_POLY1305, secret, sizeof secret);
    assert_non_null(keys);
    return keys;
}

RFC_KEYS_TEST(initial_keys_are_those_of_appendix_a1) {
    assert_hex(k->client->secret, "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
    assert_hex(k->client->key, "1f369613dd76d5467730efcbe3b1a22d");
    assert_hex(k->client->iv, "fa044b2f42a3fd3b46fb255c");
    assert_hex(k->client->hp_key, "9f50449e04a0e810283a1e9933adedd2");
    assert_hex(k->server->secret, "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b");
    assert_hex(k->server->key, "cf3a5331653c364c88f0f379b6067e37");
    assert_hex(k->server->iv, "0ac1493ca1905853b0bba03e");
    assert_hex(k->server->hp_key, "c206b8d9b9f0f37644430b490eeaa314");
}

RFC_KEYS_TEST(header_masks_are_those_of_appendix_a) {
    xl_keys *chacha = rfc_chacha_keys();
    uint8_t sample[XL_HP_SAMPLE], mask[XL_HP_MASK];
    from_hex("d1b1c98dd7689fb8ec11d242b123dc9b", sample, sizeof sample);
    assert_int_equal(xl_keys_header_mask(k->client, sample, mask), 0);
    assert_hex(mask, "437b9aec36");
    from_hex("2cd0991cd25b0aac406a5816b6394100", sample, sizeof sample);
    for (int again = 0; again < 2; again++) { /* no state is kept from one packet to the next */
        assert_int_equal(xl_keys_header_mask(k->server, sample, mask), 0);
        assert_hex(mask, "2ec0d8356a");
    }
    from_hex("5e5cd55c41f69080575d7999c25a5bfb", sample, sizeof sample);
    assert_int_equal(xl_keys_header_mask(chacha, sample, mask), 0);
    assert_hex(mask, "aefefe7d03");
    xl_keys_free(chacha);
}

#define CLIENT_INITIAL_HEADER "c300000001088394c8f03e5157080000449e00000002"
#define CLIENT_INITIAL_FRAME                                                                                           \
    "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c0000000" \
    "10000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e0005000501000000000033" \
    "00260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305" \
    "0306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000" \
    "75300901100f088394c8f03e51570806048000ffff"

RFC_KEYS_TEST(client_initial_is_protected_as_in_appendix_a2_and_opens_again) {
    const size_t pn_offset = 18, pn_len = 4, payload_len = 1162;
    uint8_t packet[1200] = {0}, plain[1200] = {0};
    from_hex(CLIENT_INITIAL_HEADER CLIENT_INITIAL_FRAME, packet, sizeof packet); /* the rest is PADDING */
    memcpy(plain, packet, sizeof plain);

    assert_int_equal(xl_keys_protect(k->client, 0, 2, packet, pn_offset, pn_len, payload_len), 1200);
    assert_hex(packet, "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec35"
                       "6c0bab7df5976d27cd449f63300099f399");
    assert_hex(packet + 1184, "e221af44860018ab0856972e194cd934");
    assert_int_equal(xl_keys_sealed_count(k->client), 1);

    uint64_t pn = 0;
    size_t len = 0;
    uint8_t *payload = NULL;
    assert_int_equal(xl_keys_unmask(k->client, packet, sizeof packet, pn_offset, &pn, &len), 0);
    assert_int_equal(pn, 2);
    assert_int_equal(len, pn_len);
    assert_int_equal(xl_keys_open(k->client, 0, 2, packet, sizeof packet, pn_offset, pn_len, &payload), payload_len);
    assert_ptr_equal(payload, packet + pn_offset + pn_len);
    assert_memory_equal(packet, plain, 1184);
}

RFC_KEYS_TEST(server_initial_is_protected_as_in_appendix_a3) {
    uint8_t packet[135] = {0};
    const size_t n =
        from_hex("c1000000010008f067a5502a4262b500407500010200000000060040"
                 "5a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200130100002e"
                 "00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b000203"
                 "04",
                 packet, sizeof packet);
    assert_int_equal(n, 20 + 99);
    assert_int_equal(xl_keys_protect(k->server, 0, 1, packet, 18, 2, 99), sizeof packet);
    assert_hex(
        packet,
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f"
        "5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795"
        "d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee");
}

TEST(retry_tag_is_that_of_appendix_a4) {
    const xl_cid odcid = cid_of("8394c8f03e515708");
    uint8_t retry[64], tag[16];
    const size_t n = from_hex("ff000000010008f067a5502a4262b5746f6b656e", retry, sizeof retry);
    assert_int_equal(xl_retry_tag(XL_VERSION_1, &odcid, retry, n, tag), 0);
    assert_hex(tag, "04a265ba2eff4d829058fb3f0f2496ba");
}

/* RFC 9369 appendix A. */
TEST(version_2_has_keys_and_a_retry_tag_of_its_own) {
    const xl_cid odcid = cid_of("8394c8f03e515708");
    initial_keys k;
    assert_int_equal(xl_keys_initial(XL_VERSION_2, &odcid, &k.client, &k.server), 0);
    assert_hex(k.client->key, "8b1a0bc121284290a29e0971b5cd045d");
    assert_hex(k.client->iv, "91f73e2351d8fa91660e909f");
    assert_hex(k.client->hp_key, "45b95e15235d6f45a6b19cbcb0294ba9");
    free_initial_keys(&k);
    uint8_t retry[64], tag[16];
    const size_t n = from_hex("cf6b3343cf0008f067a5502a4262b5746f6b656e", retry, sizeof retry);
    assert_int_equal(xl_retry_tag(XL_VERSION_2, &odcid, retry, n, tag), 0);
    assert_hex(tag, "c8646ce8bfe33952d955543665dcc7b6");
}

TEST(chacha20_short_header_is_that_of_appendix_a5) {
    xl_keys *keys = rfc_chacha_keys();
    assert_hex(keys->key, "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
    assert_hex(keys->iv, "e0459b3474bdd0e44a41c144");
    assert_hex(keys->hp_key, "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4");
    const uint64_t pn = 654360564;
    uint8_t nonce[12], packet[21] = {0};
    xl_keys_nonce(keys, 0, pn, nonce);
    assert_hex(nonce, "e0459b3474bdd0e46d417eb0");
    from_hex("4200bff401", packet, sizeof packet);
    assert_int_equal(xl_keys_protect(keys, 0, pn, packet, 1, 3, 1), sizeof packet);
    assert_hex(packet, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb");

    uint64_t truncated = 0;
    size_t len = 0;
    uint8_t *payload = NULL;
    assert_int_equal(xl_keys_unmask(keys, packet, sizeof packet, 1, &truncated, &len), 0);
    assert_int_equal(truncated, 0x00bff4);
    assert_int_equal(len, 3);
    assert_int_equal(xl_keys_open(keys, 0, pn, packet, sizeof packet, 1, len, &payload), 1);
    assert_int_equal(payload[0], 0x01);
    xl_keys_free(keys);
}

TEST(key_update_changes_key_and_iv_but_not_header_protection) {
    xl_keys *keys = rfc_chacha_keys(), *next = xl_keys_next(keys);
    assert_non_null(next);
    assert_hex(next->secret, "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9");
    assert_memory_not_equal(next->key, keys->key, 32);
    assert_memory_not_equal(next->iv, keys->iv, 12);
    assert_memory_equal(next->hp_key, keys->hp_key, 32);
    assert_int_equal(xl_keys_sealed_count(next), 0);
    xl_keys_free(keys);

    /* The next generation is independent, and makes a further one. */
    uint8_t sample[XL_HP_SAMPLE], mask[XL_HP_MASK];
    from_hex("5e5cd55c41f69080575d7999c25a5bfb", sample, sizeof sample);
    assert_int_equal(xl_keys_header_mask(next, sample, mask), 0);
    assert_hex(mask, "aefefe7d03");
    xl_keys *third = xl_keys_next(next);
    assert_memory_not_equal(third->secret, next->secret, 32);
    xl_keys_free(third);
    xl_keys_free(next);
}

RFC_KEYS_TEST(nonce_carries_the_path_id) {
    uint8_t nonce[12];
    from_hex("6b26114b9cba2b63a9e8dd4f", k->client->iv, sizeof k->client->iv);
    xl_keys_nonce(k->client, 3, 54321, nonce);
    assert_hex(nonce, "6b2611489cba2b63a9e8097e");
    xl_keys_nonce(k->client, UINT32_MAX, (UINT64_C(1) << 62) - 1, nonce);
    assert_hex(nonce, "94d9eeb4a345d49c561722b0");
}

/* A short-header packet: 1 byte, 8 bytes of CID, 2 bytes of packet number, then the payload. */
#define PN_OFFSET 9
#define PN_LEN    2
#define PAYLOAD   100
#define PACKET    (PN_OFFSET + PN_LEN + PAYLOAD + XL_AEAD_TAG)

static void fill_packet(uint8_t packet[PACKET], uint64_t pn) {
    for (size_t i = 0; i < PACKET; i++)
        packet[i] = (uint8_t)(i * 7);
    packet[0] = 0x40 | (PN_LEN - 1);
    packet[PN_OFFSET] = (uint8_t)(pn >> 8);
    packet[PN_OFFSET + 1] = (uint8_t)pn;
}

static xl_keys *keys_of(xl_aead aead) {
    uint8_t secret[XL_SECRET_MAX];
    memset(secret, 0x5a, sizeof secret);
    xl_keys *keys = xl_keys_from_secret(XL_VERSION_1, aead, secret, aead == XL_AEAD_AES_256_GCM ? 48 : 32);
    assert_non_null(keys);
    return keys;
}

TEST(every_cipher_round_trips) {
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_CHACHA20_POLY1305; aead++) {
        xl_keys *keys = keys_of(aead);
        for (uint64_t pn = 0; pn < 50; pn++) {
            uint8_t packet[PACKET], plain[PACKET], *payload = NULL;
            uint64_t truncated = 0;
            size_t len = 0;
            fill_packet(plain, pn);
            memcpy(packet, plain, sizeof packet);
            assert_int_equal(xl_keys_protect(keys, 2, pn, packet, PN_OFFSET, PN_LEN, PAYLOAD), PACKET);
            assert_memory_not_equal(packet + PN_OFFSET + PN_LEN, plain + PN_OFFSET + PN_LEN, PAYLOAD);
            assert_int_equal(xl_keys_unmask(keys, packet, PACKET, PN_OFFSET, &truncated, &len), 0);
            assert_int_equal(truncated, pn);
            assert_int_equal(len, PN_LEN);
            assert_int_equal(xl_keys_open(keys, 2, pn, packet, PACKET, PN_OFFSET, len, &payload), PAYLOAD);
            assert_memory_equal(packet, plain, PN_OFFSET + PN_LEN + PAYLOAD);
        }
        assert_int_equal(xl_keys_sealed_count(keys), 50);
        xl_keys_free(keys);
    }
}

TEST(a_forged_packet_is_refused_and_left_untouched) {
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_CHACHA20_POLY1305; aead++) {
        xl_keys *keys = keys_of(aead), *next = xl_keys_next(keys);
        uint8_t good[PACKET], *payload = NULL;
        uint64_t truncated;
        size_t len;
        fill_packet(good, 7);
        assert_int_equal(xl_keys_protect(keys, 1, 7, good, PN_OFFSET, PN_LEN, PAYLOAD), PACKET);
        assert_int_equal(xl_keys_unmask(keys, good, PACKET, PN_OFFSET, &truncated, &len), 0);
        for (size_t i = 0; i < PACKET; i++) { /* header, packet number, payload, tag */
            uint8_t packet[PACKET], before[PACKET];
            memcpy(packet, good, PACKET);
            packet[i] ^= 0x01;
            memcpy(before, packet, PACKET);
            assert_int_equal(xl_keys_open(keys, 1, 7, packet, PACKET, PN_OFFSET, PN_LEN, &payload), -1);
            assert_memory_equal(packet, before, PACKET);
        }
        /* Wrong path, wrong packet number, wrong key phase; then the right ones, on the same bytes. */
        assert_int_equal(xl_keys_open(keys, 2, 7, good, PACKET, PN_OFFSET, PN_LEN, &payload), -1);
        assert_int_equal(xl_keys_open(keys, 1, 8, good, PACKET, PN_OFFSET, PN_LEN, &payload), -1);
        assert_int_equal(xl_keys_open(next, 1, 7, good, PACKET, PN_OFFSET, PN_LEN, &payload), -1);
        assert_int_equal(xl_keys_open(keys, 1, 7, good, PACKET, PN_OFFSET, PN_LEN, &payload), PAYLOAD);
        xl_keys_free(next);
        xl_keys_free(keys);
    }
}

#define LARGEST 65535

/* Returns the end of LARGEST bytes that are followed by no memory: the sanitizer does not check the libraries'
 * assembly. */
static uint8_t *guarded_end(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (LARGEST / page + 1) * page;
    uint8_t *memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mprotect(memory + bytes, page, PROT_NONE), 0);
    return memory + bytes;
}

/* intel-ipsec-mb's code for AES-GCM has special cases for many sizes, of which RFC 9001's vectors have few. */
TEST(both_libraries_seal_open_and_refuse_alike_at_every_size) {
    static uint8_t plain[LARGEST];
    uint8_t *const a_end = guarded_end(), *const b_end = guarded_end(), *payload;
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_AES_256_GCM; aead++) {
        xl_keys *keys = keys_of(aead), *gnutls = keys_of(aead);
        assert_int_equal(xl_keys_open_gnutls(gnutls), 0);
        const size_t largest_payload = LARGEST - XL_AEAD_TAG - 2;
        for (size_t payload_len = 0; payload_len <= largest_payload;
             payload_len = payload_len == 1500 ? largest_payload : payload_len + 1) {
            const size_t number_len = payload_len < 3 ? 4 - payload_len : 1;
            const size_t pn_offset = payload_len == largest_payload ? 1 : 1 + payload_len % 40;
            const size_t header_len = pn_offset + number_len, len = header_len + payload_len + XL_AEAD_TAG;
            uint8_t *a = a_end - len, *b = b_end - len;
            for (size_t i = 0; i < len; i++)
                plain[i] = (uint8_t)(i * payload_len);
            plain[0] = 0x40 | (uint8_t)(number_len - 1);
            memcpy(a, plain, len);
            memcpy(b, plain, len);
            assert_int_equal(xl_keys_protect(keys, 1, payload_len, a, pn_offset, number_len, payload_len), len);
            assert_int_equal(xl_keys_protect(gnutls, 1, payload_len, b, pn_offset, number_len, payload_len), len);
            assert_memory_equal(a, b, len);

            uint64_t pn;
            size_t pn_len;
            assert_int_equal(xl_keys_unmask(keys, a, len, pn_offset, &pn, &pn_len), 0);
            assert_int_equal(pn_len, number_len);
            assert_memory_equal(a, plain, header_len);
            memcpy(b, a, len);
            a[len - 1 - payload_len % XL_AEAD_TAG] ^= 0x80;
            assert_int_equal(xl_keys_open(keys, 1, payload_len, a, len, pn_offset, pn_len, &payload), -1);
            a[len - 1 - payload_len % XL_AEAD_TAG] ^= 0x80;
            assert_memory_equal(a, b, len);
            assert_int_equal(xl_keys_open(keys, 1, payload_len, a, len, pn_offset, pn_len, &payload), payload_len);
            assert_int_equal(xl_keys_open(gnutls, 1, payload_len, b, len, pn_offset, pn_len, &payload), payload_len);
            assert_memory_equal(a, plain, len - XL_AEAD_TAG);
            assert_memory_equal(a, b, len);
        }
        xl_keys_free(keys);
        xl_keys_free(gnutls);
    }
}

#if defined(XL_HAS_IPSEC_MB) && defined(__x86_64__)
TEST(aes_gcm_is_left_to_gnutls_only_where_the_processor_has_no_instructions_for_it) {
    const bool can = __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_CHACHA20_POLY1305; aead++) {
        xl_keys *keys = keys_of(aead);
        uint8_t packet[PACKET];
        fill_packet(packet, 1);
        assert_int_equal(xl_keys_protect(keys, 0, 1, packet, PN_OFFSET, PN_LEN, PAYLOAD), PACKET);
        assert_true((keys->ciphers->gcm != NULL) == (can && aead != XL_AEAD_CHACHA20_POLY1305));
        xl_keys_free(keys);
    }
}
#endif

/* Keys that are never used open no ciphers, as in a whole simulation with null keys. */
TEST(ciphers_are_opened_with_the_first_packet) {
    xl_keys *keys = keys_of(XL_AEAD_AES_128_GCM), *null = keys_of(XL_AEAD_AES_128_GCM);
    uint8_t packet[PACKET];
    xl_keys_make_null(null);
    assert_false(keys->ciphers->are_open);
    for (int i = 0; i < 2; i++) {
        fill_packet(packet, 1);
        assert_int_equal(xl_keys_protect(i ? null : keys, 0, 1, packet, PN_OFFSET, PN_LEN, PAYLOAD), PACKET);
    }
    assert_true(keys->ciphers->are_open);
    assert_false(null->ciphers->are_open);
    xl_keys_free(null);
    xl_keys_free(keys);
}

/* An observer could tell from the time that it takes: RFC 9001 section 6.3. */
TEST(the_first_packet_of_a_later_generation_opens_no_cipher) {
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_CHACHA20_POLY1305; aead++) {
        xl_keys *keys = keys_of(aead), *next = xl_keys_next(keys);
        assert_non_null(next);
        assert_true(next->ciphers->are_open);
        xl_keys_make_null(keys);
        xl_keys *null = xl_keys_next(keys);
        assert_non_null(null);
        assert_false(null->ciphers->are_open);
        xl_keys_free(null);
        xl_keys_free(next);
        xl_keys_free(keys);
    }
}

TEST(packets_too_short_are_refused) {
    xl_keys *keys = keys_of(XL_AEAD_AES_128_GCM);
    uint64_t pn;
    size_t len;
    for (size_t n = 1; n <= PN_OFFSET + 4 + XL_HP_SAMPLE; n++) {
        uint8_t *packet = calloc(1, n), *payload = NULL; /* exact size, for the sanitizer */
        assert_non_null(packet);
        assert_int_equal(xl_keys_unmask(keys, packet, n, PN_OFFSET, &pn, &len),
                         n < PN_OFFSET + 4 + XL_HP_SAMPLE ? -1 : 0);
        assert_int_equal(xl_keys_open(keys, 0, 0, packet, n, PN_OFFSET, 4, &payload), -1);
        free(packet);
    }
    uint8_t packet[PACKET];
    fill_packet(packet, 0);
    assert_int_equal(xl_keys_unmask(keys, packet, PACKET, SIZE_MAX - 2, &pn, &len), -1);
    assert_int_equal(xl_keys_protect(keys, 0, 0, packet, PN_OFFSET, 1, 2), 0); /* no room for the sample */
    assert_int_equal(xl_keys_protect(keys, 0, 0, packet, PN_OFFSET, 5, 20), 0);
    xl_keys_free(keys);
}

TEST(limits_are_those_of_section_6_6_and_stop_the_keys) {
    xl_keys *gcm = keys_of(XL_AEAD_AES_128_GCM), *chacha = keys_of(XL_AEAD_CHACHA20_POLY1305);
    assert_int_equal(xl_keys_confidentiality_limit(gcm), UINT64_C(1) << 23);
    assert_int_equal(xl_keys_integrity_limit(gcm), UINT64_C(1) << 52);
    assert_true(xl_keys_confidentiality_limit(chacha) >= UINT64_C(1) << 62);
    assert_int_equal(xl_keys_integrity_limit(chacha), UINT64_C(1) << 36);

    uint8_t packet[PACKET];
    gcm->ciphers->sealed = xl_keys_confidentiality_limit(gcm) - 1;
    fill_packet(packet, 1);
    assert_int_equal(xl_keys_protect(gcm, 0, 1, packet, PN_OFFSET, PN_LEN, PAYLOAD), PACKET);
    uint8_t further[PACKET];
    fill_packet(further, 2);
    assert_int_equal(xl_keys_protect(gcm, 0, 2, further, PN_OFFSET, PN_LEN, PAYLOAD), 0);
    xl_keys_free(gcm);
    xl_keys_free(chacha);
}

TEST(secrets_of_the_wrong_length_make_no_keys) {
    const uint8_t secret[48] = {0};
    assert_null(xl_keys_from_secret(XL_VERSION_1, XL_AEAD_AES_128_GCM, secret, 48));
    assert_null(xl_keys_from_secret(XL_VERSION_1, XL_AEAD_AES_256_GCM, secret, 32));
    assert_null(xl_keys_from_secret(XL_VERSION_1, (xl_aead)7, secret, 32));
    xl_keys_free(NULL);
}

TEST(hmac_is_that_of_rfc_4231) {
    uint8_t out[33];
    const char *data = "what do ya want for nothing?";
    assert_int_equal(xl_hmac((const uint8_t *)"Jefe", 4, (const uint8_t *)data, strlen(data), out, 32), 0);
    assert_hex(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(out, 0, sizeof out);
    assert_int_equal(xl_hmac((const uint8_t *)"Jefe", 4, (const uint8_t *)data, strlen(data), out, 16), 0);
    assert_hex(out, "5bdcc146bf60754e6a042426089575c700");
    assert_int_equal(xl_hmac((const uint8_t *)"Jefe", 4, (const uint8_t *)data, strlen(data), out, 33), -1);
}

TEST_MAIN(NULL, NULL)
