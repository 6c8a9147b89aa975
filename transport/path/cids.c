#include "path/cids.h"

#include <string.h>

#include "wire/frame.h"

#define QUEUE_MAX (sizeof((xl_cids *)0)->retire_queue / sizeof(uint64_t))

void xl_cids_init(xl_cids *cids) {
    memset(cids, 0, sizeof *cids);
}

xl_cid_entry *xl_cids_find(xl_cids *cids, const xl_cid *cid) {
    for (size_t i = 0; i < cids->count; i++)
        if (xl_cid_equal(&cids->at[i].cid, cid))
            return &cids->at[i];
    return NULL;
}

xl_cid_entry *xl_cids_by_sequence(xl_cids *cids, uint64_t sequence) {
    for (size_t i = 0; i < cids->count; i++)
        if (cids->at[i].sequence == sequence)
            return &cids->at[i];
    return NULL;
}

/* The caller has checked that there is room. */
static xl_cid_entry *append(xl_cids *cids, uint64_t sequence, const xl_cid *cid, const uint8_t *token) {
    xl_cid_entry *entry = &cids->at[cids->count++];
    cids->unannounced++;
    *entry = (xl_cid_entry){.cid = *cid, .sequence = sequence, .has_token = token != NULL};
    if (token)
        memcpy(entry->reset_token, token, sizeof entry->reset_token);
    return entry;
}

static void erase(xl_cids *cids, xl_cid_entry *entry) {
    size_t after = cids->count - (size_t)(entry - cids->at) - 1;
    cids->unannounced -= !entry->announced;
    memmove(entry, entry + 1, after * sizeof *entry);
    cids->count--;
}

xl_cid_entry *xl_cids_issue(xl_cids *cids, const xl_cid *cid, const uint8_t token[16]) {
    if (cids->count == XL_CIDS_MAX)
        return NULL;
    return append(cids, cids->next_sequence++, cid, token);
}

void xl_cids_note_announced(xl_cids *cids, xl_cid_entry *e) {
    cids->unannounced -= !e->announced;
    e->announced = e->was_sent = true;
}

void xl_cids_note_lost(xl_cids *cids, xl_cid_entry *e) {
    cids->unannounced += e->announced;
    e->announced = false;
}

static bool is_active(const xl_cids *cids, const xl_cid_entry *e) {
    return e->sequence >= cids->retire_prior_to;
}

size_t xl_cids_active(const xl_cids *cids) {
    size_t n = 0;
    for (size_t i = 0; i < cids->count; i++)
        n += is_active(cids, &cids->at[i]);
    return n;
}

bool xl_cids_has_spare(const xl_cids *cids) {
    for (size_t i = 0; i < cids->count; i++)
        if (is_active(cids, &cids->at[i]) && !cids->at[i].in_use)
            return true;
    return false;
}

bool xl_cids_any_was_sent(const xl_cids *cids) {
    for (size_t i = 0; i < cids->count; i++)
        if (cids->at[i].was_sent)
            return true;
    return false;
}

bool xl_cids_ask_back(xl_cids *cids, uint64_t current) {
    uint64_t oldest = current;
    for (size_t i = 0; i < cids->count; i++)
        if (is_active(cids, &cids->at[i]) && cids->at[i].sequence < oldest)
            oldest = cids->at[i].sequence;
    if (oldest == current)
        return false;
    cids->retire_prior_to = oldest + 1;
    return true;
}

uint64_t xl_cids_retired_by_peer(xl_cids *cids, uint64_t sequence, xl_cid *gone, bool *was_present) {
    xl_cid_entry *entry = xl_cids_by_sequence(cids, sequence);
    *was_present = false;
    if (sequence >= cids->next_sequence || (entry && !entry->was_sent))
        return XL_QERR_PROTOCOL_VIOLATION;
    if (!entry)
        return 0;
    *gone = entry->cid;
    *was_present = true;
    erase(cids, entry);
    return 0;
}

