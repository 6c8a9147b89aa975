#include "base/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)1024 * 1024)

char *text_file_read(const char *file, char *error, size_t error_cap) {
    FILE *f = fopen(file, "re");
    char *text = f ? malloc(MAX_BYTES + 1) : NULL;
    size_t len = text ? fread(text, 1, MAX_BYTES + 1, f) : 0;
    if (!text || ferror(f) || len > MAX_BYTES) {
        snprintf(error, error_cap, "cannot read %s: %s", file,
                 len > MAX_BYTES ? "it has more than a mebibyte" : strerror(errno));
        free(text);
        text = NULL;
    } else {
        text[len] = '\0';
    }
    if (f)
        fclose(f);
    return text;
}
