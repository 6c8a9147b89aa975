#include "emulator/kernel/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text_file.h"

/* ---- its own view of the host's mounts ---- */

/* Makes namespaces of mounts, network and IPC; without the right to, in a user namespace with only the caller. */
static bool own_namespaces(void) {
    const int all = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC;
    const unsigned user = geteuid(), group = getegid();
    char users[64], groups[64];
    if (unshare(all) == 0)
        return true;
    snprintf(users, sizeof users, "%u %u 1", user, user);
    snprintf(groups, sizeof groups, "%u %u 1", group, group);
    return unshare(CLONE_NEWUSER | all) == 0 && file_put("/proc/self/setgroups", "deny") &&
           file_put("/proc/self/uid_map", users) && file_put("/proc/self/gid_map", groups);
}

static int copy_mounts(const char *path) {
    return (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

/* Makes a read-only copy of the host's mounts the root, and a writable copy of the folder's the current directory. The
 * copies are not mounted: they last as long as a process has its root or current directory there. */
static bool enter_own_mounts(const char *folder) {
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    if (!own_namespaces())
        return false;
    const int root = copy_mounts("/"), writable = copy_mounts(folder);
    const bool good =
        root >= 0 && writable >= 0 &&
        syscall(SYS_mount_setattr, root, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof read_only) == 0 &&
        fchdir(root) == 0 && chroot(".") == 0 && fchdir(writable) == 0;
    /* They stay open, also after exec: the last close of such a descriptor dissolves the copy. */
    return good && fcntl(root, F_SETFD, 0) == 0 && fcntl(writable, F_SETFD, 0) == 0;
}

/* ---- Landlock ---- */

/* From Landlock versions that the host's headers may lack. */
#define TRUNCATE        (1ull << 14) /* since version 3 */
#define TCP             3ull         /* bind and connect; since version 4 */
#define OTHER_PROCESSES 3ull         /* abstract Unix sockets and signals; since version 6 */
#define LEAST_VERSION   3

typedef struct {
    uint64_t files, net, scope;
} landlock_ruleset;

#define CHANGES                                                                                                        \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                  \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                        \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | TRUNCATE)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

static bool allow(int ruleset, const char *path, uint64_t accesses) {
    struct landlock_path_beneath_attr rule = {.allowed_access = accesses, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    const bool good =
        rule.parent_fd >= 0 && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    if (rule.parent_fd >= 0)
        close(rule.parent_fd);
    return good;
}

/* Restricts changes of files to the current directory and /dev/null. */
static bool restrict_changes(void) {
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < LEAST_VERSION)
        return false;
    const landlock_ruleset rules = {CHANGES | DEVICES, version >= 4 ? TCP : 0, version >= 6 ? OTHER_PROCESSES : 0};
    const size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    const int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    const bool good = ruleset >= 0 && allow(ruleset, ".", CHANGES) &&
                      allow(ruleset, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE) &&
                      syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    if (ruleset >= 0)
        close(ruleset);
    return good;
}

/* ---- user and capabilities ---- */

static bool become_owner(const struct stat *folder) {
    if (geteuid() != 0 || folder->st_uid == 0)
        return true;
    return setgroups(0, NULL) == 0 && setresgid(folder->st_gid, folder->st_gid, folder->st_gid) == 0 &&
           setresuid(folder->st_uid, folder->st_uid, folder->st_uid) == 0;
}

static bool drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 && syscall(SYS_capset, &header, none) == 0;
}

/* Otherwise a program that root starts would get capabilities back. May fail, when it is not needed. */
static void empty_bounding_set(void) {
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

int vk_confine(const char *folder) {
    struct stat facts;
    if (stat(folder, &facts) != 0)
        return -1;
    const int home = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int kept = enter_own_mounts(folder) ? VK_BY_MOUNTS : 0;
    if (home < 0 || (!kept && fchdir(home) != 0))
        return -1;
    close(home);
    empty_bounding_set();
    if (!become_owner(&facts) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    kept |= restrict_changes() ? VK_BY_LANDLOCK : 0;
    return drop_capabilities() ? kept : -1;
}
