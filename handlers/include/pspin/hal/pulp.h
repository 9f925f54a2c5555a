/* hal/pulp.h: the part of PULP's layer that PsPIN's headers use. It has the numbers of core and cluster, and the
 * addresses of a cluster's engines. The rest of the layer controls parts of a chip that PsPIN does not have, or that
 * handlers may not access. */
#ifndef PSPIN_HAL_PULP_H
#define PSPIN_HAL_PULP_H

#include <stdint.h>

/* The addresses of a cluster for its own cores, and offsets from these addresses. */
#define ARCHI_CLUSTER_ADDR 0x1B000000
#define ARCHI_CLUSTER_SIZE 0x00400000
#define ARCHI_CLUSTER_GLOBAL_ADDR(cid) (0x10000000 + (cid) * ARCHI_CLUSTER_SIZE)
#define ARCHI_CLUSTER_PERIPHERALS_OFFSET 0x00200000
#define ARCHI_DEMUX_PERIPHERALS_OFFSET 0x204000
#define ARCHI_DEMUX_PERIPHERALS_ADDR (ARCHI_CLUSTER_ADDR + ARCHI_DEMUX_PERIPHERALS_OFFSET)
#define ARCHI_MCHAN_DEMUX_OFFSET (0x00400)
#define ARCHI_MCHAN_DEMUX_ADDR (ARCHI_DEMUX_PERIPHERALS_ADDR + ARCHI_MCHAN_DEMUX_OFFSET)

/* mhartid has the core in the lower 5 bits, and the cluster in the next 6 bits. */
static inline __attribute__((unused)) unsigned int hal_core_id(void) {
    unsigned int hart;
    __asm__("csrr %0, mhartid" : "=r"(hart));
    return hart & 0x1f;
}
static inline __attribute__((unused)) unsigned int hal_cluster_id(void) {
    unsigned int hart;
    __asm__("csrr %0, mhartid" : "=r"(hart));
    return hart >> 5 & 0x3f;
}

#endif
