// An application's side of ONNX Runtime's C API, as little of it as the test host needs. Stands for the C++ and C#
// programs that load the provider without Python.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ort_abi.h"

struct OrtEnv;
struct OrtMemoryInfo;
struct OrtRunOptions;
struct OrtSession;

namespace xyntra::host {

struct Tensor {
  std::string name;
  std::vector<int64_t> dims;
  int elem_type = 0;  // of ONNX
  std::vector<char> data;
};

class Runtime {
 public:
  // `path`: a libonnxruntime.so. Throws std::runtime_error, like everything here.
  explicit Runtime(const std::string& path);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void register_library(const std::string& name, const std::string& path);

  class Session {
   public:
    Session(const Runtime& runtime, const std::string& model, const std::string& provider, int threads,
            const std::vector<std::pair<std::string, std::string>>& options);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    // Any number of threads may run one session.
    std::vector<float> run(std::vector<Tensor>& inputs, const std::string& output) const;

   private:
    const Runtime& runtime_;
    OrtSession* session_ = nullptr;
  };

 private:
  void check(OrtStatus* status) const;
  std::vector<const OrtEpDevice*> devices_of(const std::string& provider) const;

  FunctionTable api_;
  OrtEnv* env_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
};

}  // namespace xyntra::host
