// A plan file, without its checksum: the first bytes say which shapes it is then prepared for. Every address that a kernel would
// be given lies within its buffer.
#include <algorithm>
#include <string>
#include <vector>

#include "element_bytes.h"
#include "fuzz.h"
#include "init_steps.h"
#include "plan.h"
#include "weight_pool.h"
#include "workspace.h"

namespace {

using namespace xyntra;
using fuzz::must;

constexpr std::size_t kShapeBytes = 8;
constexpr std::size_t kMostMemory = std::size_t{1} << 30;

void no_kernel(void* const*, const int64_t*, int64_t, int64_t) {}

// As an input of ORT would be: the data is as large as the shape says.
struct Input {
  std::vector<int64_t> dims;
  std::vector<char> data;
};

Input make_input(const PlanTensor& tensor, const uint8_t* shape, std::size_t number) {
  Input input;
  const std::size_t rank = tensor.rank >= 0 ? static_cast<std::size_t>(tensor.rank) : shape[number % kShapeBytes] % 4;
  if (rank > 8) throw FormatError("more axes than such a graph has");
  for (std::size_t i = 0; i < rank; ++i) input.dims.push_back(shape[(number + i) % kShapeBytes] % 8);
  const std::size_t bytes = tensor_bytes(tensor.elem_type, input.dims.data(), rank);
  if (bytes > kMostMemory) throw std::bad_alloc();
  input.data.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) input.data[i] = static_cast<char>(shape[i % kShapeBytes]);
  return input;
}

// The init steps' addresses, as cpu_island.cc makes them.
void check_init(const Alternative& plan) {
  const InitSteps numbers(plan);
  for (const PlanStep& step : plan.init) {
    numbers.packing(step);
    must(numbers.value(step.units_expr) >= 0, "init steps have no negative size");
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      const int64_t offset = numbers.offset(use);
      must(offset >= 0, "init steps begin in their buffers");
      if (buffer.kind == BufferKind::kConstant) continue;  // of a graph, which is not here (plan_fit.cc)
      const std::size_t bytes = buffer.kind == BufferKind::kLiteral ? buffer.literal.size() : numbers.bytes(buffer);
      must(static_cast<std::size_t>(offset) <= bytes, "init steps begin in their buffers");
    }
  }
}

// Of the images at hand, where there are loops.
void check_addresses(const PlanIsland& island, const Workspace& workspace, const ReadyAlternative& ready,
                     const std::vector<std::size_t>& fixed_bytes) {
  const Evaluation& evaluation = workspace.evaluation();
  const Alternative& plan = evaluation.plan();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const Workspace::Step& step = workspace.steps()[i];
    must(step.units >= 0 && step.tasks >= 1 && step.tasks <= std::max<int64_t>(1, step.units), "tasks share the units");
    must(step.row == plan.run[i].buffers.size() && step.abreast >= 1, "a step has a row of buffers");
    for (std::size_t k = 0; k < plan.run[i].buffers.size(); ++k) {
      const uint32_t number = plan.run[i].buffers[k].buffer;
      const PlanBuffer& buffer = plan.buffers[number];
      const char* base = nullptr;
      std::size_t bytes = 0;
      switch (buffer.kind) {
        case BufferKind::kInput:
          base = static_cast<const char*>(workspace.inputs[buffer.index].data);
          bytes = tensor_bytes(island.inputs[buffer.index].elem_type, workspace.inputs[buffer.index].dims,
                               workspace.inputs[buffer.index].rank);
          break;
        case BufferKind::kOutput:
          base = static_cast<const char*>(workspace.outputs[buffer.index]);
          bytes = tensor_bytes(island.outputs[buffer.index].elem_type, evaluation.output_dims(buffer.index).data(),
                               evaluation.output_dims(buffer.index).size());
          break;
        case BufferKind::kArena:
          bytes = static_cast<std::size_t>(evaluation.value(buffer.size_expr));
          must(evaluation.arena_at(number) + bytes + kSpareBytes <= evaluation.arena_bytes(), "temporaries are in the arena");
          continue;  // the arena itself is not shown
        default:
          base = static_cast<const char*>(ready.fixed[number]);
          bytes = fixed_bytes[number];
          break;
      }
      const auto at = reinterpret_cast<uintptr_t>(step.buffers[k]), begin = reinterpret_cast<uintptr_t>(base);
      must(at >= begin && at - begin <= bytes, "a step begins in its buffer");
    }
    for (std::size_t k = 0; k < plan.run[i].params.size(); ++k)
      must(step.params[k] == evaluation.value(plan.run[i].params[k]), "a step has its own parameters");
  }
}

