#include "base/printable.h"

void make_printable(char *text) {
    for (char *c = text; *c != '\0'; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
}
