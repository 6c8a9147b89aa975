/* libxlink: multipath QUIC (RFC 9000, 9001, 9002; multipath dialect `xlink`) with XLINK's QoE-driven re-injection.
 *
 * Sans-IO. The library's own code reads no clock, no socket, no file and no random device: time enters as `now`
 * (microseconds on any monotonic clock of the caller), datagrams come in by xl_endpoint_receive() and go out by
 * xl_endpoint_transmit(), and connection IDs, challenges, tokens, packet-number skips and the keys behind them follow
 * from xl_config.random_key. Two things come from GnuTLS instead: it draws the random values and key shares of TLS from
 * its own generator, which reads the system's, and it asks for the time of day when it checks a certificate. A driver's
 * loop is:
 *
 *     receive datagrams -> xl_endpoint_receive()
 *     now >= xl_endpoint_next_timeout() -> xl_endpoint_handle_timeout()
 *     while (xl_endpoint_poll_event()) act, which may write to streams
 *     while (xl_endpoint_transmit() > 0) send the datagram
 *     sleep until xl_endpoint_next_timeout() or a datagram
 *
 * Nothing here is thread safe; an endpoint and its connections belong to one thread. Functions that return int give 0
 * or a negative xl_error. */
#ifndef XLINK_XLINK_H
#define XLINK_XLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "xlink/export.h"

XL_BEGIN_DECLS

/* Of the headers: major.minor.patch. While the major version is 0, a new minor version may change the interface. */
#define XL_VERSION "0.1.0"
/* Of the library that the program runs with, in the same form. */
const char *xl_version(void);

#define XL_NEVER         UINT64_MAX
#define XL_MAX_PATHS     8
#define XL_MAX_CID_BYTES 20

#define XL_RANDOM_KEY_BYTES 32

typedef enum {
    XL_OK = 0,
    XL_ERR_MEMORY = -1,       /* an allocation failed */
    XL_ERR_ARGUMENT = -2,     /* unknown name, bad value */
    XL_ERR_STREAM_LIMIT = -3, /* the peer allows no further stream for now */
    XL_ERR_STREAM_STATE = -4, /* no such stream, or not in a state for this */
    XL_ERR_CLOSED = -5,       /* the connection is closing or closed */
    XL_ERR_PATH = -6,         /* no such path, or the limit of paths is reached */
    XL_ERR_CRYPTO = -7,       /* TLS or packet protection failed */
} xl_error;

/* An IP address and UDP port. family: 0 unset, 4 or 6; ip in network byte order, 4 bytes used for IPv4; port in host
 * order. */
typedef struct {
    uint8_t family;
    uint8_t ip[16];
    uint16_t port;
} xl_addr;

bool xl_addr_equal(const xl_addr *a, const xl_addr *b);
bool xl_addr_same_host(const xl_addr *a, const xl_addr *b); /* ports aside */
/* So many leading bytes of `ip` are one client's: all of an IPv4 address, also of one in IPv6's form ::ffff:0:0/96, and
 * half of another IPv6 address, of which every client has a /64. */
size_t xl_addr_client_bytes(const xl_addr *);
bool xl_addr_same_client(const xl_addr *a, const xl_addr *b);
/* "192.0.2.1:443" or "[2001:db8::1]:443"; buf of at least 64 bytes; returns buf. */
const char *xl_addr_format(const xl_addr *addr, char *buf, size_t cap);

/* Radio technology of a path. The primary path follows this order (paper section 5.3): smaller is better. */
typedef enum {
    XL_TECH_5G_SA = 0,
    XL_TECH_5G_NSA = 1,
    XL_TECH_WIFI = 2,
    XL_TECH_LTE = 3,
    XL_TECH_UNKNOWN = 4
} xl_technology;

/* What one side asks of a path by PATH_STATUS. */
typedef enum {
    XL_STATUS_ABANDON = 0,   /* it ends, for good */
    XL_STATUS_STANDBY = 1,   /* no data on it while another path is usable; it is kept ready */
    XL_STATUS_AVAILABLE = 2, /* use it */
} xl_path_status;

