/* Frames of connection IDs and path IDs, of both dialects: which are due, their writing, the effect of received
 * ones. */
#pragma once

#include "connection/builder.h"
#include "wire/frame.h"

bool xl_cid_frames_are_due(const xl_connection *);
void xl_cid_frames_put(xl_builder *);
/* Take (PATH_)NEW_CONNECTION_ID and (PATH_)RETIRE_CONNECTION_ID. Return 0 or the transport error to close with. */
uint64_t xl_conn_take_new_cid(xl_connection *, const xl_frame *);
uint64_t xl_conn_take_retire_cid(xl_connection *, const xl_frame *);
/* Takes the other frames that only the dialect `ietf` has, except PATH_ACK and PATH_STATUS_*. */
uint64_t xl_conn_take_path_id_frame(xl_connection *, const xl_frame *);
/* When an abandoned path ID may be forgotten; XL_NEVER: none. */
uint64_t xl_conn_path_ids_deadline(const xl_connection *);
void xl_conn_path_ids_timer(xl_connection *);
