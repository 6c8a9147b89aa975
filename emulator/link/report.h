/* The figures of a link as a JSON object: a direction in the emulator's summary, the same in every arena. */
#pragma once

#include <jansson.h>

#include "emulator/link/link.h"

/* trace: name of the file; may hold any bytes. Counters of rarely used effects (off_losses, duplicates, ...) appear
 * only if they are not 0. */
json_t *link_report(const emulated_link *link, const char *trace, const char *trace_sha256);
/* {"p50", "p99", "max", "over_1ms", "count"}, in us. */
json_t *link_report_lateness(const link_lateness *lateness);
/* A JSON string; bytes that are not UTF-8 become '?'. */
json_t *link_report_text(const char *text);
