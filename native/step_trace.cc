#include "step_trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "cpu_program.h"
#include "thread_order.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace xyntra {
namespace {

uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(trace::now_ns());
#endif
}

}  // namespace

void StepTrace::begin() noexcept {
  begin_ns_ = trace::now_ns();
  begin_ticks_ = ticks();
}

void* StepTrace::shared(const Workspace::Step& step) noexcept {
  static std::atomic<uint64_t> serials{0};
  shares_.step = &step;
  shares_.serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
  shares_.used.store(0, std::memory_order_relaxed);
  return &shares_;
}

void StepTrace::run_task(void* shares, std::size_t task) {
  taken_over(shares);
  auto& s = *static_cast<Shares*>(shares);
  thread_local uint64_t serial = 0;
  thread_local std::size_t mine = 0;
  thread_local const auto thread = static_cast<uint32_t>(::syscall(SYS_gettid));
  if (serial != s.serial) {
    serial = s.serial;
    mine = s.used.fetch_add(1, std::memory_order_relaxed);
    if (mine < kMostThreads) s.all[mine] = {thread, 0, ticks(), 0};
  }
  run_units(*s.step, task);
  if (mine < kMostThreads) {
    ++s.all[mine].tasks;
    s.all[mine].end = ticks();
  }
  handed_over(shares);
}

void StepTrace::add(std::size_t i, int64_t calls, int64_t tasks, const Evaluation& evaluation) noexcept {
  if (!is_on()) return;
  const int64_t end_ns = trace::now_ns();
  const uint64_t end_ticks = ticks();
  const PlanStep& step = evaluation.plan().run[i];
  TraceRecord record;
  record.kind = TraceKind::kStep;
  record.name = island_;
  record.alternative = static_cast<uint16_t>(evaluation.alternative());
  record.step = static_cast<uint32_t>(i);
  record.begin_ns = begin_ns_;
  record.end_ns = end_ns;
  record.flops = calls * evaluation.value(step.flops_expr);
  record.bytes = calls * evaluation.value(step.bytes_expr);
  record.calls = static_cast<uint32_t>(calls);
  record.tasks = static_cast<uint32_t>(tasks);
  const std::size_t used = std::min<std::size_t>(shares_.used.load(std::memory_order_relaxed), kMostThreads);
  record.flags = static_cast<uint8_t>(std::min<std::size_t>(used, 255));
  trace::put(record);
  record.kind = TraceKind::kShare;
  record.flags = 0;
  record.flops = record.bytes = 0;
  const double scale = static_cast<double>(end_ns - begin_ns_) / static_cast<double>(std::max<uint64_t>(end_ticks - begin_ticks_, 1));
  const auto when = [&](uint64_t tick) {
    const double since = static_cast<double>(static_cast<int64_t>(tick - begin_ticks_)) * scale;
    return std::clamp(begin_ns_ + static_cast<int64_t>(since), begin_ns_, end_ns);
  };
  for (std::size_t k = 0; k < used; ++k) {
    const Share& share = shares_.all[k];
    record.thread = share.thread;
    record.tasks = share.tasks;
    record.begin_ns = when(share.begin);
    record.end_ns = std::max(record.begin_ns, when(share.end));
    trace::put(record);
  }
  shares_.used.store(0, std::memory_order_relaxed);
  begin_ns_ = end_ns;
  begin_ticks_ = end_ticks;
}

}  // namespace xyntra
