/* pspin.h: PsPIN's header of this name, and the data that FPsPIN's handlers share with the host. The data are counters
 * and the host's answers. */
#include_next <pspin.h>
#ifndef FPSPIN_PSPIN_H
#define FPSPIN_PSPIN_H

#include <pspin_rt.h>
#include <spin_conf.h>

#define MAX_COUNTERS 16

struct perf_counter {
    uint32_t sum;
    uint32_t count;
};

/* The host writes the flag of a core to answer the core (spin_host.h), and reads the counters. */
struct host_data {
    uint64_t flag[CORE_COUNT];
    struct perf_counter counters[MAX_COUNTERS];
};
extern volatile struct host_data __host_data;

/* Returns the core's cycle count. The function calls the runtime, which takes about 104 cycles on FPsPIN. */
PSPIN_INLINE uint32_t cycles(void) {
    uint32_t cycle;
    ecall_0(PSPIN_ECALL_CYCLES, cycle);
    return cycle;
}

PSPIN_INLINE void push_counter(volatile struct perf_counter *counter, uint32_t duration) {
    amo_add((volatile int32_t *)&counter->count, 1);
    amo_add((volatile int32_t *)&counter->sum, (int32_t)duration);
}

#endif
