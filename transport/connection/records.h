/* Records of what a sent packet carried, if its acknowledgement or loss matters. They come from a pool, so that the
 * steady state allocates nothing. */
#pragma once

#include "recovery/ledger.h"
#include "xlink/xlink.h"

typedef enum {
    XL_SF_STREAM,
    XL_SF_CRYPTO,
    XL_SF_ACK,
    XL_SF_RESET_STREAM,
    XL_SF_STOP_SENDING,
    XL_SF_MAX_DATA,
    XL_SF_MAX_STREAM_DATA,
    XL_SF_MAX_STREAMS,
    XL_SF_DATA_BLOCKED,
    XL_SF_STREAM_DATA_BLOCKED,
    XL_SF_STREAMS_BLOCKED,
    XL_SF_NEW_CID,
    XL_SF_RETIRE_CID,
    XL_SF_HANDSHAKE_DONE,
    XL_SF_NEW_TOKEN,
    XL_SF_PATH_ABANDON,
    XL_SF_MAX_PATH_ID,
    XL_SF_PATHS_BLOCKED,
    XL_SF_PATH_CIDS_BLOCKED,
    XL_SF_PATH_STATUS,
    XL_SF_QOE,
    XL_SF_DATAGRAM,
} xl_sf_kind;

struct xl_sent_frame {
    xl_sent_frame *next; /* in the list of its packet, or of the pool */
    uint8_t kind;
    bool fin;
    bool is_queued;               /* in its stream's unacked queue */
    uint8_t copies;               /* times it was re-injected */
    uint8_t copied_on;            /* bit set of the paths that carried a copy */
    int8_t path;                  /* index of the path it is in flight on */
    uint32_t len, copied;         /* copied: bytes that were re-injected in the present round */
    uint64_t id;                  /* by kind: ID of a stream, path or datagram, level, sequence number,
                                   * number of a space (ACK) or signal (QOE), 1 if unidirectional (MAX_STREAMS,
                                   * STREAMS_BLOCKED) */
    uint64_t offset;              /* stream or crypto offset; SF_ACK: largest acknowledged; BLOCKED: the limit;
                                   * NEW_CID, RETIRE_CID: path ID */
    uint64_t sent_at, sent_total; /* when it was sent; delivery.sent_total of the path after that */
    xl_sent_frame *queue_prev, *queue_next; /* unacked queue of its stream */
};

typedef struct {
    xl_sent_frame *free;
    void **slabs;
    size_t slab_count;
    size_t in_use; /* records */
} xl_records;

xl_sent_frame *xl_records_new(xl_records *); /* NULL: out of memory */
void xl_records_give_back(xl_records *, xl_sent_frame *);
/* Frees the slabs, if there are several and no record is in use. */
void xl_records_rest(xl_records *);
void xl_records_free(xl_records *); /* frees all records, including those in use */
