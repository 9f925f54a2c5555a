/* A payload handler with the number of cycles in its state, on a core with one cycle per instruction. It has a few to
 * begin and end, and a nop for each further one. So one program finds a limit to the cycle. */
#include <nicety.h>

__handler __attribute__((naked)) int payload_handler(const ptl_payload_t p, void *state) {
    __asm__ volatile("  lw t0, 0(a1)\n" /* how many nops */
                     "  la t1, 1f\n"
                     "  slli t0, t0, 2\n"
                     "  sub t1, t1, t0\n"
                     "  jr t1\n"
                     "  .option push\n"
                     "  .option norvc\n"
                     "  .rept 4096\n"
                     "  nop\n"
                     "  .endr\n"
                     "  .option pop\n"
                     "1: li a0, 0\n"
                     "  ret\n");
}
