#include "plan.h"

#include <algorithm>
#include <array>

#include "byte_io.h"
#include "ort_abi.h"

namespace xyntra {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 47;  // what a process can address
constexpr int kRunKinds = 1 << int(BufferKind::kInput) | 1 << int(BufferKind::kOutput) | 1 << int(BufferKind::kPool) |
                          1 << int(BufferKind::kArena) | 1 << int(BufferKind::kLiteral);
constexpr int kInitKinds = 1 << int(BufferKind::kConstant) | 1 << int(BufferKind::kPool) |
                           1 << int(BufferKind::kLiteral) | 1 << int(BufferKind::kInit);

void require(bool holds, const char* what) {
  if (!holds) throw FormatError(what);
}

std::string read_string(ByteReader& in) { return std::string(in.text()); }

Hash128 read_hash(ByteReader& in) { return in.read<Hash128>(); }

std::vector<uint32_t> read_exprs(ByteReader& in, const Expressions& exprs) {
  std::vector<uint32_t> list(in.count(4));
  for (uint32_t& expr : list) {
    expr = in.read<uint32_t>();
    require(expr < exprs.size(), "an expression index is out of range");
  }
  return list;
}

uint32_t read_expr(ByteReader& in, const Expressions& exprs) {
  const auto expr = in.read<uint32_t>();
  require(expr < exprs.size(), "an expression index is out of range");
  return expr;
}

PlanBuffer read_buffer(ByteReader& in, const PlanIsland& island, const Expressions& exprs) {
  PlanBuffer buffer;
  const auto kind = in.read<uint8_t>();
  require(kind < kBufferKinds, "unknown kind of buffer");
  buffer.kind = static_cast<BufferKind>(kind);
  buffer.index = in.read<uint32_t>();
  buffer.size_expr = in.read<uint32_t>();
  buffer.first = in.read<uint32_t>();
  buffer.last = in.read<uint32_t>();
  switch (buffer.kind) {
    case BufferKind::kInput: require(buffer.index < island.inputs.size(), "a buffer names no input"); break;
    case BufferKind::kOutput: require(buffer.index < island.outputs.size(), "a buffer names no output"); break;
    case BufferKind::kConstant: require(buffer.index < island.constants.size(), "a buffer names no constant"); break;
    case BufferKind::kPool:
    case BufferKind::kInit:
      require(buffer.size_expr < exprs.size() && exprs.is_fixed(buffer.size_expr),
              "the size of a packed weight depends on a shape");
      break;
    case BufferKind::kArena: require(buffer.size_expr < exprs.size(), "an expression index is out of range"); break;
    case BufferKind::kLiteral: buffer.literal = read_string(in); break;
  }
  return buffer;
}

CopiedTensor read_tensor(ByteReader& in, const Expressions& exprs, std::size_t buffers) {
  CopiedTensor tensor;
  tensor.buffer = in.read<uint32_t>();
  require(tensor.buffer < buffers, "a tensor is in no buffer of its step");
  tensor.element_bytes = in.read<uint32_t>();
  tensor.offset_expr = read_expr(in, exprs);
  tensor.extents = read_exprs(in, exprs);
  tensor.strides = read_exprs(in, exprs);
  tensor.box.resize(in.count(4));
  for (uint32_t& extent : tensor.box) extent = in.read<uint32_t>();
  const std::size_t rank = tensor.extents.size();
  require(rank > 0 && tensor.strides.size() == rank - 1 && tensor.box.size() == rank, "the axes of a tensor differ");
  return tensor;
}

PlanStep read_step(ByteReader& in, const Expressions& exprs) {
  PlanStep step;
  step.kernel = in.read<uint32_t>();
  step.label = read_string(in);
  step.buffers.resize(in.count(8));
  for (BufferUse& use : step.buffers) {
    use.buffer = in.read<uint32_t>();
    use.offset_expr = in.read<uint32_t>();
    require(use.offset_expr == kNoOffset || use.offset_expr < exprs.size(), "an expression index is out of range");
  }
  step.params = read_exprs(in, exprs);
  step.units_expr = read_expr(in, exprs);
  step.cost_expr = read_expr(in, exprs);
  step.flops_expr = read_expr(in, exprs);
  step.bytes_expr = read_expr(in, exprs);
  step.tensors.resize(in.count(24));
  for (CopiedTensor& tensor : step.tensors) tensor = read_tensor(in, exprs, step.buffers.size());
  return step;
}

std::vector<PlanStep> read_steps(ByteReader& in, const Alternative& plan, std::size_t kernels, int kinds) {
  std::vector<PlanStep> steps(in.count(36));
  for (PlanStep& step : steps) {
    step = read_step(in, plan.exprs);
    require(step.kernel < kernels, "a step names no kernel");
    for (const BufferUse& use : step.buffers) {
      require(use.buffer < plan.buffers.size(), "a step names no buffer");
      require((kinds >> int(plan.buffers[use.buffer].kind) & 1) != 0, "a step uses a kind of buffer it must not");
    }
  }
  return steps;
}

void check_init(const Alternative& plan) {
  std::vector<uint8_t> made(plan.buffers.size());
  for (const PlanStep& step : plan.init) {
    bool fixed = plan.exprs.is_fixed(step.units_expr);
    for (const uint32_t param : step.params) fixed = fixed && plan.exprs.is_fixed(param);
    for (const BufferUse& use : step.buffers) {
      fixed = fixed && (use.offset_expr == kNoOffset || plan.exprs.is_fixed(use.offset_expr));
      made[use.buffer] = 1;
    }
    for (const CopiedTensor& tensor : step.tensors) {
      fixed = fixed && plan.exprs.is_fixed(tensor.offset_expr);
      for (const auto* sizes : {&tensor.extents, &tensor.strides})
        for (const uint32_t size : *sizes) fixed = fixed && plan.exprs.is_fixed(size);
    }
    require(fixed, "an init step depends on a shape");
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    require(plan.buffers[i].kind != BufferKind::kPool || made[i] != 0, "no init step makes a packed weight");
  }
}

void read_faults(ByteReader& in, Alternative& plan) {
  plan.faults.resize(in.count(8));
  for (PlanFault& fault : plan.faults) {
    fault.buffer = in.read<uint32_t>();
    fault.message = read_string(in);
    require(fault.buffer < plan.buffers.size() && plan.buffers[fault.buffer].kind == BufferKind::kArena,
            "a fault is in no temporary");
    require(plan.buffers[fault.buffer].last + 1 == plan.run.size(), "a fault is gone before the run ends");
  }
}

void read_loops(ByteReader& in, Alternative& plan) {
  plan.loops.resize(in.count(16));
  plan.loop_of.assign(plan.buffers.size(), -1);
  std::size_t free_from = 0;
  for (std::size_t i = 0; i < plan.loops.size(); ++i) {
    BatchLoop& loop = plan.loops[i];
    loop.first = in.read<uint32_t>();
    loop.last = in.read<uint32_t>();
    require(free_from <= loop.first && loop.first <= loop.last && loop.last < plan.run.size(),
            "the steps of a loop are not its own");
    free_from = std::size_t{loop.last} + 1;
    loop.iterations_expr = read_expr(in, plan.exprs);
    loop.strides.resize(in.count(8));
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan.buffers[b];
      if (buffer.kind == BufferKind::kArena && loop.contains(buffer.first) && loop.contains(buffer.last))
        plan.loop_of[b] = static_cast<int32_t>(i);
    }
    std::vector<uint8_t> seen(plan.buffers.size());
    for (BatchLoop::Stride& stride : loop.strides) {
      stride.buffer = in.read<uint32_t>();
      stride.bytes_expr = read_expr(in, plan.exprs);
      require(stride.buffer < plan.buffers.size() && seen[stride.buffer] == 0, "a loop names no buffer, or one twice");
      seen[stride.buffer] = 1;
      plan.loop_of[stride.buffer] = -1;
    }
  }
  for (const PlanFault& fault : plan.faults) require(plan.loop_of[fault.buffer] < 0, "a fault is in one image only");
}