/* The player's state as the QoE control signal carries it (paper section 5.2.1). */
typedef struct {
    uint64_t cached_bytes;
    uint64_t cached_frames;
    uint64_t bps; /* bit rate of the video, bits per second */
    uint64_t fps; /* frames per second */
} xl_qoe;

typedef enum {
    XL_ACK_ORIGINAL = 0, /* ACK_MP returns on the path that it acknowledges */
    XL_ACK_FASTEST = 1,  /* ACK_MP returns on the live path with the smallest RTT (paper section 5.3) */
} xl_ack_path;

/* How the player's signal travels to the server. */
typedef enum {
    XL_QOE_OFF = 0,
    XL_QOE_IN_ACK = 1,     /* in ACK_MP (paper section 5.2.1) */
    XL_QOE_IN_SIGNALS = 2, /* in QOE_CONTROL_SIGNALS frames, whether or not there is anything to acknowledge */
    XL_QOE_IN_BOTH = 3,
} xl_qoe_carrier;

/* A random key for a run that must repeat: the same key for the same seed and role ("server", "client"); two endpoints
 * of one run need keys of their own. It is known to whoever knows the seed, so it is of no use against an adversary:
 * an endpoint on a real network has its key from the system (xl_udp_random_key()). 0 or XL_ERR_CRYPTO. */
int xl_random_key_from_seed(uint64_t seed, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES]);

/* TLS credentials, shared by endpoints, freed after them. PEM text in memory, never files. */
typedef struct xl_credentials xl_credentials;
xl_credentials *xl_credentials_server(const char *cert_pem, const char *key_pem);
/* A self-signed Ed25519 certificate for `name`, made in memory; its private key and serial follow from random_key,
 * which may be that of an endpoint, validity from not_before_s (Unix seconds) and ten years. */
xl_credentials *xl_credentials_self_signed(const char *name, const uint8_t random_key[XL_RANDOM_KEY_BYTES],
                                           uint64_t not_before_s);
/* A client: verifies against the CA certificates in ca_pem; NULL ca_pem = no verification (a testbed's self-signed
 * server). */
xl_credentials *xl_credentials_client(const char *ca_pem);
void xl_credentials_free(xl_credentials *);

/* Where logs go; every member may be NULL. A qlog is one JSON-SEQ text a connection, handed over in pieces. */
typedef struct {
    void *user;
    /* Returns the sink of a new connection's qlog, NULL for none. odcid: the client's first destination CID, which the
     * client chose: not unique, and perhaps malicious. A server's is asked for when the client's first Handshake packet
     * came; the records until then, 16 KB at most, are in it. */
    void *(*qlog_open)(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len);
    void (*qlog_write)(void *sink, const char *text, size_t len);
    void (*qlog_close)(void *sink);
    /* One NSS key log line without its newline. */
    void (*keylog)(void *user, const char *line);
} xl_log;

/* Automatic management of the paths of a multipath connection. Each end manages for itself: docs/reference/paths.md. 0 takes the
 * default. A path is degraded while
 *
 *     srtt > rtt_percent / 100 * srtt of the best path   and   srtt > srtt of the best path + 50 ms,   or
 *     loss of the last second > loss_percent              and   loss > 2 * loss of the best path
 *
 * Example: with 400 and a best path of 30 ms a path is degraded above 120 ms. */
typedef struct {
    bool enabled;
    unsigned rtt_percent;  /* Standby threshold: smoothed RTT in percent of the best path's. Default: 400. */
    unsigned loss_percent; /* Standby threshold: packets lost in a second, in percent. Default: 10. */
    uint64_t degraded_us;  /* A path stands by after being degraded this long. Default: 1 s. */
    uint64_t recovered_us; /* It is available again after being below 3/4 of the threshold this long; doubled each time.
                            * Default: 2 s. */
    uint64_t abandon_us;   /* Client: a path without an answer for this long is abandoned. Default: 10 s. */
    uint64_t reopen_us;    /* Client: and opened again, with a new path ID, after this long. Default: 1 s. */
} xl_path_management;

/* The algorithms and how they are set: what xl_endpoint_reconfigure() changes. Names are those of the registries; NULL
 * takes the default given here. */
