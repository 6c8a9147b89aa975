#include "tests/unit.h"
#include "emulator/kernel/archive.h"
#include "emulator/kernel/look.h"
#include "emulator/kernel/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lists what cpio(1) would: name, size and first bytes, in order. */
TEST(an_archive_is_read_back_by_its_format) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_true(vk_archive_add(file, "dev", 0755, NULL, 0));
    assert_true(vk_archive_add(file, "job", 0644, "hello", 5));
    assert_true(vk_archive_end(file));
    fclose(file);
    static const struct {
        const char *name;
        unsigned mode, size;
    } expected[] = {{"dev", S_IFDIR | 0755, 0}, {"job", S_IFREG | 0644, 5}, {"TRAILER!!!", 0, 0}};
    size_t at = 0;
    for (size_t k = 0; k < 3; k++) {
        unsigned mode = 0, length = 0, name_size = 0;
        assert_true(at % 4 == 0 && at + 110 < size);
        assert_memory_equal(text + at, "070701", 6);
        assert_int_equal(sscanf(text + at + 14, "%8x", &mode), 1);
        assert_int_equal(sscanf(text + at + 54, "%8x", &length), 1);
        assert_int_equal(sscanf(text + at + 94, "%8x", &name_size), 1);
        assert_string_equal(text + at + 110, expected[k].name);
        assert_int_equal(mode & (expected[k].mode ? ~0u : 0), expected[k].mode);
        assert_int_equal(length, expected[k].size);
        assert_int_equal(name_size, strlen(expected[k].name) + 1);
        at = (at + 110 + name_size + 3) / 4 * 4;
        assert_memory_equal(text + at, "hello", length);
        at = (at + length + 3) / 4 * 4;
    }
    assert_int_equal(at, size);
    free(text);
}

TEST(a_job_is_place_environment_and_command) {
    char *environment[] = {"A=1", "", "TMPDIR=/host", "B=", NULL}, *command[] = {"sh", "-c", "", NULL};
    const vk_machine machine = {.at = "/mnt", .environment = environment, .command = command};
    static const char expected[] = "/mnt\0A=1\0B=\0TMPDIR=/run/tmp\0\0sh\0-c\0";
    size_t length = 0;
    char *text = vk_job_text(&machine, &length);
    assert_int_equal(length, sizeof expected);
    assert_memory_equal(text, expected, sizeof expected);
    free(text);
}

uint64_t a_symbol_of_this_program = 0x1122334455667788u;

TEST(a_symbol_is_found_and_read_in_a_running_process) {
    /* Programs with sanitizers are relocated: the symbol's address is then an offset. */
    const uint64_t found = vk_symbol_address("/proc/self/exe", "a_symbol_of_this_program");
    const uint64_t other = vk_symbol_address("/proc/self/exe", "main");
    uint64_t value = 0;
    assert_true(found > 0 && other > 0);
    const uint64_t moved = (uint64_t)(uintptr_t)&a_symbol_of_this_program - found;
    assert_true(vk_virtual_time(getpid(), found + moved, &value));
    assert_true(value == 0x1122334455667788u);
}

TEST(what_is_no_program_has_no_symbols) {
    assert_true(vk_symbol_address("/proc/self/exe", "no_symbol_of_this_name") == 0);
    assert_true(vk_symbol_address("/etc/passwd", "main") == 0);
    assert_true(vk_symbol_address("/no/such/file", "main") == 0);
    assert_true(vk_symbol_address("/", "main") == 0);
}

TEST_MAIN(NULL, NULL)
