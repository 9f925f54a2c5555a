/* format.h: the part that the functions of stdio.h share. */
#ifndef NICETY_RUNTIME_FORMAT_H
#define NICETY_RUNTIME_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Takes text as it is produced. A return value of false ends the production. */
typedef _Bool nicety_put(void *to, const char *text, size_t length);

/* Writes a format with its arguments. Returns the number of characters, or -1 if `put` returned false. */
int nicety_format(nicety_put *put, void *to, const char *format, va_list arguments);

#endif
