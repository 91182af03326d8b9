/* Single operations from C, of kernels that were compiled beforehand.
 *
 *   cc run_operations.c $(pkg-config --cflags --libs tracea) -o run_operations
 */
#include <stdio.h>

#include "tracea/tracea.h"

static const char* last_error(void) {
  static char text[512];
  tracea_get_last_error(text, sizeof text);
  return text;
}

static void print(const char* name, const float* values, int n) {
  printf("%s:", name);
  for (int i = 0; i < n; ++i) printf(" %g", (double)values[i]);
  printf("\n");
}

/* Rows times the transpose of a matrix of weights, which strides say, and a bias. */
static TraceaStatus gemm(void) {
  float x[] = {1, 2, 3, 4}, weights[] = {0, 2, 1, 2}, bias[] = {0.5F, 0.5F}, y[4];
  const int64_t square[] = {2, 2}, one_row[] = {2}, transposed[] = {1, 2};
  const TraceaTensorView a = {x, 2, square, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView b = {weights, 2, square, transposed, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView c = {bias, 1, one_row, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView out = {y, 2, square, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaStatus status = tracea_gemm(&a, &b, &c, &out, NULL);
  if (status == TRACEA_SUCCESS) print("gemm", y, 4);
  return status;
}

/* Sums of a pixel and its neighbours. */
static TraceaStatus conv2d(void) {
  float image[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, taps[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, sums[9];
  const int64_t shape[] = {1, 1, 3, 3};
  const TraceaTensorView x = {image, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView w = {taps, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView out = {sums, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaConv2dParams params = {.struct_size = sizeof params, .execution = {.threads = 1}, .padding = {1, 1, 1, 1}};
  const TraceaStatus status = tracea_conv2d(&x, &w, NULL, &out, &params);
  if (status == TRACEA_SUCCESS) print("conv2d", sums, 9);
  return status;
}

/* Two queries of two heads; all keys are the same, so that values are averaged. */
static TraceaStatus attention(void) {
  float zeros[] = {0, 0, 0, 0}, values[] = {1, 3, 2, 4}, y[4];
  const int64_t shape[] = {1, 2, 2, 1};
  const TraceaTensorView q = {zeros, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView v = {values, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView out = {y, 4, shape, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaAttentionParams params = {.struct_size = sizeof params, .is_causal = 1};
  const TraceaStatus status = tracea_attention(&q, &q, &v, &out, &params);
  if (status == TRACEA_SUCCESS) print("attention", y, 4);
  return status;
}

/* Nonsense is a status, and writes nothing. */
static TraceaStatus refused(void) {
  float x[6] = {0}, y[4];
  const int64_t wide[] = {2, 3}, square[] = {2, 2};
  const TraceaTensorView a = {x, 2, wide, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView b = {x, 2, square, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  const TraceaTensorView out = {y, 2, square, NULL, TRACEA_FLOAT32, TRACEA_CPU};
  if (tracea_gemm(&a, &b, NULL, &out, NULL) == TRACEA_SUCCESS) return TRACEA_CPU_ERROR;
  printf("refused: %s\n", last_error());
  return TRACEA_SUCCESS;
}

int main(void) {
  TraceaStatus (*const all[])(void) = {gemm, conv2d, attention, refused};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (all[i]() != TRACEA_SUCCESS) {
      fprintf(stderr, "%s\n", last_error());
      return 1;
    }
  }
  return 0;
}
