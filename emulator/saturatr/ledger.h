/* The packets that arrived: a compact record of each, and the content of the next acknowledgement.
 *
 * Records are differences in variable-length numbers (some 7 bytes each), in blocks. The same bytes are sent from the
 * server to the client at the end of the session. The store's limit bounds the memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAT_BLOCK_BYTES  65536u
#define SAT_ACK_EVERY_US 1000u
#define SAT_MAX_IP_BYTES 65535u
#define SAT_RECORD_BYTES 40u /* maximum of an encoded record */

typedef enum { SAT_KIND_DATA = 0, SAT_KIND_ACK = 1, SAT_KIND_PROBE = 2 } sat_kind;

typedef struct {
    uint64_t received_us; /* receiver's clock */
    uint64_t sent_us;     /* sender's clock */
    uint64_t seq;
    uint32_t ip_bytes;
    uint8_t kind; /* sat_kind */
} sat_arrival;

typedef struct sat_block {
    struct sat_block *next;
    size_t used;
    uint8_t data[SAT_BLOCK_BYTES]; /* whole records */
} sat_block;

typedef struct {
    sat_block *first, *last;
    sat_arrival before; /* the last record, to which the next one is relative */
    uint64_t count;
    uint64_t bytes;
    uint64_t blocks;
    uint64_t limit_bytes; /* of all blocks; 0 = no limit */
    bool full;            /* a record had no room: the recording is incomplete from then on */
} sat_records;

void sat_records_init(sat_records *records, uint64_t limit_bytes);
void sat_records_free(sat_records *records);
/* False: there is no room. */
bool sat_records_append(sat_records *records, const sat_arrival *arrival);

/* Adds a block for `used` bytes of records that were made elsewhere (used <= SAT_BLOCK_BYTES); the caller fills it.
 * NULL: there is no room. */
uint8_t *sat_records_block(sat_records *records, size_t used);

typedef struct {
    const sat_block *block;
    size_t at;
    sat_arrival before;
} sat_cursor;

void sat_cursor_init(sat_cursor *cursor, const sat_records *records);
/* Reads the next record. False at the end, or if it is malformed. */
bool sat_cursor_next(sat_cursor *cursor, sat_arrival *arrival);

/* The receiving end of one direction of one path. */
typedef struct {
    sat_records records;
    uint64_t received; /* data packets */
    uint64_t highest;  /* sequence number; valid if received > 0 */
    uint64_t disordered;
    uint64_t echo_us, echo_received_us; /* times of the packet that the next acknowledgement answers */
    uint64_t acked_us;                  /* when the last acknowledgement was sent */
    bool ack_pending;
    uint64_t least_delay_us; /* received - sent, by two clocks: only differences are meaningful */
    uint64_t delay_us;       /* of the last data packet */
} sat_ledger;

void sat_ledger_init(sat_ledger *ledger, uint64_t limit_bytes);
void sat_ledger_free(sat_ledger *ledger);
/* Records a packet that came over the path. */
void sat_ledger_add(sat_ledger *ledger, const sat_arrival *arrival);
/* Returns when an acknowledgement is due (at most one per ms); UINT64_MAX: none is. */
uint64_t sat_ledger_ack_due(const sat_ledger *ledger);
void sat_ledger_acked(sat_ledger *ledger, uint64_t now);
/* Returns the number of data packets missing below the highest one. */
uint64_t sat_ledger_lost(const sat_ledger *ledger);
/* Whether the link's queue is full: at least 50 ms of it, or more than one packet lost per 50 received so far. */
bool sat_ledger_saturated(const sat_ledger *ledger);
/* Returns how long the last data packet queued: its delay minus the least one, in us. */
uint64_t sat_ledger_queue_us(const sat_ledger *ledger);
