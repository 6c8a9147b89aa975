/* Reads the members of a job's objects by tables of settings (base/settings.h). Errors name the member. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "base/settings.h"

/* settings_read_json() with a sentence without full stop in error[SIM_ERROR_BYTES]. */
bool sim_members_read(const setting_tables *, const json_t *object, const char *where, const char *const *also,
                      char *error);
/* Returns the members of a job, for programs in other languages: quic_settings_describe(), "links" (the rows of a
 * link), "queues" (the disciplines and their options) and "technologies". */
json_t *sim_describe_settings(void);
/* Writes a formatted sentence to error[SIM_ERROR_BYTES]. Returns false. */
#define sim_fail(error, ...) error_set(error, SIM_ERROR_BYTES, __VA_ARGS__)
