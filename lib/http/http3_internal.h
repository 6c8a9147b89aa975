/* Shared by the files of the HTTP/3 layer. */
#pragma once

#include <nghttp3/nghttp3.h>

#include "http/control.h"
#include "http/http3.h"
#include "http/http3_log.h"
#include "http/settings.h"

#define H3_METHOD_BYTES 16

/* One request and its response. */
typedef struct h3_stream {
    struct h3_stream *next;
    int64_t id;
    bool read_ended;            /* nothing more is passed to nghttp3: FIN or reset */
    bool over;                  /* ended, aborted or cancelled: no further callback to the caller */
    size_t field_section_bytes; /* of the current section: head, interim response or trailers */
    size_t head_bytes;          /* server: bytes received before the head is complete; then 0 */

    /* Server: fields of the request. */
    char method[H3_METHOD_BYTES];
    char *path, *authority, *range;
    bool has_if_range;
    /* Client: the head of the response. */
    h3_response_head head;
    bool head_done;

    /* Server: the response. body_framed: body bytes up to the end of the latest DATA frame. */
    bool responded, has_body;
    h3_body body;
    uint64_t body_framed;
    size_t chunk_left;     /* bytes of that frame's payload that the transport has not taken */
    bool waiting;          /* nghttp3 asked for the next DATA frame before chunk_left was 0 */
    bool written;          /* completely, including the FIN */
    h3_body_mark mark;     /* size 0: none */
    uint64_t stream_bytes; /* bytes taken by the transport */

    /* For the qlog: the field section that is being received, and the one to be sent first; NULL: none. */
    json_t *fields, *sent_fields;
} h3_stream;

struct h3_session {
    xl_connection *connection;
    nghttp3_conn *h3; /* NULL: the session rests */
    h3_callbacks callbacks;
    h3_stream *streams;
    h3_log *log;  /* NULL: no qlog */
    uint64_t now; /* time of the current call */
    bool is_server, ready, failed, goaway_received;
    bool is_flushed;   /* nghttp3 had nothing to write, and has received only payload since */
    bool is_connected; /* the handshake is complete, so requests are not 0-RTT data */
    uint64_t grease;   /* random number; 0: no reserved types are sent */
    bool has_reserved_stream, has_reserved_settings, has_reserved_frame; /* sent, each once per connection */
    uint64_t critical[3];                                                /* control, QPACK encoder and decoder stream */
    size_t critical_count;
    h3_settings_reader settings;            /* client */
    h3_peer_settings peer, peer_remembered; /* client: limits of requests; those of the resumed session */
    bool has_remembered;
    uint64_t max_client_streams;
    h3_control *controls; /* server: one for each unidirectional stream of the client */
    bool is_restless;     /* nghttp3 has state that their first bytes cannot restore */
    size_t heads_bytes;   /* server: sum of the streams' head_bytes */
};

/* nghttp3's placeholder for the payload of all DATA frames, of every session and stream. nghttp3 uses its address only.
 * The body's source writes into the transport's send buffer instead. */
extern uint8_t h3_payload[H3_DATA_FRAME_BYTES];

h3_stream *h3_stream_find(const h3_session *, int64_t id);
h3_stream *h3_stream_new(h3_session *, int64_t id); /* NULL: without memory */
void h3_stream_free(h3_session *, h3_stream *);
void h3_stream_close_body(h3_stream *);
/* Closes a stream in both directions, as far as they are open. */
void h3_stream_drop(h3_session *, uint64_t id, uint64_t error_code);
/* Marks the stream as over and calls abort(), unless it was over. */
void h3_stream_abort(h3_session *, h3_stream *, uint64_t error_code);

/* Creates nghttp3's part of the session, at first or after a rest. Returns 0 or nghttp3's error. */
int h3_make(h3_session *);
int h3_bind(h3_session *); /* binds the critical streams */
/* Server: stores bytes of a unidirectional stream for h3_wake(). */
void h3_note_opening(h3_session *, h3_control *, const uint8_t *data, size_t len);
/* Finds or creates the record of a client's unidirectional stream; NULL: out of memory. */
h3_control *h3_control_of(h3_session *, uint64_t id);
void h3_forget_control(h3_session *, uint64_t id);
/* Restores nghttp3 after a rest. Returns 0 or nghttp3's error. */
int h3_wake(h3_session *);

/* Aborts a stream with a stream error, and calls abort(). */
void h3_stream_refuse(h3_session *, h3_stream *, uint64_t error_code);

/* Server: applies the urgency of the response that the client has sent (RFC 9218). */
void h3_apply_priority(h3_session *, const h3_stream *);

/* nghttp3's callbacks. Their user data is the session; a stream's user data is its h3_stream. */
extern const nghttp3_callbacks h3_nghttp3_callbacks;
nghttp3_ssize h3_read_data(nghttp3_conn *, int64_t id, nghttp3_vec *, size_t vec_count, uint32_t *flags, void *user,
                           void *stream_user);
