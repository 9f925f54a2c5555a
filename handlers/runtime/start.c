/* start.c: linked into programs that have a main and no _start. The processor has set the stack pointer before;
 * main's value is the exit code. */
__attribute__((naked, noreturn)) void _start(void) {
    __asm__("call main\n\t"
            "li a7, 93\n\t"
            "ecall");
}
