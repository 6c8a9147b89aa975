#include "wire/frame_parts.h"

const char *xl_frame_ietf_name(uint64_t type) {
    static const char *const names[] = {"path_abandon",           "path_status_backup",        "path_status_available",
                                        "path_new_connection_id", "path_retire_connection_id", "max_path_id",
                                        "paths_blocked",          "path_cids_blocked"};
    if (type == XL_FRAME_PATH_ACK || type == XL_FRAME_PATH_ACK_ECN)
        return "path_ack";
    if (type >= XL_FRAME_PATH_ABANDON && type <= XL_FRAME_PATH_CIDS_BLOCKED)
        return names[type - XL_FRAME_PATH_ABANDON];
    return NULL;
}

bool xl_frame_is_ietf(uint64_t type) {
    return xl_frame_ietf_name(type);
}

bool xl_frame_parse_ietf(xl_reader *r, uint64_t type, xl_frame *out) {
    if (type == XL_FRAME_MAX_PATH_ID || type == XL_FRAME_PATHS_BLOCKED) {
        out->max.stream_id = 0;
        out->max.maximum = xl_read_varint(r);
        return true;
    }
    uint64_t path_id = xl_read_varint(r);
    switch (type) {
    case XL_FRAME_PATH_ACK:
    case XL_FRAME_PATH_ACK_ECN:
        out->ack.path_id = path_id;
        out->ack.has_qoe = false;
        out->ack.qoe = (xl_qoe){0};
        return xl_frame_parse_ack_body(r, type == XL_FRAME_PATH_ACK_ECN, &out->ack);
    case XL_FRAME_PATH_ABANDON:
        out->path_abandon.path_id = path_id;
        out->path_abandon.error_code = xl_read_varint(r);
        return true;
    case XL_FRAME_PATH_STATUS_BACKUP:
    case XL_FRAME_PATH_STATUS_AVAILABLE:
        out->path_status.path_id = path_id;
        out->path_status.sequence = xl_read_varint(r);
        out->path_status.status = type == XL_FRAME_PATH_STATUS_BACKUP ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE;
        out->path_status.priority = 0;
        return true;
    case XL_FRAME_PATH_NEW_CONNECTION_ID:
        out->new_cid.path_id = path_id;
        return xl_frame_parse_new_cid_body(r, out);
    case XL_FRAME_PATH_RETIRE_CONNECTION_ID:
        out->retire_cid.path_id = path_id;
        out->retire_cid.sequence = xl_read_varint(r);
        return true;
    default: /* PATH_CIDS_BLOCKED */
        out->path_cids_blocked.path_id = path_id;
        out->path_cids_blocked.next_sequence = xl_read_varint(r);
        return true;
    }
}

void xl_frame_put_path_abandon(xl_writer *w, uint64_t path_id, uint64_t error_code) {
    XL_FRAME_PUT(w, XL_FRAME_PATH_ABANDON, path_id, error_code);
}

void xl_frame_put_path_preference(xl_writer *w, uint64_t path_id, uint64_t sequence, bool is_backup) {
    XL_FRAME_PUT(w, is_backup ? XL_FRAME_PATH_STATUS_BACKUP : XL_FRAME_PATH_STATUS_AVAILABLE, path_id, sequence);
}

void xl_frame_put_path_new_cid(xl_writer *w, uint64_t path_id, uint64_t sequence, uint64_t retire_prior_to,
                               const xl_cid *cid, const uint8_t token[16]) {
    XL_FRAME_PUT(w, XL_FRAME_PATH_NEW_CONNECTION_ID, path_id);
    xl_frame_put_new_cid_body(w, sequence, retire_prior_to, cid, token);
}

void xl_frame_put_path_retire_cid(xl_writer *w, uint64_t path_id, uint64_t sequence) {
    XL_FRAME_PUT(w, XL_FRAME_PATH_RETIRE_CONNECTION_ID, path_id, sequence);
}

void xl_frame_put_path_cids_blocked(xl_writer *w, uint64_t path_id, uint64_t next_sequence) {
    XL_FRAME_PUT(w, XL_FRAME_PATH_CIDS_BLOCKED, path_id, next_sequence);
}