// Steps side by side must not be given the same memory one after the other.
void read_waves(ByteReader& in, Alternative& plan) {
  plan.waves.resize(in.count(8));
  std::size_t free_from = 0;
  for (PlanWave& wave : plan.waves) {
    wave.first = in.read<uint32_t>();
    wave.last = in.read<uint32_t>();
    require(free_from <= wave.first && wave.first < wave.last && wave.last < plan.run.size(), "steps side by side are not a wave");
    free_from = std::size_t{wave.last} + 1;
    for (const BatchLoop& loop : plan.loops)
      require(wave.last < loop.first || loop.last < wave.first, "steps side by side are in a loop");
    for (std::size_t i = wave.first; i <= wave.last; ++i) {
      for (const BufferUse& use : plan.run[i].buffers) {
        const PlanBuffer& buffer = plan.buffers[use.buffer];
        require(buffer.kind != BufferKind::kArena || (buffer.first <= wave.first && wave.last <= buffer.last),
                "a temporary of steps side by side is not there for all of them");
      }
    }
  }
}

// All numbers of the init steps are known here; those of the run steps when there are shapes (evaluation.cc).
void check_init_numbers(const Alternative& plan) {
  const std::vector<int64_t> values = plan.exprs.fixed_values();
  const std::vector<uint8_t> spoiled = plan.exprs.spoiled(values);
  const auto size = [&](uint32_t expr, int64_t most) {
    require(spoiled[expr] == 0 && values[expr] >= 0 && values[expr] <= most, "a size of the init steps cannot be");
    return values[expr];
  };
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.kind == BufferKind::kPool || buffer.kind == BufferKind::kInit) size(buffer.size_expr, kMostBytes);
  }
  for (const PlanStep& step : plan.init) {
    size(step.units_expr, INT64_MAX);
    for (const uint32_t param : step.params) require(spoiled[param] == 0, "a size of the init steps cannot be");
    for (std::size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferUse& use = step.buffers[i];
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      // A weight is finished with its last step, once.
      for (std::size_t j = 0; j < i && buffer.kind == BufferKind::kPool; ++j)
        require(step.buffers[j].buffer != use.buffer, "an init step names a packed weight twice");
      if (use.offset_expr == kNoOffset) continue;
      const int64_t offset = size(use.offset_expr, kMostBytes);
      if (buffer.kind == BufferKind::kConstant) continue;  // plan_fit.cc
      const bool literal = buffer.kind == BufferKind::kLiteral;
      require(offset <= (literal ? static_cast<int64_t>(buffer.literal.size()) : values[buffer.size_expr]),
              "an init step begins outside of its buffer");
    }
    for (const CopiedTensor& tensor : step.tensors) {
      size(tensor.offset_expr, kMostBytes);
      for (const auto* sizes : {&tensor.extents, &tensor.strides})
        for (const uint32_t expr : *sizes) size(expr, kMostBytes);
    }
  }
}

