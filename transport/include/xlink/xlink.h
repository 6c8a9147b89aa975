/* libxlink: multipath QUIC (RFC 9000, 9001, 9002; multipath dialect `xlink`) with XLINK's QoE-driven re-injection.
 *
 * The library is sans-IO: its own code reads no clock, no socket, no file and no random device.
 *
 * - Time is the argument `now`: microseconds on any monotonic clock of the caller.
 * - Datagrams come in through xl_endpoint_receive() and go out through xl_endpoint_transmit().
 * - Connection IDs, challenges, tokens, packet-number skips and their keys are derived from xl_config.random_key.
 *
 * GnuTLS is the exception. It draws the random values and key shares of TLS from its own generator, which the system
 * seeds, and it reads the time of day when it checks a certificate.
 *
 * A driver's loop is:
 *
 *     receive datagrams -> xl_endpoint_receive()
 *     now >= xl_endpoint_next_timeout() -> xl_endpoint_handle_timeout()
 *     while (xl_endpoint_poll_event()) act, which may write to streams
 *     while (xl_endpoint_transmit() > 0) send the datagram
 *     sleep until xl_endpoint_next_timeout() or a datagram
 *
 * Nothing here is thread safe: one thread owns an endpoint and its connections. Functions that return int return 0 or
 * a negative xl_error. */
#ifndef XLINK_XLINK_H
#define XLINK_XLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "xlink/export.h"

XL_BEGIN_DECLS

/* Version of the headers: major.minor.patch. While the major version is 0, a new minor version may change the
 * interface. */
#define XL_VERSION "0.2.0"
/* Version of the library that the program is linked with at run time, in the same form. */
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
    XL_ERR_STREAM_STATE = -4, /* no such stream, or the call is not allowed in its state */
    XL_ERR_CLOSED = -5,       /* the connection is closing or closed */
    XL_ERR_PATH = -6,         /* no such path, or the limit of paths is reached */
    XL_ERR_CRYPTO = -7,       /* TLS or packet protection failed */
    XL_ERR_QUEUE = -8,        /* a queue is full: try again later */
} xl_error;

/* An IP address and UDP port. */
typedef struct {
    uint8_t family; /* 4, 6, or 0 for an unset address */
    uint8_t ip[16]; /* network byte order; IPv4 uses the first 4 bytes */
    uint16_t port;  /* host byte order */
} xl_addr;

bool xl_addr_equal(const xl_addr *a, const xl_addr *b);
bool xl_addr_same_host(const xl_addr *a, const xl_addr *b); /* compares IP addresses, not ports */
/* Number of leading bytes of `ip` that identify one client: the whole address for IPv4 and IPv4-mapped IPv6
 * (::ffff:0:0/96), 8 bytes (a /64) for other IPv6 addresses. */
size_t xl_addr_client_bytes(const xl_addr *);
bool xl_addr_same_client(const xl_addr *a, const xl_addr *b);
/* Writes "192.0.2.1:443" or "[2001:db8::1]:443" into buf, which has at least 64 bytes. Returns buf. */
const char *xl_addr_format(const xl_addr *addr, char *buf, size_t cap);

/* Radio technology of a path. The path with the smallest value is the primary path (paper section 5.3). */
typedef enum {
    XL_TECH_5G_SA = 0,
    XL_TECH_5G_NSA = 1,
    XL_TECH_WIFI = 2,
    XL_TECH_LTE = 3,
    XL_TECH_UNKNOWN = 4
} xl_technology;

/* Status of a path that one side requests with PATH_STATUS. */
typedef enum {
    XL_STATUS_ABANDON = 0,   /* close the path for good */
    XL_STATUS_STANDBY = 1,   /* keep the path, but send no data on it while another path is usable */
    XL_STATUS_AVAILABLE = 2, /* use the path */
} xl_path_status;

/* The player's state as the QoE control signal carries it (paper section 5.2.1). */
typedef struct {
    uint64_t cached_bytes;  /* buffered and not yet played */
    uint64_t cached_frames; /* buffered and not yet played */
    uint64_t bps;           /* bit rate of the video, bits per second */
    uint64_t fps;           /* frames per second */
} xl_qoe;

/* How multipath is spoken. A client offers both, a server chooses one. */
typedef enum {
    XL_DIALECT_XLINK = 0, /* draft-liu-multipath-quic, with the QoE field of the XLINK paper in ACK_MP */
    XL_DIALECT_IETF = 1,  /* RFC 10069 */
} xl_dialect;

/* Versions of QUIC. */
typedef enum {
    XL_VERSIONS_1 = 0, /* version 1 (RFC 9000) */
    XL_VERSIONS_2,     /* version 2 (RFC 9369) */
    /* Both, by compatible version negotiation (RFC 9368): a client begins with version 1, or with that of the session
     * which it resumes, and offers both; a server chooses version 2 where it is offered. */
    XL_VERSIONS_BOTH,
} xl_versions;

typedef enum {
    XL_ACK_ORIGINAL = 0, /* ACK_MP is sent on the path that it acknowledges */
    XL_ACK_FASTEST = 1,  /* ACK_MP is sent on the live path with the smallest RTT (paper section 5.3) */
} xl_ack_path;

