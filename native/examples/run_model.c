/* Runs a compiled model of float inputs and outputs from C: `run_model compiled.onnx 4` takes 4 for each size that is not fixed.
 *
 *   cc run_model.c $(pkg-config --cflags --libs tracea) -o run_model
 */
#include <stdio.h>
#include <stdlib.h>

#include "tracea/tracea.h"

enum { MOST = 8 };

static int fail(const char* what) {
  char text[512];
  tracea_get_last_error(text, sizeof text);
  fprintf(stderr, "%s: %s\n", what, text);
  return 1;
}

static size_t count(const int64_t* shape, uint32_t rank) {
  size_t n = 1;
  for (uint32_t i = 0; i < rank; ++i) n *= (size_t)shape[i];
  return n;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "run_model MODEL SIZE\n");
    return 2;
  }
  TraceaModelOptions options = {.struct_size = sizeof options, .threads = 2};
  TraceaModel* model = NULL;
  if (tracea_model_open(argv[1], &options, &model) != TRACEA_SUCCESS) return fail(argv[1]);

  size_t n_inputs = 0, n_outputs = 0;
  tracea_model_counts(model, &n_inputs, &n_outputs);
  if (n_inputs > MOST || n_outputs > MOST) return 1;
  TraceaTensorView inputs[MOST], outputs[MOST];
  int64_t shapes[2 * MOST][TRACEA_MAX_RANK];
  int status = 0;
  for (size_t i = 0; i < n_inputs; ++i) {
    TraceaTensorInfo info = {.struct_size = sizeof info};
    tracea_model_input(model, i, &info);
    for (int32_t k = 0; k < info.rank; ++k) shapes[i][k] = info.shape[k] < 0 ? atoll(argv[2]) : info.shape[k];
    const size_t n = count(shapes[i], (uint32_t)info.rank);
    float* data = malloc(n * sizeof *data + 1);
    for (size_t k = 0; k < n; ++k) data[k] = ((float)(k % 17) - 8.0F) / 4.0F;
    inputs[i] = (TraceaTensorView){data, (uint32_t)info.rank, shapes[i], NULL, info.dtype, TRACEA_CPU};
  }
  for (size_t i = 0; i < n_outputs; ++i) {
    TraceaTensorInfo info = {.struct_size = sizeof info};
    tracea_model_output(model, i, &info);
    uint32_t rank = 0;
    int64_t* shape = shapes[MOST + i];
    if (tracea_model_output_shape(model, inputs, n_inputs, i, &rank, shape) != TRACEA_SUCCESS) return fail("output_shape");
    outputs[i] = (TraceaTensorView){malloc(count(shape, rank) * sizeof(float) + 1), rank, shape, NULL, info.dtype, TRACEA_CPU};
  }
  if (tracea_model_run(model, inputs, n_inputs, outputs, n_outputs) != TRACEA_SUCCESS) status = fail("run");
  for (size_t i = 0; i < n_outputs && status == 0; ++i) {
    const float* data = outputs[i].ptr;
    for (size_t k = 0; k < count(outputs[i].shape, outputs[i].rank); ++k) printf("%.9g\n", (double)data[k]);
  }
  for (size_t i = 0; i < n_inputs; ++i) free(inputs[i].ptr);
  for (size_t i = 0; i < n_outputs; ++i) free(outputs[i].ptr);
  tracea_model_close(model);
  return status;
}
