/* stdio.h: what a bare program writes to stdout (`nicety hpu run`). Handlers have printf, in nicety.h. */
#ifndef NICETY_STDIO_H
#define NICETY_STDIO_H

#include <stddef.h>

#define EOF (-1)

int putchar(int character);
int puts(const char *text);

#endif