/* The frame that carries the player's QoE signal to the server. */
typedef enum {
    XL_QOE_OFF = 0,        /* none */
    XL_QOE_IN_ACK = 1,     /* ACK_MP (paper section 5.2.1) */
    XL_QOE_IN_SIGNALS = 2, /* QOE_CONTROL_SIGNALS, which can be sent when there is nothing to acknowledge */
    XL_QOE_IN_BOTH = 3,
} xl_qoe_carrier;

/* Derives a random key from a seed, for runs that must be repeatable. The same seed and role ("server", "client") give
 * the same key. Two endpoints of one run need different roles. Anybody who knows the seed can compute the key, so an
 * endpoint on a real network must use xl_udp_random_key() instead. Returns 0 or XL_ERR_CRYPTO. */
int xl_random_key_from_seed(uint64_t seed, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES]);

/* TLS credentials. Endpoints may share them; free them after the endpoints. Arguments are PEM text, not file names. */
typedef struct xl_credentials xl_credentials;
xl_credentials *xl_credentials_server(const char *cert_pem, const char *key_pem);
/* Makes a self-signed P-256 certificate for `name`, which every peer accepts. The private key comes from the TLS
 * library's random numbers, the serial number from random_key, which may be an endpoint's random_key. The certificate
 * is valid for ten years from not_before_s (Unix seconds). */
xl_credentials *xl_credentials_self_signed_p256(const char *name, const uint8_t random_key[XL_RANDOM_KEY_BYTES],
                                                uint64_t not_before_s);
/* The same with an Ed25519 key that is derived from random_key too. The same arguments give the same bytes, and all
 * certificates for one name have one length: for runs that must repeat. Browsers and some stacks refuse Ed25519. */
xl_credentials *xl_credentials_self_signed(const char *name, const uint8_t random_key[XL_RANDOM_KEY_BYTES],
                                           uint64_t not_before_s);
/* Credentials of a client, which verifies servers against the CA certificates in ca_pem. NULL: the client verifies
 * nothing, for the self-signed servers of a testbed. */
xl_credentials *xl_credentials_client(const char *ca_pem);
/* Sessions that a client can resume (RFC 8446 section 2.2). The caller stores one for each server name. A session holds
 * secrets; its format is private to the library. */
#define XL_SESSION_MAX_BYTES 16384
typedef struct {
    void *user;
    /* Stores a session with this server and replaces an older one. */
    void (*save)(void *user, const char *server_name, const uint8_t *session, size_t len);
    /* Copies the session with this server. Returns its length, or 0 if there is none. cap is XL_SESSION_MAX_BYTES. */
    size_t (*load)(void *user, const char *server_name, uint8_t *session, size_t cap);
} xl_sessions;

/* Client: saves and resumes sessions. Neither function may be NULL. Credentials that verify servers resume no session
 * whose server was not verified, or by other CA certificates. Returns 0 or XL_ERR_ARGUMENT. Default: nothing is
 * resumed. */
int xl_credentials_keep_sessions(xl_credentials *, const xl_sessions *);
/* Server: sends a session ticket after each handshake. The keys that protect tickets are derived from this key and the
 * time of day; servers that share it resume each other's sessions. Returns 0 or XL_ERR_ARGUMENT. Default: no
 * tickets. */
#define XL_TICKET_KEY_BYTES 64
int xl_credentials_issue_tickets(xl_credentials *, const uint8_t key[XL_TICKET_KEY_BYTES]);

/* 0-RTT (RFC 9001 section 4.6). A client whose session allows it sends what is written to streams before the handshake
 * is complete in its first packets (XL_EVENT_EARLY). Such data can be replayed to another server by anybody who
 * recorded it: write only requests that may be carried out twice. A server accepts it with tickets that it issued
 * itself, each once, 4096 of the newest; these credentials must then be used by one thread. Needs
 * xl_credentials_keep_sessions() or xl_credentials_issue_tickets(). 0, XL_ERR_ARGUMENT or XL_ERR_MEMORY. Default: no
 * 0-RTT. */
int xl_credentials_allow_early_data(xl_credentials *);
/* Sets the function that returns the time of day in nanoseconds, which gives the age of a session: libxlink reads no
 * clock. It holds for the process; call it before credentials are made. Default: none, and no 0-RTT is sent. */
void xl_set_time_of_day(uint64_t (*ns)(void));

/* Sets the cipher suites that are offered or accepted: a comma-separated list of aes128, aes256 and chacha20, the
 * preferred one first. Call it before the credentials are used. Returns 0, XL_ERR_ARGUMENT or XL_ERR_CRYPTO. Default:
 * all three. */
int xl_credentials_set_ciphers(xl_credentials *, const char *names);
void xl_credentials_free(xl_credentials *); /* accepts NULL */

