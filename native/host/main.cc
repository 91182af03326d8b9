// Runs a model of one float input and one float output on XyntraEP, without Python, from stored plans.
//
//   xyntra_host ONNXRUNTIME LIBRARY MODEL [--identity CODE CPU COMPILER] [--option KEY VALUE]... [--threads N]
//               [--callers N] [--repeat N] [--sessions N] --input NAME DIM,DIM,... --output NAME
//
// The input is (i % 17 - 8) / 4; the output is printed, one number a line, after `pool N`, the bytes of packed weights.
// Every caller thread must see the same numbers in every run.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "ort_host.h"

namespace {

using xyntra::host::FloatTensor;
using xyntra::host::Runtime;

struct Arguments {
  std::string runtime, library, model, output;
  std::vector<std::string> identity;
  std::vector<std::pair<std::string, std::string>> options;
  FloatTensor input;
  int threads = 1, callers = 1, repeat = 1, sessions = 1;
};

FloatTensor make_input(const std::string& name, const std::string& dims) {
  FloatTensor tensor;
  tensor.name = name;
  std::size_t n = 1;
  std::istringstream list(dims);
  for (std::string dim; std::getline(list, dim, ',');) {
    tensor.dims.push_back(std::stoll(dim));
    n *= static_cast<std::size_t>(tensor.dims.back());
  }
  for (std::size_t i = 0; i < n; ++i) tensor.data.push_back((static_cast<float>(i % 17) - 8.0F) / 4.0F);
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
    } else if (flag == "--input") {
      const std::string name = next();
      result.input = make_input(name, next());
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
  void* found = dlsym(library, name);
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
        FloatTensor input = arguments.input;
        const auto& session = *sessions[i % sessions.size()];
        results[i] = session.run(input, arguments.output);
        for (int k = 1; k < arguments.repeat; ++k) {
          if (session.run(input, arguments.output) != results[i]) throw std::runtime_error("two runs differ");
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
  void* library = dlopen(arguments.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
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
