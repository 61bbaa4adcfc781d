/*
 * hip_lazy.c - libamdhip64 by dlopen, behind the names of hip_calls.h.
 *
 * Device code registers itself before main(); it is kept on a list here and
 * handed on when the library comes.
 */
#include "hip_lazy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#include "hip_calls.h"

/* After expansion: the name that is in the library. */
#define TEXT(x) #x
#define NAME_OF(x) TEXT(x)
#define PASTE(a, b) a##b
#define OUR_NAME(x) PASTE(mla_, x)

#define MEMBER(result, name, parameters, arguments) result(*name##_) parameters;

static struct {
  MLA_HIP_CALLS(MEMBER)
  const char *(*error_name)(hipError_t);
  const char *(*error_string)(hipError_t);
  void **(*register_binary)(const void *);
  void (*unregister_binary)(void **);
  void (*register_function)(void **, const void *, char *, const char *,
                            unsigned, void *, void *, void *, void *, int *);
} lib;

static char why_not[200] = "nobody asked for it";
static int loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ------------------------------------------------ device code, registered */

enum { MAX_BINARIES = 8 };

typedef struct binary {
  const void *wrapper;
  void **real; /* the library's handle, once loaded */
} binary;

typedef struct kernel {
  struct kernel *next;
  binary *of;
  const void *host_function;
  const char *name;
} kernel;

static binary binaries[MAX_BINARIES];
static int binary_count;
static kernel *kernels;

void **mla_hipRegisterFatBinary(const void *wrapper);
void mla_hipRegisterFunction(void **binary, const void *host_function,
                             char *host_name, const char *name, unsigned limit,
                             void *tid, void *bid, void *block, void *grid,
                             int *wave);
void mla_hipUnregisterFatBinary(void **binary);

void **mla_hipRegisterFatBinary(const void *wrapper) {
  if (binary_count == MAX_BINARIES) return NULL;
  binary *b = &binaries[binary_count++];
  b->wrapper = wrapper;
  return (void **)(void *)b;
}

void mla_hipRegisterFunction(void **module, const void *host_function,
                             char *host_name, const char *name, unsigned limit,
                             void *tid, void *bid, void *block, void *grid,
                             int *wave) {
  (void)host_name, (void)limit, (void)tid, (void)bid, (void)block;
  (void)grid, (void)wave;
  kernel *k = malloc(sizeof *k);
  if (!k || !module) { /* launching it will fail, by name */
    free(k);
    return;
  }
  *k = (kernel){kernels, (binary *)(void *)module, host_function, name};
  kernels = k;
}

void mla_hipUnregisterFatBinary(void **module) {
  binary *b = (binary *)(void *)module;
  if (b && b->real) lib.unregister_binary(b->real);
  if (b) b->real = NULL;
  while (kernels) {
    kernel *k = kernels;
    kernels = k->next;
    free(k);
  }
}

static void hand_on(void) {
  for (int i = 0; i < binary_count; i++)
    binaries[i].real = lib.register_binary(binaries[i].wrapper);
  for (const kernel *k = kernels; k; k = k->next) {
    char *name = (char *)(uintptr_t)k->name;
    lib.register_function(k->of->real, k->host_function, name, k->name,
                          (unsigned)-1, NULL, NULL, NULL, NULL, NULL);
  }
}

/* ---------------------------------------------------------------- loading */

/* A pointer to a function out of one to data, as POSIX grants. */
static int find(void *library, const char *name, void *function) {
  void *p = dlsym(library, name);
  memcpy(function, &p, sizeof p);
  if (!p)
    snprintf(why_not, sizeof why_not, "libamdhip64 has no %s: too old", name);
  return p != NULL;
}

#define FIND(result, name, parameters, arguments) \
  &&find(library, NAME_OF(name), &lib.name##_)

static int find_all(void *library) {
  return 1 MLA_HIP_CALLS(FIND) &&
         find(library, "hipGetErrorName", &lib.error_name) &&
         find(library, "hipGetErrorString", &lib.error_string) &&
         find(library, "__hipRegisterFatBinary", &lib.register_binary) &&
         find(library, "__hipUnregisterFatBinary", &lib.unregister_binary) &&
         find(library, "__hipRegisterFunction", &lib.register_function);
}

/* The version that was compiled for first. */
static void load(void) {
  static const char *const names[] = {
      "libamdhip64.so." NAME_OF(HIP_VERSION_MAJOR), "libamdhip64.so.7",
      "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
  void *library = NULL;
  snprintf(why_not, sizeof why_not, "%s is not installed", names[0]);
  for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library || !find_all(library)) return;
  hand_on();
  loaded = 1;
}

const char *mla_hip_load(void) {
  (void)pthread_once(&once, load);
  return loaded ? NULL : why_not;
}

/* ------------------------------------------------------------ handing on */

#define HAND_ON(result, name, parameters, arguments)          \
  result OUR_NAME(name) parameters;                           \
  result OUR_NAME(name) parameters {                          \
    return loaded ? lib.name##_ arguments : hipErrorNoDevice; \
  }
MLA_HIP_CALLS(HAND_ON)

const char *mla_hipGetErrorName(hipError_t code);
const char *mla_hipGetErrorString(hipError_t code);

const char *mla_hipGetErrorName(hipError_t code) {
  return loaded ? lib.error_name(code) : "hipErrorNoDevice";
}

const char *mla_hipGetErrorString(hipError_t code) {
  return loaded ? lib.error_string(code) : why_not;
}

/* What <<<...>>> says, kept for the host function that launches. */
static _Thread_local struct {
  dim3 grid, block;
  size_t shared;
  hipStream_t stream;
} pushed;

hipError_t mla_hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                        hipStream_t stream);
hipError_t mla_hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       hipStream_t *stream);

hipError_t mla_hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                        hipStream_t stream) {
  pushed.grid = grid;
  pushed.block = block;
  pushed.shared = shared;
  pushed.stream = stream;
  return hipSuccess;
}

hipError_t mla_hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       hipStream_t *stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *stream = pushed.stream;
  return hipSuccess;
}