/* Log callbacks. Every member may be NULL. The qlog of a connection is one JSON-SEQ text, written in pieces. */
typedef struct {
    void *user;
    /* Returns the sink of a new connection's qlog, or NULL for no qlog. odcid is the client's first destination CID.
     * The client chooses it, so it may be a duplicate or malicious. On a server the call comes with the client's first
     * Handshake packet; up to 16 KB of earlier records are kept and written then. */
    void *(*qlog_open)(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len);
    void (*qlog_write)(void *sink, const char *text, size_t len);
    void (*qlog_close)(void *sink);
    /* Receives one line of the NSS key log, without its newline. */
    void (*keylog)(void *user, const char *line);
} xl_log;

/* Automatic management of the paths of a multipath connection (docs/reference/paths.md). Each endpoint decides for
 * itself. 0 selects a member's default. A path is degraded while
 *
 *     srtt > rtt_percent / 100 * srtt of the best path   and   srtt > srtt of the best path + 50 ms,   or
 *     loss of the last second > loss_percent              and   loss > 2 * loss of the best path
 *
 * Example: with rtt_percent = 400 and a best path of 30 ms, a path is degraded above 120 ms. */
typedef struct {
    bool enabled;
    unsigned rtt_percent;  /* Standby threshold: smoothed RTT in percent of the best path's. Default: 400. */
    unsigned loss_percent; /* Standby threshold: packets lost in a second, in percent. Default: 10. */
    uint64_t degraded_us;  /* A path is put on standby when it has been degraded for this long. Default: 1 s. */
    uint64_t recovered_us; /* A standby path becomes available when it has been below 3/4 of the threshold for this
                            * long. The time doubles with each return. Default: 2 s. */
    uint64_t abandon_us;   /* Client: a path without an answer for this long is abandoned. Default: 10 s. */
    uint64_t reopen_us;    /* Client: an abandoned path is opened again, with a new path ID, after this long.
                            * Default: 1 s. */
} xl_path_management;

/* The algorithms and their settings: what xl_endpoint_reconfigure() may change. NULL selects a name's default. */
typedef struct {
    bool enable_multipath;    /* Offer multipath, in both dialects. Default: false. */
    xl_dialect dialect;       /* Server: the dialect chosen where a client offers both. Default: XL_DIALECT_XLINK. */
    bool enable_migration;    /* Client, single path: move to another registered path when the current path fails.
                              * Default: false. */
    const char *scheduler;    /* A name of xl_scheduler_name(). Default: "minrtt". */
    const char *reinjection;  /* A name of xl_reinjection_name(). Default: "none". */
    const char *cc;           /* A name of xl_cc_name(). Default: "cubic-tolerant". */
    xl_ack_path ack_path;     /* Path of ACK_MP. Default: XL_ACK_ORIGINAL. */
    bool qoe_control;         /* Gate re-injection by the double threshold (paper section 5.2.2). false: the gate is
                              * always open. Default: false. */
    uint64_t t_th1_us;        /* The gate is open while play-time left is below this. Default: 500 ms. */
    uint64_t t_th2_us;        /* The gate is closed while play-time left is above this. Default: 2 s. */
    bool rescue;              /* Even while the gate is closed, copy a packet if the copy is expected to arrive well
                              * before the original; and copy streams of at most 512 bytes at once. Default: false. */
    uint64_t rescue_gain_us;  /* A rescue copy must be expected earlier than the original by this time, plus the price
                               * of all bytes that are still to be copied. Default: 50 ms. */
    unsigned rescue_permille; /* Budget of rescue copies. With share = 32,000 bytes + rescue_permille / 1000 * stream
                               * bytes sent, and n = (bytes re-injected + bytes still to be copied) / share, a byte's
                               * price is 5^n µs; no rescue copies if n > 3. Default: 15. */
    bool reinjection_unconditional; /* Copy also packets whose original is expected to arrive before the copy.
                                     * Default: false. */
    uint8_t max_reinjections;       /* Copies of one packet beside the original, each on a different path, so at most
                                     * the number of paths minus 1. 0 selects the default of 1. */
    xl_qoe_carrier qoe_carrier;     /* Client: frame of the QoE signal. Default: XL_QOE_IN_ACK. */
    bool suspect;                   /* Multipath: a path with two PTOs in a row becomes suspect while another one is
                                     * healthy; false: a path is used until it is closed. Default: true. */
    bool qoe_extrapolation;         /* Server: subtract the time since the signal arrived from play-time left.
                                     * Default: true. */
} xl_scheme;

/* Transport parameters, limits, and the rules of migration and path management. They stay the same for the life of the
 * endpoint. 0 selects a member's default. Flow control windows end at 2^62 - 1, numbers of streams at 2^60 (RFC 9000
 * section 4.6). */
