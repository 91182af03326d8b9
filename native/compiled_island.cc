#include "compiled_island.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <unordered_map>

#include "graph_access.h"
#include "memory_block.h"
#include "profile.h"

namespace xyntra {
namespace {

std::vector<const OrtValue*> find_constants(const Ort& ort, const OrtGraph* graph,
                                            const std::vector<std::string>& names) {
  std::vector<const OrtValue*> found(names.size());
  if (names.empty()) return found;
  std::unordered_map<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) wanted.emplace(names[i], i);
  // Through the nodes' inputs: the graph's own list of initializers lacks those of an outer scope.
  std::vector<const OrtValueInfo*> infos;
  const auto look = [&](const OrtNode* node, auto count, auto fill) {
    get_all(ort, node, count, fill, infos);
    for (const auto* info : infos) {
      if (info == nullptr) continue;
      const auto name = wanted.find(get(ort, info, api::kGetValueInfoName));
      if (name == wanted.end() || found[name->second] != nullptr) continue;
      found[name->second] = get(ort, info, api::kValueInfoGetInitializerValue);
    }
  };
  for (const auto* node : get_all(ort, graph, api::kGraphGetNumNodes, api::kGraphGetNodes)) {
    look(node, api::kNodeGetNumInputs, api::kNodeGetInputs);
    look(node, api::kNodeGetNumImplicitInputs, api::kNodeGetImplicitInputs);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found[i] == nullptr) throw Error(kFail, "XyntraEP: the constant '" + names[i] + "' is gone");
  }
  return found;
}

// Memory of the init steps: temporaries live from their first to their last use, weights until they are pooled.
std::vector<std::size_t> last_uses(const Alternative& plan) {
  std::vector<std::size_t> last(plan.buffers.size());
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    for (const BufferUse& use : plan.init[i].buffers) last[use.buffer] = i;
  }
  return last;
}

// What a step packs, in numbers: equal for equal weights of an island. Empty unless the step reads constants only and is the
// only one to touch one weight, which it then makes.
std::vector<int64_t> packing_of(const Alternative& plan, const PlanStep& step, const std::vector<int64_t>& values,
                                const std::vector<uint32_t>& steps_with) {
  std::vector<int64_t> key{step.kernel, values[step.units_expr], static_cast<int64_t>(step.params.size())};
  for (const uint32_t param : step.params) key.push_back(values[param]);
  std::size_t weights = 0;
  for (const BufferUse& use : step.buffers) {
    const PlanBuffer& buffer = plan.buffers[use.buffer];
    const bool is_weight = buffer.kind == BufferKind::kPool && steps_with[use.buffer] == 1;
    if (!is_weight && buffer.kind != BufferKind::kConstant) return {};
    weights += is_weight ? 1 : 0;
    key.push_back(is_weight ? 1 : 0);
    key.push_back(is_weight ? values[buffer.size_expr] : static_cast<int64_t>(buffer.index));
    key.push_back(use.offset_expr == kNoOffset ? 0 : values[use.offset_expr]);
  }
  return weights == 1 ? key : std::vector<int64_t>{};
}

// In how many init steps each buffer appears.
std::vector<uint32_t> count_steps(const Alternative& plan) {
  std::vector<uint32_t> counts(plan.buffers.size());
  for (const PlanStep& step : plan.init) {
    for (const BufferUse& use : step.buffers) ++counts[use.buffer];
  }
  return counts;
}

std::size_t fixed_bytes(const PlanBuffer& buffer, const std::vector<int64_t>& values) {
  const int64_t bytes = values[buffer.size_expr];
  if (bytes < 0) throw Error(kFail, "XyntraEP: a packed weight of negative size");
  return static_cast<std::size_t>(bytes);
}

// A task of a step, as ORT's thread pool calls it: its share of the units.
void run_task(void* step, std::size_t task) {
  const auto& s = *static_cast<const Workspace::Step*>(step);
  const int64_t each = s.units / s.tasks;
  const int64_t more = s.units % s.tasks;  // the first tasks have one unit more
  const auto i = static_cast<int64_t>(task);
  const int64_t first = i * each + std::min(i, more);
  s.kernel(s.buffers, s.params, first, first + each + (i < more ? 1 : 0));
}

// ORT drops the weights that we packed after Compile, and the C library keeps their pages: as much memory again as the
// model has. They go with an island's first run. Not before: who creates one session after the other uses them for the
// next. And not with a later one: a session that serves must not pay for one that is created beside it.
std::atomic<bool> weights_dropped{false};

void give_back_dropped_weights() noexcept {
  if (weights_dropped.load(std::memory_order_relaxed) && weights_dropped.exchange(false)) give_back_free_heap();
}

}  // namespace

