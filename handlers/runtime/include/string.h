/* string.h: the memory functions that nicety links into every program. Freestanding compilers bring no string.h of
 * their own, and call the first four of these functions without being asked. */
#ifndef NICETY_STRING_H
#define NICETY_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *left, const void *right, size_t length);
void *memchr(const void *in, int byte, size_t length);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t length);

#endif
