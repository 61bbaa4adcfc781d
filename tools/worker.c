/*
 * worker.c - child processes, what they say, and how they end.
 */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "machine.h"
#include "verdict.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#define MOST_WORKERS 64
#define DEAF 3 /* exit code of a child that nobody listens to */

typedef struct header {
  int32_t kind;
  uint32_t size;
} header;

/* ------------------------------------------------------------ on the line */

/* 0: the other end is closed. */
static int read_all(int line, void *bytes, size_t size) {
  unsigned char *at = bytes;
  while (size > 0) {
    ssize_t n = read(line, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    at += n;
    size -= (size_t)n;
  }
  return 1;
}

static int write_all(int line, const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  while (size > 0) {
    ssize_t n = send(line, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    at += n;
    size -= (size_t)n;
  }
  return 1;
}

/* ------------------------------------------------------------ in the child */

static int own_line = -1;

/* In a signal handler. */
static void tell_touch(const mla_touch *touch) {
  header h = {WORKER_TOUCH, (uint32_t)sizeof *touch};
  if (write_all(own_line, &h, sizeof h))
    write_all(own_line, touch, sizeof *touch);
}

/* A fault is to end the child at once, whoever else listens for it: a
   sanitizer would first look up every name on the stack. */
static void die_at_once(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  const struct rlimit nothing = {0, 0};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    signal(faults[i], SIG_DFL);
  mla_guard_listen(tell_touch);
  setrlimit(RLIMIT_CORE, &nothing); /* --no-fork is for debuggers */
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a child that hangs, too, goes with us */
#endif
}

int worker_hear(int line, void *question, size_t size) {
  return read_all(line, question, size);
}

void worker_say(int line, int32_t kind, const void *answer, size_t size) {
  header h = {kind, (uint32_t)size};
  if (!write_all(line, &h, sizeof h) || !write_all(line, answer, size))
    _exit(DEAF);
}

/* ----------------------------------------------------------- in the parent */

void worker_allow(worker *w, double seconds) {
  w->seconds = seconds;
  w->deadline = mla_machine_seconds() + seconds;
}

int worker_start(worker *w, void (*body)(void *context, int line),
                 void *context) {
  int ends[2];
  memset(w, 0, sizeof *w);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  fflush(stdout);
  fflush(stderr);
  w->pid = fork();
  if (w->pid == 0) {
    close(ends[0]);
    own_line = ends[1];
    die_at_once();
    body(context, ends[1]);
    fflush(stderr);
    _exit(0);
  }
  close(ends[1]);
  if (w->pid < 0) {
    close(ends[0]);
    w->pid = 0;
    return 0;
  }
  w->line = ends[0];
  worker_allow(w, 1e9);
  return 1;
}

void worker_ask(worker *w, const void *question, size_t size, double seconds) {
  write_all(w->line, question, size);
  worker_allow(w, seconds);
}

static int has_news(const worker *w, int ms) {
  struct pollfd fd = {w->line, POLLIN, 0};
  return poll(&fd, 1, ms) > 0;
}

static void bury(worker *w, int late, worker_end *end) {
  int status = 0;
  if (late) kill(w->pid, SIGKILL);
  close(w->line);
  while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) continue;
  w->pid = 0;
  end->seconds = w->seconds;
  end->died = late                  ? MLA_DEATH_TIMEOUT
              : WIFSIGNALED(status) ? MLA_DEATH_SIGNAL
                                    : MLA_DEATH_EXIT;
  end->signal = late                  ? 0
                : WIFSIGNALED(status) ? WTERMSIG(status)
                                      : WEXITSTATUS(status);
}

worker_news worker_poll(worker *w, int32_t *kind, void *answer, size_t size,
                        worker_end *end) {
  header h;
  memset(end, 0, sizeof *end);
  while (has_news(w, 0)) {
    if (!read_all(w->line, &h, sizeof h)) {
      bury(w, 0, end);
      return WORKER_ENDED;
    }
    if (h.kind == WORKER_TOUCH) {
      end->touched = read_all(w->line, &end->touch, sizeof end->touch);
      has_news(w, 10000); /* it is about to die */
      continue;
    }
    *kind = h.kind;
    if (h.size == size && read_all(w->line, answer, size)) return WORKER_SAYS;
    bury(w, 1, end);
    return WORKER_ENDED;
  }
  if (mla_machine_seconds() < w->deadline) return WORKER_WAITS;
  bury(w, 1, end);
  return WORKER_ENDED;
}

void worker_wait(const worker *w, int32_t count) {
  struct pollfd fds[MOST_WORKERS];
  nfds_t n = 0;
  double first = 1e300;
  for (int32_t i = 0; i < count && n < MOST_WORKERS; i++) {
    if (!w[i].pid) continue;
    fds[n++] = (struct pollfd){w[i].line, POLLIN, 0};
    if (w[i].deadline < first) first = w[i].deadline;
  }
  double left = first - mla_machine_seconds();
  if (n > 0)
    poll(fds, n,
         left <= 0     ? 0
         : left > 3600 ? 3600000
                       : (int)(left * 1000) + 1);
}

worker_news worker_listen(worker *w, int32_t *kind, void *answer, size_t size,
                          worker_end *end) {
  worker_news news;
  do {
    worker_wait(w, 1);
    news = worker_poll(w, kind, answer, size, end);
  } while (news == WORKER_WAITS);
  return news;
}

/* Others hold copies of the line: closing it alone would say nothing. */
void worker_dismiss(worker *w) {
  worker_end end;
  if (!w->pid) return;
  shutdown(w->line, SHUT_RDWR);
  bury(w, 0, &end);
}

void worker_kill(worker *w) {
  worker_end end;
  if (w->pid) bury(w, 1, &end);
}

/* ------------------------------------------------------------------- words */

static const char *meaning_of(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS: return " (a bad address)";
    case SIGFPE: return " (a division)";
    case SIGILL: return " (an instruction that this CPU does not have)";
    case SIGABRT: return " (it aborted)";
    case SIGKILL: return " (was memory short?)";
    default: return "";
  }
}

int worker_end_print(const worker_end *end, char *text, size_t size) {
  if (end->died == MLA_DEATH_TIMEOUT)
    return snprintf(text, size,
                    "it did not end: the time was up after %.0f s "
                    "(--timeout gives more, which a busy machine may need)",
                    end->seconds);
  if (end->died == MLA_DEATH_SIGNAL)
    return snprintf(text, size, "its process was killed by signal %d%s",
                    (int)end->signal, meaning_of((int)end->signal));
  return snprintf(text, size, "its process ended with code %d, saying nothing",
                  (int)end->signal);
}