typedef struct {
    uint64_t idle_timeout_us;      /* Default: 30 s. */
    uint64_t handshake_timeout_us; /* A handshake that is not confirmed by then fails. Default: 30 s. */
    uint64_t confirm_timeout_us;   /* Client: a handshake also fails if it is not confirmed this long after the server's
                                    * first packet. Default: 10 s. */
    uint64_t max_data;             /* Flow control window of a connection, bytes. Default: 16 MiB. */
    uint64_t max_stream_data;      /* Flow control window of a stream, bytes. Default: 6 MiB. */
    uint64_t most_data;            /* Maximum of max_data, which doubles when half of the window is read in less than
                                    * two RTTs. */
    uint64_t most_stream_data;     /* The same for max_stream_data. Defaults: four times a window that is itself at its
                                    * default (64 and 24 MiB); any other window does not grow. */
    uint64_t max_streams_bidi;     /* Bidirectional streams that the peer may have open. Default: 100. */
    uint64_t max_streams_uni;      /* Unidirectional streams that the peer may have open. Default: 16. */
    uint64_t pacing_burst_us;      /* A path may send at once the bytes of this time at its pacing rate: at least ten
                                    * packets, and at most 65,507 bytes unless ten packets are more. Fewer and larger
                                    * bursts cost less processor time. Default: 0, ten packets. */
    size_t send_buffer_bytes;      /* Unacknowledged data of one stream. Default: 4 MiB. */
    size_t most_send_bytes;        /* Maximum of send_buffer_bytes, which grows to twice the sum of the congestion
                                    * windows. Default: 8 MiB if send_buffer_bytes is at its default, else it does not
                                    * grow. */
    size_t connection_send_bytes;  /* Memory for the send buffers of one connection's streams. Default: 16 MiB, or
                                    * 4 * send_buffer_bytes if that is more. */
    size_t endpoint_send_bytes;    /* Memory for the send buffers of all connections. One half is shared; the other half
                                    * is divided equally among max_connections. Default: 256 MiB, or
                                    * 2 * connection_send_bytes if that is more. */
    size_t max_udp_payload_bytes;  /* Largest datagram to send. 1452 fits IPv6 packets of 1500 bytes. Default: 1200. */
    bool enable_ecn;               /* Send packets as ECT(0) on each path that passes validation (RFC 9000 section
                                    * 13.4). Marks of the peer's packets are always reported. Default: false. */
    size_t path_mtu_bytes;         /* UDP payload that every path is known to carry, at least 1200. Each path is
                                    * probed for larger sizes, up to max_udp_payload_bytes (RFC 8899). Default: 1200. */
    size_t max_connections;        /* Server: further clients are refused. Default: 1024. */
    size_t max_per_client;         /* Server: connections of one client (xl_addr_client_bytes()). A client at the limit
                                    * must validate its address by Retry. It is refused if that many of its connections
                                    * are validated. Default: 0, no limit. */
    size_t retry_above;            /* Server: with this many handshakes in progress, a new client must first validate
                                    * its address by Retry (RFC 9000 section 8.1.2). Default: 256. */
    bool retry_always;             /* Server: every new client must do so. Default: false. */
    uint64_t probe_silence_us;     /* Migration: silence, while data is expected, after which another path is probed.
                                    * Default: 3 PTO, at most 1 s unless one PTO is longer. */
    unsigned migrate_ptos;         /* Migration: probe after this many consecutive PTOs instead. A PING after one PTO of
                                    * silence starts them. Default: 0, use probe_silence_us. */
    bool migrate_back;             /* Migration: return to the first path when it works again. false: only when the
                                    * current path fails. Default: false. */
    uint64_t migrate_back_us;      /* Migration: return after the first path has answered challenges, one a second, for
                                    * this long. */
    xl_path_management path_management;
    uint64_t packets_per_key; /* Packets that one set of keys may protect. Keys are updated at half of it; at the limit
                                * the connection closes with AEAD_LIMIT_REACHED. At least 64. Default: the AEAD's limit
                                * (RFC 9001 section 6.6). */
    uint64_t forged_packets;  /* Packets that may fail authentication, counted over all paths and the connection's
                                * life, without Initial packets, whose keys are public. One more closes the connection
                                * with AEAD_LIMIT_REACHED. Default: the AEAD's limit. */
    size_t max_datagram_frame_bytes; /* DATAGRAM frames (RFC 9221) of up to this size are accepted. Default: 0, none. */
    size_t datagram_queue_bytes;     /* Memory for datagrams that wait to be sent, and as much for those that wait to be
                                      * read. Default: 64 KiB. */
    bool enable_ack_frequency;       /* Obey ACK_FREQUENCY and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency).
                                      * Default: false. */
    xl_versions versions;            /* Default: XL_VERSIONS_1. */
    bool issue_tokens;         /* Server: after the handshake send a token that spares the client's next handshake the
                                * validation of its address (NEW_TOKEN, RFC 9000 section 8.1.3). Default: false. */
    bool grease;               /* Send reserved transport parameters, and a random QUIC bit if the peer accepts it (RFC
                                * 9287). Default: false. */
    bool spin_bit;             /* Show the RTT to the network (RFC 9000 section 17.4), except on one connection in 16.
                                * Default: false. */
    uint64_t standby_probe_us; /* Interval of PINGs on a silent standby path while the connection is in use.
                                * Default: 1 s. */
} xl_limits;

