/* The frames of connection IDs and path IDs, of both dialects: what is due, what is written, what a received one does.
 */
#ifndef XL_CONNECTION_CID_FRAMES_H
#define XL_CONNECTION_CID_FRAMES_H

#include "connection/builder.h"
#include "wire/frame.h"

bool xl_cid_frames_are_due(const xl_connection *);
void xl_cid_frames_put(xl_builder *);
/* 0 or the transport error to close with. (PATH_)NEW_CONNECTION_ID, (PATH_)RETIRE_CONNECTION_ID: */
uint64_t xl_conn_take_new_cid(xl_connection *, const xl_frame *);
uint64_t xl_conn_take_retire_cid(xl_connection *, const xl_frame *);
/* The other frames that only the dialect `ietf` has; PATH_ACK, PATH_STATUS_* apart. */
uint64_t xl_conn_take_path_id_frame(xl_connection *, const xl_frame *);
/* XL_NEVER, or when an abandoned path ID may be forgotten. */
uint64_t xl_conn_path_ids_deadline(const xl_connection *);
void xl_conn_path_ids_timer(xl_connection *);

#endif
