#include "emulator/kernel/look.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text_file.h"

/* ---- the kernel's program ---- */

static const Elf64_Shdr *section(const uint8_t *file, size_t size, size_t number) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
    const uint64_t at = header->e_shoff + number * sizeof(Elf64_Shdr);
    if (number >= header->e_shnum || at % 8 || at > size || size - at < sizeof(Elf64_Shdr))
        return NULL;
    const Elf64_Shdr *found = (const Elf64_Shdr *)(const void *)(file + at);
    return found->sh_offset <= size && found->sh_size <= size - found->sh_offset ? found : NULL;
}

static uint64_t find_symbol(const uint8_t *file, size_t size, const Elf64_Shdr *table, const char *name) {
    const Elf64_Shdr *names = section(file, size, table->sh_link);
    const size_t name_size = strlen(name) + 1;
    for (size_t k = 0; names && k < table->sh_size / sizeof(Elf64_Sym); k++) {
        Elf64_Sym symbol;
        memcpy(&symbol, file + table->sh_offset + k * sizeof symbol, sizeof symbol);
        if (symbol.st_name < names->sh_size && names->sh_size - symbol.st_name >= name_size &&
            memcmp(file + names->sh_offset + symbol.st_name, name, name_size) == 0)
            return symbol.st_value;
    }
    return 0;
}

static uint64_t address_in(const uint8_t *file, size_t size, const char *name) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
        return 0;
    for (size_t k = 0; k < header->e_shnum; k++) {
        const Elf64_Shdr *table = section(file, size, k);
        if (table && table->sh_type == SHT_SYMTAB)
            return find_symbol(file, size, table, name);
    }
    return 0;
}

uint64_t vk_symbol_address(const char *program, const char *name) {
    struct stat facts;
    uint64_t found = 0;
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        const size_t size = (size_t)facts.st_size;
        void *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            found = address_in(file, size, name);
            munmap(file, size);
        }
    }
    descriptor_close(&fd);
    return found;
}

/* ---- its process ---- */

static ssize_t read_memory(pid_t pid, uint64_t address, void *into, size_t length) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", (int)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? pread(fd, into, length, (off_t)address) : -1;
    descriptor_close(&fd);
    return n;
}

bool vk_virtual_time(pid_t kernel, uint64_t address, uint64_t *ns) {
    return read_memory(kernel, address, ns, sizeof *ns) == (ssize_t)sizeof *ns;
}

/* ---- the programs inside: each is a child of the kernel's process, with its memory as it is inside ---- */

#define MOST_CHILDREN 512
#define MOST_TRIES    10 /* on a busy machine it may take a while until a program inside runs */

typedef struct {
    pid_t pid;
    unsigned long long ticks;
} child;

static size_t list_children(pid_t kernel, child children[MOST_CHILDREN]) {
    char name[64];
    size_t count = 0;
    int pid;
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)kernel, (int)kernel);
    FILE *list = fopen(name, "re");
    while (list && count < MOST_CHILDREN && fscanf(list, "%d", &pid) == 1)
        children[count++].pid = pid;
    if (list)
        fclose(list);
    return count;
}

/* Returns ticks of processor time, user and system; proc(5). */
static unsigned long long ticks_of(pid_t pid) {
    char name[64], line[1024];
    unsigned long long user = 0, system = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    const char *rest = file_peek(name, line, sizeof line) ? strrchr(line, ')') : NULL;
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
        return 0;
    return user + system;
}

#define TASK_SIZE 0x7f80000000u /* end of a program's memory inside; the kernel's pages are above */

/* Finds the end of the stack: that of the highest writable page of the machine's memory. */
static bool stack_end(pid_t pid, uint64_t *end) {
    char name[64], line[1024], rights[5];
    uint64_t low, high;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    *end = 0;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &low, &high, rights) == 3 && rights[0] == 'r' && rights[1] == 'w' &&
            rights[3] == 's' && low < TASK_SIZE)
            *end = high;
    if (maps)
        fclose(maps);
    return *end != 0;
}

/* Reads the program's file name, which is at the end of the stack, before 9 NULs. A forked process may have only pages
 * below that one. */
static bool program_of(pid_t pid, char name[VK_PROGRAM_SIZE]) {
    char top[1024];
    uint64_t end;
    if (!stack_end(pid, &end) || read_memory(pid, end - sizeof top, top, sizeof top) != (ssize_t)sizeof top)
        return false;
    static const char ending[9];
    const size_t last = sizeof top - sizeof ending;
    size_t first = last;
    if (memcmp(top + last, ending, sizeof ending) != 0)
        return false;
    while (first > 0 && top[first - 1] >= ' ')
        first--;
    if (first == last || (first > 0 && top[first - 1]))
        return false;
    snprintf(name, VK_PROGRAM_SIZE, "%.*s", (int)(last - first), top + first);
    return true;
}

/* Waits 0.1 s. Returns the child that has used the most processor time since its `ticks`; -1: none used any. */
static pid_t busiest_of(child children[], size_t count) {
    const struct timespec while_counting = {.tv_nsec = 100000000};
    pid_t busiest = -1;
    unsigned long long most = 0;
    nanosleep(&while_counting, NULL);
    for (size_t k = 0; k < count; k++) {
        const unsigned long long now = ticks_of(children[k].pid);
        if (now > children[k].ticks && now - children[k].ticks > most) {
            most = now - children[k].ticks;
            busiest = children[k].pid;
        }
    }
    return busiest;
}

bool vk_running_program(pid_t kernel, char name[VK_PROGRAM_SIZE]) {
    static child children[MOST_CHILDREN];
    const size_t count = list_children(kernel, children);
    pid_t busiest = -1;
    for (size_t k = 0; k < count; k++)
        children[k].ticks = ticks_of(children[k].pid);
    for (int tries = 0; busiest < 0 && tries < MOST_TRIES; tries++)
        busiest = busiest_of(children, count);
    if (busiest > 0 && !program_of(busiest, name))
        snprintf(name, VK_PROGRAM_SIZE, "a forked process");
    return busiest > 0;
}