static bool was_retired(const xl_cids *cids, uint64_t sequence) {
    size_t known = cids->retired_total < XL_CIDS_RETIRED_MAX ? cids->retired_total : XL_CIDS_RETIRED_MAX;
    for (size_t i = 0; i < known; i++)
        if (cids->retired[i] == sequence)
            return true;
    return false;
}

static void queue_retirement(xl_cids *cids, uint64_t sequence) {
    for (size_t i = 0; i < cids->retire_count; i++)
        if (cids->retire_queue[i] == sequence)
            return;
    if (cids->retire_count < QUEUE_MAX)
        cids->retire_queue[cids->retire_count++] = sequence;
}

static void retire_for_good(xl_cids *cids, uint64_t sequence) {
    cids->retired[cids->retired_total++ % XL_CIDS_RETIRED_MAX] = sequence;
    queue_retirement(cids, sequence);
}

static void retire_below(xl_cids *cids, uint64_t retire_prior_to, bool *in_use_retired) {
    if (retire_prior_to <= cids->retire_prior_to)
        return;
    cids->retire_prior_to = retire_prior_to;
    for (size_t i = 0; i < cids->count;) {
        xl_cid_entry *entry = &cids->at[i];
        if (entry->sequence >= retire_prior_to) {
            i++;
            continue;
        }
        *in_use_retired |= entry->in_use;
        retire_for_good(cids, entry->sequence);
        erase(cids, entry);
    }
}

/* RFC 9000 section 19.15: a sequence number names one CID and token, a CID has one sequence number. */
static bool contradicts(xl_cids *cids, uint64_t sequence, const xl_cid *cid, const uint8_t *token) {
    const xl_cid_entry *same_cid = xl_cids_find(cids, cid);
    const xl_cid_entry *same_sequence = xl_cids_by_sequence(cids, sequence);
    if (same_cid != same_sequence)
        return true;
    return same_cid && same_cid->has_token && token &&
           memcmp(same_cid->reset_token, token, sizeof same_cid->reset_token) != 0;
}

uint64_t xl_cids_learn(xl_cids *cids, uint64_t sequence, uint64_t retire_prior_to, const xl_cid *cid,
                       const uint8_t token[16], size_t limit, bool *in_use_retired) {
    *in_use_retired = false;
    if (retire_prior_to > sequence)
        return XL_QERR_FRAME_ENCODING;
    if (contradicts(cids, sequence, cid, token))
        return XL_QERR_PROTOCOL_VIOLATION;
    if (sequence >= cids->next_sequence)
        cids->next_sequence = sequence + 1;
    bool is_new = !xl_cids_by_sequence(cids, sequence) && !was_retired(cids, sequence);
    /* Every active CID has a place kept in the retire queue, so no retirement can be lost. */
    if (is_new && cids->count + cids->retire_count >= QUEUE_MAX)
        return XL_QERR_CONNECTION_ID_LIMIT;

    retire_below(cids, retire_prior_to, in_use_retired);
    if (!is_new)
        return 0;
    if (sequence < cids->retire_prior_to) {
        retire_for_good(cids, sequence);
        return 0;
    }
    if (cids->count >= limit || cids->count >= XL_CIDS_MAX)
        return XL_QERR_CONNECTION_ID_LIMIT;
    append(cids, sequence, cid, token);
    return 0;
}

xl_cid_entry *xl_cids_take_unused(xl_cids *cids) {
    xl_cid_entry *best = NULL;
    for (size_t i = 0; i < cids->count; i++) {
        xl_cid_entry *entry = &cids->at[i];
        if (!entry->in_use && (!best || entry->sequence < best->sequence))
            best = entry;
    }
    if (best)
        best->in_use = true;
    return best;
}

void xl_cids_retire(xl_cids *cids, uint64_t sequence) {
    xl_cid_entry *entry = xl_cids_by_sequence(cids, sequence);
    if (entry) {
        retire_for_good(cids, sequence);
        erase(cids, entry);
    } else if (was_retired(cids, sequence)) {
        queue_retirement(cids, sequence);
    }
}