typedef struct {
    bool is_server;
    const char *alpn; /* One name, or up to 8 separated by commas. The server chooses the first of its own that the
                       * client offers: xl_connection_alpn(). Default: "h3". */
    /* 256 secret bits of this endpoint alone. Each purpose (connection IDs, challenges, …) has its own key, derived
     * from them. Fill them by xl_udp_random_key(), or by xl_random_key_from_seed() if a run must be repeatable. All
     * zeros are refused, because they mean that the caller forgot to fill them. */
    uint8_t random_key[XL_RANDOM_KEY_BYTES];
    bool random_packet_numbers; /* The first packet number of each space is random, below 2^14, instead of 0, so that a
                                 * peer that acknowledges packets which it has not received is detected (RFC 9000
                                 * section 21.4). Default: false. */
    xl_credentials *credentials;
    xl_log log;
    xl_scheme scheme;
    xl_limits limits;

    /* Server: the time of day, in µs since 1970, at which `now` is 0. It dates address tokens. With a clock that starts
     * again with the machine, old tokens would look new, and recent ones would lie in the future. Default: 0, which is
     * enough if the secret does not outlive the clock. */
    uint64_t epoch_us;

    /* Server: addresses that it also listens on and to which clients shall move after the handshake (RFC 9000 section
     * 9.6), one for each IP version. Family 0: none. */
    xl_addr preferred_address_v4, preferred_address_v6;

    /* Server: its part in a deployment (xlink/deployment.h), which must outlive the endpoint. NULL: a single process
     * without a load balancer. Its CIDs are random, and its stateless reset tokens are derived from random_key. */
    const struct xl_deployment *deployment;

    /* For simulation only; both endpoints must agree. TLS is real, but packets are not encrypted: they carry a tag of
     * the same size, which depends on the keys, the path and the packet number, and not on the content. Sizes and
     * timing do not change. */
    bool null_crypto;
} xl_config;

/* Set all members to their defaults. */
void xl_scheme_init(xl_scheme *);
void xl_limits_init(xl_limits *);
void xl_config_init(xl_config *); /* includes scheme and limits */

/* The registered names for xl_scheme.scheduler, reinjection and cc. i counts from 0; NULL after the last. */
const char *xl_scheduler_name(size_t i);
/* Whether the scheduler is a reference for simulations. Endpoints refuse it, because it must know what the network will
 * do. */
bool xl_scheduler_is_reference(const char *name);
const char *xl_reinjection_name(size_t i);
const char *xl_cc_name(size_t i);

typedef struct xl_endpoint xl_endpoint;
typedef struct xl_connection xl_connection;

/* Returns NULL and sets *error if a name is unknown, random_key is zero, credentials is NULL or of the other role, a
 * limit is out of range, alpn is no list of names, or the scheduler is a reference for simulations. The config and its
 * strings are copied. The credentials, the log's functions and the deployment must outlive the endpoint. */
xl_endpoint *xl_endpoint_new(const xl_config *, uint64_t now, int *error);
/* Changes the algorithms of a running endpoint. Live connections change the scheduler, whose state is reset,
 * re-injection and its control, and the path of acknowledgements. Congestion control and multipath, which is negotiated
 * in the handshake, change for new connections only. Returns 0, or XL_ERR_ARGUMENT for an unknown name; then nothing
 * changes. */
int xl_endpoint_reconfigure(xl_endpoint *, const xl_scheme *, uint64_t now);
void xl_endpoint_free(xl_endpoint *); /* frees its connections too; sends nothing to their peers; accepts NULL */

typedef struct {
    xl_addr local, remote;
    uint8_t ecn;       /* ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE. */
    bool forwarded;    /* another worker received it and passed it on (xlink/deployment.h) */
    bool is_mtu_probe; /* to be sent on its own: the path may not carry it */
    size_t len;
} xl_datagram;

/* Processes one UDP datagram. `data` is decrypted in place. Malformed datagrams are dropped silently. */
void xl_endpoint_receive(xl_endpoint *, const xl_datagram *, uint8_t *data, uint64_t now);
/* Writes the next datagram to send into buf (cap >= max_udp_payload_bytes) and its addresses into *out. Returns its
 * length, or 0 if there is nothing to send now. */
size_t xl_endpoint_transmit(xl_endpoint *, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now);
/* The kernel refused this datagram, which came from xl_endpoint_transmit(), because it is too large (EMSGSIZE). */
void xl_endpoint_too_large(xl_endpoint *, const xl_datagram *, uint64_t now);
/* The time at which xl_endpoint_handle_timeout() must be called, or XL_NEVER if no timer runs. */
uint64_t xl_endpoint_next_timeout(xl_endpoint *);
void xl_endpoint_handle_timeout(xl_endpoint *, uint64_t now); /* does nothing before that time */

typedef struct {
    size_t connections;        /* current number */
    size_t send_bytes;         /* current memory of all send buffers */
    uint64_t retries;          /* Retry packets sent */
    uint64_t refused;          /* clients refused: the server is full, or their address has too many connections */
    uint64_t stateless_resets; /* sent */
    uint64_t misrouted;        /* datagrams received that belong to another worker of the deployment */
    uint64_t forwarded;        /* datagrams that another worker passed on to this one */
} xl_endpoint_stats;

void xl_endpoint_get_stats(const xl_endpoint *, xl_endpoint_stats *);

/* Client: starts a connection. The first path is local -> remote. server_name is sent as SNI and must not be NULL. The
 * endpoint owns the connection until xl_connection_free(). NULL: the endpoint is a server, an address is unset, they
 * are of two IP versions, TLS refuses the name, or memory is short. */
