#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit.h"
#include "xlink/log_files.h"

static const uint8_t odcid[] = {0xde, 0xad, 0x00, 0x01};

typedef struct {
    char dir[64], error[256];
} place;

static place new_place(void) {
    place p = {.dir = "/tmp/xl_log_files_XXXXXX"};
    assert_non_null(mkdtemp(p.dir));
    umask(022);
    return p;
}

static const char *in(const place *p, const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    return path;
}

static xl_log_files *open_files(place *p, const xl_log_options *o) {
    xl_log_files *files = xl_log_files_open(o, p->error, sizeof p->error);
    assert_non_null(files);
    return files;
}

static void put(const place *p, const char *name, const char *text, mode_t mode) {
    FILE *f = fopen(in(p, name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(in(p, name), mode);
}

static void assert_holds(const place *p, const char *name, const char *text) {
    char found[64] = "";
    FILE *f = fopen(in(p, name), "r");
    assert_non_null(f);
    (void)!fread(found, 1, sizeof found - 1, f);
    fclose(f);
    assert_string_equal(found, text);
}

static mode_t mode_of(const place *p, const char *name) {
    struct stat s;
    assert_int_equal(stat(in(p, name), &s), 0);
    return s.st_mode & 07777;
}

static bool write_qlog(xl_log_files *files, const char *text) {
    xl_log log = xl_log_files_log(files);
    void *sink = log.qlog_open(log.user, true, odcid, sizeof odcid);
    if (!sink)
        return false;
    log.qlog_write(sink, text, strlen(text));
    log.qlog_close(sink);
    return true;
}

static void remove_place(const place *p, const char *const names[]) {
    for (; *names; names++)
        assert_int_equal(unlink(in(p, *names)), 0);
    assert_int_equal(rmdir(p->dir), 0); /* fails if there is another file */
}

TEST(log_files_say_what_they_cannot_write) {
    char error[128] = "", longest[5000];
    assert_null(xl_log_files_open(&(xl_log_options){.qlog_dir = "/proc/no/such/dir"}, error, sizeof error));
    assert_non_null(strstr(error, "/proc/no/such/dir"));
    assert_null(xl_log_files_open(&(xl_log_options){.keylog_file = "/proc/no/such/file"}, error, sizeof error));
    assert_non_null(strstr(error, "/proc/no/such/file"));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(xl_log_files_open(&(xl_log_options){.qlog_dir = longest}, error, sizeof error));
    assert_non_null(strstr(error, "too long"));
}

TEST(a_qlog_is_named_after_the_original_destination_cid) {
    place p = new_place();
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir});
    assert_true(write_qlog(files, "abc"));
    xl_log_files_close(files);
    assert_holds(&p, "dead0001_server.sqlog", "abc");
    assert_int_equal(mode_of(&p, "dead0001_server.sqlog"), 0644);
    remove_place(&p, (const char *const[]){"dead0001_server.sqlog", NULL});
}

TEST(a_qlog_never_replaces_a_file_nor_follows_a_link) {
    place p = new_place();
    char target[128];
    put(&p, "dead0001_server.sqlog", "precious", 0644);
    put(&p, "target", "precious too", 0644);
    snprintf(target, sizeof target, "%s", in(&p, "target"));
    assert_int_equal(symlink(target, in(&p, "dead0001-2_server.sqlog")), 0);
    assert_int_equal(symlink("/nowhere/at/all", in(&p, "dead0001-3_server.sqlog")), 0);
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir});
    assert_true(write_qlog(files, "first"));
    assert_true(write_qlog(files, "second"));
    xl_log_files_close(files);
    assert_holds(&p, "dead0001_server.sqlog", "precious");
    assert_holds(&p, "target", "precious too");
    assert_holds(&p, "dead0001-4_server.sqlog", "first");
    assert_holds(&p, "dead0001-5_server.sqlog", "second");
    remove_place(&p,
                 (const char *const[]){"dead0001_server.sqlog", "dead0001-2_server.sqlog", "dead0001-3_server.sqlog",
                                       "dead0001-4_server.sqlog", "dead0001-5_server.sqlog", "target", NULL});
}

