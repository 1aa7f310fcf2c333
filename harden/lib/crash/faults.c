/* Lets the n-th call that writes below a folder fail, or write less than it was given.

   Loaded with LD_PRELOAD; `arm` is called by the process that is to be disturbed. Python, Arrow and DuckDB all
   write through these functions of the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long first, last; /* calls that are disturbed; none, if last is 0 */
static int error;        /* what they fail with; 0: they write half */
static atomic_long calls;

void arm(const char *below, long from, long to, int with) {
  strncpy(folder, below, sizeof folder - 1);
  first = from, last = to, error = with;
  calls = 0;
}

long n_calls(void) { return calls; }

static int is_below(const char *path) {
  size_t n = strlen(folder);
  return n && !strncmp(path, folder, n) && path[n] == '/';
}

/* Tells whether this call is to be disturbed; those that cannot be cut short count only for errors. */
static int hits(int is_counted) {
  if (!is_counted) return 0;
  long call = atomic_fetch_add(&calls, 1) + 1;
  return call >= first && call <= last;
}

static int is_file_below(int file) {
  char link[64], path[PATH_MAX];
  if (!*folder) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return is_below(path);
}

#define REAL(name) ((__typeof__(&name))real(&real_##name, #name))
static void *real(void **found, const char *name) {
  if (!*found) *found = dlsym(RTLD_NEXT, name);
  return *found;
}

/* Half of the bytes, but not none: that would be an error. */
#define WRITE(name, parameters, size, arguments)                                  \
  static void *real_##name;                                                       \
  ssize_t name parameters {                                                       \
    if (hits(is_file_below(file))) {                                              \
      if (error) { errno = error; return -1; }                                    \
      if (size > 1) size /= 2;                                                    \
    }                                                                             \
    return REAL(name) arguments;                                                  \
  }
WRITE(write, (int file, const void *data, size_t n), n, (file, data, n))
WRITE(pwrite, (int file, const void *data, size_t n, off_t at), n, (file, data, n, at))
WRITE(pwrite64, (int file, const void *data, size_t n, off64_t at), n, (file, data, n, at))

#define FAIL(name, parameters, condition, arguments)                              \
  static void *real_##name;                                                       \
  int name parameters {                                                           \
    if (error && hits(condition)) { errno = error; return -1; }                   \
    return REAL(name) arguments;                                                  \
  }
FAIL(fsync, (int file), is_file_below(file), (file))
FAIL(fdatasync, (int file), is_file_below(file), (file))
FAIL(ftruncate, (int file, off_t n), is_file_below(file), (file, n))
FAIL(ftruncate64, (int file, off64_t n), is_file_below(file), (file, n))
FAIL(rename, (const char *from, const char *to), is_below(to), (from, to))
FAIL(mkdir, (const char *path, mode_t mode), is_below(path), (path, mode))

/* A file that is to be made needs room as well. */
#define OPEN(name)                                                                \
  static void *real_##name;                                                       \
  int name(const char *path, int flags, ...) {                                    \
    va_list rest;                                                                 \
    va_start(rest, flags);                                                        \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;       \
    va_end(rest);                                                                 \
    if (error && flags & O_CREAT && hits(is_below(path))) { errno = error; return -1; } \
    return REAL(name)(path, flags, mode);                                         \
  }
OPEN(open)
OPEN(open64)
