#include "emulator/sim/members.h"

#include <stdio.h>
#include <string.h>

#include "emulator/sim/job.h"

bool sim_members_read(const setting_tables *s, const json_t *object, const char *where, const char *const *also,
                      char *error) {
    char sentence[SETTINGS_ERROR_BYTES];
    if (settings_read_json(s, object, where, also, sentence))
        return true;
    const size_t len = strlen(sentence);
    return sim_fail(error, "%.*s", (int)(len > 0 && sentence[len - 1] == '.' ? len - 1 : len), sentence);
}
