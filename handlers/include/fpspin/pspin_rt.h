/* pspin_rt.h: PsPIN's header of this name, and the calls of FPsPIN's runtime. */
#include_next <pspin_rt.h>
#ifndef FPSPIN_RT_H
#define FPSPIN_RT_H

#define PAGE_SIZE 4096

#define PULP_CSR_MHARTID 0xf14
#define PULP_CSR_MCOUNTINHIBIT 0x320
#define PULP_CSR_MTVAL 0x343

/* The only call returns the cycle count of the core. */
#define PSPIN_ECALL_CYCLES 0x1

#define ecall(num, a0, a1, a2, a3, a4, a5, a6, ret)                                                    \
    __asm__ volatile("mv a0, %1\n\tmv a1, %2\n\tmv a2, %3\n\tmv a3, %4\n\tmv a4, %5\n\tmv a5, %6\n\t"   \
                     "mv a6, %7\n\tmv a7, %8\n\tecall\n\tmv %0, a0"                                    \
                     : "=r"(ret)                                                                       \
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a6), "r"(num)         \
                     : "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7")
#define ecall_1(num, a0, ret) ecall(num, a0, 0, 0, 0, 0, 0, 0, ret)
#define ecall_0(num, ret) ecall_1(num, 0, ret)

#endif
