#include "cpu_program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "init_steps.h"
#include "memory_block.h"
#include "step_trace.h"
#include "thread_order.h"

namespace xyntra {
namespace {

// Puts down that this thread works at a step. Threads have numbers; two of 64 with the same one count as one.
void count_thread(std::atomic<uint64_t>& threads) noexcept {
  static std::atomic<uint64_t> started{0};
  thread_local const uint64_t bit = uint64_t{1} << (started.fetch_add(1, std::memory_order_relaxed) % 64);
  if ((threads.load(std::memory_order_relaxed) & bit) == 0) threads.fetch_or(bit, std::memory_order_relaxed);
}

// As ORT's thread pool calls it.
void run_task(void* step, std::size_t task) {
  taken_over(step);
  run_units(*static_cast<const Workspace::Step*>(step), task);
  handed_over(step);
}

void run_wave_task(void* data, std::size_t task) {
  taken_over(data);
  const auto& wave = *static_cast<const Wave*>(data);
  const std::size_t step = wave.step_of(task);
  run_units(wave.first[step], task);
  handed_over(data);
}

// The times of a run's steps, where they are asked for: of no steps, it does not look at the clock.
class Profiled {
 public:
  explicit Profiled(std::size_t steps) : samples_(steps) {
    if (!samples_.empty()) begin_ = Clock::now();
  }

  // Since the last call step `i` was done, for so many iterations, in so many tasks.
  void add(std::size_t i, int64_t calls, int64_t tasks) {
    if (samples_.empty()) return;
    note(i, calls, tasks, since());
    begin_ = Clock::now();
  }

  // As many steps as `wave` has, from `i` on, were done side by side: each has its part of the time by what it costs.
  void add(std::size_t i, const Wave& wave) {
    if (samples_.empty()) return;
    const double ns = static_cast<double>(since());
    double cost_ns = 0;
    for (std::size_t k = 0; k < wave.steps; ++k) cost_ns += cost_of(wave.first[k]);
    for (std::size_t k = 0; k < wave.steps; ++k) {
      const Workspace::Step& step = wave.first[k];
      note(i + k, 1, static_cast<int64_t>(step.tasks_beside()), static_cast<int64_t>(ns * cost_of(step) / cost_ns));
    }
    begin_ = Clock::now();
  }

  void deliver(const Plan& plan, const Evaluation& evaluation, profile::Kernels kernels) {
    if (samples_.empty()) return;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const PlanStep& step = evaluation.plan().run[i];
      samples_[i].flops = samples_[i].calls * evaluation.value(step.flops_expr);
      samples_[i].bytes = samples_[i].calls * evaluation.value(step.bytes_expr);
      samples_[i].cost_ns = samples_[i].calls * evaluation.cost_ns(step);
    }
    profile::add(plan, evaluation.island(), evaluation.alternative(), kernels, samples_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double cost_of(const Workspace::Step& step) noexcept {
    return step.units <= 0 ? 0.0 : static_cast<double>(std::max<int64_t>(step.cost_ns, 1));
  }

  int64_t since() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
  }

  void note(std::size_t i, int64_t calls, int64_t tasks, int64_t ns) {
    samples_[i].calls += calls;
    samples_[i].tasks = std::max(samples_[i].tasks, tasks);
    samples_[i].ns += ns;
  }

