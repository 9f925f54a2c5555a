/* With which status the process ends: the simulator is not its parent, and could not know. */

#define _GNU_SOURCE

#include "process.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void nicety_note_end(uint32_t how, int code) {
    /* A child of vfork has the memory of this process, and is another. */
    if (!nicety_attached() || nicety_slot->ended || nicety_slot->end || nicety_slot->pid != (uint32_t)getpid())
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
