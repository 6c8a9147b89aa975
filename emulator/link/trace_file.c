/* The one file of this folder that touches the file system: reads traces for those who drive the links. */
#include "base/error.h"
#include "base/text_file.h"
#include "emulator/link/trace.h"

#include <errno.h>
#include <string.h>

bool link_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size) {
    *data = file_read_at(path, SIZE_MAX, length);
    return *data || error_set(error, error_size, "%s: cannot read the trace: %s", path, strerror(errno));
}
