/* Tracea: models that were compiled by `xyntra compile`, and single operations, in a program without Python and without ONNX
 * Runtime.
 *
 *   TraceaModel* model = NULL;
 *   if (tracea_model_open("compiled.onnx", NULL, &model) != TRACEA_SUCCESS) ... tracea_get_last_error(text, sizeof text);
 *   int64_t shape[2] = {4, 64};
 *   TraceaTensorView x = {data, 2, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
 *   TraceaTensorView y = ...;
 *   tracea_model_run(model, &x, 1, &y, 1);
 *   tracea_model_close(model);
 *
 * C11. No exception crosses this border, and no memory that one side has to free for the other, but a model, which
 * tracea_model_close() takes. Every function may be called by any thread; any number of them may run one model. A compiled model
 * holds native code: open one only if you would start a program from where it comes from.
 */
#ifndef TRACEA_TRACEA_H
#define TRACEA_TRACEA_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(TRACEA_BUILDS)
#define TRACEA_API __declspec(dllexport)
#elif !defined(_WIN32) && defined(__GNUC__)
#define TRACEA_API __attribute__((visibility("default")))
#else
#define TRACEA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. The library's is what tracea_abi_version() says; it can serve all up to its own. */
#define TRACEA_ABI_VERSION 3

typedef enum TraceaStatus {
  TRACEA_SUCCESS = 0,
  TRACEA_INVALID_PARAMS = 1,     /* an argument is wrong; the model or the next call is not affected */
  TRACEA_UNSUPPORTED_CONFIG = 2, /* this release, or this machine, cannot do it */
  TRACEA_CUDA_ERROR = 3,
  TRACEA_CPU_ERROR = 4,
  TRACEA_OUT_OF_MEMORY = 5,
  TRACEA_INVALID_MODEL = 6, /* a model that is damaged, or refused */
  TRACEA_FILE_ERROR = 7,    /* a file that cannot be read */
  TRACEA_DEVICE_LOST = 8    /* nothing works any more on the device of the model: see tracea_is_fatal() */
} TraceaStatus;

/* ONNX's numbers of element types. */
typedef enum TraceaDType {
  TRACEA_FLOAT32 = 1,
  TRACEA_UINT8 = 2,
  TRACEA_INT8 = 3,
  TRACEA_UINT16 = 4,
  TRACEA_INT16 = 5,
  TRACEA_INT32 = 6,
  TRACEA_INT64 = 7,
  TRACEA_BOOL = 9,
  TRACEA_FLOAT16 = 10,
  TRACEA_FLOAT64 = 11,
  TRACEA_UINT32 = 12,
  TRACEA_UINT64 = 13,
  TRACEA_BFLOAT16 = 16
} TraceaDType;

#define TRACEA_CPU (-1)
#define TRACEA_MAX_RANK 16

/* A tensor in the caller's memory. `stride` is in elements, NULL for one without gaps in row-major order. `device_id`: TRACEA_CPU, or
 * the number of a CUDA device. */
typedef struct TraceaTensorView {
  void* ptr;
  uint32_t rank;
  const int64_t* shape;
  const int64_t* stride;
  TraceaDType dtype;
  int32_t device_id;
} TraceaTensorView;

/* What a model says of an input or output; pointers are valid until the model is closed. `rank` -1: any. A size is -1 where it is
 * not fixed, and `symbol[i]` its name then, or "". Set `struct_size` to sizeof(TraceaTensorInfo) before the call. */
typedef struct TraceaTensorInfo {
  size_t struct_size;
  const char* name;
  TraceaDType dtype;
  int32_t rank;
  const int64_t* shape;
  const char* const* symbol;
} TraceaTensorInfo;

/* Calls task(argument, i) for each i below `count`, in any order and on any threads, and returns when all have returned. */
typedef void (*TraceaParallelFor)(void* user, size_t count, void (*task)(void* argument, size_t i), void* argument);

/* Set `struct_size` to sizeof(TraceaModelOptions) and the rest to 0 or NULL where nothing else is wanted. */
typedef struct TraceaModelOptions {
  size_t struct_size;
  uint32_t threads;               /* of the library that take part in a run, the caller's among them; 0: one per processor */
  TraceaParallelFor parallel_for; /* threads of your own instead; NULL: the library's */
  void* parallel_for_user;        /* its first argument */
  const char* digests;            /* a file with the SHA-256 of what may be executed (`xyntra compile --digest`); NULL: not asked for */
} TraceaModelOptions;

typedef struct TraceaModel TraceaModel;

/* -- the library */

TRACEA_API const char* tracea_version(void);
TRACEA_API uint32_t tracea_abi_version(void);
/* What the last call of this thread that failed has said, "" where none has. Copied, cut to `capacity`, with a 0 at its end; returns
 * how many bytes it has without that. `buffer` may be NULL where `capacity` is 0. */
TRACEA_API size_t tracea_get_last_error(char* buffer, size_t capacity);
TRACEA_API void tracea_clear_error(void);
/* Of a call that returned `status`: 0 when it has failed by itself, and the next one with the same model may do; else each
 * further run of the model fails in the same way, and what helps is to close it and open it again. On the CPU nothing is
 * fatal. */
