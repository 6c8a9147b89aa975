/* Upper bounds of the frames' sizes in bytes, to reserve room before writing. A frame is its type and its fields; a
 * field is a varint of at most 8 bytes unless noted otherwise. */
#pragma once

#define XL_VARINT_BYTES 8
#define XL_FIELDS(n)    ((size_t)(n)*XL_VARINT_BYTES)

/* RFC 9000 section 19: types of one byte. */
#define XL_RESET_STREAM_FRAME_BYTES        (1 + XL_FIELDS(3))
#define XL_STOP_SENDING_FRAME_BYTES        (1 + XL_FIELDS(2))
#define XL_STREAM_FRAME_HEADER_BYTES       (1 + XL_FIELDS(2) + 2) /* the length takes 2 bytes in any datagram */
#define XL_MAX_DATA_FRAME_BYTES            (1 + XL_FIELDS(1))
#define XL_MAX_STREAM_DATA_FRAME_BYTES     (1 + XL_FIELDS(2))
#define XL_MAX_STREAMS_FRAME_BYTES         (1 + XL_FIELDS(1))
#define XL_STREAM_DATA_BLOCKED_FRAME_BYTES (1 + XL_FIELDS(2)) /* DATA_BLOCKED and STREAMS_BLOCKED are shorter */
#define XL_NEW_CID_FRAME_BYTES             (1 + XL_FIELDS(2) + 1 + 20 + 16) /* a CID of 20 bytes and its token */
#define XL_RETIRE_CID_FRAME_BYTES          (1 + XL_FIELDS(1))
#define XL_PATH_CHALLENGE_FRAME_BYTES      (1 + 8)
#define XL_PATH_RESPONSE_FRAME_BYTES       (1 + 8)
#define XL_HANDSHAKE_DONE_FRAME_BYTES      1
#define XL_NEW_TOKEN_FRAME_BYTES           (1 + 1 + 37) /* a token of our own */

/* The dialect `xlink`: types of four bytes. */
#define XL_PATH_STATUS_FRAME_BYTES (4 + XL_FIELDS(4))
#define XL_QOE_FRAME_BYTES         (4 + XL_FIELDS(1) + XL_QOE_SIGNAL_BYTES)

#define XL_QOE_SIGNAL_BYTES (1 + XL_FIELDS(4)) /* at the end of an ACK_MP, and in its own frame */

/* The dialect `ietf`, RFC 10069 section 4: types of two bytes. */
#define XL_PATH_ABANDON_FRAME_BYTES      (2 + XL_FIELDS(2))
#define XL_PATH_PREFERENCE_FRAME_BYTES   (2 + XL_FIELDS(2)) /* PATH_STATUS_BACKUP, PATH_STATUS_AVAILABLE */
#define XL_PATH_NEW_CID_FRAME_BYTES      (2 + XL_FIELDS(3) + 1 + 20 + 16)
#define XL_PATH_RETIRE_CID_FRAME_BYTES   (2 + XL_FIELDS(2))
#define XL_MAX_PATH_ID_FRAME_BYTES       (2 + XL_FIELDS(1))
#define XL_PATHS_BLOCKED_FRAME_BYTES     (2 + XL_FIELDS(1))
#define XL_PATH_CIDS_BLOCKED_FRAME_BYTES (2 + XL_FIELDS(2))