void check_names(const std::vector<PlanTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const PlanTensor& tensor : tensors) names.emplace_back(tensor.name);
  std::sort(names.begin(), names.end());
  require(std::adjacent_find(names.begin(), names.end()) == names.end(), "two inputs or outputs have the same name");
}

void check_lifetimes(const Alternative& plan) {
  for (const PlanBuffer& buffer : plan.buffers) {
    require(buffer.kind != BufferKind::kArena || (buffer.first <= buffer.last && buffer.last < plan.run.size()),
            "the lifetime of a temporary is not within the run");
  }
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    for (const BufferUse& use : plan.run[i].buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      require(buffer.kind != BufferKind::kArena || (buffer.first <= i && i <= buffer.last),
              "a step uses a temporary outside of its lifetime");
    }
  }
}

Alternative read_alternative(ByteReader& in, const PlanIsland& island, std::size_t kernels) {
  Alternative plan;
  plan.exprs.read(in);
  for (const Symbol& symbol : plan.exprs.symbols()) {
    require(symbol.input < island.inputs.size(), "a symbol names no input");
    const PlanTensor& input = island.inputs[symbol.input];
    if (symbol.is_element) {
      require(input.elem_type == kElementInt32 || input.elem_type == kElementInt64,
              "a symbol reads an element that is no integer");
    } else {
      require(input.rank < 0 || symbol.index < static_cast<uint32_t>(input.rank), "a symbol names no dimension");
    }
  }
  plan.guards = read_exprs(in, plan.exprs);
  plan.checks.resize(in.count(8));
  for (PlanCheck& check : plan.checks) {
    check.expr = read_expr(in, plan.exprs);
    check.message = read_string(in);
  }
  plan.output_dims.resize(in.count(4));
  require(plan.output_dims.size() == island.outputs.size(), "the number of outputs differs");
  for (std::size_t i = 0; i < plan.output_dims.size(); ++i) {
    plan.output_dims[i] = read_exprs(in, plan.exprs);
    require(plan.output_dims[i].size() == static_cast<std::size_t>(island.outputs[i].rank),
            "the rank of an output differs");
  }
  plan.buffers.resize(in.count(17));
  for (PlanBuffer& buffer : plan.buffers) buffer = read_buffer(in, island, plan.exprs);
  plan.init = read_steps(in, plan, kernels, kInitKinds);
  plan.run = read_steps(in, plan, kernels, kRunKinds);
  read_faults(in, plan);
  read_loops(in, plan);
  read_waves(in, plan);
  check_init(plan);
  check_init_numbers(plan);
  check_lifetimes(plan);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == BufferKind::kArena) plan.arena.push_back(static_cast<uint32_t>(i));
  }
  for (const Symbol& symbol : plan.exprs.symbols()) {
    if (symbol.is_element) plan.elements.push_back(symbol);
  }
  return plan;
}

