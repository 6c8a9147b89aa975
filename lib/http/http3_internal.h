/* What the files of the HTTP/3 layer share. */
#ifndef HTTP_HTTP3_INTERNAL_H
#define HTTP_HTTP3_INTERNAL_H

#include <nghttp3/nghttp3.h>

#include "http/control.h"
#include "http/http3.h"
#include "http/http3_log.h"
#include "http/settings.h"

#define H3_METHOD_BYTES  16
#define H3_OPENING_BYTES 47 /* a control stream begins with SETTINGS, of some 20 bytes */
#define H3_OPENINGS      4  /* the peer's control stream, QPACK's two, and a reserved one */

/* One request and its response. */
typedef struct h3_stream {
    struct h3_stream *next;
    int64_t id;
    bool read_ended;            /* the FIN was handed to nghttp3 */
    bool over;                  /* aborted or cancelled: nothing more is reported to the caller */
    size_t field_section_bytes; /* of the present section: head, interim response or trailers */
    size_t head_bytes;          /* server: that came until the head was complete; 0 once it is */

    /* Server: fields of the request. */
    char method[H3_METHOD_BYTES];
    char *path, *authority, *range;
    bool has_if_range;
    /* Client: the head of the response. */
    h3_response_head head;
    bool head_done;

    /* Server: the response's body, up to the end of the newest DATA frame. */
    bool responded, has_body;
    h3_body body;
    uint64_t body_framed;
    size_t chunk_left; /* of the frame's payload, what the transport has not yet taken */
    bool waiting;      /* nghttp3 asked for the next DATA frame before chunk_left was 0 */
    bool written;      /* all, the FIN included */
    bool has_mark;
    h3_body_mark mark;
    uint64_t stream_bytes; /* handed to the transport so far */

    /* For the qlog, NULL without one: the field section that is coming in, and the one that goes out first. */
    json_t *fields, *sent_fields;
} h3_stream;

/* What the peer sent on a stream other than a request's. */
typedef struct {
    uint64_t id;
    uint8_t len, bytes[H3_OPENING_BYTES];
} h3_opening;

struct h3_session {
    xl_connection *connection;
    nghttp3_conn *h3; /* NULL: the session rests */
    h3_callbacks callbacks;
    h3_stream *streams;
    h3_log *log;  /* NULL: there is no qlog */
    uint64_t now; /* of the event that is being handled */
    bool is_server, ready, failed, goaway_received;
    bool is_flushed;   /* nghttp3 had nothing to write, and since then it was given nothing but payload */
    bool is_connected; /* the handshake is complete: what is asked for is not 0-RTT data */
    uint64_t grease;   /* random; 0: nothing reserved is sent */
    bool has_reserved_stream, has_reserved_settings, has_reserved_frame; /* sent, each once */
    uint64_t critical[3]; /* streams that live as long as the connection: control, QPACK's two */
    size_t critical_count;
    h3_settings_reader settings;            /* client */
    h3_peer_settings peer, peer_remembered; /* client: what requests keep to; of the session that is resumed */
    bool has_remembered;
    uint64_t max_client_streams;
    h3_opening opening[H3_OPENINGS]; /* server: what nghttp3 is given again after a rest */
    size_t opening_count;
    h3_control *controls; /* server: of each unidirectional stream of the client */
    bool is_restless;     /* it has state that does not come back that way */
    size_t heads_bytes;   /* server: sum of the streams' head_bytes */
};

/* Where nghttp3 is told that the payload of a DATA frame lies, of whichever session and stream: it looks at addresses
 * only, and nothing is ever there. The body's source writes into the transport's send buffer. */
extern uint8_t h3_payload[H3_DATA_FRAME_BYTES];

h3_stream *h3_stream_find(const h3_session *, int64_t id);
h3_stream *h3_stream_new(h3_session *, int64_t id); /* NULL: out of memory */
void h3_stream_free(h3_session *, h3_stream *);
void h3_stream_close_body(h3_stream *);
/* Ends a stream in both directions; what is gone already does not mind. */
void h3_stream_drop(h3_session *, uint64_t id, uint64_t error_code);
/* Tells the caller, once, that nothing more will come of the stream. */
void h3_stream_abort(h3_session *, h3_stream *, uint64_t error_code);

/* nghttp3's part of the session, anew or after a rest. Returns 0 or nghttp3's error. */
int h3_make(h3_session *);
int h3_bind(h3_session *); /* the critical streams */
/* A server notes what came on streams other than requests', and forgets those that are gone. */
void h3_note_opening(h3_session *, uint64_t id, const uint8_t *data, size_t len);
void h3_forget_opening(h3_session *, uint64_t id);
/* Finds what is known of a client's unidirectional stream, or begins it; NULL: out of memory. */
h3_control *h3_control_of(h3_session *, uint64_t id);
void h3_forget_control(h3_session *, uint64_t id);
/* Ends a rest. Returns 0 or nghttp3's error. */
int h3_wake(h3_session *);

/* The stream ends by this side's doing, the connection lives. */
void h3_stream_refuse(h3_session *, h3_stream *, uint64_t error_code);

/* The callbacks of nghttp3; their user data is the session, a stream's user data its h3_stream. */
extern const nghttp3_callbacks h3_nghttp3_callbacks;
nghttp3_ssize h3_read_data(nghttp3_conn *, int64_t id, nghttp3_vec *, size_t vec_count, uint32_t *flags, void *user,
                           void *stream_user);

#endif