xl_connection *xl_endpoint_connect(xl_endpoint *, const char *server_name, const xl_addr *local, const xl_addr *remote,
                                   xl_technology, uint64_t now);

typedef enum {
    XL_EVENT_CONNECTED, /* The handshake is complete. A server learns of a new connection by this event. */
    XL_EVENT_EARLY,     /* 0-RTT. Client: streams may be opened and written before the handshake is complete; data that
                         * the server rejects is sent again after the handshake. Server: 0-RTT data arrived and may be
                         * answered; XL_EVENT_CONNECTED or XL_EVENT_CLOSED follows. */
    XL_EVENT_STREAM_READABLE, /* Data or FIN arrived: read until xl_stream_read() returns less than it may. A new stream
                               * of the peer is announced by this event. */
    XL_EVENT_STREAM_WRITABLE, /* A stream whose send buffer was full has room again. */
    XL_EVENT_STREAM_RESET,    /* The peer sent RESET_STREAM with error_code. */
    XL_EVENT_STREAM_STOPPED,  /* The peer sent STOP_SENDING with error_code. The library has reset the stream. */
    XL_EVENT_STREAM_DONE,     /* Both directions are finished and acknowledged. The stream ID is no longer valid. */
    XL_EVENT_PATH,            /* The state of `path` changed to path_state. */
    XL_EVENT_MIGRATED,        /* The connection moved from from_path to `path`. */
    XL_EVENT_DATAGRAM,        /* DATAGRAM frames arrived: read until xl_connection_read_datagram() returns false. */
    XL_EVENT_DATAGRAM_ACKED,  /* The packet with the datagram datagram_id was acknowledged. */
    XL_EVENT_DATAGRAM_LOST,   /* The packet with the datagram datagram_id was declared lost. It is not sent again. */
    XL_EVENT_CLOSED,          /* The connection has ended. Free it with xl_connection_free() after the last use. */
} xl_event_type;

/* Why a connection ended (RFC 9000 section 10). */
typedef enum {
    XL_CLOSE_LOCAL,             /* xl_connection_close(), or a protocol error of the peer; see error_code */
    XL_CLOSE_PEER,              /* CONNECTION_CLOSE from the peer; see error_code */
    XL_CLOSE_STATELESS_RESET,   /* the peer has lost the connection's state */
    XL_CLOSE_IDLE_TIMEOUT,      /* nothing was received within the idle timeout */
    XL_CLOSE_HANDSHAKE_TIMEOUT, /* the handshake was not confirmed in time */
    XL_CLOSE_VERSION,           /* client: the server does not support QUIC version 1 */
    XL_CLOSE_INTERNAL,          /* out of memory, or TLS failed; nothing more can be sent */
} xl_close_reason;

typedef enum {
    XL_PATH_NEW,        /* registered, not yet opened */
    XL_PATH_VALIDATING, /* PATH_CHALLENGE sent, no answer yet */
    XL_PATH_ACTIVE,     /* validated, carries data */
    XL_PATH_SUSPECT,    /* two consecutive PTOs: no data until it answers a PING */
    XL_PATH_STANDBY,    /* one side asked for standby: no data while another path is usable */
    XL_PATH_CLOSED      /* abandoned, by either side, or failed */
} xl_path_state;

/* An event. The members below `connection` are set only for the event types that their comments name. */
typedef struct {
    xl_event_type type;
    xl_connection *connection;    /* every event */
    uint64_t stream_id;           /* EARLY: none; STREAM_*: the stream */
    xl_close_reason close_reason; /* CLOSED */
    uint64_t error_code; /* CLOSED, STREAM_RESET, STREAM_STOPPED: QUIC or application error code, 0 if there is none */
    bool application_error;   /* CLOSED: error_code is the application's */
    uint64_t datagram_id;     /* DATAGRAM_ACKED, DATAGRAM_LOST: of xl_connection_send_datagram() */
    int path, from_path;      /* PATH, MIGRATED: path indices */
    xl_path_state path_state; /* PATH */
    char reason[96];          /* CLOSED: a printable phrase, which may come from the peer */
} xl_event;

bool xl_endpoint_poll_event(xl_endpoint *, xl_event *);

void xl_connection_set_user(xl_connection *, void *user);
void *xl_connection_user(const xl_connection *);
/* Sends a PING on each validated path. It keeps NAT bindings alive and detects a peer that has lost the connection's
 * state. Does nothing before the handshake is confirmed. */
void xl_connection_ping(xl_connection *, uint64_t now);
/* Frees memory that a busy connection needs, if nothing is in flight. Forgets sent packets that only acknowledge. For
 * connections that have been silent for seconds. */
void xl_connection_rest(xl_connection *);
void xl_connection_free(xl_connection *); /* accepts NULL */
/* Starts an application close; XL_EVENT_CLOSED follows after the draining period. Codes end at 2^62 - 1; a larger
 * app_error is sent as that. reason may be NULL. */
void xl_connection_close(xl_connection *, uint64_t app_error, const char *reason, uint64_t now);
/* A random number of this connection. The application derives reserved values of its own protocol from it, which the
 * peer must ignore (RFC 9114 section 7.2.8). 0: xl_limits.grease is off. */
