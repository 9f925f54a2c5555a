/* stdio.h: output of text to stdout (`nicety hpu run`), and to memory. Text for stderr also goes to stdout. There are
 * no files and no input. Printing is for bare programs. Handlers have the printf of nicety.h, and can use only output
 * to memory of this header. */
#ifndef NICETY_STDIO_H
#define NICETY_STDIO_H

#include <stdarg.h>
#include <stddef.h>

#define EOF (-1)
#define BUFSIZ 128

typedef struct nicety_stream FILE;
/* The numbers of the streams in the system call of a bare program. */
#define stdout ((FILE *)1)
#define stderr ((FILE *)2)

#define NICETY_FORMAT(text, first) __attribute__((format(__printf__, text, first)))

/* The conversions are d i u x X o c s p f F e E g G and %. Flags, width, precision and the lengths hh h l ll j z t are
 * supported. Any other conversion (%a, %n, long double) is printed unchanged. A double is rounded once, to the nearest
 * decimal. */
int snprintf(char *restrict to, size_t size, const char *restrict format, ...) NICETY_FORMAT(3, 4);
int vsnprintf(char *restrict to, size_t size, const char *restrict format, va_list arguments) NICETY_FORMAT(3, 0);
int sprintf(char *restrict to, const char *restrict format, ...) NICETY_FORMAT(2, 3);
int vsprintf(char *restrict to, const char *restrict format, va_list arguments) NICETY_FORMAT(2, 0);

#ifndef NICETY_H
int printf(const char *restrict format, ...) NICETY_FORMAT(1, 2);
#endif
int vprintf(const char *restrict format, va_list arguments) NICETY_FORMAT(1, 0);
int fprintf(FILE *restrict stream, const char *restrict format, ...) NICETY_FORMAT(2, 3);
int vfprintf(FILE *restrict stream, const char *restrict format, va_list arguments) NICETY_FORMAT(2, 0);

int putchar(int character);
int puts(const char *text);
int fputc(int character, FILE *stream);
int putc(int character, FILE *stream);
int fputs(const char *restrict text, FILE *restrict stream);
size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict stream);
/* This function has no effect, because no output stays buffered between calls. */
int fflush(FILE *stream);
/* Prints `text`, a colon and the meaning of errno. */
void perror(const char *text);

#endif