TEST(a_simulation_replaces_its_files_but_not_what_a_link_names) {
    place p = new_place();
    char keys[128], target[128];
    put(&p, "target", "precious", 0644);
    snprintf(target, sizeof target, "%s", in(&p, "target"));
    assert_int_equal(symlink(target, in(&p, "dead0001_server.sqlog")), 0);
    put(&p, "keys", "OLD\n", 0644);
    snprintf(keys, sizeof keys, "%s", in(&p, "keys"));
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir, .keylog_file = keys, .replace = true});
    assert_true(write_qlog(files, "first"));
    assert_true(write_qlog(files, "again"));
    xl_log log = xl_log_files_log(files);
    log.keylog(log.user, "NEW");
    xl_log_files_close(files);
    assert_holds(&p, "dead0001_server.sqlog", "again");
    assert_holds(&p, "target", "precious");
    assert_holds(&p, "keys", "NEW\n");
    remove_place(&p, (const char *const[]){"dead0001_server.sqlog", "target", "keys", NULL});
}

/* The file is opened again for each piece of text, and must then be the same file. */
TEST(a_qlog_whose_file_was_replaced_ends_there) {
    place p = new_place();
    char piece[20000];
    memset(piece, 'q', sizeof piece);
    put(&p, "other", "OTHER", 0600);
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir});
    xl_log log = xl_log_files_log(files);
    void *sink = log.qlog_open(log.user, true, odcid, sizeof odcid);
    assert_non_null(sink);
    char other[128];
    snprintf(other, sizeof other, "%s", in(&p, "other"));
    assert_int_equal(rename(other, in(&p, "dead0001_server.sqlog")), 0);
    log.qlog_write(sink, piece, sizeof piece);
    log.qlog_close(sink);
    xl_log_files_close(files);
    assert_holds(&p, "dead0001_server.sqlog", "OTHER");
    remove_place(&p, (const char *const[]){"dead0001_server.sqlog", NULL});
}

TEST(a_qlog_has_all_that_was_written_in_order) {
    enum { LINES = 4000 };
    place p = new_place();
    char line[32];
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir});
    xl_log log = xl_log_files_log(files);
    void *sink = log.qlog_open(log.user, true, odcid, sizeof odcid);
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        log.qlog_write(sink, line, strlen(line));
    }
    log.qlog_close(sink);
    xl_log_files_close(files);
    FILE *f = fopen(in(&p, "dead0001_server.sqlog"), "r");
    for (int i = 0, number; i < LINES; i++)
        assert_true(fscanf(f, "line %d\n", &number) == 1 && number == i);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    remove_place(&p, (const char *const[]){"dead0001_server.sqlog", NULL});
}

TEST(the_number_of_qlogs_has_a_limit) {
    place p = new_place();
    xl_log_files *files = open_files(&p, &(xl_log_options){.qlog_dir = p.dir, .qlog_files = 2});
    assert_true(write_qlog(files, "1"));
    assert_true(write_qlog(files, "2"));
    assert_int_equal(xl_log_files_left_out(files), 0);
    assert_false(write_qlog(files, "3"));
    assert_false(write_qlog(files, "4"));
    assert_int_equal(xl_log_files_left_out(files), 2);
    xl_log_files_close(files);
    remove_place(&p, (const char *const[]){"dead0001_server.sqlog", "dead0001-2_server.sqlog", NULL});
}

TEST(a_key_log_is_its_owners_alone_also_one_that_was_there) {
    place p = new_place();
    char keys[128];
    snprintf(keys, sizeof keys, "%s", in(&p, "keys"));
    for (int i = 0; i < 2; i++) {
        umask(i == 0 ? 0 : 022);
        xl_log_files *files = open_files(&p, &(xl_log_options){.keylog_file = keys});
        assert_int_equal(mode_of(&p, "keys"), 0600);
        xl_log log = xl_log_files_log(files);
        log.keylog(log.user, i == 0 ? "LINE 1" : "LINE 2");
        xl_log_files_close(files);
        chmod(keys, 0664);
    }
    assert_holds(&p, "keys", "LINE 1\nLINE 2\n");
    remove_place(&p, (const char *const[]){"keys", NULL});
}

TEST_MAIN(NULL, NULL)
