/* pspin.S: the call of a handler by PsPIN's runtime. A run begins here, with the handler's arguments in a0, its address
 * in a1 and the address of the core's registers in s2, and ends with the doorbell. The time between the two reads of
 * the cycle counter is the duration of a handler: its call and its body. */
    .section .text.pspin_dispatch, "ax", @progbits
    .globl pspin_dispatch
    .type pspin_dispatch, @function
    .balign 16
pspin_dispatch:
    csrr s0, cycle
    jalr a1
    csrr s1, cycle
    sw zero, 0x50(s2)
    .size pspin_dispatch, . - pspin_dispatch
