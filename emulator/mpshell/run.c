#include "emulator/mpshell/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"

void mp_script_add(mp_script *script, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(script->text + script->used, sizeof script->text - script->used, format, args);
    va_end(args);
    size_t left = sizeof script->text - script->used - 1;
    script->used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
}

/* Makes a memory file for input or output, so that neither side can block the other. */
static int memory_file(const char *text, size_t length) {
    int fd = memfd_create("mpshell", MFD_CLOEXEC);
    if (fd >= 0 && length > 0 && (write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void quote_output(int fd, char *text, size_t size) {
    ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; text[i] != '\0'; i++)
        if (text[i] == '\n')
            text[i] = text[i + 1] == '\0' ? '\0' : ' ';
}

static bool judge(char *const argv[], int status, int output, char error[MP_ERROR_SIZE]) {
    char words[400];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return mp_fail(error, "cannot run \"%s\"; install %s", argv[0],
                       strstr(argv[0], "tables") ? "iptables" : "iproute2");
    }
    quote_output(output, words, sizeof words);
    return mp_fail(error, "\"%s %s\" failed: %s", argv[0], !argv[1] ? "" : argv[1], words);
}

bool mp_run(char *const argv[], const mp_script *input, char error[MP_ERROR_SIZE]) {
    int in = memory_file(!input ? "" : input->text, !input ? 0 : input->used);
    int out = memory_file("", 0);
    bool good = false;
    pid_t pid = in < 0 || out < 0 ? -1 : fork();
    if (pid == 0) {
        if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0) {
        mp_fail(error, "cannot run \"%s\": %s", argv[0], strerror(errno));
    } else {
        int status = 0;
        pid_t waited;
        do {
            waited = waitpid(pid, &status, 0);
        } while (waited < 0 && errno == EINTR);
        good = waited == pid ? judge(argv, status, out, error) : mp_fail(error, "lost \"%s\"", argv[0]);
    }
    descriptor_close(&in);
    descriptor_close(&out);
    return good;
}
