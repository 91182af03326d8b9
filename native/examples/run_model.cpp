// Runs a compiled model of float inputs and outputs from C++: `run_model compiled.onnx 4` takes 4 for each size that is not fixed.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tracea/tracea.hpp"

namespace {

std::size_t count(const std::vector<int64_t>& shape) {
  std::size_t n = 1;
  for (const int64_t size : shape) n *= static_cast<std::size_t>(size);
  return n;
}

// Threads of the program's own; a server has a pool.
void on_two_threads(std::size_t tasks, const std::function<void(std::size_t)>& task) {
  std::thread other([&] {
    for (std::size_t i = 1; i < tasks; i += 2) task(i);
  });
  for (std::size_t i = 0; i < tasks; i += 2) task(i);
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "run_model MODEL SIZE\n");
    return 2;
  }
  try {
    const tracea::Model model(argv[1], {0, "", on_two_threads});
    std::vector<std::vector<float>> data;
    std::vector<tracea::TensorView> inputs, outputs;
    data.reserve(64);
    for (const tracea::TensorInfo& info : model.inputs()) {
      std::vector<int64_t> shape = info.shape;
      for (int64_t& size : shape) size = size < 0 ? std::atoll(argv[2]) : size;
      std::vector<float>& input = data.emplace_back(count(shape));
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = (static_cast<float>(i % 17) - 8.0F) / 4.0F;
      inputs.emplace_back(input.data(), shape);
    }
    const std::size_t n_outputs = model.outputs().size();
    for (std::size_t i = 0; i < n_outputs; ++i) {
      const std::vector<int64_t> shape = model.output_shape(inputs, i);
      outputs.emplace_back(data.emplace_back(count(shape)).data(), shape);
    }
    model.run(inputs, outputs);
    for (std::size_t i = data.size() - n_outputs; i < data.size(); ++i) {
      for (const float value : data[i]) std::printf("%.9g\n", static_cast<double>(value));
    }
    return 0;
  } catch (const tracea::Error& error) {
    std::fprintf(stderr, "status %d: %s\n", error.status(), error.what());
    return 1;
  }
}
