/* Messages between MPICH and its launcher that the simulator needs. */

#define _GNU_SOURCE

#include "process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* MPICH's socket to its launcher, or -1. */
static int launcher = -1;
static __typeof__(write) *own_write;

__attribute__((constructor)) static void find_launcher(void) {
    const char *text = getenv("PMI_FD");
    *(void **)&own_write = dlsym(RTLD_NEXT, "write");
    if (text && *text)
        launcher = atoi(text);
}

void nicety_note_file(int file, const char *text, ssize_t bytes) {
    static const char answer[] = "value=" NICETY_LAUNCHER_FILE;
    const char *found = file == launcher && file >= 0 && bytes > 0 ? memmem(text, (size_t)bytes, answer, strlen(answer)) : NULL;
    if (!found || !nicety_slot)
        return;
    found += strlen("value=");
    char name[NICETY_SHARED_BYTES];
    size_t length = 0, left = (size_t)(text + bytes - found);
    while (length < left && length + 1 < sizeof name && found[length] != '\n' && found[length] != ' ')
        name[length] = found[length], length++;
    name[length] = 0;
    nicety_note_shared(name);
}

/* After a fatal error, MPICH first sends an abort to its launcher. MPICH then ends the process, while the launcher ends
 * the other processes. A call of MPI_Abort is already recorded by then. */
static void note_error(const void *text, size_t bytes) {
    static const char command[] = "cmd=abort";
    /* In the second version of the protocol, the length precedes the command. */
    for (size_t before = 0; before <= 6; before += 6) {
        if (bytes < before + strlen(command) || memcmp((const char *)text + before, command, strlen(command)))
            continue;
        /* The launcher may end the process before a later flush. */
        fflush(NULL);
        if (nicety_attached())
            nicety_note_end(END_ERROR, 0);
    }
}

EXPORT ssize_t write(int file, const void *bytes, size_t count) {
    if (file == launcher && file >= 0)
        note_error(bytes, count);
    if (!own_write)
        *(void **)&own_write = dlsym(RTLD_NEXT, "write");
    return own_write(file, bytes, count);
}