uint64_t xl_connection_grease(const xl_connection *);
/* Whether the connection has a qlog. */
bool xl_connection_has_qlog(const xl_connection *);
/* Writes an event of the application into the connection's qlog: its name with the namespace, "http3:frame_parsed", and
 * its data, a JSON object. Nothing is written without a qlog, or if data is longer than 15 KB. */
void xl_connection_log(const xl_connection *, const char *name, const char *data, uint64_t now);
/* Whether the handshake resumed an earlier session: no certificate was sent. */
bool xl_connection_is_resumed(const xl_connection *);
/* Client: whether 0-RTT data was sent and accepted. Server: whether it accepted 0-RTT data. */
bool xl_connection_is_early_accepted(const xl_connection *);
/* Client: stores up to 1024 bytes of the application with the session, and returns those of the resumed session (NULL:
 * none). HTTP/3 stores the server's settings (RFC 9114 section 7.2.4.2). */
void xl_connection_remember(xl_connection *, const uint8_t *, size_t len);
const uint8_t *xl_connection_remembered(const xl_connection *, size_t *len);
uint32_t xl_connection_quic_version(const xl_connection *); /* 1, or 0x6b3343cf (version 2) */
bool xl_connection_is_multipath(const xl_connection *);     /* whether both sides negotiated multipath */
xl_dialect xl_connection_dialect(const xl_connection *);    /* of a multipath connection: the one negotiated */
/* Whether the handshake is confirmed: the peer has completed it too (RFC 9001 section 4.1.2). */
bool xl_connection_is_confirmed(const xl_connection *);
const char *xl_connection_alpn(const xl_connection *);

/* Client, dialect `ietf`: the path continues from another local address, under its path ID and with another connection
 * ID (RFC 10069 section 5.1). XL_ERR_PATH: no such path is usable, the handshake is not confirmed, the server forbids
 * it (disable_active_migration, for paths to the address of the handshake), or has issued no spare connection ID. */
int xl_connection_move_path(xl_connection *, int path, const xl_addr *local, uint64_t now);
/* Client: registers another path, before or after the handshake. With multipath the path is opened as soon as the
 * handshake is confirmed and a CID is available. With enable_migration it is a candidate for migration. Otherwise it is
 * never used. Returns its index (>= 1), which events and statistics use, XL_ERR_PATH, or XL_ERR_ARGUMENT: an address is
 * unset, or they are of two IP versions. */
int xl_connection_add_path(xl_connection *, const xl_addr *local, const xl_addr *remote, xl_technology, uint64_t now);
/* Closes a path for good and sends PATH_STATUS(Abandon). The connection ends with its last path. The same addresses may
 * be registered again as a new path. It has a new path ID, and a new index while unused indices are left. A server,
 * dialect `xlink`: a path that is being validated closes with the validation; before, the client cannot be told. */
int xl_connection_close_path(xl_connection *, int path, uint64_t now);
/* Either side, with multipath: requests that a path be abandoned (as above), put on standby, or used. A path is on
 * standby while at least one side requests it. A request for a path that is being validated takes effect with the
 * validation. XL_ERR_PATH: the path does not exist or is closed, or multipath was not negotiated. XL_ERR_ARGUMENT: no
 * such status. */
int xl_connection_set_path_status(xl_connection *, int path, xl_path_status, uint64_t now);

/* Client: sets the player's current state. It may be called at any rate, and while an event is handled. The state is
 * sent as xl_scheme.qoe_carrier says: in the next ACK_MP, or in a QOE_CONTROL_SIGNALS frame. Such a frame is sent when
 * the state has changed, at most every 50 ms. A lost frame is sent again unless a newer one is in flight. */
void xl_connection_set_qoe(xl_connection *, const xl_qoe *, uint64_t now);

/* Opens a stream. XL_ERR_STREAM_LIMIT: the peer allows no further one now, or none before XL_EVENT_CONNECTED or
 * XL_EVENT_EARLY. XL_ERR_CLOSED, XL_ERR_MEMORY. */
int xl_stream_open(xl_connection *, bool bidirectional, uint64_t *id);
/* Reads the next bytes of the stream and returns their flow control credit to the peer. Returns the number of bytes, 0
 * if there are none now, or XL_ERR_STREAM_STATE. *fin becomes true with the last byte or after it. An error leaves *fin
 * unchanged, so a loop that reads once more after the end, when the stream may be gone, does not lose it. */
ssize_t xl_stream_read(xl_connection *, uint64_t id, uint8_t *buf, size_t cap, bool *fin);

/* A video frame within a stream (paper section 5.1, stream_send). Bytes [position, position + size) of the stream have
 * `priority`, where 0 is the highest. The other bytes have the stream's priority. A frame goes before all streams of a
 * lower priority, and bytes of its own stream that lie before it go with it. The scheduler "redundant" takes streams
 * whole. size 0: no frame. */
typedef struct {
    uint64_t position, size;
    uint8_t priority;
} xl_frame_mark;

