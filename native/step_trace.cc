#include "step_trace.h"

#include <algorithm>
#include <new>
#include <utility>

#include "cpu_program.h"
#include "system.h"
#include "thread_order.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace xyntra {
namespace {

// The last of a thread's tasks is one of the last of all, or it comes after so many others.
constexpr std::size_t kLastTasks = 16, kTasksApart = 8;

uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(trace::now_ns());
#endif
}

}  // namespace

std::unique_ptr<StepTrace::Notes>& StepTrace::kept() noexcept {
  thread_local std::unique_ptr<Notes> notes;
  return notes;
}

void StepTrace::begin() noexcept {
  notes_ = std::move(kept());
  if (notes_ == nullptr) notes_.reset(new (std::nothrow) Notes);
  if (notes_ == nullptr) {
    island_ = 0;
    return;
  }
  begin_anew();
}

void StepTrace::begin_anew() noexcept {
  begin_ns_ = trace::now_ns();
  begin_ticks_ = last_ticks_ = ticks();
}

void StepTrace::run(const Wave& wave, std::size_t count, const Tasks& tasks) {
  static std::atomic<uint64_t> serials{0};
  shares_.wave = wave;
  shares_.count = count;
  shares_.serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
  shares_.used.store(0, std::memory_order_relaxed);
  handed_over(&shares_);
  tasks.run(run_task, count, &shares_);
  taken_over(&shares_);
}

void StepTrace::run_task(void* shares, std::size_t task) {
  struct Thread {
    uint64_t serial = 0;
    std::size_t mine = 0;
    std::size_t step = 0;
    uint32_t number = system::thread_number();
  };
  thread_local Thread thread;
  Thread& me = thread;
  taken_over(shares);
  auto& s = *static_cast<Shares*>(shares);
  std::size_t own = task;
  const std::size_t step = s.wave.steps == 1 ? 0 : s.wave.step_of(own);
  if (me.serial != s.serial || me.step != step) {
    const uint64_t now = ticks();
    if (me.serial == s.serial && me.mine < kMostThreads) s.all[me.mine].end = now;
    me.serial = s.serial;
    me.step = step;
    me.mine = s.used.fetch_add(1, std::memory_order_relaxed);
    if (me.mine < kMostThreads) s.all[me.mine] = {me.number, 0, now, 0, step};
  }
  run_units(s.wave.first[step], own);
  if (me.mine < kMostThreads) {
    Share& share = s.all[me.mine];
    if (++share.tasks % kTasksApart == 1 || task + kLastTasks >= s.count) share.end = ticks();
  }
  handed_over(shares);
}

void StepTrace::note(std::size_t i, int64_t calls, int64_t tasks) noexcept {
  const uint64_t now = ticks();
  const std::size_t used = std::min(shares_.used.load(std::memory_order_relaxed), kMostThreads);
  put_down({static_cast<uint32_t>(i), 0, calls, tasks, last_ticks_, now, last_ticks_, now}, 0, used);
  last_ticks_ = now;
  shares_.used.store(0, std::memory_order_relaxed);
}

void StepTrace::note(std::size_t i, const Wave& wave) noexcept {
  const uint64_t now = ticks(), before = last_ticks_;
  const std::size_t used = std::min(shares_.used.load(std::memory_order_relaxed), kMostThreads);
  const auto of_step = [&](std::size_t step) {
    uint64_t spent = 0;
    for (std::size_t k = 0; k < used; ++k) {
      const Share& share = shares_.all[k];
      if (share.step == step && share.end > share.begin) spent += share.end - share.begin;
    }
    return spent;
  };
  uint64_t all = 0, done = 0;
  for (std::size_t k = 0; k < wave.steps; ++k) all += of_step(k);
  const double scale = all == 0 ? 0.0 : static_cast<double>(now - before) / static_cast<double>(all);
  for (std::size_t k = 0; k < wave.steps; ++k) {
    done += of_step(k);
    const uint64_t end = before + static_cast<uint64_t>(static_cast<double>(done) * scale);
    const auto tasks = static_cast<int64_t>(wave.first[k].tasks_beside());
    put_down({static_cast<uint32_t>(i + k), 0, 1, tasks, last_ticks_, end, before, now}, k, used);
    last_ticks_ = end;
  }
  last_ticks_ = now;
  shares_.used.store(0, std::memory_order_relaxed);
}

// With the shares, of so many, that are of the wave's step.
void StepTrace::put_down(Done done, std::size_t step, std::size_t used) noexcept {
  try {
    for (std::size_t k = 0; k < used; ++k) {
      if (shares_.all[k].step != step) continue;
      notes_->shares.push_back(shares_.all[k]);
      ++done.shares;
    }
    notes_->steps.push_back(done);
  } catch (const std::bad_alloc&) {
    notes_->shares.clear();  // then without what was before
    notes_->steps.clear();
    begin_anew();
  }
}

void StepTrace::deliver() noexcept {
  const int64_t end_ns = trace::now_ns();
  const uint64_t end_ticks = ticks();
  const double scale =
      static_cast<double>(end_ns - begin_ns_) / static_cast<double>(std::max<uint64_t>(end_ticks - begin_ticks_, 1));
  const auto when = [&](uint64_t tick) {
    const double since = static_cast<double>(static_cast<int64_t>(tick - begin_ticks_)) * scale;
    return std::clamp(begin_ns_ + static_cast<int64_t>(since), begin_ns_, end_ns);
  };
  TraceRecord record;
  record.name = island_;
  record.alternative = static_cast<uint16_t>(evaluation_.alternative());
  auto share = notes_->shares.begin();
  for (const Done& done : notes_->steps) {
    const PlanStep& step = evaluation_.plan().run[done.step];
    record.kind = TraceKind::kStep;
    record.flags = static_cast<uint8_t>(std::min<uint32_t>(done.shares, 255));
    record.step = done.step;
    record.thread = 0;
    record.begin_ns = when(done.begin);
    record.end_ns = std::max(record.begin_ns, when(done.end));
    record.flops = done.calls * evaluation_.value(step.flops_expr);
    record.bytes = done.calls * evaluation_.value(step.bytes_expr);
    record.calls = static_cast<uint32_t>(done.calls);
    record.tasks = static_cast<uint32_t>(done.tasks);
    trace::put(record);
    const int64_t wave_begin_ns = when(done.wave_begin), wave_end_ns = std::max(wave_begin_ns, when(done.wave_end));
    record.kind = TraceKind::kShare;
    record.flags = 0;
    record.flops = record.bytes = 0;
    for (uint32_t k = 0; k < done.shares; ++k, ++share) {
      record.thread = share->thread;
      record.tasks = share->tasks;
      record.begin_ns = std::clamp(when(share->begin), wave_begin_ns, wave_end_ns);
      record.end_ns = std::clamp(when(share->end), record.begin_ns, wave_end_ns);
      trace::put(record);
    }
  }
  notes_->steps.clear();
  notes_->shares.clear();
  kept() = std::move(notes_);
}

}  // namespace xyntra
