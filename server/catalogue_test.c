#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit.h"
#include "video/video.h"
#include "server/catalogue.h"
#include "server/files.h"

static const catalogue_video unknown = {.fps_milli = 30000};

static void ask(catalogue *c, const char *method, const char *target, const char *range, catalogue_response *out) {
    catalogue_respond(c, method, target, range, out);
}

static int status_of(catalogue *c, const char *target) {
    catalogue_response r;
    ask(c, "GET", target, NULL, &r);
    catalogue_body_close(&r.body);
    return r.status;
}

TEST(the_whole_synthetic_video_is_served_without_a_range) {
    catalogue *c = catalogue_new(&unknown, NULL);
    catalogue_response r;
    ask(c, "GET", "/synthetic/1000?x=1", NULL, &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.content_length, 1000);
    assert_string_equal(r.content_range, "");
    assert_true(r.accept_ranges);
    uint8_t buf[300];
    uint64_t at = 0;
    ssize_t n;
    while ((n = catalogue_body_read(&r.body, buf, sizeof buf)) > 0) {
        assert_int_equal(video_synthetic_check(buf, (size_t)n, at), n);
        at += (uint64_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(at, 1000);
    catalogue_body_close(&r.body);
    catalogue_free(c);
}

TEST(ranges_follow_rfc_9110) {
    const struct {
        const char *range;
        int status;
        uint64_t first, length;
        const char *content_range;
    } table[] = {
        {"bytes=0-99", 206, 0, 100, "bytes 0-99/1000"},
        {"bytes=900-", 206, 900, 100, "bytes 900-999/1000"},
        {"bytes=900-5000", 206, 900, 100, "bytes 900-999/1000"},
        {"bytes=-10", 206, 990, 10, "bytes 990-999/1000"},
        {"bytes=-5000", 206, 0, 1000, "bytes 0-999/1000"},
        {"Bytes=999-999", 206, 999, 1, "bytes 999-999/1000"},
        {"bytes=1000-", 416, 0, 0, "bytes */1000"},
        {"bytes=5000-6000", 416, 0, 0, "bytes */1000"},
        {"bytes=-0", 416, 0, 0, "bytes */1000"},
        /* Malformed ranges, other units and lists are ignored. */
        {"bytes=", 200, 0, 1000, ""},
        {"bytes=-", 200, 0, 1000, ""},
        {"bytes=9-5", 200, 0, 1000, ""},
        {"bytes=a-b", 200, 0, 1000, ""},
        {"bytes=0-9,20-29", 200, 0, 1000, ""},
        {"bytes=99999999999999999999-", 200, 0, 1000, ""},
        {"lines=0-9", 200, 0, 1000, ""},
        {"bytes 0-9", 200, 0, 1000, ""},
        {"bytes=--1", 200, 0, 1000, ""},
    };
    catalogue *c = catalogue_new(&unknown, NULL);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        catalogue_response r;
        ask(c, "GET", "/synthetic/1000", table[i].range, &r);
        if (r.status != table[i].status)
            print_error("%s: %d\n", table[i].range, r.status);
        assert_int_equal(r.status, table[i].status);
        assert_int_equal(r.content_length, table[i].length);
        assert_int_equal(catalogue_body_left(&r.body), table[i].length);
        assert_string_equal(r.content_range, table[i].content_range);
        if (table[i].length > 0) {
            uint8_t buf[1000];
            assert_int_equal(r.first, table[i].first);
            assert_int_equal(catalogue_body_read(&r.body, buf, sizeof buf), table[i].length);
            assert_int_equal(video_synthetic_check(buf, table[i].length, table[i].first), table[i].length);
        }
        catalogue_body_close(&r.body);
    }
    catalogue_free(c);
}

TEST(head_has_the_length_but_no_body) {
    catalogue *c = catalogue_new(&unknown, NULL);
    catalogue_response r;
    ask(c, "HEAD", "/synthetic/1000", "bytes=0-9", &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.content_length, 1000);
    assert_int_equal(catalogue_body_left(&r.body), 0);
    catalogue_free(c);
}

TEST(other_methods_and_unknown_resources_are_refused) {
    catalogue *c = catalogue_new(&unknown, NULL);
    catalogue_response r;
    ask(c, "POST", "/synthetic/10", NULL, &r);
    assert_int_equal(r.status, 405);
    assert_true(r.allow);
    assert_int_equal(status_of(c, "/"), 404);
    assert_int_equal(status_of(c, "/synthetic/0"), 404);
    assert_int_equal(status_of(c, "/file"), 404);
    assert_int_equal(status_of(c, "http://a/"), 400);
    assert_int_equal(status_of(c, ""), 400);
    assert_int_equal(status_of(c, "*"), 400);
    assert_int_equal(status_of(c, "/%zz"), 400);
    assert_int_equal(status_of(c, "/%4"), 400);
    assert_int_equal(status_of(c, "/a%00b"), 400);
    char longest[CATALOGUE_MAX_PATH_BYTES + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(status_of(c, longest), 400);
    catalogue_free(c);
}

TEST(the_first_frame_is_where_the_range_meets_it) {
    const catalogue_video model = {.bitrate_bps = 2400000, .fps_milli = 30000}; /* four frames: 40000 bytes */
    catalogue *c = catalogue_new(&model, NULL);
    const struct {
        const char *range;
        uint64_t frame_bytes;
    } table[] = {
        {NULL, 40000},           {"bytes=0-99999", 40000}, {"bytes=0-39999", 40000}, {"bytes=0-9999", 10000},
        {"bytes=30000-", 10000}, {"bytes=39999-", 1},      {"bytes=40000-", 0},
    };
    catalogue_response r;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ask(c, "GET", "/synthetic/1000000", table[i].range, &r);
        assert_int_equal(r.frame_position, 0);
        assert_int_equal(r.frame_bytes, table[i].frame_bytes);
    }
    ask(c, "GET", "/synthetic/1000", NULL, &r);
    assert_int_equal(r.frame_bytes, 1000);
    /* The index takes precedence over the model. */
    char error[200];
    const char *index = "{\"/synthetic/1000000\": [{\"offset\": 0, \"size\": 777}, {\"offset\": 777, \"size\": 1}]}";
    assert_true(catalogue_load_frame_index(c, index, strlen(index), error, sizeof error));
    ask(c, "GET", "/synthetic/1000000", NULL, &r);
    assert_int_equal(r.frame_bytes, 777);
    /* ffprobe's result takes precedence over both, and needs no index. */
    assert_true(catalogue_set_first_frame(c, "/synthetic/1000000", 41419));
    ask(c, "GET", "/synthetic/1000000", "bytes=41000-", &r);
    assert_int_equal(r.frame_position, 0);
    assert_int_equal(r.frame_bytes, 419);
    catalogue_free(c);
    c = catalogue_new(&unknown, NULL);
    ask(c, "GET", "/synthetic/1000000", NULL, &r);
    assert_int_equal(r.frame_bytes, 0);
    catalogue_free(c);
}

TEST(a_wrong_frame_index_is_refused_with_its_place) {
    const struct {
        const char *json, *phrase;
    } table[] = {
        {"", "line 1"},
        {"{\n\"/a\": [\n}", "line 3"},
        {"[]", "an object"},
        {"{\"a\": [{\"offset\": 0, \"size\": 1}]}", "does not begin with '/'"},
        {"{\"/a\": []}", "not a list of frames"},
        {"{\"/a\": {\"offset\": 0}}", "not a list of frames"},
        {"{\"/a\": [1]}", "without an integer offset"},
        {"{\"/a\": [{\"offset\": 0, \"size\": 0}]}", "without an integer offset"},
        {"{\"/a\": [{\"offset\": 0, \"size\": 1.5}]}", "without an integer offset"},
        {"{\"/a\": [{\"offset\": 1, \"size\": 1}]}", "does not begin where"},
        {"{\"/a\": [{\"offset\": 0, \"size\": 5}, {\"offset\": 6, \"size\": 1}]}", "does not begin where"},
        {"{\"/a\": [{\"offset\": 0, \"size\": 5}], \"/a\": []}", "duplicate"},
    };
    catalogue *c = catalogue_new(&unknown, NULL);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char error[200] = "";
        assert_false(catalogue_load_frame_index(c, table[i].json, strlen(table[i].json), error, sizeof error));
        if (!strstr(error, table[i].phrase))
            print_error("row %zu: %s\n", i, error);
        assert_non_null(strstr(error, table[i].phrase));
    }
    catalogue_free(c);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

TEST(files_are_served_from_below_the_root_only) {
    char dir[] = "/tmp/catalogue-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    const char *const made[] = {"secret", "root/a b.mp4", "root/sub/inner", "root/link", "root/out", "root/empty"};
    snprintf(path, sizeof path, "%s/root", dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/root/sub", dir);
    mkdir(path, 0755);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        write_file(path, made[i]);
    }
    snprintf(path, sizeof path, "%s/%s", dir, made[5]);
    write_file(path, "");
    snprintf(path, sizeof path, "%s/root/link", dir);
    assert_int_equal(symlink("sub/inner", path), 0);
    snprintf(path, sizeof path, "%s/root/out", dir);
    assert_int_equal(symlink("../secret", path), 0);

    server_files files;
    snprintf(path, sizeof path, "%s/root", dir);
    assert_true(server_files_open(&files, path));
    catalogue_files table = server_files_table(&files);
    catalogue *c = catalogue_new(&unknown, &table);
    catalogue_response r;
    uint8_t buf[64];
    ask(c, "GET", "/a%20b.mp4", "bytes=5-", &r);
    assert_int_equal(r.status, 206);
    assert_string_equal(r.content_range, "bytes 5-11/12");
    assert_int_equal(catalogue_body_read(&r.body, buf, sizeof buf), 7);
    assert_memory_equal(buf, "a b.mp4", 7);
    catalogue_body_close(&r.body);
    assert_int_equal(status_of(c, "/link"), 200);
    assert_int_equal(status_of(c, "/empty"), 200);
    const char *const outside[] = {"/out",
                                   "/../secret",
                                   "/sub/../../secret",
                                   "/%2e%2e/secret",
                                   "/sub/%2E./../../secret",
                                   "//secret",
                                   "/sub//inner",
                                   "/sub",
                                   "/",
                                   "/./link",
                                   "/missing",
                                   "/link/x",
                                   "/sub/"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        if (status_of(c, outside[i]) != 404)
            print_error("%s\n", outside[i]);
        assert_int_equal(status_of(c, outside[i]), 404);
    }
    /* No range of an empty file is satisfiable. */
    ask(c, "GET", "/empty", "bytes=0-", &r);
    assert_int_equal(r.status, 416);
    catalogue_body_close(&r.body);
    /* If a file shrinks during a response, reading fails instead of returning wrong bytes. */
    ask(c, "GET", "/link", NULL, &r);
    snprintf(path, sizeof path, "%s/root/sub/inner", dir);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(catalogue_body_read(&r.body, buf, sizeof buf), -1);
    catalogue_body_close(&r.body);

    catalogue_free(c);
    server_files_close(&files);
    for (size_t i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/root/sub", dir);
    rmdir(path);
    snprintf(path, sizeof path, "%s/root", dir);
    rmdir(path);
    rmdir(dir);
}

/* A root folder with a file in it. */
typedef struct {
    char dir[32], file[64], other[64];
    server_files files;
    catalogue_files table;
    catalogue *catalogue;
} served_root;

static void serve_root(served_root *r, const char *text) {
    snprintf(r->dir, sizeof r->dir, "/tmp/catalogue-test-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->file, sizeof r->file, "%s/video", r->dir);
    snprintf(r->other, sizeof r->other, "%s/other", r->dir);
    write_file(r->file, text);
    assert_true(server_files_open(&r->files, r->dir));
    r->table = server_files_table(&r->files);
    r->catalogue = catalogue_new(&unknown, &r->table);
}

static void remove_root(served_root *r) {
    catalogue_free(r->catalogue);
    server_files_close(&r->files);
    unlink(r->file);
    unlink(r->other);
    rmdir(r->dir);
}

static void rewrite(const served_root *r) {
    const struct timespec later[] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    write_file(r->file, "VIDEO");
    assert_int_equal(utimensat(AT_FDCWD, r->file, later, 0), 0);
}

static void replace(const served_root *r) {
    write_file(r->other, "VIDEO");
    assert_int_equal(rename(r->other, r->file), 0);
}

static void take_away(const served_root *r) {
    unlink(r->file);
}

static void grow(const served_root *r) {
    write_file(r->file, "video and more");
}

TEST(a_response_does_not_go_on_with_another_file) {
    static const struct {
        void (*change)(const served_root *);
        ssize_t read;
    } table[] = {{rewrite, -1}, {replace, -1}, {take_away, -1}, {grow, 5}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        served_root r;
        catalogue_response a, b;
        uint8_t buf[16];
        serve_root(&r, "video");
        ask(r.catalogue, "GET", "/video", NULL, &a);
        assert_int_equal(a.status, 200);
        table[i].change(&r);
        assert_int_equal(catalogue_body_read(&a.body, buf, sizeof buf), table[i].read);
        /* A new request gets the current file. */
        if (table[i].change != take_away) {
            ask(r.catalogue, "GET", "/video", NULL, &b);
            assert_int_equal(b.status, 200);
            assert_int_equal(catalogue_body_read(&b.body, buf, sizeof buf), b.resource_bytes);
            catalogue_body_close(&b.body);
        }
        catalogue_body_close(&a.body);
        remove_root(&r);
    }
}

static size_t count_descriptors(void) {
    size_t n = 0;
    DIR *all = opendir("/proc/self/fd");
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

TEST(responses_that_nobody_reads_hold_no_descriptor) {
    enum { RESPONSES = 3000 };
    served_root r;
    catalogue_response *a = calloc(RESPONSES, sizeof *a);
    uint8_t byte;
    serve_root(&r, "video");
    const size_t before = count_descriptors();
    for (size_t i = 0; i < RESPONSES; i++) {
        ask(r.catalogue, "GET", "/video", "bytes=1-", &a[i]);
        assert_int_equal(a[i].status, 206);
    }
    assert_int_equal(count_descriptors(), before);
    for (size_t i = 0; i < RESPONSES; i++) {
        assert_int_equal(catalogue_body_read(&a[i].body, &byte, 1), 1);
        assert_int_equal(byte, 'i');
    }
    assert_true(count_descriptors() <= before + SERVER_FILES_KEPT_OPEN);
    for (size_t i = 0; i < RESPONSES; i++)
        catalogue_body_close(&a[i].body);
    assert_int_equal(count_descriptors(), before);
    free(a);
    remove_root(&r);
}

TEST(without_a_descriptor_left_the_spare_one_serves) {
    served_root r;
    struct rlimit was;
    catalogue_response a;
    uint8_t buf[16];
    serve_root(&r, "video");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    int next = dup(0);
    close(next);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 2; i++) {
        ask(r.catalogue, "GET", "/video", NULL, &a);
        assert_int_equal(a.status, 200);
        assert_int_equal(catalogue_body_read(&a.body, buf, sizeof buf), 5);
        catalogue_body_close(&a.body);
        assert_int_equal(status_of(r.catalogue, "/missing"), 404);
    }
    /* The spare descriptor is gone too. */
    close(r.files.spare);
    int taken = dup(0);
    r.files.spare = -1;
    ask(r.catalogue, "GET", "/video", NULL, &a);
    assert_int_equal(a.status, 503);
    assert_true(a.retry_after);
    catalogue_body_close(&a.body);
    close(taken);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    remove_root(&r);
}

TEST_MAIN(NULL, NULL)
