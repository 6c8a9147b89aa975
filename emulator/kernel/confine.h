/* The rights of the kernel's process on the host. A program that is root inside can mount the host's root for writing,
 * and use whatever right that process has; so it has none but these: it reads what its user may read, and changes
 * nothing but what lies below one folder.
 *
 * Two means of the host, either of which may be missing in a container, keep the files (VK_BY_*):
 * - its own view of the host's mounts, all read-only but the folder's, and a network without devices; in a user
 *   namespace where the caller is not root;
 * - Landlock, which also takes signals to other processes and access to their memory away. It leaves modes, owners and
 *   times of the user's files changeable.
 * In addition, it has no capability, and root becomes the owner of the folder. */
#ifndef EMULATOR_KERNEL_CONFINE_H
#define EMULATOR_KERNEL_CONFINE_H

#include <stdbool.h>

enum { VK_BY_MOUNTS = 1, VK_BY_LANDLOCK = 2 };

/* A variable of vkernel's environment, "1": go on where neither is there. */
#define VK_UNCONFINED "RAILYARD_KERNEL_UNCONFINED"

/* Confines this process, which has one thread, and what it becomes; cannot be undone. Its current directory is then the
 * folder. Returns by what its files are kept (VK_BY_*, 0: by nothing), -1 with errno set: the folder cannot be entered
 * or a right not be dropped. */
int vk_confine(const char *folder);

#endif
