/* Frames of the multipath dialect `ietf`: RFC 10069 section 4. They occur in 1-RTT packets only. Parts that they share
 * with RFC 9000's frames (acknowledgement ranges, connection IDs) and with the dialect `xlink` (the status of a path)
 * are parsed into the same members of xl_frame. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    XL_FRAME_PATH_ACK = 0x3e,
    XL_FRAME_PATH_ACK_ECN = 0x3f,
    XL_FRAME_PATH_ABANDON = 0x3e75,
    XL_FRAME_PATH_STATUS_BACKUP = 0x3e76,
    XL_FRAME_PATH_STATUS_AVAILABLE = 0x3e77,
    XL_FRAME_PATH_NEW_CONNECTION_ID = 0x3e78,
    XL_FRAME_PATH_RETIRE_CONNECTION_ID = 0x3e79,
    XL_FRAME_MAX_PATH_ID = 0x3e7a,
    XL_FRAME_PATHS_BLOCKED = 0x3e7b,
    XL_FRAME_PATH_CIDS_BLOCKED = 0x3e7c,
};

/* Error codes of PATH_ABANDON (section 4.2.1), besides NO_ERROR. */
enum {
    XL_QERR_APPLICATION_ABANDON_PATH = 0x3e,
    XL_QERR_PATH_RESOURCE_LIMIT = 0x3e75,
    XL_QERR_PATH_UNSTABLE_OR_POOR = 0x3e76,
    XL_QERR_NO_CID_FOR_PATH = 0x3e77,
};

/* Path IDs are 32 bits of the nonce (section 2.4). */
#define XL_PATH_ID_MAX UINT32_MAX

static inline bool xl_frame_is_ietf(uint64_t type) {
    return (type | 1) == XL_FRAME_PATH_ACK_ECN || (type >= XL_FRAME_PATH_ABANDON && type <= XL_FRAME_PATH_CIDS_BLOCKED);
}