  std::vector<profile::Sample> samples_;
  Clock::time_point begin_;
};

// Of so many iterations of a step side by side; what is one task stays on the calling thread.
int64_t tasks_of(const Workspace::Step& step, int64_t iterations) noexcept {
  if (step.tasks == 1 && (iterations == 1 || step.cost_ns < kInlineNs / iterations)) return 1;
  return step.tasks * iterations;
}

void run_step(const Workspace::Step& step, int64_t iterations, const Tasks& tasks, StepTrace& traced) {
  if (step.units <= 0) return;
  const int64_t count = tasks_of(step, iterations);
  if (count == 1) {
    for (int64_t k = 0; k < iterations; ++k)
      step.kernel(step.buffers + static_cast<std::size_t>(k) * step.row, step.params, 0, step.units);
    return;
  }
  if (traced.is_on()) {
    traced.run({&step, 1}, static_cast<std::size_t>(count), tasks);
    return;
  }
  handed_over(&step);
  tasks.run(run_task, static_cast<std::size_t>(count), const_cast<Workspace::Step*>(&step));
  taken_over(&step);
}

// What pays for waking the threads; less is done step by step on the calling thread.
bool is_for_threads(const Wave& wave) noexcept {
  int64_t cost_ns = 0;
  for (std::size_t k = 0; k < wave.steps; ++k) {
    if (wave.first[k].units > 0) cost_ns += std::min(wave.first[k].cost_ns, kInlineNs);
  }
  return cost_ns >= kInlineNs && wave.tasks() > 1;
}

void run_wave(const Wave& wave, const Tasks& tasks, StepTrace& traced) {
  if (traced.is_on()) {
    traced.run(wave, wave.tasks(), tasks);
    return;
  }
  handed_over(&wave);
  tasks.run(run_wave_task, wave.tasks(), const_cast<Wave*>(&wave));
  taken_over(&wave);
}

}  // namespace

std::size_t Wave::tasks() const noexcept {
  std::size_t count = 0;
  for (std::size_t k = 0; k < steps; ++k) count += first[k].tasks_beside();
  return count;
}

std::size_t Wave::step_of(std::size_t& task) const noexcept {
  std::size_t step = 0;
  for (; task >= first[step].tasks_beside(); ++step) task -= first[step].tasks_beside();
  return step;
}

void run_units(const Workspace::Step& s, std::size_t task) {
  if (s.threads != nullptr) count_thread(*s.threads);
  const int64_t each = s.units / s.tasks;
  const int64_t more = s.units % s.tasks;  // the first tasks have one unit more
  const std::size_t iteration = s.abreast == 1 ? 0 : task / static_cast<std::size_t>(s.tasks);
  const auto i = static_cast<int64_t>(task - iteration * static_cast<std::size_t>(s.tasks));
  const int64_t first = i * each + std::min(i, more);
  s.kernel(s.buffers + iteration * s.row, s.params, first, first + each + (i < more ? 1 : 0));
}

CpuProgram::CpuProgram(std::shared_ptr<const UsablePlan> usable, std::size_t island, const Constants& constants,
                       PoolWriter& pool, Say say)
    : usable_(std::move(usable)), successors_(usable_, island, std::move(say)) {
  const PlanIsland& planned = usable_->plan->islands[island];
  alternatives_.reserve(planned.alternatives.size());
  for (const Alternative& plan : planned.alternatives) make_ready(plan, constants, pool);
  packed_.clear();
}

std::size_t CpuProgram::pool_room(const PlanIsland& island) {
  std::size_t room = 0;
  for (const Alternative& plan : island.alternatives) {
    const InitSteps init(plan);
    for (const PlanBuffer& buffer : plan.buffers) {
      if (buffer.kind != BufferKind::kPool) continue;
      if (__builtin_add_overflow(room, PoolWriter::room_for(init.bytes(buffer)), &room)) throw std::bad_alloc();
    }
  }
  return room;
}

void CpuProgram::make_ready(const Alternative& plan, const Constants& constants,
                           PoolWriter& pool) {
  ReadyAlternative ready;
  ready.fixed.resize(plan.buffers.size());
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (buffer.kind != BufferKind::kLiteral) continue;
    MemoryBlock& block = literals_.emplace_back(buffer.literal.size() + kSpareBytes, "a constant");
    std::memcpy(block.data(), buffer.literal.data(), buffer.literal.size());
    std::memset(block.data() + buffer.literal.size(), 0, kSpareBytes);
    ready.fixed[i] = block.data();
  }
  for (const PlanStep& step : plan.run) ready.kernels.push_back(usable_->kernels[step.kernel].function);
  run_init(plan, ready, constants, pool);
  alternatives_.push_back(std::move(ready));
}