typedef struct {
    bool enable_multipath;   /* offers transport parameter enable_multipath = 1 */
    bool enable_migration;   /* client, single path: moves to another registered path when the current one dies */
    const char *scheduler;   /* "minrtt" */
    const char *reinjection; /* "none"; "stream", … */
    const char *congestion;  /* "cubic" */
    xl_ack_path ack_path;
    bool qoe_control; /* gate re-injection by the double threshold (section 5.2.2); false: always on */
    uint64_t t_th1_us, t_th2_us;
    /* Even while the gate is closed, copy a packet if the copy is expected to arrive at least rescue_gain_us (500 ms)
     * before the original, as long as all re-injected bytes are less than rescue_permille thousandths (20) of the
     * stream bytes sent. */
    bool rescue;
    uint64_t rescue_gain_us;
    unsigned rescue_permille;
    bool reinjection_unconditional; /* copy also what is expected to arrive on its own before the copy would */
    uint8_t max_reinjections;       /* copies of one packet beside the original, each on a path of its own, so one less
                                     * than there are paths at most; 0 = the default of 1 */
    xl_qoe_carrier qoe_carrier;     /* client; default XL_QOE_IN_ACK */
    bool qoe_extrapolation;         /* server: play-time left shrinks between two signals as time passes (true) */
} xl_scheme;

/* Transport parameters, limits, and when paths are given up or changed: they stay for the endpoint's life. 0 takes the
 * default. */
typedef struct {
    uint64_t idle_timeout_us;      /* 30 s */
    uint64_t handshake_timeout_us; /* 10 s: a handshake not complete by then is given up */
    uint64_t max_data;             /* connection flow control window, bytes: 16 MiB */
    uint64_t max_stream_data;      /* stream flow control window, bytes: 6 MiB */
    uint64_t max_streams_bidi;     /* 100 concurrently open */
    uint64_t max_streams_uni;      /* 16 */
    size_t send_buffer_bytes;      /* per stream, not yet acknowledged: 4 MiB */
    size_t connection_send_bytes;  /* memory of the send buffers of all streams of a connection: 16 MiB, or four times
                                    * send_buffer_bytes if that is more */
    size_t endpoint_send_bytes;   /* … of all connections: 256 MiB, or twice a connection's if that is more. A half is
                                    * anybody's; of the other half each of max_connections has its equal part */
    size_t max_udp_payload_bytes; /* 1200; the caller knows the MTU of its links: 1452 for 1500-byte IPv6 */
    size_t max_connections;       /* server: 1024; further clients are refused */
    size_t max_per_client;     /* … connections of one client, see xl_addr_client_bytes(); 0: no limit. At it a client
                                    * has to prove its address by Retry, and is refused if so many were proven */
    size_t retry_above;        /* server: with so many handshakes under way a new client has to prove its address by
                                    * Retry first (RFC 9000 section 8.1.2): 256 */
    bool retry_always;         /* … with any number */
    uint64_t probe_silence_us; /* enable_migration: silence while data is expected before another path is
                                    * probed; 0 = 3 PTO, at most 1 s unless one PTO is longer */
    unsigned migrate_ptos;     /* enable_migration: not by silence, but after so many consecutive PTOs; a PING
                                    * starts them after one PTO of silence; 0 = by silence */
    bool migrate_back;         /* enable_migration: back to the first path when it has answered challenges, one */
    uint64_t migrate_back_us;  /* a second, for so long; else only when the path in use dies */
    xl_path_management path_management;
    uint64_t packets_per_key;  /* protected by one set of keys at most, then the connection closes with
                                * AEAD_LIMIT_REACHED; the keys are updated at half of it. 0 = that of the AEAD (RFC 9001
                                * section 6.6), else at least 64 */
    uint64_t forged_packets;   /* that fail authentication, over the connection's life and all its paths, Initials not
                                * counted, whose keys are public; with one more it closes with AEAD_LIMIT_REACHED.
                                * 0 = that of the AEAD */
    uint64_t standby_probe_us; /* a silent standby path is asked by PING so often while the connection is in use:
                                * 1 s */
} xl_limits;

