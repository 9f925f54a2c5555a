/* format.h: the part that the functions of stdio.h share. */
#ifndef NICETY_RUNTIME_FORMAT_H
#define NICETY_RUNTIME_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Takes text as it is produced; false ends it. */
typedef _Bool nicety_put(void *to, const char *text, size_t length);

/* Writes a format with its arguments; returns how many characters that is, or -1 where `put` would not take them. */
int nicety_format(nicety_put *put, void *to, const char *format, va_list arguments);

#endif
