/*
 * gpu_rt.h - the run-time calls a device backend makes, CUDA or HIP.
 */
#ifndef MLA_GPU_RT_H
#define MLA_GPU_RT_H

#include "gpu_port.h"

#if defined(MLA_GPU_PLATFORM)
/* The platform's header has these too. */
#elif defined(MLA_GPU_HIP)
#define MLA_RT(name) hip##name
#define MLA_GPU_SPACE MLA_MEMORY_ROCM
typedef hipDeviceProp_t mla_rt_prop;
#else
#define MLA_RT(name) cuda##name
#define MLA_GPU_SPACE MLA_MEMORY_CUDA
typedef cudaDeviceProp mla_rt_prop;
#endif

/* Devices that are known by a name ("gfx942:sramecc+:xnack-"), not a number. */
#if defined(MLA_GPU_PLATFORM) || \
    (defined(MLA_GPU_HIP) && !defined(__HIP_PLATFORM_NVIDIA__))
#define MLA_GPU_NAMED_ARCH 1
#endif

typedef MLA_RT(Error_t) mla_rt_error;
typedef MLA_RT(Stream_t) mla_rt_stream;
typedef MLA_RT(Event_t) mla_rt_event;
typedef MLA_RT(Graph_t) mla_rt_graph;
typedef MLA_RT(GraphExec_t) mla_rt_exec;

#endif