/* Appends data to the send buffer. Returns the number of bytes taken, or XL_ERR_*. If it is less than len, wait for
 * XL_EVENT_STREAM_WRITABLE and send the rest. `fin` takes effect only if all of len was taken. mark may be NULL. It may
 * be given before its bytes are written. */
ssize_t xl_stream_send(xl_connection *, uint64_t id, const uint8_t *data, size_t len, bool fin,
                       const xl_frame_mark *mark);
/* The same without a copy. xl_stream_reserve() sets *at to where the next bytes belong in the send buffer, and returns
 * how many of `len` fit there: fewer than there is room for where the buffer wraps. xl_stream_commit() says how many
 * were written; call nothing else for the connection in between. If xl_stream_reserve() returns 0, there is no room:
 * wait for XL_EVENT_STREAM_WRITABLE. XL_ERR_ARGUMENT: more bytes than were reserved; nothing is taken. */
ssize_t xl_stream_reserve(xl_connection *, uint64_t id, size_t len, uint8_t **at);
int xl_stream_commit(xl_connection *, uint64_t id, size_t len, bool fin, const xl_frame_mark *mark);
/* The number of bytes that xl_stream_send() would take now: what flow control and the congestion windows allow to be
 * sent soon, and what the memory limits leave. xl_stream_send() does not read `data` beyond it. */
size_t xl_stream_send_capacity(const xl_connection *, uint64_t id);
/* Announces the total length of the stream. Schedulers that weigh the data left to send then count bytes that are not
 * yet written. */
int xl_stream_expect(xl_connection *, uint64_t id, uint64_t bytes);
/* Priority of a stream. Streams with smaller values are sent first, streams of equal priority in order of stream ID.
 * Default: 3 (RFC 9218 urgency). */
int xl_stream_set_priority(xl_connection *, uint64_t id, uint8_t priority);
/* Gives up the sending (RESET_STREAM) or the receiving direction (STOP_SENDING) of a stream; what waits in it is
 * dropped. XL_ERR_ARGUMENT: an error_code above 2^62 - 1. */
int xl_stream_reset(xl_connection *, uint64_t id, uint64_t error_code);
int xl_stream_stop(xl_connection *, uint64_t id, uint64_t error_code);

/* Sends `data` in a DATAGRAM frame (RFC 9221), on a path that the scheduler chooses: at most once, in any order with
 * streams, within the congestion window. `id` comes back in XL_EVENT_DATAGRAM_ACKED or XL_EVENT_DATAGRAM_LOST, one of
 * them for each datagram unless the connection ends before. XL_ERR_ARGUMENT: longer than
 * xl_connection_datagram_capacity(), or the peer takes none. XL_ERR_QUEUE: xl_limits.datagram_queue_bytes are used. */
int xl_connection_send_datagram(xl_connection *, const uint8_t *data, size_t len, uint64_t id, uint64_t now);
/* The most bytes that a datagram may have now: what the peer accepts and every path carries. 0: none. It may fall with
 * a path's MTU; a datagram that waits and has become too long is lost. */
size_t xl_connection_datagram_capacity(const xl_connection *);
/* Takes the next datagram that arrived. *len is its length; what exceeds cap is cut off. false: there is none. */
bool xl_connection_read_datagram(xl_connection *, uint8_t *buf, size_t cap, size_t *len);

typedef struct {
    int index;
    uint64_t path_id; /* dialect xlink: sequence number of the destination CID */
    xl_path_state state;
    xl_path_status status, peer_status; /* requested by this side, by the peer */
    xl_technology technology;
    xl_addr local, remote;
    uint64_t bytes_sent, bytes_received; /* UDP payload */
    uint64_t packets_sent, packets_lost, pto_count;
    uint64_t stream_bytes_sent, reinjected_bytes, retransmitted_bytes;
    uint64_t srtt_us, min_rtt_us, rttvar_us, cwnd_bytes, bytes_in_flight;
    uint64_t mtu_bytes; /* UDP payload that packets may have now */
    uint64_t ce_marks;  /* acknowledgements that reported new ECN-CE marks */
} xl_path_stats;

typedef struct {
    uint64_t stream_bytes_sent;   /* new + retransmitted + re-injected */
    uint64_t reinjected_bytes;    /* copies of data in flight on another path */
    uint64_t retransmitted_bytes; /* sent again after loss or PTO */
    uint64_t given_up_bytes;      /* in flight on a path when it was given up (suspect, closed, left by migration);
                                   * sent again, they are among retransmitted_bytes */
    uint64_t stream_bytes_received;
    uint64_t migrations;
    size_t path_count;
    bool multipath;
    uint64_t datagrams_received, datagrams_dropped;
    uint64_t datagram_frames_dropped; /* DATAGRAM frames received while the queue was full */
    uint64_t reinjection_decisions;   /* searches for a packet to re-inject */
    uint64_t reinjection_steps;       /* packets in flight that these searches examined */
} xl_connection_stats;

void xl_connection_get_stats(const xl_connection *, xl_connection_stats *);
int xl_connection_path_stats(const xl_connection *, size_t index, xl_path_stats *);
const char *xl_path_state_name(xl_path_state);

XL_END_DECLS

#endif
