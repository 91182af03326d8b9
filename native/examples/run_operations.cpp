// Single operations from C++, of kernels that were compiled beforehand.
#include <cstdio>
#include <vector>

#include "tracea/tracea.hpp"

namespace {

void print(const char* name, const std::vector<float>& values) {
  std::printf("%s:", name);
  for (const float value : values) std::printf(" %g", static_cast<double>(value));
  std::printf("\n");
}

// Threads of the program's own would do this; a server has a pool.
void one_by_one(std::size_t tasks, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < tasks; ++i) task(i);
}

}  // namespace

int main() {
  try {
    // Rows times the transpose of a matrix of weights, which strides say, and a bias.
    std::vector<float> x = {1, 2, 3, 4}, weights = {0, 2, 1, 2}, bias = {0.5F, 0.5F}, y(4);
    tracea::gemm({x.data(), {2, 2}}, tracea::TensorView(weights.data(), {2, 2}).with_stride({1, 2}),
                 tracea::TensorView(bias.data(), {2}), {y.data(), {2, 2}});
    print("gemm", y);

    // Sums of a pixel and its neighbours.
    std::vector<float> image = {1, 2, 3, 4, 5, 6, 7, 8, 9}, sums(9);
    const std::vector<float> taps(9, 1.0F);
    tracea::Conv2dParams params;
    params.padding = {1, 1, 1, 1};
    params.execution.parallel_for = one_by_one;
    tracea::conv2d({image.data(), {1, 1, 3, 3}}, {taps.data(), {1, 1, 3, 3}}, std::nullopt, {sums.data(), {1, 1, 3, 3}}, params);
    print("conv2d", sums);

    // Two queries of two heads; all keys are the same, so that values are averaged.
    std::vector<float> zeros(4), values = {1, 3, 2, 4};
    const tracea::TensorView q(zeros.data(), {1, 2, 2, 1});
    tracea::AttentionParams causal;
    causal.is_causal = true;
    tracea::attention(q, q, {values.data(), {1, 2, 2, 1}}, {y.data(), {1, 2, 2, 1}}, causal);
    print("attention", y);
  } catch (const tracea::Error& error) {
    std::fprintf(stderr, "status %d: %s\n", error.status(), error.what());
    return 1;
  }
  try {
    std::vector<float> x(6), y(4);
    tracea::gemm({x.data(), {2, 3}}, {x.data(), {2, 2}}, std::nullopt, {y.data(), {2, 2}});
  } catch (const std::runtime_error& error) {
    std::printf("refused: %s\n", error.what());
  }
  return 0;
}
