/* util.h: PsPIN's header of this name, and the numbers of core and cluster. FPsPIN's runtime keeps these numbers for
 * handlers in the register tp. */
#include_next <util.h>
#ifndef FPSPIN_UTIL_H
#define FPSPIN_UTIL_H

static inline __attribute__((always_inline, unused)) unsigned int user_core_id(void) {
    unsigned int hart;
    read_register(tp, hart);
    return hart & 0x1f;
}
static inline __attribute__((always_inline, unused)) unsigned int user_cluster_id(void) {
    unsigned int hart;
    read_register(tp, hart);
    return hart >> 5 & 0x3f;
}

#endif
