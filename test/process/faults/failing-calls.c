/*
 * A library that is loaded before all others (LD_PRELOAD) and makes calls of the kernel fail, as the control file says that TROUPE_FAULTS names. The
 * file is shared memory: see failing-calls.ts, which writes it. Calls of each thread are counted by themselves, from the moment at which the
 * file got its newest generation.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { OPENAT, WRITE, WRITEV, PWRITE64, PWRITEV, FSYNC, FDATASYNC, RENAME, MKDIR, UNLINK, RMDIR, LINK, FTRUNCATE, FALLOCATE, MMAP, MREMAP, CLONE, OPEN_FIGURES, CALLS };

static const char *const names[CALLS] = {"openat", "write", "writev", "pwrite64", "pwritev", "fsync", "fdatasync", "rename", "mkdir",
                                         "unlink", "rmdir", "link", "ftruncate", "fallocate", "mmap", "mremap", "clone", "openat"};

enum { PATH_BYTES = 512, CALLS_MAX = 32 };

struct control {
  volatile uint32_t generation; /* 0: nothing fails, and nothing is counted */
  uint32_t calls;               /* bits of those that fail; 0: all are counted */
  uint32_t first, last;         /* of the calls of a thread, from 1 */
  int32_t error;                /* 0: the process is killed in place of the call */
  uint32_t files_only;
  uint32_t unused[2];
  char folder[PATH_BYTES]; /* whose files count where `files_only` is set */
  char log[PATH_BYTES];    /* gets a line for each call that failed */
  uint32_t all[CALLS_MAX], most[CALLS_MAX], all_on_files[CALLS_MAX], most_on_files[CALLS_MAX];
};

static struct control *control;

static __thread struct {
  uint32_t generation;
  uint32_t counts[CALLS], counts_on_files[CALLS];
} own __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TROUPE_FAULTS");
  if (path == NULL) return;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return;
  void *shared = (void *)syscall(SYS_mmap, NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (shared != MAP_FAILED) control = shared;
}

/* path: of the call, or NULL for that of the descriptor. Returns the path as it is told. */
static const char *path_of(int file, const char *path, char *buffer) {
  if (path != NULL) return path;
  buffer[0] = 0;
  if (file < 0) return buffer;
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_BYTES - 1);
  buffer[length > 0 ? length : 0] = 0;
  return buffer;
}