typedef struct {
    bool is_server;
    const char *alpn; /* "h3" */
    /* 256 bits that nobody can guess, of this endpoint alone: all its random choices follow from them, each purpose
     * from a key of its own. The caller fills them from the system (xl_udp_random_key()), or by
     * xl_random_key_from_seed() where a run must repeat. Zeros are refused: they were forgotten. */
    uint8_t random_key[XL_RANDOM_KEY_BYTES];
    xl_credentials *credentials;
    xl_log log;
    xl_scheme scheme;
    xl_limits limits;

    /* Server: its part in a deployment (xlink/deployment.h), which must outlive the endpoint. NULL: one process that
     * nobody balances, random CIDs, stateless reset tokens that follow from random_key. */
    const struct xl_deployment *deployment;

    /* For simulation only, both ends alike: TLS is real, but packets are not encrypted and carry a tag of the same size
     * that depends on keys, path and packet number, not on what is in them. Sizes and timing stay what they are. */
    bool null_crypto;
} xl_config;

/* Fill in the defaults above. */
void xl_scheme_init(xl_scheme *);
void xl_limits_init(xl_limits *);
void xl_config_init(xl_config *); /* both of them too */

/* The names that xl_scheme.scheduler, reinjection and congestion may have, by number from 0; NULL past the last. */
const char *xl_scheduler_name(size_t i);
const char *xl_reinjection_name(size_t i);
const char *xl_congestion_name(size_t i);

typedef struct xl_endpoint xl_endpoint;
typedef struct xl_connection xl_connection;

/* NULL with *error set on an unknown scheduler, re-injection mode or congestion controller, and without a random_key.
 * The config is copied; the strings it points to are not needed afterwards, the credentials are. */
xl_endpoint *xl_endpoint_new(const xl_config *, uint64_t now, int *error);
/* Changes the algorithms in mid-life. Live connections take over scheduler (its state begins anew), re-injection with
 * its control, and the path of acknowledgements; congestion control and what the handshake negotiates (multipath) are
 * for new connections. 0, or XL_ERR_ARGUMENT (unknown name) or XL_ERR_MEMORY, and then nothing has changed. */
int xl_endpoint_reconfigure(xl_endpoint *, const xl_scheme *, uint64_t now);
void xl_endpoint_free(xl_endpoint *); /* frees its connections, without a word to their peers */

typedef struct {
    xl_addr local, remote;
    uint8_t ecn;    /* of the IP header; the library neither reads it nor asks for a mark: it is 0 in what is sent */
    bool forwarded; /* received by another worker, which passed it on (xlink/deployment.h) */
    size_t len;
} xl_datagram;

/* Takes one UDP datagram. `data` is decrypted in place. Anything malformed is dropped silently. */
void xl_endpoint_receive(xl_endpoint *, const xl_datagram *, uint8_t *data, uint64_t now);
/* Writes the next datagram to send into buf (cap >= max_udp_payload_bytes) and its addresses into *out.
 * Returns its length, 0 when there is nothing to send now. */
size_t xl_endpoint_transmit(xl_endpoint *, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now);
uint64_t xl_endpoint_next_timeout(xl_endpoint *); /* XL_NEVER when no timer runs */
void xl_endpoint_handle_timeout(xl_endpoint *, uint64_t now);

typedef struct {
    size_t connections;        /* now */
    size_t send_bytes;         /* memory of all send buffers, now */
    uint64_t retries;          /* sent */
    uint64_t refused;          /* clients: no room, or their address has too many connections */
    uint64_t stateless_resets; /* sent */
    uint64_t misrouted;        /* datagrams that belong to another worker of the deployment */
    uint64_t forwarded;        /* datagrams that another worker passed on to this one */
} xl_endpoint_stats;

void xl_endpoint_get_stats(const xl_endpoint *, xl_endpoint_stats *);

/* Client. The first path is local -> remote. server_name for SNI, not NULL. */
xl_connection *xl_endpoint_connect(xl_endpoint *, const char *server_name, const xl_addr *local, const xl_addr *remote,
                                   xl_technology, uint64_t now);

