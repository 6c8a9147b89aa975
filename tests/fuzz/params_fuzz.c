/* Transport parameters of either side. Properties: decoded values keep the limits of RFC 9000 section 18.2, and values
 * that are encoded again are decoded as the same. */
#include "tests/fuzz/input.h"
#include "wire/frame.h"
#include "wire/transport_params.h"

static bool is_same_cid(bool has_a, const xl_cid *a, bool has_b, const xl_cid *b) {
    return has_a == has_b && (!has_a || xl_cid_equal(a, b));
}

static void check_same(const xl_transport_params *a, const xl_transport_params *b) {
    FUZZ_CHECK(is_same_cid(a->has_original_dcid, &a->original_dcid, b->has_original_dcid, &b->original_dcid));
    FUZZ_CHECK(is_same_cid(a->has_initial_scid, &a->initial_scid, b->has_initial_scid, &b->initial_scid));
    FUZZ_CHECK(is_same_cid(a->has_retry_scid, &a->retry_scid, b->has_retry_scid, &b->retry_scid));
    FUZZ_CHECK(a->has_stateless_reset_token == b->has_stateless_reset_token);
    FUZZ_CHECK(!a->has_stateless_reset_token ||
               memcmp(a->stateless_reset_token, b->stateless_reset_token, sizeof a->stateless_reset_token) == 0);
    FUZZ_CHECK(a->has_preferred_address == b->has_preferred_address);
    FUZZ_CHECK(xl_addr_equal(&a->preferred_address.v4, &b->preferred_address.v4) &&
               xl_addr_equal(&a->preferred_address.v6, &b->preferred_address.v6));
    FUZZ_CHECK(is_same_cid(a->has_preferred_address, &a->preferred_address.cid, b->has_preferred_address,
                           &b->preferred_address.cid));
    FUZZ_CHECK(a->max_idle_timeout_ms == b->max_idle_timeout_ms && a->max_udp_payload_size == b->max_udp_payload_size);
    FUZZ_CHECK(a->initial_max_data == b->initial_max_data);
    FUZZ_CHECK(a->initial_max_stream_data_bidi_local == b->initial_max_stream_data_bidi_local);
    FUZZ_CHECK(a->initial_max_stream_data_bidi_remote == b->initial_max_stream_data_bidi_remote);
    FUZZ_CHECK(a->initial_max_stream_data_uni == b->initial_max_stream_data_uni);
    FUZZ_CHECK(a->initial_max_streams_bidi == b->initial_max_streams_bidi);
    FUZZ_CHECK(a->initial_max_streams_uni == b->initial_max_streams_uni);
    FUZZ_CHECK(a->ack_delay_exponent == b->ack_delay_exponent && a->max_ack_delay_ms == b->max_ack_delay_ms);
    FUZZ_CHECK(a->disable_active_migration == b->disable_active_migration);
    FUZZ_CHECK(a->active_connection_id_limit == b->active_connection_id_limit);
    FUZZ_CHECK(a->max_datagram_frame_size == b->max_datagram_frame_size);
    FUZZ_CHECK(a->has_min_ack_delay == b->has_min_ack_delay && a->min_ack_delay_us == b->min_ack_delay_us);
    FUZZ_CHECK(!a->has_min_ack_delay || a->min_ack_delay_us <= 1000 * a->max_ack_delay_ms);
    FUZZ_CHECK(a->enable_multipath == b->enable_multipath && a->qoe_field == b->qoe_field);
    FUZZ_CHECK(a->has_initial_max_path_id == b->has_initial_max_path_id);
    FUZZ_CHECK(a->initial_max_path_id == b->initial_max_path_id && a->initial_max_path_id <= XL_PATH_ID_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    bool from_server = fuzz_bool(&in);
    xl_transport_params a, b;
    uint8_t room[1024];
    uint64_t error = xl_transport_params_decode(in.p, fuzz_left(&in), from_server, &a);
    FUZZ_CHECK(error == 0 || error == XL_QERR_TRANSPORT_PARAMETER);
    fuzz_note_number(error);
    if (error != 0)
        return 0;
    FUZZ_CHECK(a.max_udp_payload_size >= 1200 && a.ack_delay_exponent <= 20 && a.max_ack_delay_ms < 1 << 14);
    FUZZ_CHECK(a.active_connection_id_limit >= 2);
    FUZZ_CHECK(a.initial_max_streams_bidi <= UINT64_C(1) << 60 && a.initial_max_streams_uni <= UINT64_C(1) << 60);
    FUZZ_CHECK(from_server || (!a.has_original_dcid && !a.has_retry_scid && !a.has_stateless_reset_token));
    size_t n = xl_transport_params_encode(&a, room, sizeof room);
    fuzz_note(room, n);
    uint8_t *exact = fuzz_copy(room, n);
    FUZZ_CHECK(xl_transport_params_decode(exact, n, from_server, &b) == 0);
    check_same(&a, &b);
    for (size_t cap = 0; cap < n; cap++) { /* the writer does not write beyond its room */
        uint8_t *small = malloc(cap > 0 ? cap : 1);
        FUZZ_CHECK(xl_transport_params_encode(&a, small, cap) == 0);
        free(small);
    }
    free(exact);
    return 0;
}
