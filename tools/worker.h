/*
 * worker.h - a child process that answers questions and may die of one.
 *
 * The parent asks, one question at a time; the child answers, and may say
 * more before. Whatever ends the child, the parent lives on and learns how it
 * ended. Questions and answers are plain data of fixed size.
 */
#ifndef MLA_TOOL_WORKER_H
#define MLA_TOOL_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard.h"

/* What a child says without being asked. */
#define WORKER_TOUCH (-1) /* a mla_touch: it dies now */

typedef struct worker {
  pid_t pid; /* 0: there is none */
  int line;
  double seconds;  /* that it may take */
  double deadline; /* mla_machine_seconds; when it is killed */
} worker;

/* How a child ended. */
typedef struct worker_end {
  int32_t died;   /* mla_death: never NONE */
  int32_t signal; /* or its exit code */
  double seconds; /* that it might take */
  int touched;
  mla_touch touch; /* what it died of, if touched */
} worker_end;

/*
 * Forks; the child runs body(context, line) and exits. No thread may have been
 * made before, nor a device opened: neither outlives a fork. 0: no process.
 */
int worker_start(worker *w, void (*body)(void *context, int line),
                 void *context);

/* In the child: the next question; 0 when there will be none. */
int worker_hear(int line, void *question, size_t size);
/* In the child; ends it when nobody listens any more. kind is 0 or above. */
void worker_say(int line, int32_t kind, const void *answer, size_t size);

/* In the parent. A child that is dead already shows when it is listened to. */
void worker_ask(worker *w, const void *question, size_t size, double seconds);
/* From now on. */
void worker_allow(worker *w, double seconds);

typedef enum worker_news {
  WORKER_SAYS,  /* it said something of that kind */
  WORKER_ENDED, /* it is dead, or was killed since time was up: *end */
  WORKER_WAITS  /* nothing yet (worker_poll) */
} worker_news;

/*
 * Waits until one of the workers (those with pid 0 apart) has news or is late.
 * Then ask each by worker_poll, which does not wait.
 */
void worker_wait(const worker *w, int32_t count);
worker_news worker_poll(worker *w, int32_t *kind, void *answer, size_t size,
                        worker_end *end);
/* Both at once, for one worker. */
worker_news worker_listen(worker *w, int32_t *kind, void *answer, size_t size,
                          worker_end *end);

/* No more questions: the child ends by itself. Then w may start another. */
void worker_dismiss(worker *w);
void worker_kill(worker *w);

/* "it was killed by signal 11 (a bad address)" */
int worker_end_print(const worker_end *end, char *text, size_t size);

#endif
