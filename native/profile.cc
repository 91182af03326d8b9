#include "profile.h"

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
  int64_t calls = 0;
  Sample sum;
};

// Which alternative of which island of which graph: the islands of two graphs have the same names.
using Place = std::tuple<std::string, std::string, std::size_t>;

struct Table {
  std::mutex mutex;
  std::vector<std::pair<Place, std::vector<Row>>> runs;
  std::map<Place, std::size_t> index;
};

Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

std::atomic<bool> g_enabled{false};

std::vector<Row> empty_rows(const Plan& plan, const std::vector<PlanStep>& steps) {
  std::vector<Row> rows;
  for (const PlanStep& step : steps) rows.push_back({step.label, plan.kernels[step.kernel].symbol, 0, {}});
  return rows;
}

std::string text_of(const Place& place, std::size_t step, const Row& row) {
  const auto& [digest, island, alternative] = place;
  return "{\"digest\": " + json_quote(digest) + ", \"island\": " + json_quote(island) +
         ", \"alternative\": " + std::to_string(alternative) + ", \"step\": " + std::to_string(step) +
         ", \"label\": " + json_quote(row.label) + ", \"kernel\": " + json_quote(row.kernel) +
         ", \"calls\": " + std::to_string(row.calls) + ", \"ns\": " + std::to_string(row.sum.ns) +
         ", \"flops\": " + std::to_string(row.sum.flops) + ", \"bytes\": " + std::to_string(row.sum.bytes) + "}\n";
}

}  // namespace

bool enabled() noexcept { return g_enabled.load(std::memory_order_relaxed); }

void enable(bool on) noexcept { g_enabled.store(on, std::memory_order_relaxed); }

void add(const Plan& plan, const PlanIsland& island, std::size_t alternative, const std::vector<Sample>& run) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const Place place{plan.digest, island.name, alternative};
  const auto [at, is_new] = all.index.try_emplace(place, all.runs.size());
  if (is_new) all.runs.emplace_back(place, empty_rows(plan, island.alternatives[alternative].run));
  std::vector<Row>& rows = all.runs[at->second].second;
  for (std::size_t i = 0; i < run.size(); ++i) {
    ++rows[i].calls;
    rows[i].sum.ns += run[i].ns;
    rows[i].sum.flops += run[i].flops;
    rows[i].sum.bytes += run[i].bytes;
  }
}

std::size_t take(char* buffer, std::size_t capacity) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::string out;
  for (const auto& [place, rows] : all.runs) {
    for (std::size_t i = 0; i < rows.size(); ++i) out += text_of(place, i, rows[i]);
  }
  if (out.size() <= capacity) {
    if (!out.empty()) std::memcpy(buffer, out.data(), out.size());  // without a row there may be no buffer
    all.runs.clear();
    all.index.clear();
  }
  return out.size();
}

}  // namespace xyntra::profile
