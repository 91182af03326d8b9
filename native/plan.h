// A plan (docs/plan-format.md) in memory. Reading one checks everything that could send native code outside of its
// memory: every index, every lifetime, every use of a buffer. What a kernel does with its pointers is the planner's
// duty.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "expressions.h"
#include "hash128.h"
#include "live.h"

namespace xyntra {

inline constexpr uint32_t kPlanVersion = 10;  // of the format
inline constexpr uint32_t kNoOffset = 0xffffffff;

enum class BufferKind : uint8_t { kInput, kOutput, kConstant, kPool, kArena, kLiteral, kInit };
inline constexpr uint8_t kBufferKinds = 7;

struct PlanBuffer {
  BufferKind kind{};
  uint32_t index = 0;
  uint32_t size_expr = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  std::string literal;
};

struct BufferUse {
  uint32_t buffer = 0;
  uint32_t offset_expr = kNoOffset;
};

// A tensor in one of the step's buffers that its kernel copies in boxes; the contiguous axis comes first.
struct CopiedTensor {
  uint32_t buffer = 0;  // of the step
  uint32_t element_bytes = 0;
  uint32_t offset_expr = 0;
  std::vector<uint32_t> extents, strides;  // expressions; the first axis has no stride
  std::vector<uint32_t> box;
};

struct PlanStep {
  uint32_t kernel = 0;
  std::string label;
  std::vector<BufferUse> buffers;
  std::vector<uint32_t> params;
  uint32_t units_expr = 0;
  uint32_t cost_expr = 0;
  uint32_t flops_expr = 0;  // for the profile only
  uint32_t bytes_expr = 0;
  std::vector<CopiedTensor> tensors;  // on a device
};

struct PlanCheck {
  uint32_t expr = 0;
  std::string message;
};

// Run steps `first` to `last` are carried out once for each image of a batch, with what they make for one image at a time: that
// stays in the caches. A buffer of `strides` has all images, and an iteration sees its own; the others that live within these
// steps hold one.
struct BatchLoop {
  struct Stride {
    uint32_t buffer = 0;
    uint32_t bytes_expr = 0;  // from one image to the next
  };
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t iterations_expr = 0;
  std::vector<Stride> strides;

  bool contains(std::size_t step) const noexcept { return first <= step && step <= last; }
};

// Run steps `first` to `last`, two or more, that threads carry out side by side: what one of them needs no other one makes.
struct PlanWave {
  uint32_t first = 0;
  uint32_t last = 0;
};

// Data that the model cannot take (an index beyond its axis): steps have put down in `buffer` whether there are any.
struct PlanFault {
  uint32_t buffer = 0;
  std::string message;
};

// One way to carry out an island, for the shapes its guards admit.
struct Alternative {
  Expressions exprs;
  std::vector<uint32_t> guards;
  std::vector<PlanCheck> checks;
  std::vector<std::vector<uint32_t>> output_dims;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> init;
  std::vector<PlanStep> run;
  std::vector<PlanFault> faults;
  std::vector<BatchLoop> loops;  // in the order of their steps, which they share with no other
  std::vector<PlanWave> waves;   // as loops, and outside of them
  // Follow from the above:
  std::vector<uint32_t> arena;   // indices of the ARENA buffers
  std::vector<int32_t> loop_of;  // per buffer: the loop whose iterations have one each, -1 for what there is once
  std::vector<Symbol> elements;  // the symbols that read data
};

struct PlanTensor {
  std::string name;
  int32_t elem_type = 0;
  int32_t rank = 0;  // -1: any (inputs only)
};

struct PlanIsland {
  std::string name;
  std::vector<uint64_t> nodes;  // sorted
  std::vector<PlanTensor> inputs;
  std::vector<PlanTensor> outputs;
  std::vector<std::string> constants;
  std::vector<Alternative> alternatives;
};

struct PlanDepend {
  std::string value;
  Hash128 hash{};
};

struct PlanKernel {
  std::string path;
  std::string symbol;
  Hash128 hash{};
  uint32_t threads = 0;       // of a block, on a device
  uint32_t shared_bytes = 0;  // that a launch gives to a block, on a device
  // The file of a kernel that may take its place once that is there, as `path` is; empty: there is none. On the CPU.
  std::string successor;
  std::string successor_symbol;
};

struct Plan {
  Counted<Live::kPlans> counted;
  std::string digest;
  std::string root;
  std::string device;   // the identity of the device whose programs the kernels are; empty: the CPU
  bool refuse = false;    // the session is to fail with `message`
  bool may_move = false;  // where the device fails, the planner may be asked again, for the CPU
  std::string message;
  int log_level = 0;
  std::string log_line;
  std::string report;
  std::vector<PlanDepend> depends;
  std::vector<PlanKernel> kernels;
  std::vector<PlanIsland> islands;

  std::string successor_path(std::size_t kernel) const { return whole_path(kernels[kernel].successor); }
  std::string whole_path(const std::string& path) const {
    return !path.empty() && path.front() == '/' ? path : root + '/' + path;
  }

  // Throws FormatError on the first thing that is not as the format says.
  static std::shared_ptr<Plan> read(std::string_view bytes);
};

}  // namespace xyntra
