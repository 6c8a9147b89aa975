#include "tests/unit.h"
#include "base/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *model, *name;
    uint8_t copies;
    uint64_t wait_us, bytes;
    enum { FIRST, SECOND } order;
    bool control, verify;
    unsigned pair[2];
} sample;

static const char *const orders[] = {"first", "second", NULL};

static const char *model_at(size_t i) {
    static const char *const models[] = {"small", "large"};
    return i < 2 ? models[i] : NULL;
}

static bool read_pair(void *into, const char *text, char *reason, size_t cap) {
    sample *s = into;
    char end;
    if (sscanf(text, "%u:%u%c", &s->pair[0], &s->pair[1], &end) == 2)
        return true;
    snprintf(reason, cap, "takes N:N, not '%s'", text);
    return false;
}

/* The model sets the default of bytes. */
static bool read_model(void *into, const char *text, char *reason, size_t cap) {
    sample *s = into;
    (void)reason, (void)cap;
    s->model = text;
    s->bytes = strcmp(text, "large") == 0 ? 1000 : 10;
    return true;
}

static const setting rows[] = {
    {"model", SETTING_OWN, .read = read_model, .is_base = true, .can_reload = true, .value = "MODEL", .help = "Kind."},
    {"copies", SETTING_WHOLE, SETTING_FIELD(sample, copies), .least = 1, .most = 7, .value = "N", .fallback = "1",
     .can_reload = true, .help = "Copies of one packet, each on a path of its own.", .sides = SETTING_OF_SERVER},
    {"wait_ms", SETTING_DECIMAL, SETTING_FIELD(sample, wait_us), .most = 5000000, .value = "MS",
     .help = "Wait so long."},
    {"bytes", SETTING_WHOLE, SETTING_FIELD(sample, bytes), .most = UINT32_MAX, .scale = 2, .value = "N"},
    {"order", SETTING_CHOICE, SETTING_FIELD(sample, order), .words = orders, .help = "Which goes first.",
     .sides = SETTING_OF_PLAYER},
    {"size", SETTING_WORD, SETTING_FIELD(sample, model), .word_at = model_at},
    {"control", SETTING_SWITCH, SETTING_FIELD(sample, control), .can_reload = true},
    {"verify", SETTING_FLAG, SETTING_FIELD(sample, verify), .help = "Check every byte."},
    {"name", SETTING_TEXT, SETTING_FIELD(sample, name), .value = "NAME"},
    {"pair", SETTING_OWN, .read = read_pair, .value = "N:N"},
    {0},
};

static setting_tables all(sample *s) {
    return (setting_tables){.table = {{rows, s, 0}}, .count = 1};
}

static char error[SETTINGS_ERROR_BYTES];

static bool read_args(sample *s, char *line, int *rest) {
    char *argv[32] = {"program"};
    int argc = 1, unused;
    bool help;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    const setting_tables what = all(s);
    return settings_read_args(&what, argc, argv, &help, rest ? rest : &unused, error);
}

TEST(options_set_members_of_every_kind) {
    sample s = {0};
    char line[] =
        "--copies 3 --wait-ms 1.5 --bytes=21 --order second --size large --control on --verify --name x --pair 1:2";
    assert_true(read_args(&s, line, NULL));
    assert_int_equal(s.copies, 3);
    assert_int_equal(s.wait_us, 1500);
    assert_int_equal(s.bytes, 42);
    assert_int_equal(s.order, SECOND);
    assert_ptr_equal(s.model, model_at(1));
    assert_true(s.control && s.verify);
    assert_string_equal(s.name, "x");
    assert_int_equal(s.pair[1], 2);
}

TEST(a_narrow_member_leaves_its_neighbours_alone) {
    struct {
        uint8_t before, value, after;
    } narrow = {1, 2, 3};
    const setting row = {"n", SETTING_WHOLE, .offset = 1, .size = 1, .most = 9};
    assert_true(setting_read(&row, &narrow, "n", "7", error));
    assert_int_equal(narrow.before + narrow.value + narrow.after, 11);
}

TEST(reading_stops_at_the_first_argument_that_is_no_option) {
    sample s = {0};
    int rest;
    char line[] = "--copies 2 command --copies 9";
    assert_true(read_args(&s, line, &rest));
    assert_int_equal(rest, 3);
    assert_int_equal(s.copies, 2);
}

