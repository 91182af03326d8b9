// What this process does, put into a ring (native/trace_ring.h) while that is asked for: sessions, their planning and packing, runs,
// islands, steps and each thread's share of a step. Off, it costs one relaxed load per run and per island.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph_buffer.h"
#include "plan.h"
#include "trace_ring.h"

namespace xyntra::trace {

// What is looked at: on devices whole runs as they are, or each step started by itself, which takes longer.
enum class Detail : int { kOff, kRuns, kSteps };

inline std::atomic<Detail> g_detail{Detail::kOff};  // with the ring in place

inline Detail detail() noexcept { return g_detail.load(std::memory_order_relaxed); }
inline bool is_on() noexcept { return detail() != Detail::kOff; }
int64_t now_ns() noexcept;

// From now on; more detail than there is already adds to it. Throws Error where the system has no memory for it.
void begin(Detail detail, std::size_t records);
void end() noexcept;
// Of the ring; -1 where nothing was ever traced, and in a child made by fork, which has none.
int fd() noexcept;

// How many files were asked for; none in a child made by fork.
std::size_t files() noexcept;
// What is asked for where neither a session nor the environment says something.
void set_default(const char* option) noexcept;
// The option `trace`, which a session's other options are returned without: a trace is no part of a plan. Begins what it, or the
// environment, asks for. `problem`: why that cannot be.
Options begin_as_asked(Options options, std::string& problem);

// While it is on:
void put(const TraceRecord& record) noexcept;
uint32_t name(std::string_view text) noexcept;
// Of an island, with its plan told to readers; `known` keeps it.
uint32_t island(const Plan& plan, const PlanIsland& island, std::atomic<uint64_t>& known) noexcept;
// How much memory there is of ours.
void put_memory() noexcept;

// A stage of the creation of a session, as long as it lives.
class Stage {
 public:
  explicit Stage(std::string_view what, std::string_view of = {}) : begin_ns_(is_on() ? now_ns() : 0), what_(what), of_(of) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

 private:
  const int64_t begin_ns_;
  const std::string_view what_, of_;
};

// The runs of a session.
class Session {
 public:
  Session();
  void created() noexcept;
  void run_begins() const noexcept;
  void run_ends() const noexcept;

 private:
  const uint32_t number_;
  int64_t begin_ns_;
};

// The run that the calling thread is in has failed.
void run_fails() noexcept;

}  // namespace xyntra::trace
