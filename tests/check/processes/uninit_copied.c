/* A record goes through memory to another microengine. The bug leaves a field without a value. */
#include <nfp.h>

typedef struct {
    uint32_t kind, bytes;
} record_t;

__process void store(void) {
    record_t record;
    record.kind = 1;
#ifndef BUG
    record.bytes = 8;
#endif
    __asm__ volatile("" : : "r"(&record) : "memory");
    nfp_write(nfp_imem(512), &record, sizeof record);
    nfp_signal(1, 0, 1);
}

__process uint32_t load(void) {
    record_t record;
    nfp_wait_all(1 << 1);
    nfp_read(&record, nfp_imem(512), sizeof record);
    return record.bytes > 4 ? nfp_cycle() : 0; // bug
}