void CpuProgram::run_init(const Alternative& plan, ReadyAlternative& ready,
                         const Constants& constants, PoolWriter& pool) {
  const InitSteps numbers(plan);
  std::vector<MemoryBlock> temporaries(plan.buffers.size());
  std::vector<void*> buffers;
  std::vector<int64_t> params;
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    const PlanStep& step = plan.init[i];
    const auto packing = numbers.packing(step);
    if (const auto known = packed_.find(packing); !packing.empty() && known != packed_.end()) {
      for (const BufferUse& use : step.buffers) {
        const bool is_weight = plan.buffers[use.buffer].kind == BufferKind::kPool;
        if (is_weight || numbers.ends_with(use.buffer, i))
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
            base = const_cast<void*>(constants.data(buffer.index));
            break;
          case BufferKind::kPool: base = pool.open(numbers.bytes(buffer)); break;
          default:  // an INIT temporary
            temporaries[use.buffer] = MemoryBlock(numbers.bytes(buffer) + kSpareBytes, "the packing of a weight");
            base = temporaries[use.buffer].data();
            break;
        }
      }
      buffers.push_back(static_cast<char*>(base) + numbers.offset(use));
    }
    for (const uint32_t param : step.params) params.push_back(numbers.value(param));
    const int64_t units = numbers.value(step.units_expr);
    if (units > 0) usable_->kernels[step.kernel].function(buffers.data(), params.data(), 0, units);

    for (const BufferUse& use : step.buffers) {
      if (!numbers.ends_with(use.buffer, i) || ready.fixed[use.buffer] == nullptr) continue;
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind == BufferKind::kPool) {
        // const_cast: kernels take all buffers as void*, the plan names weights as things to read only.
        const PooledWeight weight = pool.close(static_cast<char*>(ready.fixed[use.buffer]), numbers.bytes(buffer));
        ready.fixed[use.buffer] = const_cast<char*>(weight->data());
        weights_.push_back(weight);
        if (!packing.empty()) packed_.emplace(packing, weight);
      } else if (buffer.kind != BufferKind::kLiteral) {
        if (buffer.kind == BufferKind::kConstant) constants.is_packed(buffer.index);
        temporaries[use.buffer] = MemoryBlock();
        ready.fixed[use.buffer] = nullptr;  // so neither constants nor temporaries can be seen after Compile
      }
    }
  }
}

void CpuProgram::run(Workspace& workspace, const Tasks& tasks, uint32_t traced_as) const {
  const Successors::Lists* const successors = successors_.now();
  if (successors != nullptr) workspace.use((*successors)[workspace.evaluation().alternative()]);
  const auto& steps = workspace.steps();
  Profiled profiled(profile::mode() == profile::Mode::kSteps ? steps.size() : 0);
  StepTrace traced(traced_as, workspace.evaluation());
  const auto run = [&](std::size_t i, int64_t iterations) {
    run_step(steps[i], iterations, tasks, traced);
    traced.add(i, iterations, tasks_of(steps[i], iterations));
    profiled.add(i, iterations, tasks_of(steps[i], iterations));
  };
  const Alternative& plan = workspace.evaluation().plan();
  auto loop = plan.loops.begin();
  auto next = plan.waves.begin();
  for (std::size_t i = 0; i < steps.size();) {
    if (next != plan.waves.end() && i == next->first) {
      const Wave wave{&steps[i], std::size_t{next->last} - next->first + 1};
      if (is_for_threads(wave)) {
        run_wave(wave, tasks, traced);
        traced.add(i, wave);
        profiled.add(i, wave);
      } else {
        for (std::size_t k = 0; k < wave.steps; ++k) run(i + k, 1);
      }
      i += wave.steps;
      ++next;
      continue;
    }
    if (loop == plan.loops.end() || i < loop->first) {
      run(i++, 1);
      continue;
    }
    const int64_t iterations = workspace.evaluation().iterations(*loop);
    for (int64_t done = 0; done < iterations;) {
      const int64_t now = workspace.begin_iterations(*loop, done);
      for (std::size_t k = loop->first; k <= loop->last; ++k) run(k, now);
      done += now;
    }
    i = std::size_t{loop->last} + 1;
    ++loop;
  }
  profiled.deliver(*usable_->plan, workspace.evaluation(),
                   successors != nullptr ? profile::Kernels::kSuccessors : profile::Kernels::kPlanned);
}

}  // namespace xyntra
