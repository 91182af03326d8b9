// Runs a model with a float output on XyntraEP, without Python: from stored plans, or compiled ahead of time.
//
//   xyntra_host ONNXRUNTIME LIBRARY MODEL [--identity CODE CPU COMPILER] [--option KEY VALUE]... [--threads N]
//               [--callers N] [--repeat N] [--sessions N]
//               {--input | --int64-input} NAME DIM,DIM,... --output NAME
//
// A float input is (i % 17 - 8) / 4, one of int64 i % 17; the output is printed, one number a line, after `pool N`, the bytes of packed weights.
// Every caller thread must see the same numbers in every run.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "ort_host.h"
#include "system.h"

namespace {

using xyntra::host::Runtime;
using xyntra::host::Tensor;

struct Arguments {
  std::string runtime, library, model, output;
  std::vector<std::string> identity;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<Tensor> inputs;
  int threads = 1, callers = 1, repeat = 1, sessions = 1;
};

constexpr int kFloat = 1, kInt64 = 7;

template <class T, class Value>
void fill(Tensor& tensor, std::size_t n, Value value) {
  tensor.data.resize(n * sizeof(T));
  for (std::size_t i = 0; i < n; ++i) {
    const T element = value(i);
    std::memcpy(tensor.data.data() + i * sizeof(T), &element, sizeof(T));
  }
}

Tensor make_input(const std::string& name, const std::string& dims, int elem_type) {
  Tensor tensor;
  tensor.name = name;
  tensor.elem_type = elem_type;
  std::size_t n = 1;
  std::istringstream list(dims);
  for (std::string dim; std::getline(list, dim, ',');) {
    tensor.dims.push_back(std::stoll(dim));
    n *= static_cast<std::size_t>(tensor.dims.back());
  }
  if (elem_type == kFloat) {
    fill<float>(tensor, n, [](std::size_t i) { return (static_cast<float>(i % 17) - 8.0F) / 4.0F; });
  } else {
    fill<int64_t>(tensor, n, [](std::size_t i) { return static_cast<int64_t>(i % 17); });
  }
  return tensor;
}

Arguments parse(int argc, char** argv) {
  Arguments result;
  int at = 1;
  const auto next = [&]() -> std::string {
    if (at >= argc) throw std::runtime_error("an argument is missing");
    return argv[at++];
  };
  result.runtime = next();
  result.library = next();
  result.model = next();
  while (at < argc) {
    const std::string flag = next();
    if (flag == "--identity") {
      for (int i = 0; i < 3; ++i) result.identity.push_back(next());
    } else if (flag == "--option") {
      const std::string key = next();
      result.options.emplace_back(key, next());
    } else if (flag == "--input" || flag == "--int64-input") {
      const std::string name = next();
      result.inputs.push_back(make_input(name, next(), flag == "--input" ? kFloat : kInt64));
    } else if (flag == "--output") {
      result.output = next();
    } else if (flag == "--threads") {
      result.threads = std::stoi(next());
    } else if (flag == "--callers") {
      result.callers = std::stoi(next());
    } else if (flag == "--repeat") {
      result.repeat = std::stoi(next());
    } else if (flag == "--sessions") {
      result.sessions = std::stoi(next());
    } else {
      throw std::runtime_error("unknown argument " + flag);
    }
  }
  return result;
}

template <class Function>
Function symbol(void* library, const char* name) {
  void* found = xyntra::system::symbol(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("the library does not export ") + name);
  return reinterpret_cast<Function>(found);
}

std::vector<float> call_from_threads(const std::vector<std::unique_ptr<Runtime::Session>>& sessions,
                                     const Arguments& arguments) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(arguments.callers));
  std::vector<std::string> errors(results.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < results.size(); ++i) {
    callers.emplace_back([&, i] {
      try {
        std::vector<Tensor> inputs = arguments.inputs;
        const auto& session = *sessions[i % sessions.size()];
        results[i] = session.run(inputs, arguments.output);
        for (int k = 1; k < arguments.repeat; ++k) {
          if (session.run(inputs, arguments.output) != results[i]) throw std::runtime_error("two runs differ");
        }
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!errors[i].empty()) throw std::runtime_error(errors[i]);
    if (results[i] != results[0]) throw std::runtime_error("two threads differ");
  }
  return results[0];
}

void run(const Arguments& arguments) {
  Runtime runtime(arguments.runtime);
  std::string why;
  void* library = xyntra::system::open_library(arguments.library, why);
  if (library == nullptr) throw std::runtime_error(why);
  if (!arguments.identity.empty()) {
    using Attach = void (*)(void*, const char*, const char*, const char*, const char*, const char*);
    symbol<Attach>(library, "xyntra_attach")(nullptr, arguments.identity[0].c_str(), arguments.identity[1].c_str(),
                                             arguments.identity[2].c_str(), "", "");
  }
  runtime.register_library("XyntraEP", arguments.library);
  std::vector<std::unique_ptr<Runtime::Session>> sessions;
  for (int i = 0; i < arguments.sessions; ++i) {
    sessions.push_back(
        std::make_unique<Runtime::Session>(runtime, arguments.model, "XyntraEP", arguments.threads, arguments.options));
  }
  const auto output = call_from_threads(sessions, arguments);
  std::printf("pool %llu\n", static_cast<unsigned long long>(symbol<uint64_t (*)()>(library, "xyntra_pool_bytes")()));
  for (const float value : output) std::printf("%.9g\n", static_cast<double>(value));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "xyntra_host: %s\n", error.what());
    return 1;
  }
}
