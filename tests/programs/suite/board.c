#include "board.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef ROUNDS
#define ROUNDS 1
#endif

static clock_t started, taken;
static uint32_t state;

void seed(unsigned value) { state = value; }

int next_number(void) {
    state = state * 1103515245u + 12345u;
    return (int)(state >> 16 & 0x7fff);
}

void initialise_board(void) { seed(1); }
void start_trigger(void) { started = clock(); }
void stop_trigger(void) { taken = clock() - started; }

int main(void) {
    initialise_board();
    initialise();
    start_trigger();
    /* The volatile variable keeps the work from being moved out of its region. */
    volatile int result = work(ROUNDS);
    stop_trigger();
    if (!verify(result)) {
        fprintf(stderr, "%s: the result is wrong\n", name);
        return EXIT_FAILURE;
    }
    printf("%s: right, in %" PRIu64 " cycles\n", name, (uint64_t)taken);
    return EXIT_SUCCESS;
}
