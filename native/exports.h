// The C functions of libxyntra_ep. ORT calls the first two; the others are for Python (ctypes) and other hosts.
// CMakeLists.txt lists the same names for the linker.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ort_abi.h"
#include "planner_link.h"

#if defined(_WIN32)
#define XYNTRA_EXPORT extern "C" __declspec(dllexport)
#else
#define XYNTRA_EXPORT extern "C" __attribute__((visibility("default")))
#endif

XYNTRA_EXPORT OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base, const OrtLogger* logger,
                                           OrtEpFactory** factories, std::size_t most, std::size_t* n) noexcept;
XYNTRA_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept;

// Makes `callback` the planner. The identity strings enter every digest: plans made under other ones are not used. So
// do the values that the environment variables in `watched` (one per line) have when a session is created.
XYNTRA_EXPORT void xyntra_attach(xyntra::PlannerCallback callback, const char* code_version, const char* cpu_features,
                                 const char* compiler_id, const char* default_cache_dir, const char* watched) noexcept;
// Python is about to go: no planner is called any more, and Python's threads do not go back to it (native/python_end.h).
XYNTRA_EXPORT void xyntra_python_ends(int (*is_going)(), void* (*python_thread)()) noexcept;
// To be called once within the callback: a plan (is_plan = 1), or the reason why there is none.
XYNTRA_EXPORT void xyntra_reply(void* reply, int is_plan, const void* bytes, uint64_t n) noexcept;

// A message of Python's for ONNX Runtime's log (a LogLevel of native/ort_abi.h). Returns 1, or 0 while no runtime has the provider.
XYNTRA_EXPORT int xyntra_say(int level, const char* message) noexcept;

XYNTRA_EXPORT const char* xyntra_version() noexcept;
// The ORT API number in use; 0 before ORT has loaded the library.
XYNTRA_EXPORT uint32_t xyntra_api_version() noexcept;
XYNTRA_EXPORT void xyntra_hash128(const void* data, uint64_t n, uint8_t* hash) noexcept;
XYNTRA_EXPORT uint64_t xyntra_pool_bytes() noexcept;
// What the process holds of ours, counted, as JSON (native/live.h): its size; copied when `capacity` suffices.
XYNTRA_EXPORT uint64_t xyntra_counts(char* buffer, uint64_t capacity) noexcept;
// After how many milliseconds memory goes that no run has used (native/quiet.h); returns the last number.
XYNTRA_EXPORT int64_t xyntra_quiet_ms(int64_t ms) noexcept;
// Lets pages go that were read from a file (native/file_pages.h); returns how many bytes.
XYNTRA_EXPORT uint64_t xyntra_give_back_file_pages(const void* data, uint64_t bytes) noexcept;

// The size of what there is to take (0: nothing); it is copied and forgotten when `capacity` suffices.
XYNTRA_EXPORT uint64_t xyntra_take_report(const char* token, char* buffer, uint64_t capacity) noexcept;
// Whether a file may decide what is executed (native/trusted_file.h): 0 yes, 1 it is missing, 2 somebody else can have made it, 3 it
// cannot be used; in `why`, cut to its capacity, what speaks against it.
XYNTRA_EXPORT int xyntra_distrust(const char* path, uint64_t most_bytes, char* why, uint64_t capacity) noexcept;
// What is timed from now on: 0 nothing, 1 each step by itself, 2 the runs of islands on devices as they are (native/profile.h).
XYNTRA_EXPORT void xyntra_profile(int what) noexcept;
XYNTRA_EXPORT uint64_t xyntra_take_profile(char* buffer, uint64_t capacity) noexcept;
// What happens from now on goes into the trace (native/trace.h): 0 nothing, 1 on devices whole runs, 2 each step. `records`: a
// power of two, how many the ring has if it is the first. Returns the ring's descriptor, which stays the library's; -1 where there
// is none.
XYNTRA_EXPORT int xyntra_trace(int detail, uint64_t records) noexcept;
// What is asked for where neither a session nor the environment says something: as the option `trace`.
XYNTRA_EXPORT void xyntra_trace_unless_told(const char* option) noexcept;
// The ring's descriptor and, in `detail`, what goes into it at the moment.
XYNTRA_EXPORT int xyntra_trace_ring(int* detail) noexcept;
// How many files sessions want the trace in.
XYNTRA_EXPORT uint64_t xyntra_trace_files() noexcept;
// Of Python's side: a stage of planning on the calling thread; times are CLOCK_MONOTONIC.
XYNTRA_EXPORT void xyntra_trace_stage(const char* name, int64_t begin_ns, int64_t end_ns) noexcept;

