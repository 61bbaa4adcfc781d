/* bench_peak.h - what this machine's cores can do at most, measured. */
#ifndef MLA_BENCH_PEAK_H
#define MLA_BENCH_PEAK_H

/* FLOP per second of independent f32 multiply-adds on `threads` cores. */
double bench_peak_flops(int threads);
/* One thread: the processor time of this program, so that others on the
   machine disturb less. More: the time on the clock. */
double bench_seconds(int threads);

#endif
