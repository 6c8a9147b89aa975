#include "emulator/mpshell/nat.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/mpshell/run.h"

#define MARK "mpshell-" /* a rule's comment is MARK and the device's name */

typedef struct {
    char *restore; /* programs */
    const char *list;
    const char *forwarding; /* sysctl */
} nat_family;

static const nat_family families[2] = {
    {"iptables-restore", "iptables", "/proc/sys/net/ipv4/ip_forward"},
    {"ip6tables-restore", "ip6tables", "/proc/sys/net/ipv6/conf/all/forwarding"},
};
static const char *const tables[2] = {"nat", "filter"};

static bool restore(const nat_family *family, const mp_script *script, char error[MP_ERROR_SIZE]) {
    char *const argv[] = {family->restore, "-w", "--noflush", NULL};
    return mp_run(argv, script, error);
}

static bool forwards(const nat_family *family) {
    FILE *in = fopen(family->forwarding, "re");
    int value = in ? fgetc(in) : '0';
    if (in)
        fclose(in);
    return value != '0';
}

/* Adds to the script the addition or deletion of all paths' rules. */
static void rules(const mp_shell *shell, bool v6, bool add, mp_script *script) {
    for (size_t t = 0; t < 2; t++) {
        mp_script_add(script, "*%s\n", tables[t]);
        for (size_t k = 0; k < shell->path_count; k++) {
            const mp_path *path = &shell->paths[k];
            const char *name = path->ends.outside_name;
            if (t == 0) {
                mp_script_add(script, "%s POSTROUTING -s %s ! -o %s -m comment --comment " MARK "%s -j MASQUERADE\n",
                              add ? "-A" : "-D", v6 ? path->ends.inside_address6 : path->ends.inside_address, name,
                              name);
                continue;
            }
            for (int in = 0; in < 2; in++) {
                mp_script_add(script, "%s FORWARD -%c %s -m comment --comment " MARK "%s -j ACCEPT\n",
                              add ? "-I" : "-D", in ? 'i' : 'o', name, name);
            }
        }
        mp_script_add(script, "COMMIT\n");
    }
}

/* Finds the device of a rule that an mpshell made; false for other rules. */
static bool device_of(const char *rule, char device[IF_NAMESIZE]) {
    const char *mark = strstr(rule, "--comment " MARK);
    if (!mark)
        mark = strstr(rule, "--comment \"" MARK);
    return strncmp(rule, "-A ", 3) == 0 && mark &&
           sscanf(strstr(mark, MARK) + strlen(MARK), "%15[a-z0-9-]", device) == 1;
}

/* Deletes the rules of mpshells whose device is gone. */
static void sweep(const nat_family *family) {
    mp_script script = {.used = 0};
    char error[MP_ERROR_SIZE];
    char command[64];
    char rule[512];
    size_t found = 0;
    for (size_t t = 0; t < 2; t++) {
        snprintf(command, sizeof command, "%s -w -t %s -S 2>/dev/null", family->list, tables[t]);
        FILE *in = popen(command, "re");
        mp_script_add(&script, "*%s\n", tables[t]);
        while (in && fgets(rule, sizeof rule, in)) {
            char device[IF_NAMESIZE];
            if (device_of(rule, device) && if_nametoindex(device) == 0) {
                mp_script_add(&script, "-D %s", rule + 3);
                found++;
            }
        }
        mp_script_add(&script, "COMMIT\n");
        if (in)
            pclose(in);
    }
    if (found > 0 && !restore(family, &script, error))
        fprintf(stderr, "mpshell: cannot remove old rules: %s\n", error);
}

bool mp_nat_start(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    if (!shell->options.nat)
        return true;
    if (!forwards(&families[0]))
        return mp_fail(error, "--nat: this machine does not forward packets; run sysctl -w net.ipv4.ip_forward=1");
    for (size_t v6 = 0; v6 < 2; v6++) {
        mp_script script = {.used = 0};
        char reason[MP_ERROR_SIZE];
        if (v6 == 1 && (!forwards(&families[1]) || shell->paths[0].ends.inside_address6[0] == '\0'))
            continue;
        sweep(&families[v6]);
        rules(shell, v6 == 1, true, &script);
        if (!restore(&families[v6], &script, reason))
            return mp_fail(error, "--nat needs %s: %.800s", families[v6].list, reason);
        shell->nat[v6] = true;
    }
    return true;
}

void mp_nat_stop(mp_shell *shell) {
    char error[MP_ERROR_SIZE];
    for (size_t v6 = 0; v6 < 2; v6++) {
        mp_script script = {.used = 0};
        if (shell->nat[v6]) {
            rules(shell, v6 == 1, false, &script);
            if (!restore(&families[v6], &script, error))
                fprintf(stderr, "mpshell: cannot remove the rules of --nat: %s\n", error);
            shell->nat[v6] = false;
        }
    }
}