static void note_most(uint32_t *most, uint32_t count) {
  uint32_t known = __atomic_load_n(most, __ATOMIC_RELAXED);
  while (count > known && !__atomic_compare_exchange_n(most, &known, count, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

static void tell(enum call call, const char *path) {
  char line[PATH_BYTES + 80];
  const char *what = control->error == 0 ? "SIGKILL" : strerrorname_np(control->error);
  int length = snprintf(line, sizeof line, "%ld %s(%s) = -1 %s (INJECTED)\n", syscall(SYS_gettid), names[call], path, what);
  int file = syscall(SYS_openat, AT_FDCWD, control->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  syscall(SYS_write, file, line, length);
  syscall(SYS_close, file);
}

/* Whether this call fails; errno is set then. file: -1 if it is on none. */
static int fails(enum call call, int file, const char *path) {
  struct control *shared = control;
  if (shared == NULL) return 0;
  uint32_t generation = shared->generation;
  if (generation == 0) return 0;
  int counts_only = shared->calls == 0;
  if (!counts_only && (shared->calls & (1u << call)) == 0) return 0;
  if (own.generation != generation) {
    memset(&own, 0, sizeof own);
    own.generation = generation;
  }
  int kept = errno;
  char buffer[PATH_BYTES];
  const char *told = NULL;
  int is_on_file = 0;
  if (counts_only || shared->files_only) {
    told = path_of(file, path, buffer);
    is_on_file = strncmp(told, shared->folder, strlen(shared->folder)) == 0;
  }
  if (counts_only) {
    __atomic_fetch_add(&shared->all[call], 1, __ATOMIC_RELAXED);
    note_most(&shared->most[call], ++own.counts[call]);
    if (is_on_file) {
      __atomic_fetch_add(&shared->all_on_files[call], 1, __ATOMIC_RELAXED);
      note_most(&shared->most_on_files[call], ++own.counts_on_files[call]);
    }
    errno = kept;
    return 0;
  }
  if (shared->files_only && !is_on_file) {
    errno = kept;
    return 0;
  }
  uint32_t count = ++own.counts[call];
  if (count < shared->first || count > shared->last) {
    errno = kept;
    return 0;
  }
  tell(call, told == NULL ? path_of(file, path, buffer) : told);
  if (shared->error == 0) syscall(SYS_kill, getpid(), SIGKILL);
  errno = shared->error;
  return 1;
}

/* Timers read figures of the system: how often goes by the time that a run takes, so they are no part of the other opens. */
static enum call opening(const char *path) { return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ? OPEN_FIGURES : OPENAT; }

static int opened(int folder, const char *path, int flags, mode_t mode) {
  return fails(opening(path), -1, path) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_in(int flags, va_list rest) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0; }

#define OPENS(name, parameters, folder)  \
  int name parameters {                  \
    va_list rest;                        \
    va_start(rest, flags);               \
    mode_t mode = mode_in(flags, rest);  \
    va_end(rest);                        \
    return opened(folder, path, flags, mode); \
  }
OPENS(open, (const char *path, int flags, ...), AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD)
OPENS(openat, (int folder, const char *path, int flags, ...), folder)
OPENS(openat64, (int folder, const char *path, int flags, ...), folder)

#define PASSES(type, name, parameters, call, file, path, number, ...) \
  type name parameters { return fails(call, file, path) ? (type)-1 : (type)syscall(number, __VA_ARGS__); }
PASSES(ssize_t, write, (int file, const void *bytes, size_t count), WRITE, file, NULL, SYS_write, file, bytes, count)
PASSES(ssize_t, writev, (int file, const struct iovec *parts, int count), WRITEV, file, NULL, SYS_writev, file, parts, count)
PASSES(ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at), PWRITE64, file, NULL, SYS_pwrite64, file, bytes, count, at)
PASSES(ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t at), PWRITE64, file, NULL, SYS_pwrite64, file, bytes, count, at)
PASSES(ssize_t, pwritev, (int file, const struct iovec *parts, int count, off_t at), PWRITEV, file, NULL, SYS_pwritev, file, parts, count, at, 0)
PASSES(ssize_t, pwritev64, (int file, const struct iovec *parts, int count, off64_t at), PWRITEV, file, NULL, SYS_pwritev, file, parts, count, at, 0)
PASSES(int, fsync, (int file), FSYNC, file, NULL, SYS_fsync, file)
PASSES(int, fdatasync, (int file), FDATASYNC, file, NULL, SYS_fdatasync, file)
PASSES(int, rename, (const char *from, const char *to), RENAME, -1, to, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)
PASSES(int, mkdir, (const char *path, mode_t mode), MKDIR, -1, path, SYS_mkdirat, AT_FDCWD, path, mode)
PASSES(int, unlink, (const char *path), UNLINK, -1, path, SYS_unlinkat, AT_FDCWD, path, 0)
PASSES(int, rmdir, (const char *path), RMDIR, -1, path, SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)
PASSES(int, link, (const char *from, const char *to), LINK, -1, to, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0)
PASSES(int, ftruncate, (int file, off_t length), FTRUNCATE, file, NULL, SYS_ftruncate, file, length)
PASSES(int, ftruncate64, (int file, off64_t length), FTRUNCATE, file, NULL, SYS_ftruncate, file, length)
PASSES(int, fallocate, (int file, int mode, off_t at, off_t length), FALLOCATE, file, NULL, SYS_fallocate, file, mode, at, length)
PASSES(int, fallocate64, (int file, int mode, off64_t at, off64_t length), FALLOCATE, file, NULL, SYS_fallocate, file, mode, at, length)

/* A try for an address fails as a rule, and another one is tried: node:ffi makes hundreds of them. */
static int is_try(int flags) { return (flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE; }

#define MAPS(name)                                                                  \
  void *name(void *at, size_t bytes, int access, int flags, int file, off_t from) { \
    if (!is_try(flags) && fails(MMAP, file, NULL)) return MAP_FAILED;               \
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, file, from);         \
  }
MAPS(mmap)
MAPS(mmap64)

void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void *) : NULL;
  va_end(rest);
  return fails(MREMAP, -1, NULL) ? MAP_FAILED : (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (next == NULL) next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  return fails(CLONE, -1, "a thread") ? errno : next(thread, attributes, run, argument);
}

pid_t fork(void) {
  static pid_t (*next)(void);
  if (next == NULL) next = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  return fails(CLONE, -1, "a process") ? -1 : next();
}
