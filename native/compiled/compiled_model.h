// A model that was compiled ahead of time (docs/compiled-models.md): a plan and its kernels for each of some instruction sets, in
// one string. It holds native code, so it is to be trusted as a program is; what is checked here keeps a damaged file, one of
// another version, or one for another machine from being executed halfway.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hash128.h"

namespace xyntra {

class CompiledModel {
 public:
  struct Target {
    std::string isa;                    // as `xyntra compile --isa` names it
    std::vector<std::string> features;  // that its kernels need (cpu_features.h)
    std::string_view plan;              // docs/plan-format.md
  };

  // What the model said of a tensor that plans were made for. Sizes that they do not rely on are -1.
  struct Tensor {
    std::string name;
    int32_t elem_type = 0;
    bool is_constant = false;
    bool has_shape = false;
    std::vector<int64_t> dims;
  };

  // Whether the bytes begin as one does.
  static bool is_one(std::string_view bytes) noexcept;
  // Throws FormatError on the first thing that is not as the format says. Of the plans only that there are some is looked at.
  static std::shared_ptr<const CompiledModel> read(std::string bytes);

  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  const std::string& bytes() const noexcept { return bytes_; }
  // What it is known by: of all its bytes.
  const std::string& name() const noexcept { return name_; }
  const std::string& release() const noexcept { return release_; }
  const std::vector<Target>& targets() const noexcept { return targets_; }  // the best first
  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
  // What the node of an island reads, in this order: positions in tensors(). One list for each island, the same for all targets.
  const std::vector<std::vector<uint32_t>>& islands() const noexcept { return islands_; }
  // The first target that this machine can execute; null where there is none, and then `why_not` says why.
  const Target* best(std::string& why_not) const;
  // A kernel's file; empty when there is none of this hash.
  std::string_view kernel(const Hash128& hash) const;
  // What it needs of its reader and its machine, for ONNX Runtime to keep in the model.
  std::string compatibility() const;

 private:
  CompiledModel() = default;

  std::string bytes_, name_, release_;
  std::vector<Target> targets_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<uint32_t>> islands_;
  std::map<Hash128, std::string_view> kernels_;
};

// How well this machine and this release can carry out what has said `text` of itself: a CompiledModelCompatibility of ONNX Runtime.
// Where that is not at all, `why_not` says why.
int judge_compatibility(std::string_view text, std::string& why_not);

}  // namespace xyntra
