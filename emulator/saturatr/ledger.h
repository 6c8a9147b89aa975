/* What arrived: a compact record of every packet, and what the next acknowledgement has to say.
 *
 * Records are kept as differences in variable-length numbers (some 7 bytes each), in blocks; the same bytes travel
 * from the server to the client when the session is over. Memory is bounded by the limit that the store was given. */
#ifndef RAILYARD_SATURATR_LEDGER_H
#define RAILYARD_SATURATR_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAT_BLOCK_BYTES  65536u
#define SAT_ACK_EVERY_US 1000u
#define SAT_MAX_IP_BYTES 65535u
#define SAT_RECORD_BYTES 40u /* one encoded record, at most */

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
    sat_arrival before; /* of the next one */
    uint64_t count;
    uint64_t bytes;
    uint64_t blocks;
    uint64_t limit_bytes; /* of all blocks; 0 = no limit */
    bool full;            /* a record found no room: the recording is incomplete from there on */
} sat_records;

void sat_records_init(sat_records *records, uint64_t limit_bytes);
void sat_records_free(sat_records *records);
/* False when there is no room. */
bool sat_records_append(sat_records *records, const sat_arrival *arrival);

/* Room for a block of used bytes of records that were made elsewhere (used <= SAT_BLOCK_BYTES); the caller fills it.
 * NULL when there is no room. */
uint8_t *sat_records_block(sat_records *records, size_t used);

typedef struct {
    const sat_block *block;
    size_t at;
    sat_arrival before;
} sat_cursor;

void sat_cursor_init(sat_cursor *cursor, const sat_records *records);
/* The next record, false at the end. */
bool sat_cursor_next(sat_cursor *cursor, sat_arrival *arrival);

/* The receiving end of one direction of one path. */
typedef struct {
    sat_records records;
    uint64_t received; /* data packets */
    uint64_t highest;  /* sequence number; only meaningful when received > 0 */
    uint64_t disordered;
    uint64_t echo_us, echo_received_us; /* of the packet that the next acknowledgement answers */
    uint64_t acked_us;                  /* when the last acknowledgement left */
    bool ack_pending;
    uint64_t least_delay_us; /* received - sent: the clocks' difference is in it, so only differences mean anything */
    uint64_t delay_us;       /* of the latest data packet */
} sat_ledger;

void sat_ledger_init(sat_ledger *ledger, uint64_t limit_bytes);
void sat_ledger_free(sat_ledger *ledger);
/* A packet came over the path. */
void sat_ledger_add(sat_ledger *ledger, const sat_arrival *arrival);
/* When an acknowledgement is due (one a ms at most); UINT64_MAX if none is. */
uint64_t sat_ledger_ack_due(const sat_ledger *ledger);
void sat_ledger_acked(sat_ledger *ledger, uint64_t now);
/* Data packets that are missing below the highest one. */
uint64_t sat_ledger_lost(const sat_ledger *ledger);
/* The link's queue is full: 50 ms of it or more, or one that is shorter and drops packets (one in 50 so far). */
bool sat_ledger_saturated(const sat_ledger *ledger);
/* How long the latest data packet queued: its delay beyond the least one, us. */
uint64_t sat_ledger_queue_us(const sat_ledger *ledger);

#endif
