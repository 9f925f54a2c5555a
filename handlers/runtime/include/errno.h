/* errno.h: strtol and similar functions of the library set errno. All users of the program's data share errno. */
#ifndef NICETY_ERRNO_H
#define NICETY_ERRNO_H

#define errno nicety_errno
extern int errno;

/* The numbers are those of Linux. */
#define ENOENT 2
#define EINTR 4
#define EIO 5
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define ENOSYS 38
#define EOVERFLOW 75
#define EILSEQ 84
#define ETIMEDOUT 110

#endif
