/* Runs a harness with files, or all files of folders, one after the other: to replay the corpora in tests, or to repeat
 * a crash, without clang. Each input is run twice and must have the same result. Exit status: 0; 1: no input; 2: an
 * input cannot be read. A finding ends the program. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/input.h"

#define SECONDS_AN_INPUT 60

static size_t inputs;

static uint64_t run(const uint8_t *data, size_t size) {
    uint8_t *copy = fuzz_copy(data, size);
    fuzz_digest = UINT64_C(0xcbf29ce484222325);
    alarm(SECONDS_AN_INPUT); /* SIGALRM ends a program that makes no progress */
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
    return fuzz_digest;
}

static void replay_file(const char *path) {
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &st) != 0) {
        fprintf(stderr, "replay: %s cannot be read.\n", path);
        exit(2);
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "replay: %s cannot be read.\n", path);
        exit(2);
    }
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last printed input is the one that failed */
    uint64_t first = run(data, size);
    if (first != run(data, size)) {
        fprintf(stderr, "replay: the input does not do the same each time.\n");
        abort();
    }
    free(data);
    inputs++;
}

static int is_input(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void replay(const char *path) {
    struct dirent **names;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        replay_file(path);
        return;
    }
    int count = scandir(path, &names, is_input, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, names[i]->d_name);
        replay_file(name);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%zu inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