TEST(options_of_mixed_tables_may_follow_other_arguments) {
    sample s = {0};
    bool help;
    int rest;
    setting_tables what = all(&s);
    what.mixed = true;
    char *argv[] = {"program", "first", "--copies", "2", "second", "--verify", "--", "--copies", NULL};
    assert_true(settings_read_args(&what, 8, argv, &help, &rest, error));
    assert_int_equal(s.copies, 2);
    assert_true(s.verify);
    assert_int_equal(8 - rest, 3);
    assert_string_equal(argv[rest], "first");
    assert_string_equal(argv[rest + 1], "second");
    assert_string_equal(argv[rest + 2], "--copies");
    char *unknown[] = {"program", "first", "--copies", "2", "--nothing", "second", NULL};
    assert_false(settings_read_args(&what, 6, unknown, &help, &rest, error));
    assert_string_equal(error, "unknown option '--nothing'; see --help.");
}

TEST(of_a_setting_given_twice_the_last_value_counts) {
    sample s = {0};
    char line[] = "--copies 4 --copies 2";
    assert_true(read_args(&s, line, NULL));
    assert_int_equal(s.copies, 2);
}

TEST(a_program_may_refuse_options_that_are_given_twice) {
    static const setting repeating[] = {
        {"pair", SETTING_OWN, .read = read_pair, .repeats = true},
        {"copies", SETTING_WHOLE, SETTING_FIELD(sample, copies), .most = 7},
        {"verify", SETTING_FLAG, SETTING_FIELD(sample, verify)},
        {0},
    };
    char *once[] = {"program", "--pair", "1:2", "--copies", "3", "--pair", "3:4", "--verify"};
    char *twice[] = {"program", "--copies", "3", "--verify", "--copies=4"};
    sample s = {0};
    bool help;
    int rest;
    const setting_tables what = {.table = {{repeating, &s, 0}}, .count = 1, .refuse_twice = true};
    assert_true(settings_read_args(&what, 8, once, &help, &rest, error));
    assert_int_equal(s.pair[1], 4);
    assert_false(settings_read_args(&what, 5, twice, &help, &rest, error));
    assert_string_equal(error, "--copies is given twice.");
}

TEST(a_base_is_read_first_wherever_it_stands) {
    sample s = {0};
    char line[] = "--bytes 4 --model large";
    assert_true(read_args(&s, line, NULL));
    assert_int_equal(s.bytes, 8);
}

