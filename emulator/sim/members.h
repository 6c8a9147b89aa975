/* Reading the members of a job's objects by their tables of settings (base/settings.h); errors name the member. */
#ifndef RAILYARD_SIM_MEMBERS_H
#define RAILYARD_SIM_MEMBERS_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "base/settings.h"

/* settings_read_json() with a sentence in error[SIM_ERROR_BYTES] that has no full stop. */
bool sim_members_read(const setting_tables *, const json_t *object, const char *where, const char *const *also,
                      char *error);
/* What a job takes, for programs in other languages: quic_settings_describe(), and "links": the rows of a link,
 * "queues": the disciplines and their options, "technologies". */
json_t *sim_describe_settings(void);
/* False always, with a formatted sentence in error[SIM_ERROR_BYTES]. */
#define sim_fail(error, ...) error_set(error, SIM_ERROR_BYTES, __VA_ARGS__)

#endif