// How many CUDA devices there seem to be, without asking the driver; -1 where only it knows (native/cuda/cuda_presence.h).
// `gpus`: another folder to look in, or null.
XYNTRA_EXPORT int xyntra_cuda_at_hand(const char* gpus) noexcept;
// The devices of this machine whose identities begin with `prefix`, as JSON (native/driver/driver_device.h): its size; copied, cut
// to `capacity`. Only of drivers that list them so.
XYNTRA_EXPORT uint64_t xyntra_devices(const char* prefix, char* buffer, uint64_t capacity) noexcept;

// Has a device's driver compile a program and writes its binary to a file. Returns 1; or 0 with the reason in `why`, cut to its
// capacity.
XYNTRA_EXPORT int xyntra_device_compile(const char* device, const char* source, const char* options, const char* path,
                                        char* why, uint64_t capacity) noexcept;

// Launches a kernel that was compiled for the device, alone, and writes the nanoseconds of `runs` launches, by the device's clock,
// to `ns` (native/kernel_timing.h). `hash`: of the file, 16 bytes. Returns as xyntra_device_compile.
XYNTRA_EXPORT int xyntra_time_kernel(const char* device, const char* path, const uint8_t* hash, const char* symbol,
                                     uint32_t threads, int64_t units, const uint64_t* buffer_bytes, uint32_t buffers,
                                     const int32_t* params, uint32_t n_params, int64_t* ns, uint32_t runs, char* why,
                                     uint64_t capacity) noexcept;

// Runs an island of a plan in a file, alone (native/island_trial.h). Input i has `ranks[i]` of `dims`, which follow each other. Of
// `timed` further runs, nanoseconds go to `all_ns` and `kernels_ns`. Returns as xyntra_device_compile.
XYNTRA_EXPORT int xyntra_run_island(const char* plan, uint32_t island, const void* const* inputs, const uint32_t* ranks,
                                    const int64_t* dims, uint32_t n_inputs, const void* const* constants,
                                    const uint64_t* constant_bytes, uint32_t n_constants, void* const* outputs,
                                    uint32_t n_outputs, uint32_t threads, uint64_t between_bytes, int64_t* all_ns,
                                    int64_t* kernels_ns, uint32_t timed, char* why, uint64_t capacity) noexcept;
// Writes the nanoseconds of `timed` copies of so many bytes to the device and back (native/copy_timing.h). Returns as
// xyntra_device_compile.
XYNTRA_EXPORT int xyntra_time_copies(const char* device, uint64_t bytes, int64_t* there_ns, int64_t* back_ns, uint32_t timed,
                                     char* why, uint64_t capacity) noexcept;

// Opens an island of a plan in memory, for the CPU (native/opened_island.h); the constants are in the plan's order, and nobody reads
// them afterwards. Returns what stands for it, which any number of threads may run; or null with the reason in `why`, cut to its
// capacity.
XYNTRA_EXPORT void* xyntra_open_island(const void* plan, uint64_t plan_bytes, uint32_t island, const void* const* constants,
                                       const uint64_t* constant_bytes, uint32_t n_constants, char* why,
                                       uint64_t capacity) noexcept;
// The dims of all outputs for these inputs, one output's after the other's, to `output_dims`, which has room for `n_output_dims`.
// Inputs are as in xyntra_run_island. Returns as xyntra_device_compile.
XYNTRA_EXPORT int xyntra_output_dims(void* opened, const void* const* inputs, const uint32_t* ranks, const int64_t* dims,
                                     uint32_t n_inputs, int64_t* output_dims, uint32_t n_output_dims, char* why,
                                     uint64_t capacity) noexcept;
// Runs an opened island on up to `threads` threads, the caller's among them. `outputs` have room for what xyntra_output_dims says of
// these inputs. Returns as xyntra_device_compile.
XYNTRA_EXPORT int xyntra_run_opened(void* opened, const void* const* inputs, const uint32_t* ranks, const int64_t* dims,
                                    uint32_t n_inputs, void* const* outputs, uint32_t n_outputs, uint32_t threads, char* why,
                                    uint64_t capacity) noexcept;
// Nobody runs it any more.
XYNTRA_EXPORT void xyntra_close_island(void* opened) noexcept;
