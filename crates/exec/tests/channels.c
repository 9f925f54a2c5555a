/* A process that makes random calls on channels, through the pages that it shares with the simulator: channels.c SEED. It prints the
 * replies. */

#include "channels.h"
#include "portals.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct nicety_header *header;
static struct nicety_slot *slot;
static _Atomic uint32_t *bell;
static uint64_t *words, state;

static uint64_t dice(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static int64_t call(uint32_t op) {
    slot->call = CALL_CHANNELS;
    slot->flags = op;
    atomic_store(&slot->turn, TURN_SLEEP);
    atomic_fetch_add(bell, 1);
    syscall(SYS_futex, bell, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
    while (atomic_load(&slot->turn) != TURN_RUN)
        syscall(SYS_futex, &slot->turn, FUTEX_WAIT, TURN_SLEEP, NULL, NULL, 0);
    return slot->result;
}

int main(int count, char **given) {
    static char memory[4096];
    int file = open(getenv("NICETY_EXEC"), O_RDWR);
    if (count != 2 || file < 0)
        return 3;
    header = mmap(NULL, NICETY_SLOTS + NICETY_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (header == MAP_FAILED)
        return 3;
    bell = (_Atomic uint32_t *)((char *)header + NICETY_BELL);
    slot = (struct nicety_slot *)((char *)header + NICETY_SLOTS);
    words = (uint64_t *)((char *)slot + NICETY_PAGE) - NICETY_WORDS;
    state = strtoull(given[1], NULL, 10);
    prctl(PR_SET_PTRACER, (unsigned long)header->simulator, 0, 0, 0);
    slot->pid = (uint32_t)getpid();
    if (call(CHANNELS_OPEN))
        return 4;
    uint32_t told[5] = {0}, codes = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t op = (uint32_t)(dice() % (CHANNELS_BARRIER + 3));
        /* These calls wait for other goroutines. One of these goroutines waits for this one. */
        if (op == CHANNELS_JOIN || op == CHANNELS_END || op == CHANNELS_GO)
            continue;
        const uint64_t values[] = {dice() % 4, dice() % 5000, NICETY_ANY, (uintptr_t)memory, 64, dice() << 32, 1};
        for (unsigned at = 0; at < NICETY_WORDS; at++)
            words[at] = values[dice() % 7];
        /* Virtual time ends at 2^64 ps. */
        if (op == CHANNELS_SLEEP || op == CHANNELS_COMPUTE)
            words[0] = dice() % 1000;
        int64_t code = call(op);
        if (code < CODE_OK || code > CODE_TIMED_OUT || (code && !*((char *)words - NICETY_REASON)))
            return 5;
        told[code]++;
        codes = codes * 31 + (uint32_t)code;
    }
    call(CHANNELS_END);
    fprintf(stderr, "%u well, %u refused, %u failed, %x\n", told[CODE_OK], told[CODE_INPUT], told[CODE_FAILED], codes);
    return told[CODE_OK] && told[CODE_INPUT] && told[CODE_FAILED] ? 0 : 6;
}
