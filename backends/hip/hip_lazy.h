/*
 * hip_lazy.h - AMD's run-time library, loaded when it is first asked for.
 *
 * A program with this backend inside starts on machines that have no ROCm:
 * what the compiler and the backend call of libamdhip64 leads to functions of
 * hip_lazy.c (the names are changed in the object, see hip_calls.txt), which
 * pass it on once the library is there.
 */
#ifndef MLA_HIP_LAZY_H
#define MLA_HIP_LAZY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Loads it, once. NULL, or why it is not there: a sentence that stays. */
const char *mla_hip_load(void);

#ifdef __cplusplus
}
#endif
#endif