void check_run(const PlanIsland& island, const uint8_t* shape) {
  std::vector<Input> tensors;
  std::vector<InputView> views;
  for (const PlanTensor& tensor : island.inputs) tensors.push_back(make_input(tensor, shape, tensors.size()));
  for (const Input& input : tensors) views.push_back({input.data.data(), input.dims.data(), input.dims.size()});

  std::vector<std::vector<MemoryBlock>> literals(island.alternatives.size());
  std::vector<ReadyAlternative> alternatives;
  std::vector<std::vector<std::size_t>> fixed_bytes;
  for (const Alternative& plan : island.alternatives) {
    const InitSteps numbers(plan);
    ReadyAlternative& ready = alternatives.emplace_back();
    auto& sizes = fixed_bytes.emplace_back();
    for (const PlanBuffer& buffer : plan.buffers) {
      const bool literal = buffer.kind == BufferKind::kLiteral, pool = buffer.kind == BufferKind::kPool;
      sizes.push_back(literal ? buffer.literal.size() : pool ? numbers.bytes(buffer) : 0);
      if (sizes.back() > kMostMemory) throw std::bad_alloc();
      auto& blocks = literals[alternatives.size() - 1];
      if (literal || pool) blocks.emplace_back(sizes.back() + kSpareBytes, "a constant");
      ready.fixed.push_back(literal || pool ? blocks.back().data() : nullptr);
    }
    ready.kernels.assign(plan.run.size(), no_kernel);
  }

  Workspace workspace(island);
  workspace.inputs = views;
  workspace.prepare(alternatives);
  workspace.prepare(alternatives);  // nothing has changed
  const Evaluation& evaluation = workspace.evaluation();
  const Alternative& plan = evaluation.plan();
  std::vector<MemoryBlock> memory;
  std::vector<void*>& outputs = workspace.outputs;
  for (std::size_t i = 0; i < island.outputs.size(); ++i) {
    const auto& dims = evaluation.output_dims(i);
    const std::size_t bytes = tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size());
    outputs.push_back(memory.emplace_back(std::min<std::size_t>(bytes, kMostMemory), "an output").data());
  }
  workspace.bind();
  must(workspace.steps().size() == plan.run.size(), "every step is there");
  check_addresses(island, workspace, alternatives[evaluation.alternative()], fixed_bytes[evaluation.alternative()]);
  for (const BatchLoop& loop : plan.loops) {
    const int64_t images = evaluation.iterations(loop);
    for (const int64_t image : {int64_t{0}, images / 2, images - 1}) {  // they come in order, so the bounds are those of the ends
      if (image < 0 || image >= images) continue;
      must(workspace.begin_iterations(loop, image) >= 1, "there is an image");
      check_addresses(island, workspace, alternatives[evaluation.alternative()], fixed_bytes[evaluation.alternative()]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size < kShapeBytes) return 0;
  std::string bytes(fuzz::text(data + kShapeBytes, size - kShapeBytes));
  const Hash128 checksum = hash128(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
  std::shared_ptr<const Plan> plan;
  try {
    plan = Plan::read(bytes);
  } catch (const FormatError&) {
    return 0;
  }
  for (const PlanIsland& island : plan->islands) {
    for (const Alternative& alternative : island.alternatives) check_init(alternative);
    if (!plan->device.empty()) continue;
    try {
      check_run(island, data);
    } catch (const Error&) {  // what a run answers
    } catch (const FormatError&) {
    } catch (const std::bad_alloc&) {
    }
  }
  return 0;
}