// Takes a free workspace, or makes one when all are in use, and gives it back at the end of a run.
class CompiledIsland::Lease {
 public:
  explicit Lease(CompiledIsland& island) : island_(island) {
    {
      const std::lock_guard lock(island_.mutex_);
      if (!island_.free_.empty()) {
        workspace_ = std::move(island_.free_.back());
        island_.free_.pop_back();
        return;
      }
    }
    workspace_ = std::make_unique<Workspace>();
  }
  ~Lease() {
    try {
      const std::lock_guard lock(island_.mutex_);
      island_.free_.push_back(std::move(workspace_));
    } catch (const std::bad_alloc&) {
      workspace_.reset();  // the next run makes a new one
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Workspace& operator*() const noexcept { return *workspace_; }

 private:
  CompiledIsland& island_;
  std::unique_ptr<Workspace> workspace_;
};

CompiledIsland::CompiledIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island,
                               const OrtGraph* graph, const OrtNode* fused_node, PoolWriter& pool)
    : OrtNodeComputeInfo{}, ort_(ort), usable_(std::move(usable)), island_(usable_->plan->islands[island]) {
  ort_version_supported = ort_.api_version();
  CreateState = create_state;
  Compute = compute_callback;
  ReleaseState = release_state;
  find_positions(fused_node);
  const auto constants = find_constants(ort_, graph, island_.constants);
  alternatives_.reserve(island_.alternatives.size());
  for (const Alternative& plan : island_.alternatives) make_ready(plan, constants, pool);
  packed_.clear();
  weights_dropped = true;
}

std::size_t CompiledIsland::pool_room(const PlanIsland& island) {
  std::size_t room = 0;
  for (const Alternative& plan : island.alternatives) {
    const auto values = plan.exprs.fixed_values();
    for (const PlanBuffer& buffer : plan.buffers) {
      if (buffer.kind == BufferKind::kPool) room += PoolWriter::room_for(fixed_bytes(buffer, values));
    }
  }
  return room;
}

void CompiledIsland::find_positions(const OrtNode* fused_node) {
  const auto positions = [&](const std::vector<PlanTensor>& tensors, const std::vector<const OrtValueInfo*>& infos,
                             const char* what) {
    std::unordered_map<std::string_view, std::size_t> position;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      if (infos[i] != nullptr) position.emplace(get(ort_, infos[i], api::kGetValueInfoName), i);
    }
    std::vector<std::size_t> found;
    for (const PlanTensor& tensor : tensors) {
      const auto at = position.find(tensor.name);
      if (at == position.end())
        throw Error(kFail, std::string("XyntraEP: the fused node has no ") + what + " '" + tensor.name + "'");
      found.push_back(at->second);
    }
    return found;
  };
  input_position_ =
      positions(island_.inputs, get_all(ort_, fused_node, api::kNodeGetNumInputs, api::kNodeGetInputs), "input");
  output_position_ =
      positions(island_.outputs, get_all(ort_, fused_node, api::kNodeGetNumOutputs, api::kNodeGetOutputs), "output");
}

void CompiledIsland::make_ready(const Alternative& plan, const std::vector<const OrtValue*>& constants,
                                PoolWriter& pool) {
  ReadyAlternative ready;
  ready.plan = &plan;
  ready.fixed.resize(plan.buffers.size());
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (buffer.kind == BufferKind::kArena) ready.arena.push_back(static_cast<uint32_t>(i));
    if (buffer.kind != BufferKind::kLiteral) continue;
    MemoryBlock& block = literals_.emplace_back(buffer.literal.size() + kSpareBytes);
    std::memcpy(block.data(), buffer.literal.data(), buffer.literal.size());
    std::memset(block.data() + buffer.literal.size(), 0, kSpareBytes);
    ready.fixed[i] = block.data();
  }
  for (const Symbol& symbol : plan.exprs.symbols()) {
    if (symbol.is_element) ready.elements.push_back(symbol);
  }
  for (const PlanStep& step : plan.run) ready.kernels.push_back(usable_->kernels[step.kernel].function);
  run_init(plan, ready, constants, pool);
  alternatives_.push_back(std::move(ready));
}

