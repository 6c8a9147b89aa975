#include "emulator/mpshell/virtual.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool mp_virtual_become(const mp_options *options, int argc, char **argv, char error[MP_ERROR_SIZE]) {
    char self[PATH_MAX], kernel[PATH_MAX + 16], seed[32];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *here = getcwd(NULL, 0);
    char **words = calloc((size_t)argc + 16, sizeof *words);
    if (length <= 0 || !here || !words) {
        free(here);
        free(words);
        return mp_fail(error, "cannot start vkernel: %s", strerror(errno));
    }
    self[length] = '\0';
    snprintf(kernel, sizeof kernel, "%.*s/vkernel", (int)(strrchr(self, '/') - self), self);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)options->seed);
    char *const before[] = {kernel, "--seed", seed, "--at", here, "--", self};
    size_t count = 0;
    for (size_t k = 0; k < sizeof before / sizeof before[0]; k++)
        words[count++] = before[k];
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], "--virtual") != 0 || &argv[k] >= options->command)
            words[count++] = argv[k];
    execv(kernel, words);
    mp_fail(error, "cannot run %.400s: %s; build it with `make build`", kernel, strerror(errno));
    free(here);
    free(words);
    return false;
}
