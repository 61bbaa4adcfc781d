/*
 * peak.h - what a machine can do at most, measured in the same run as what
 * is compared with it.
 */
#ifndef MLA_TOOL_PEAK_H
#define MLA_TOOL_PEAK_H

typedef struct peaks {
  double flops; /* FLOP per second; 0: not known */
  double bytes; /* read (or on devices copied) per second; 0: not known */
  char flops_by[96], bytes_by[96]; /* what was measured */
} peaks;

/*
 * Seconds of a clock that only goes forward: with one thread the processor
 * time of this process, so that others on the machine disturb less; else the
 * time that passes.
 */
double seconds_now(int threads);

/*
 * The host's: independent f32 multiply-adds by the widest vectors there are and
 * that `level` of the cpu backend has (NULL: any), and a sum over 512 MiB; 0
 * threads: as many as there are.
 */
void peaks_of_host(int threads, const char *level, peaks *p);
/* Threads that work when none are named. */
int peak_threads(void);

#endif
