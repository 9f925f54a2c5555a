/* start.c: linked into programs that have a main and no _start. The stack pointer is already set. The exit code is the
 * return value of main. */
__attribute__((naked, noreturn)) void _start(void) {
    __asm__("call main\n\t"
            "li a7, 93\n\t"
            "ecall");
}