void CompiledIsland::run_init(const Alternative& plan, ReadyAlternative& ready,
                              const std::vector<const OrtValue*>& constants, PoolWriter& pool) {
  const auto values = plan.exprs.fixed_values();
  const auto last_use = last_uses(plan);
  const auto steps_with = count_steps(plan);
  std::vector<MemoryBlock> temporaries(plan.buffers.size());
  std::vector<void*> buffers;
  std::vector<int64_t> params;
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    const PlanStep& step = plan.init[i];
    const auto packing = packing_of(plan, step, values, steps_with);
    if (const auto known = packed_.find(packing); !packing.empty() && known != packed_.end()) {
      for (const BufferUse& use : step.buffers) {
        const bool is_weight = plan.buffers[use.buffer].kind == BufferKind::kPool;
        if (is_weight || last_use[use.buffer] == i)
          ready.fixed[use.buffer] = is_weight ? const_cast<char*>(known->second->data()) : nullptr;
      }
      continue;
    }
    buffers.clear();
    params.clear();
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      void*& base = ready.fixed[use.buffer];
      if (base == nullptr) {
        switch (buffer.kind) {
          case BufferKind::kConstant:
            base = const_cast<void*>(get(ort_, constants[buffer.index], api::kGetTensorData));
            break;
          case BufferKind::kPool: base = pool.open(fixed_bytes(buffer, values)); break;
          default:  // an INIT temporary
            temporaries[use.buffer] = MemoryBlock(fixed_bytes(buffer, values) + kSpareBytes);
            base = temporaries[use.buffer].data();
            break;
        }
      }
      const int64_t offset = use.offset_expr == kNoOffset ? 0 : values[use.offset_expr];
      buffers.push_back(static_cast<char*>(base) + offset);
    }
    for (const uint32_t param : step.params) params.push_back(values[param]);
    const int64_t units = values[step.units_expr];
    if (units > 0) usable_->kernels[step.kernel].function(buffers.data(), params.data(), 0, units);

    for (const BufferUse& use : step.buffers) {
      if (last_use[use.buffer] != i || ready.fixed[use.buffer] == nullptr) continue;
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind == BufferKind::kPool) {
        // const_cast: kernels take all buffers as void*, the plan names weights as things to read only.
        const PooledWeight weight =
            pool.close(static_cast<char*>(ready.fixed[use.buffer]), fixed_bytes(buffer, values));
        ready.fixed[use.buffer] = const_cast<char*>(weight->data());
        weights_.push_back(weight);
        if (!packing.empty()) packed_.emplace(packing, weight);
      } else if (buffer.kind != BufferKind::kLiteral) {
        temporaries[use.buffer] = MemoryBlock();
        ready.fixed[use.buffer] = nullptr;  // so neither constants nor temporaries can be seen after Compile
      }
    }
  }
}

void CompiledIsland::compute(OrtKernelContext* context) {
  if (!has_run_.load(std::memory_order_relaxed) && !has_run_.exchange(true)) give_back_dropped_weights();
  const Lease lease(*this);
  Workspace& workspace = *lease;
  workspace.inputs.resize(input_position_.size());
  workspace.outputs.resize(output_position_.size());
  for (std::size_t i = 0; i < input_position_.size(); ++i) {
    const OrtValue* value = nullptr;
    ort_.check(ort_[api::kKernelContextGetInput](context, input_position_[i], &value));
    if (value == nullptr) throw Error(kInvalidArgument, "XyntraEP: input '" + island_.inputs[i].name + "' is missing");
    const TensorShape shape = tensor_shape(ort_, value);
    workspace.inputs[i] = {get(ort_, value, api::kGetTensorData), shape.dims, shape.rank};
  }
  workspace.prepare(island_, alternatives_, workspace.inputs);
  for (std::size_t i = 0; i < output_position_.size(); ++i) {
    const auto& dims = workspace.output_dims(i);
    OrtValue* value = nullptr;
    ort_.check(ort_[api::kKernelContextGetOutput](context, output_position_[i], dims.data(), dims.size(), &value));
    workspace.outputs[i] = get(ort_, value, api::kGetTensorMutableData);
  }
  workspace.bind(workspace.inputs, workspace.outputs);
  run_steps(workspace, context);
}

void CompiledIsland::run_steps(const Workspace& workspace, const OrtKernelContext* context) const {
  const auto& steps = workspace.steps();
  if (!profile::enabled()) {
    for (const Workspace::Step& step : steps) run_step(step, context);
    return;
  }
  using Clock = std::chrono::steady_clock;
  std::vector<profile::Sample> samples(steps.size());
  auto begin = Clock::now();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    run_step(steps[i], context);
    const auto end = Clock::now();
    const PlanStep& step = workspace.plan().run[i];
    samples[i].ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
    samples[i].flops = workspace.value(step.flops_expr);
    samples[i].bytes = workspace.value(step.bytes_expr);
    begin = Clock::now();
  }
  const auto alternative = static_cast<std::size_t>(&workspace.plan() - island_.alternatives.data());
  profile::add(*usable_->plan, island_, alternative, samples);
}

void CompiledIsland::run_step(const Workspace::Step& step, const OrtKernelContext* context) const {
  if (step.units <= 0) return;
  if (step.tasks == 1) {
    step.kernel(step.buffers, step.params, 0, step.units);
    return;
  }
  ort_.check(ort_[api::kParallelFor](context, run_task, static_cast<std::size_t>(step.tasks), 0,
                                     const_cast<Workspace::Step*>(&step)));
}

OrtStatus* CompiledIsland::create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
  *state = self;  // all state is in workspaces, which belong to runs
  return nullptr;
}

OrtStatus* CompiledIsland::compute_callback(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  auto& island = *static_cast<CompiledIsland*>(self);
  return guard(island.ort_, [&] { island.compute(context); });
}

void CompiledIsland::release_state(OrtNodeComputeInfo*, void*) {}

}  // namespace xyntra
