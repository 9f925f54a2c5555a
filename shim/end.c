/* The exit status of the process. The simulator is not its parent, and could not know it. */

#define _GNU_SOURCE

#include "process.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void nicety_note_end(uint32_t how, int code) {
    if (!nicety_slot || nicety_slot->ended || nicety_slot->end)
        return;
    /* A child shares this process's memory or has a copy, but is another process. */
    uint32_t own = nicety_slot->pid ? nicety_slot->pid : nicety_slot->loaded;
    if (own != (uint32_t)getpid())
        return;
    nicety_slot->end_code = code;
    atomic_store_explicit(&nicety_slot->end, how, memory_order_release);
}

static void note_exit(int status, void *unused) {
    (void)unused;
    nicety_note_end(END_EXIT, status);
}

__attribute__((constructor)) static void begin(void) {
    on_exit(note_exit, NULL);
}

EXPORT void _exit(int status) {
    nicety_note_end(END_EXIT, status & 0xff);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) {
    _exit(status);
}
