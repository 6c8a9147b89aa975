/* udp-flow: see flow.h. */
#include "base/error.h"
#include "emulator/flow/flow.h"

#include <string.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(const fl_options *options);
    } modes[] = {{"send", fl_send}, {"sink", fl_sink}, {"ping", fl_ping}, {"echo", fl_echo}};
    fl_options options;
    int parsed = fl_options_parse(&options, argc, argv);
    if (parsed != 0)
        return parsed < 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, options.mode) == 0)
            return modes[i].run(&options);
    return error_status("udp-flow", "%s is not one of send, sink, ping, echo; see udp-flow --help", options.mode);
}