TEST(wrong_options_are_told_in_one_sentence) {
    static const char *const cases[][2] = {
        {"--copies 8", "--copies takes a whole number from 1 to 7, not '8'."},
        {"--copies -1", "--copies takes a whole number from 1 to 7, not '-1'."},
        {"--wait-ms 0.0001", "--wait-ms takes a number from 0 to 5000 with at most three decimals, not '0.0001'."},
        {"--order third", "--order takes first or second, not 'third'."},
        {"--control true", "--control takes on or off, not 'true'."},
        {"--pair 1", "--pair takes N:N, not '1'."},
        {"--unheard-of", "unknown option '--unheard-of'; see --help."},
        {"--copies", "--copies needs a value; see --help."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample s = {0};
        char line[64];
        snprintf(line, sizeof line, "%s", cases[i][0]);
        assert_false(read_args(&s, line, NULL));
        assert_string_equal(error, cases[i][1]);
    }
}

static bool read_json(sample *s, const char *text) {
    json_error_t unused;
    static const char *const also[] = {"paths", NULL};
    json_t *object = json_loads(text, 0, &unused);
    const setting_tables what = all(s);
    const bool ok = settings_read_json(&what, object, "job.json: ", also, error);
    json_decref(object);
    return ok;
}

TEST(json_members_set_the_same) {
    sample s = {0};
    assert_true(read_json(&s,
                          "{\"bytes\": 4, \"model\": \"large\", \"copies\": null, \"wait_ms\": 0.1, \"control\": true,"
                          "\"verify\": true, \"order\": \"second\", \"paths\": []}"));
    assert_int_equal(s.bytes, 8);
    assert_int_equal(s.wait_us, 100);
    assert_true(s.control && s.verify);
    assert_int_equal(s.order, SECOND);
}

TEST(wrong_members_are_told_with_their_place) {
    static const char *const cases[][2] = {
        {"{\"copies\": 1.5}", "job.json: copies takes a whole number from 1 to 7, not 1.5."},
        {"{\"copies\": \"2\"}", "job.json: copies takes a whole number from 1 to 7, not \"2\"."},
        {"{\"wait_ms\": -1}", "job.json: wait_ms takes a number from 0 to 5000 with at most three decimals, not -1."},
        {"{\"wait-ms\": 1}", "job.json: wait-ms is not a known member."},
        {"{\"verify\": \"on\"}", "job.json: verify takes true or false, not \"on\"."},
        {"{\"name\": \"a\\u0000b\"}", "job.json: name takes a text, not \"a\\u0000b\"."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample s = {0};
        json_error_t unused;
        json_t *object = json_loads(cases[i][0], JSON_ALLOW_NUL, &unused);
        const setting_tables what = all(&s);
        assert_false(settings_read_json(&what, object, "job.json: ", NULL, error));
        assert_string_equal(error, cases[i][1]);
        json_decref(object);
    }
}

static bool read_yaml(sample *s, const char *text, settings_pass pass) {
    char file[] = "/tmp/settings_test.XXXXXX";
    const int fd = mkstemp(file);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    setting_tables what = all(s);
    what.pass = pass;
    const bool ok = settings_read_yaml(&what, file, error);
    char *at = strstr(error, file);
    if (!ok && at) /* the name differs each time */
        memmove(at, at + strlen(file), strlen(at + strlen(file)) + 1);
    unlink(file);
    return ok;
}

TEST(yaml_sets_what_can_be_reloaded) {
    sample s = {0};
    assert_true(read_yaml(&s, "# so it goes\ncopies: 2\nmodel: large\ncontrol: true\n", SETTINGS_ALL));
    assert_int_equal(s.copies, 2);
    assert_int_equal(s.bytes, 1000);
    assert_true(s.control);
    assert_true(read_yaml(&s, "", SETTINGS_ALL));
    assert_true(read_yaml(&s, "model: small\ncopies: 5\n", SETTINGS_BASES));
    assert_int_equal(s.copies, 2);
    assert_int_equal(s.bytes, 10);
}

TEST(wrong_yaml_is_told_with_its_line) {
    static const char *const cases[][2] = {
        {"control: on\ncopies: 9\n", ", line 2: copies takes a whole number from 1 to 7, not '9'."},
        {"wait_ms: 3\n", ", line 1: 'wait_ms' is not a parameter; known are model, copies, control."},
        {"cop: 3\n", ", line 1: 'cop' is not a parameter; did you mean 'copies'?"},
        {"copies = 2\n", ", line 1: this is not YAML of the form 'name: value'; write ':' instead of '='."},
        {"copies: [1]\n", ", line 1: copies takes one text or number."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample s = {0};
        assert_false(read_yaml(&s, cases[i][0], SETTINGS_ALL));
        assert_string_equal(error, cases[i][1]);
    }
}

TEST(yaml_that_lies_too_deep_is_refused_at_once) {
    static char text[1 << 20] = "model: small\ncopies: ";
    for (size_t i = strlen(text); i < sizeof text - 1; i++)
        text[i] = '[';
    sample s = {0};
    assert_false(read_yaml(&s, text, SETTINGS_ALL));
    assert_string_equal(error, ", line 2: lists or mappings lie too deep within each other; at most 100.");
}

TEST(help_lists_the_rows_of_a_side) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    settings_help(out, rows, SETTING_OF_SERVER);
    assert_int_equal(fclose(out), 0);
    assert_non_null(
        strstr(text, "  --copies N                  Copies of one packet, each on a path of its own. Default: 1.\n"));
    assert_non_null(strstr(text, "  --size small|large"));
    assert_non_null(strstr(text, "  --verify                    Check every byte.\n"));
    assert_null(strstr(text, "--order"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 100);
    free(text);
}

TEST(a_description_has_what_python_needs) {
    json_t *rows_described = settings_describe(rows), *copies = json_array_get(rows_described, 1);
    assert_string_equal(json_string_value(json_object_get(copies, "name")), "copies");
    assert_int_equal(json_integer_value(json_object_get(copies, "most")), 7);
    assert_true(json_is_true(json_object_get(copies, "reload")));
    const json_t *words = json_object_get(json_array_get(rows_described, 4), "words");
    assert_string_equal(json_string_value(json_array_get(words, 1)), "second");
    json_decref(rows_described);
}

TEST_MAIN(NULL, NULL)
