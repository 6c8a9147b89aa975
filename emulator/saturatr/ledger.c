#include "emulator/saturatr/ledger.h"

#include <stdlib.h>
#include <string.h>

#define SATURATED_US  50000u
#define OVERFLOW_LOSS 50u /* reciprocal of the share */
#define KIND_BITS     2u
#define KIND_MASK     3u

static size_t put(uint8_t *out, uint64_t value) {
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static size_t get(const uint8_t *data, size_t length, uint64_t *value) {
    *value = 0;
    for (size_t n = 0; n < length && n < 10; n++) {
        *value |= (uint64_t)(data[n] & 0x7f) << (7 * n);
        if (data[n] < 0x80)
            return n + 1;
    }
    return 0;
}

/* Differences may be negative: 0, -1, 1, -2 become 0, 1, 2, 3. Wraps, so that every pair of values has a difference. */
static uint64_t fold(uint64_t from, uint64_t to) {
    uint64_t difference = to - from;
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold(uint64_t from, uint64_t folded) {
    return from + (folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0));
}

static uint64_t delay_of(const sat_arrival *arrival) {
    return arrival->received_us - arrival->sent_us;
}

/* Encodes a record relative to the one before, which is zero for the first. Returns the bytes used. */
static size_t encode(const sat_arrival *arrival, const sat_arrival *before, uint8_t out[SAT_RECORD_BYTES]) {
    size_t n = put(out, fold(before->received_us, arrival->received_us));
    n += put(out + n, fold(delay_of(before), delay_of(arrival)));
    n += put(out + n, fold(before->seq + 1, arrival->seq));
    return n + put(out + n, (uint64_t)arrival->ip_bytes << KIND_BITS | arrival->kind);
}

/* Decodes a record. Returns the bytes used; 0 if the data hold no complete record. */
static size_t decode(sat_arrival *arrival, const sat_arrival *before, const uint8_t *data, size_t length) {
    uint64_t values[4];
    size_t at = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t n = get(data + at, length - at, &values[i]);
        if (n == 0)
            return 0;
        at += n;
    }
    arrival->received_us = unfold(before->received_us, values[0]);
    arrival->sent_us = arrival->received_us - unfold(delay_of(before), values[1]);
    arrival->seq = unfold(before->seq + 1, values[2]);
    arrival->kind = (uint8_t)(values[3] & KIND_MASK);
    if (values[3] >> KIND_BITS > SAT_MAX_IP_BYTES || arrival->kind > SAT_KIND_PROBE)
        return 0;
    arrival->ip_bytes = (uint32_t)(values[3] >> KIND_BITS);
    return at;
}

void sat_records_init(sat_records *records, uint64_t limit_bytes) {
    memset(records, 0, sizeof *records);
    records->limit_bytes = limit_bytes;
}

void sat_records_free(sat_records *records) {
    for (sat_block *block = records->first; block;) {
        sat_block *next = block->next;
        free(block);
        block = next;
    }
    memset(records, 0, sizeof *records);
}

static bool grow(sat_records *records) {
    if (records->limit_bytes > 0 && (records->blocks + 1) * sizeof(sat_block) > records->limit_bytes)
        return false;
    sat_block *block = malloc(sizeof *block);
    if (!block)
        return false;
    block->next = NULL;
    block->used = 0;
    if (!records->last)
        records->first = block;
    else
        records->last->next = block;
    records->last = block;
    records->blocks++;
    return true;
}

bool sat_records_append(sat_records *records, const sat_arrival *arrival) {
    if (records->full)
        return false;
    if (!records->last || SAT_BLOCK_BYTES - records->last->used < SAT_RECORD_BYTES) {
        if (!grow(records)) {
            records->full = true;
            return false;
        }
    }
    sat_block *block = records->last;
    size_t n = encode(arrival, &records->before, block->data + block->used);
    block->used += n;
    records->bytes += n;
    records->count++;
    records->before = *arrival;
    return true;
}

uint8_t *sat_records_block(sat_records *records, size_t used) {
    if (used > SAT_BLOCK_BYTES || !grow(records))
        return NULL;
    records->last->used = used;
    records->bytes += used;
    return records->last->data;
}

void sat_cursor_init(sat_cursor *cursor, const sat_records *records) {
    memset(cursor, 0, sizeof *cursor);
    cursor->block = records->first;
}

bool sat_cursor_next(sat_cursor *cursor, sat_arrival *arrival) {
    while (cursor->block && cursor->at >= cursor->block->used) {
        cursor->block = cursor->block->next;
        cursor->at = 0;
    }
    if (!cursor->block)
        return false;
    size_t n = decode(arrival, &cursor->before, cursor->block->data + cursor->at, cursor->block->used - cursor->at);
    if (n == 0) {
        cursor->block = NULL;
        return false;
    }
    cursor->at += n;
    cursor->before = *arrival;
    return true;
}

void sat_ledger_init(sat_ledger *ledger, uint64_t limit_bytes) {
    memset(ledger, 0, sizeof *ledger);
    sat_records_init(&ledger->records, limit_bytes);
}

void sat_ledger_free(sat_ledger *ledger) {
    sat_records_free(&ledger->records);
}

void sat_ledger_add(sat_ledger *ledger, const sat_arrival *arrival) {
    sat_records_append(&ledger->records, arrival);
    if (arrival->kind != SAT_KIND_DATA)
        return;
    ledger->disordered += ledger->received > 0 && arrival->seq <= ledger->highest;
    if (ledger->received == 0 || arrival->seq > ledger->highest) {
        ledger->highest = arrival->seq;
        ledger->echo_us = arrival->sent_us;
        ledger->echo_received_us = arrival->received_us;
    }
    ledger->delay_us = delay_of(arrival);
    if (ledger->received == 0 || (int64_t)(ledger->delay_us - ledger->least_delay_us) < 0)
        ledger->least_delay_us = ledger->delay_us;
    ledger->received++;
    ledger->ack_pending = true;
}

uint64_t sat_ledger_ack_due(const sat_ledger *ledger) {
    return ledger->ack_pending ? ledger->acked_us + SAT_ACK_EVERY_US : UINT64_MAX;
}

void sat_ledger_acked(sat_ledger *ledger, uint64_t now) {
    ledger->ack_pending = false;
    ledger->acked_us = now;
}

uint64_t sat_ledger_queue_us(const sat_ledger *ledger) {
    return ledger->delay_us - ledger->least_delay_us;
}

uint64_t sat_ledger_lost(const sat_ledger *ledger) {
    uint64_t expected = ledger->received == 0 ? 0 : ledger->highest + 1;
    return expected > ledger->received ? expected - ledger->received : 0;
}

bool sat_ledger_saturated(const sat_ledger *ledger) {
    return ledger->received > 0 &&
           (sat_ledger_queue_us(ledger) >= SATURATED_US || sat_ledger_lost(ledger) * OVERFLOW_LOSS > ledger->received);
}