TRACEA_API int tracea_is_fatal(TraceaStatus status);

/* -- models */

/* `options` may be NULL. Weights are packed now, on this thread. Where it fails nothing of the model was executed, and `*model` is
 * NULL. */
TRACEA_API TraceaStatus tracea_model_open(const char* path, const TraceaModelOptions* options, TraceaModel** model);
/* The same from memory, which is read now and not kept: nothing beside the model can be read then. */
TRACEA_API TraceaStatus tracea_model_open_bytes(const void* bytes, size_t n, const TraceaModelOptions* options, TraceaModel** model);
/* NULL is left alone. No run may be going on. */
TRACEA_API void tracea_model_close(TraceaModel* model);

TRACEA_API TraceaStatus tracea_model_counts(const TraceaModel* model, size_t* inputs, size_t* outputs);
TRACEA_API TraceaStatus tracea_model_input(const TraceaModel* model, size_t number, TraceaTensorInfo* info);
TRACEA_API TraceaStatus tracea_model_output(const TraceaModel* model, size_t number, TraceaTensorInfo* info);

/* The sizes that output `number` has for such inputs. `shape` has room for TRACEA_MAX_RANK. Sizes may depend on the inputs' data; of a
 * model with several islands all but the last are computed. */
TRACEA_API TraceaStatus tracea_model_output_shape(const TraceaModel* model, const TraceaTensorView* inputs, size_t n_inputs,
                                                  size_t number, uint32_t* rank, int64_t* shape);
/* Inputs and outputs in the model's order, without gaps, on the CPU. Outputs have the sizes that tracea_model_output_shape() says, and
 * overlap neither each other nor an input. */
TRACEA_API TraceaStatus tracea_model_run(const TraceaModel* model, const TraceaTensorView* inputs, size_t n_inputs,
                                         const TraceaTensorView* outputs, size_t n_outputs);

/* -- operations: of prebuilt kernels, which are opened when one is first called. They are in the folder tracea/prebuilt beside the
 * library, or the one that the environment variable XYNTRA_PREBUILT_DIR names.
 *
 * Of float32 on the CPU. Any strides are taken that are not negative: a tensor with gaps is copied to memory that the call frees before
 * it returns. Of an output no two elements are at one address, and from its first to its last address it overlaps no input.
 * Params may be NULL; set their `struct_size`, and the rest to 0 where nothing else is wanted. */

typedef struct TraceaExecution {
  uint32_t threads; /* as in TraceaModelOptions */
  TraceaParallelFor parallel_for;
  void* parallel_for_user;
  void* stream; /* NULL on the CPU */
} TraceaExecution;

typedef struct TraceaGemmParams {
  size_t struct_size;
  TraceaExecution execution;
} TraceaGemmParams;

/* out[...,M,N] = a[...,M,K] b[...,K,N] + bias[N] where that is not NULL. `...` is nothing or one axis; `b` may lack it, and is shared
 * then. A matrix that strides transpose is no gap in `b`. */
TRACEA_API TraceaStatus tracea_gemm(const TraceaTensorView* a, const TraceaTensorView* b, const TraceaTensorView* bias,
                                    const TraceaTensorView* out, const TraceaGemmParams* params);

typedef struct TraceaConv2dParams {
  size_t struct_size;
  TraceaExecution execution;
  int64_t stride[2];   /* of rows and columns; 0: 1 */
  int64_t padding[4];  /* with zeros: top, left, bottom, right */
  int64_t dilation[2]; /* 0: 1 */
  int64_t groups;      /* 0: 1 */
} TraceaConv2dParams;

/* x[N,C,H,W], w[M,C/groups,R,S], bias[M] or NULL, out[N,M,P,Q], as ONNX's Conv. P is
 * (H + padding[0] + padding[2] - dilation[0] * (R - 1) - 1) / stride[0] + 1, rounded down, and Q likewise. */
TRACEA_API TraceaStatus tracea_conv2d(const TraceaTensorView* x, const TraceaTensorView* w, const TraceaTensorView* bias,
                                      const TraceaTensorView* out, const TraceaConv2dParams* params);

typedef struct TraceaAttentionParams {
  size_t struct_size;
  TraceaExecution execution;
  float scale;       /* of scores; 0: 1/sqrt(D) */
  int32_t is_causal; /* not 0: query i sees keys 0 to i */
} TraceaAttentionParams;

/* out[B,H,S,E] = softmax(scale * q[B,H,S,D] k[B,G,T,D]^T) v[B,G,T,E]; H is a multiple of G, and as many heads share keys and values. */
TRACEA_API TraceaStatus tracea_attention(const TraceaTensorView* q, const TraceaTensorView* k, const TraceaTensorView* v,
                                         const TraceaTensorView* out, const TraceaAttentionParams* params);

/* -- profile: time by step, of all models of the process */

TRACEA_API TraceaStatus tracea_profile(int on);
/* What was measured since the last call, a line of JSON for each step. `*needed` is its size; it is copied, and forgotten, when
 * `capacity` suffices. */
TRACEA_API TraceaStatus tracea_take_profile(char* buffer, size_t capacity, size_t* needed);

#ifdef __cplusplus
}
#endif

#endif
