/* check.h: the state of a core while it runs a program that no verifier has seen. */
#ifndef NICETY_XDP_CHECK_H
#define NICETY_XDP_CHECK_H

#include "helper.h"

/* Linux has chains of at most eight functions. */
#define MOST_STACKS 8u
/* Records of ring buffers that a program has at a time. */
#define MOST_RECORDS 8u

/* Bytes from `begin` to `end`. */
struct xdp_range {
    uint32_t begin, end;
};

/* The code of a program has these offsets: crates/ebpf/src/translate/guard.rs. */
struct xdp_run {
    uint32_t context;       /* the address of the context */
    uint32_t depth;         /* functions inside one another */
    struct xdp_range stacks[MOST_STACKS];
    struct xdp_range key;   /* the key of a callback */
    struct xdp_range records[MOST_RECORDS];
};

/* One for each core. */
extern struct xdp_run nicety_xdp_runs[];

#ifdef NICETY_XDP_UNVERIFIED
MAP_INLINE struct xdp_run *xdp_run(void) { return &nicety_xdp_runs[this_cpu()]; }

MAP_INLINE void xdp_begin(const struct nicety_xdp_context *context) {
    struct xdp_run *run = xdp_run();
    run->context = ADDRESS(context);
    run->depth = run->key.end = 0;
    for (uint32_t number = 0; number < MOST_RECORDS; number++) {
        run->records[number].end = 0;
    }
}

MAP_INLINE void xdp_key(const void *key, uint32_t bytes) {
    struct xdp_run *run = xdp_run();
    run->key.begin = ADDRESS(key);
    run->key.end = ADDRESS(key) + bytes;
}

/* Keeps the bounds of a record, or returns false where a program has too many. */
MAP_INLINE bool xdp_reserved(const void *bytes, uint32_t length) {
    struct xdp_run *run = xdp_run();
    for (uint32_t number = 0; number < MOST_RECORDS; number++) {
        struct xdp_range *record = &run->records[number];
        if (!record->end) {
            record->begin = ADDRESS(bytes);
            record->end = ADDRESS(bytes) + length;
            return true;
        }
    }
    return false;
}

MAP_INLINE void xdp_finished(uint64_t bytes) {
    struct xdp_run *run = xdp_run();
    for (uint32_t number = 0; number < MOST_RECORDS; number++) {
        struct xdp_range *record = &run->records[number];
        record->end = record->begin == bytes ? 0 : record->end;
    }
}
#else
MAP_INLINE void xdp_begin(const struct nicety_xdp_context *context) { (void)context; }
MAP_INLINE void xdp_key(const void *key, uint32_t bytes) { (void)key, (void)bytes; }
MAP_INLINE bool xdp_reserved(const void *bytes, uint32_t length) { return (void)bytes, (void)length, true; }
MAP_INLINE void xdp_finished(uint64_t bytes) { (void)bytes; }
#endif

#endif