typedef enum {
    XL_EVENT_CONNECTED,       /* handshake complete; on a server this is how a new connection appears */
    XL_EVENT_STREAM_READABLE, /* data, or the FIN: read until xl_stream_read() returns 0. New peer streams appear so. */
    XL_EVENT_STREAM_WRITABLE, /* a stream whose send buffer was full has room again */
    XL_EVENT_STREAM_RESET,    /* peer sent RESET_STREAM: error_code */
    XL_EVENT_STREAM_STOPPED,  /* peer sent STOP_SENDING: error_code; the library has reset the stream */
    XL_EVENT_STREAM_DONE,     /* both directions are finished and acknowledged; the id is forgotten */
    XL_EVENT_PATH,            /* path `path` changed to `path_state` */
    XL_EVENT_MIGRATED,        /* the connection moved from path `from_path` to `path` */
    XL_EVENT_CLOSED,          /* the connection is over; free it with xl_connection_free() after the last use */
} xl_event_type;

/* Why a connection is over (RFC 9000 section 10). */
typedef enum {
    XL_CLOSE_LOCAL,             /* xl_connection_close(), or an error of the peer's that this end found: error_code */
    XL_CLOSE_PEER,              /* the peer's CONNECTION_CLOSE: error_code */
    XL_CLOSE_STATELESS_RESET,   /* the peer no longer knows the connection */
    XL_CLOSE_IDLE_TIMEOUT,      /* nothing was received for too long */
    XL_CLOSE_HANDSHAKE_TIMEOUT, /* the handshake was not complete in time */
    XL_CLOSE_VERSION,           /* client: the server does not speak QUIC version 1 */
    XL_CLOSE_INTERNAL,          /* out of memory, or TLS failed: nothing could be sent any more */
} xl_close_reason;

typedef enum {
    XL_PATH_NEW,
    XL_PATH_VALIDATING,
    XL_PATH_ACTIVE,
    XL_PATH_SUSPECT,
    XL_PATH_STANDBY,
    XL_PATH_CLOSED
} xl_path_state;

typedef struct {
    xl_event_type type;
    xl_connection *connection;
    uint64_t stream_id;
    xl_close_reason close_reason; /* CLOSED */
    uint64_t error_code;          /* CLOSED: QUIC or application error code, 0 where there is none */
    bool application_error;
    int path, from_path;
    xl_path_state path_state;
    char reason[96]; /* CLOSED: one phrase for people, perhaps the peer's, printable */
} xl_event;

bool xl_endpoint_poll_event(xl_endpoint *, xl_event *);

void xl_connection_set_user(xl_connection *, void *user);
void *xl_connection_user(const xl_connection *);
/* Sends a PING on each validated path: so that a peer, a NAT or a server that has lost the connection's state is heard
 * of although there is nothing to send. Nothing before the handshake is confirmed. */
void xl_connection_ping(xl_connection *, uint64_t now);
void xl_connection_free(xl_connection *);
/* Starts an application close; XL_EVENT_CLOSED follows after the draining period. */
void xl_connection_close(xl_connection *, uint64_t app_error, const char *reason, uint64_t now);
bool xl_connection_is_multipath(const xl_connection *); /* negotiated by both */
const char *xl_connection_alpn(const xl_connection *);

/* Client: registers a further path, before or after the handshake. With multipath it is opened as soon as the handshake
 * is confirmed and a CID is there; with enable_migration it is a candidate to move to; otherwise never used.
 * Returns its index >= 1 (the index of the events and stats), or XL_ERR_PATH. */
int xl_connection_add_path(xl_connection *, const xl_addr *local, const xl_addr *remote, xl_technology, uint64_t now);
/* Closes a path for good: PATH_STATUS(Abandon). The connection ends with its last path. The same addresses can be
 * registered again: that is a new path, with a new index while there are unused ones, and a new path ID. */
int xl_connection_close_path(xl_connection *, int path, uint64_t now);
/* Either side, with multipath: asks for the path to be abandoned (as above), to stand by, or to be used. A path stands
 * by while at least one side asks for it. On a path that is still being validated the request takes effect with its
 * validation. XL_ERR_PATH: no such path, or it is closed, or multipath was not negotiated. */