void check_no_tensors(const PlanIsland& island) {
  for (const Alternative& plan : island.alternatives) {
    for (const auto* steps : {&plan.init, &plan.run}) {
      for (const PlanStep& step : *steps) require(step.tensors.empty(), "tensors are for kernels on a device");
    }
  }
}

// Not every API of devices has pointers into buffers.
void check_whole_buffers(const PlanIsland& island) {
  for (const Alternative& plan : island.alternatives) {
    require(plan.loops.empty(), "a loop over images is for kernels on the CPU");
    require(plan.waves.empty(), "steps side by side are for kernels on the CPU");
    for (const auto* steps : {&plan.init, &plan.run}) {
      for (const PlanStep& step : *steps) {
        for (const BufferUse& use : step.buffers)
          require(use.offset_expr == kNoOffset, "a step on a device uses a part of a buffer");
      }
    }
  }
}

PlanIsland read_island(ByteReader& in, std::size_t kernels) {
  PlanIsland island;
  island.name = read_string(in);
  island.nodes.resize(in.count(8));
  for (uint64_t& node : island.nodes) node = in.read<uint64_t>();
  require(!island.nodes.empty(), "an island without nodes");
  std::sort(island.nodes.begin(), island.nodes.end());
  for (auto* list : {&island.inputs, &island.outputs}) {
    list->resize(in.count(12));
    for (PlanTensor& tensor : *list) {
      tensor.name = read_string(in);
      tensor.elem_type = in.read<int32_t>();
      tensor.rank = in.read<int32_t>();
    }
  }
  for (const PlanTensor& output : island.outputs) require(output.rank >= 0, "an output without a rank");
  for (const auto* list : {&island.inputs, &island.outputs}) check_names(*list);
  island.constants.resize(in.count(4));
  for (std::string& name : island.constants) name = read_string(in);
  island.alternatives.resize(in.count(32));
  require(!island.alternatives.empty(), "an island without a plan");
  for (Alternative& plan : island.alternatives) plan = read_alternative(in, island, kernels);
  return island;
}

}  // namespace

std::shared_ptr<Plan> Plan::read(std::string_view bytes) {
  Hash128 checksum;
  require(bytes.size() >= checksum.size(), "the plan is cut short");
  const std::string_view content = bytes.substr(0, bytes.size() - checksum.size());
  std::memcpy(checksum.data(), bytes.data() + content.size(), checksum.size());
  require(checksum == hash128(content.data(), content.size()), "the checksum of the plan does not match");

  ByteReader in(content);
  require(in.read<std::array<char, 4>>() == std::array<char, 4>{'X', 'Y', 'P', 'L'}, "this is no plan");
  require(in.read<uint32_t>() == kPlanVersion, "the plan has another version");
  auto plan = std::make_shared<Plan>();
  plan->digest = read_string(in);
  plan->root = read_string(in);
  plan->device = read_string(in);
  const auto verdict = in.read<uint8_t>();
  require(verdict <= 2, "unknown verdict");
  plan->refuse = verdict == 1;
  plan->may_move = verdict == 2;
  plan->message = read_string(in);
  plan->log_level = in.read<uint8_t>();
  require(plan->log_level <= 4, "unknown log level");
  plan->log_line = read_string(in);
  plan->report = read_string(in);
  plan->depends.resize(in.count(20));
  for (PlanDepend& depend : plan->depends) {
    depend.value = read_string(in);
    depend.hash = read_hash(in);
  }
  plan->kernels.resize(in.count(40));
  for (PlanKernel& kernel : plan->kernels) {
    kernel.path = read_string(in);
    kernel.symbol = read_string(in);
    kernel.hash = read_hash(in);
    kernel.threads = in.read<uint32_t>();
    kernel.shared_bytes = in.read<uint32_t>();
    require((kernel.threads > 0) != plan->device.empty(), "blocks of threads are for kernels on a device");
    require(kernel.shared_bytes == 0 || kernel.threads > 0, "shared memory is for blocks of threads");
    kernel.successor = read_string(in);
    kernel.successor_symbol = read_string(in);
    require(kernel.successor.empty() == kernel.successor_symbol.empty(), "a successor is a file and a symbol");
    require(kernel.successor.empty() || plan->device.empty(), "successors are for kernels on the CPU");
  }
  plan->islands.resize(in.count(32));
  for (PlanIsland& island : plan->islands) {
    island = read_island(in, plan->kernels.size());
    plan->device.empty() ? check_no_tensors(island) : check_whole_buffers(island);
  }
  require(in.left() == 0, "the plan has bytes too many");
  return plan;
}

}  // namespace xyntra
