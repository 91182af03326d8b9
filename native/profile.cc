#include "profile.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "json.h"

namespace xyntra::profile {
namespace {

struct Row {
  std::string label, kernel;
  Sample sum;
};

// Which alternative of which island of which graph: the islands of two graphs have the same names. Before and after an exchange
// of kernels are two places, so that each row has the time of one kernel.
using Place = std::tuple<std::string, std::string, std::size_t, Kernels>;

struct Entry {
  Place place;
  std::vector<Row> steps;
  int64_t runs = 0, run_ns = 0;  // of those that were timed as a whole
};

struct Table {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::map<Place, std::size_t> index;

  Entry& at(const Plan& plan, const PlanIsland& island, std::size_t alternative, Kernels kernels) {
    const Place place{plan.digest, island.name, alternative, kernels};
    const auto [found, is_new] = index.try_emplace(place, entries.size());
    if (is_new) entries.push_back({place, {}, 0, 0});
    return entries[found->second];
  }
};

Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

std::atomic<Mode> g_mode{Mode::kOff};

std::vector<Row> empty_rows(const Plan& plan, const std::vector<PlanStep>& steps, Kernels kernels) {
  std::vector<Row> rows;
  for (const PlanStep& step : steps) {
    const PlanKernel& kernel = plan.kernels[step.kernel];
    const bool is_exchanged = kernels == Kernels::kSuccessors && !kernel.successor.empty();
    rows.push_back({step.label, is_exchanged ? kernel.successor_symbol : kernel.symbol, {}});
  }
  return rows;
}

std::string text_of(const Place& place) {
  return "{\"digest\": " + json_quote(std::get<0>(place)) + ", \"island\": " + json_quote(std::get<1>(place)) +
         ", \"alternative\": " + std::to_string(std::get<2>(place));
}

std::string text_of(const Place& place, std::size_t step, const Row& row) {
  return text_of(place) + ", \"step\": " + std::to_string(step) + ", \"label\": " + json_quote(row.label) +
         ", \"kernel\": " + json_quote(row.kernel) + ", \"calls\": " + std::to_string(row.sum.calls) +
         ", \"ns\": " + std::to_string(row.sum.ns) + ", \"flops\": " + std::to_string(row.sum.flops) +
         ", \"bytes\": " + std::to_string(row.sum.bytes) + ", \"cost_ns\": " + std::to_string(row.sum.cost_ns) +
         ", \"tasks\": " + std::to_string(row.sum.tasks) + "}\n";
}

}  // namespace

Mode mode() noexcept { return g_mode.load(std::memory_order_relaxed); }

void set(Mode mode) noexcept { g_mode.store(mode, std::memory_order_relaxed); }

void add(const Plan& plan, const PlanIsland& island, std::size_t alternative, Kernels kernels, const std::vector<Sample>& run) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::vector<Row>& rows = all.at(plan, island, alternative, kernels).steps;
  if (rows.empty()) rows = empty_rows(plan, island.alternatives[alternative].run, kernels);
  for (std::size_t i = 0; i < run.size(); ++i) {
    rows[i].sum.calls += run[i].calls;
    rows[i].sum.ns += run[i].ns;
    rows[i].sum.flops += run[i].flops;
    rows[i].sum.bytes += run[i].bytes;
    rows[i].sum.cost_ns += run[i].cost_ns;
    rows[i].sum.tasks = std::max(rows[i].sum.tasks, run[i].tasks);
  }
}

void add_run(const Plan& plan, const PlanIsland& island, std::size_t alternative, int64_t ns) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  Entry& entry = all.at(plan, island, alternative, Kernels::kPlanned);
  ++entry.runs;
  entry.run_ns += ns;
}

std::size_t take(char* buffer, std::size_t capacity) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::string out;
  for (const Entry& entry : all.entries) {
    for (std::size_t i = 0; i < entry.steps.size(); ++i) out += text_of(entry.place, i, entry.steps[i]);
    if (entry.runs > 0)
      out += text_of(entry.place) + ", \"calls\": " + std::to_string(entry.runs) + ", \"ns\": " + std::to_string(entry.run_ns) +
             "}\n";
  }
  if (out.size() <= capacity) {
    if (!out.empty()) std::memcpy(buffer, out.data(), out.size());  // without a row there may be no buffer
    all.entries.clear();
    all.index.clear();
  }
  return out.size();
}

}  // namespace xyntra::profile