int xl_connection_set_path_status(xl_connection *, int path, xl_path_status, uint64_t now);

/* Client: the player's newest state, as often as the player likes. It goes out as xl_scheme.qoe_carrier says: in the
 * next ACK_MP, or, when it differs from what was sent last, in a QOE_CONTROL_SIGNALS frame, one in 50 ms at most. A
 * lost frame is followed by another one unless a newer one is on its way. May be called from within the events'
 * handling. */
void xl_connection_set_qoe(xl_connection *, const xl_qoe *, uint64_t now);

int xl_stream_open(xl_connection *, bool bidirectional, uint64_t *id);
/* Reads in order; also hands back flow control credit. Returns bytes, 0 when there is nothing now, XL_ERR_STREAM_STATE.
 * *fin is set with, or after, the last byte; on an error it is left as it was, so that a loop which reads once more
 * after the end (the stream may be forgotten by then) does not lose it. */
ssize_t xl_stream_read(xl_connection *, uint64_t id, uint8_t *buf, size_t cap, bool *fin);

/* A video frame within a stream (paper section 5.1, stream_send): bytes [position, position + size) of the stream have
 * `priority`, 0 the highest; the rest of the stream has the stream's priority. */
typedef struct {
    uint64_t position, size;
    uint8_t priority;
} xl_frame_mark;

/* Appends to the send buffer; returns how much it took (possibly 0: wait for STREAM_WRITABLE), or XL_ERR_*. `fin` only
 * takes effect when all of len was taken. mark may be NULL; it may be given before its bytes are written. */
ssize_t xl_stream_send(xl_connection *, uint64_t id, const uint8_t *data, size_t len, bool fin,
                       const xl_frame_mark *mark);
/* What xl_stream_send() takes now: what flow control and the congestion windows let go soon, and what the limits of
 * memory leave. No more of `data` is looked at. */
size_t xl_stream_send_capacity(const xl_connection *, uint64_t id);
/* The stream is to have so many bytes in all. Schedulers that weigh what is left to send count what is not written yet.
 */
int xl_stream_expect(xl_connection *, uint64_t id, uint64_t bytes);
/* Stream priority: smaller goes first; equal priorities go in order of stream ID. Default 3 (RFC 9218 urgency). */
int xl_stream_set_priority(xl_connection *, uint64_t id, uint8_t priority);
int xl_stream_reset(xl_connection *, uint64_t id, uint64_t error_code);
int xl_stream_stop(xl_connection *, uint64_t id, uint64_t error_code);

typedef struct {
    int index;
    uint64_t path_id; /* dialect xlink: sequence number of the destination CID */
    xl_path_state state;
    xl_path_status status, peer_status; /* asked by us, by the peer */
    xl_technology technology;
    xl_addr local, remote;
    uint64_t bytes_sent, bytes_received; /* UDP payload */
    uint64_t packets_sent, packets_lost, pto_count;
    uint64_t stream_bytes_sent, reinjected_bytes, retransmitted_bytes;
    uint64_t srtt_us, min_rtt_us, rttvar_us, cwnd_bytes, bytes_in_flight;
} xl_path_stats;

typedef struct {
    uint64_t stream_bytes_sent;   /* new + retransmitted + re-injected */
    uint64_t reinjected_bytes;    /* duplicates of data in flight on another path */
    uint64_t retransmitted_bytes; /* sent again after loss or PTO */
    uint64_t stream_bytes_received;
    uint64_t migrations;
    size_t path_count;
    bool multipath;
    uint64_t datagrams_received, datagrams_dropped;
    uint64_t reinjection_decisions; /* times that a packet to be re-injected was looked for … */
    uint64_t reinjection_steps;     /* … and packets in flight that were looked at in doing so */
} xl_connection_stats;

void xl_connection_get_stats(const xl_connection *, xl_connection_stats *);
int xl_connection_path_stats(const xl_connection *, size_t index, xl_path_stats *);
const char *xl_path_state_name(xl_path_state);

XL_END_DECLS

#endif
