/* string.h: functions that nicety links into programs that call them. Freestanding compilers have no string.h of their
 * own, and call the first four of these functions implicitly. */
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

char *strcpy(char *restrict to, const char *restrict from);
char *strncpy(char *restrict to, const char *restrict from, size_t length);
char *strcat(char *restrict to, const char *restrict from);
char *strncat(char *restrict to, const char *restrict from, size_t length);
int strcoll(const char *left, const char *right);
size_t strxfrm(char *restrict to, const char *restrict from, size_t length);
char *strchr(const char *text, int character);
char *strrchr(const char *text, int character);
size_t strspn(const char *text, const char *accept);
size_t strcspn(const char *text, const char *reject);
char *strpbrk(const char *text, const char *accept);
char *strstr(const char *text, const char *part);
char *strtok(char *restrict text, const char *restrict separators);
char *strerror(int number);

/* Functions of POSIX. */
size_t strnlen(const char *text, size_t most);
char *strtok_r(char *restrict text, const char *restrict separators, char **restrict left);
void *memccpy(void *restrict to, const void *restrict from, int byte, size_t length);

#endif
