#include "trace.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "json.h"
#include "live.h"
#include "ort.h"
#include "planner_link.h"
#include "system.h"

namespace xyntra::trace {
namespace {

constexpr const char* kOption = "trace";
constexpr const char* kVariable = "XYNTRA_TRACE";
constexpr std::size_t kRecordsOfFile = std::size_t{1} << 18, kRecordsOfLive = std::size_t{1} << 16;

struct State {
  std::mutex mutex;
  std::map<std::string, uint32_t, std::less<>> names;
  std::map<std::string, uint32_t> plans, islands;  // by digest, and island of it
  std::map<std::string, uint32_t> files;
  std::string unless_told;
};

State& state() {
  static auto* const instance = new State;
  return *instance;
}

// Never freed: a thread may be writing to it.
std::atomic<TraceRing*> g_ring{nullptr};

// A child writes nothing into its parent's ring.
void child_begins() noexcept {
  g_detail.store(Detail::kOff, std::memory_order_relaxed);
  g_ring.store(nullptr, std::memory_order_relaxed);
}

struct Running {
  uint32_t session = 0;
  int64_t begin_ns = 0;
  bool failed = false;
};
thread_local Running t_running;

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Whatever the case of its letters, as other values of options.
bool is(const std::string& text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

std::string absolute(const std::string& path) {
  const std::string whole = expanded(path);
  std::error_code problem;
  const auto here = whole.empty() || system::is_absolute(whole) ? std::filesystem::path() : std::filesystem::current_path(problem);
  return here.empty() || problem ? whole : here.generic_u8string() + '/' + whole;
}

std::string why_unwritable(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  const std::string why = system::why_unwritable(folder);
  if (why.empty()) return {};
  return "XyntraEP: trace='" + path + "' cannot be written: " + folder + ": " + why +
         ". give off, live or a file in a folder that is there";
}

}  // namespace

int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void begin(Detail detail, std::size_t records) {
  const std::lock_guard lock(state().mutex);
  if (g_ring.load(std::memory_order_relaxed) == nullptr) {
    static const bool registered = (system::in_forked_children(child_begins), true);
    (void)registered;
    try {
      g_ring.store(new TraceRing(records), std::memory_order_release);
    } catch (const std::system_error& error) {
      throw Error(kFail, std::string("XyntraEP cannot trace: ") + error.what());
    }
    state().names.clear();
    state().plans.clear();
    state().islands.clear();
    state().files.clear();
  }
  if (detail > g_detail.load(std::memory_order_relaxed)) g_detail.store(detail, std::memory_order_release);
}

void end() noexcept { g_detail.store(Detail::kOff, std::memory_order_relaxed); }

int fd() noexcept {
  const TraceRing* const ring = g_ring.load(std::memory_order_acquire);
  return ring != nullptr ? ring->fd() : -1;
}

std::size_t files() noexcept {
  if (fd() < 0) return 0;
  const std::lock_guard lock(state().mutex);
  return state().files.size();
}

void set_default(const char* option) noexcept {
  try {
    const std::lock_guard lock(state().mutex);
    state().unless_told = option;
  } catch (const std::bad_alloc&) {
    return;  // nothing is traced then
  }
}

Options begin_as_asked(Options options, std::string& problem) {
  std::string asked;
  if (const char* variable = std::getenv(kVariable); variable != nullptr) asked = variable;
  if (asked.empty()) {
    const std::lock_guard lock(state().mutex);
    asked = state().unless_told;
  }
  const auto is_ours = [](const auto& option) { return option.first == kOption; };
  const auto given = std::find_if(options.begin(), options.end(), is_ours);
  if (given != options.end()) {
    asked = given->second;
    options.erase(given);
  }
  asked = trimmed(asked);
  if (asked.empty() || is(asked, "off")) return options;
  try {
    if (is(asked, "live")) {
      begin(Detail::kRuns, kRecordsOfLive);
      return options;
    }
    const std::string path = absolute(asked);
    problem = why_unwritable(path);
    if (!problem.empty()) return options;
    begin(Detail::kSteps, kRecordsOfFile);
    const std::lock_guard lock(state().mutex);
    TraceRing& ring = *g_ring.load(std::memory_order_acquire);
    if (const auto [at, is_new] = state().files.try_emplace(path, 0); is_new) at->second = ring.put(TraceText::kFile, path);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return options;
}

void put(const TraceRecord& record) noexcept {
  if (TraceRing* const ring = g_ring.load(std::memory_order_acquire); ring != nullptr) ring->put(record);
}

uint32_t name(std::string_view text) noexcept {
  try {
    const std::lock_guard lock(state().mutex);
    TraceRing* const ring = g_ring.load(std::memory_order_acquire);
    if (ring == nullptr) return 0;
    if (const auto known = state().names.find(text); known != state().names.end()) return known->second;
    return state().names.emplace(text, ring->put(TraceText::kName, text)).first->second;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// `known` holds the ring's descriptor, too: a child made by fork has a ring of its own.
uint32_t island(const Plan& plan, const PlanIsland& island, std::atomic<uint64_t>& known) noexcept {
  const auto number = static_cast<uint64_t>(fd() + 1) << 32;
  const uint64_t last = known.load(std::memory_order_relaxed);
  if ((last & ~uint64_t{0xffffffff}) == number && last != 0) return static_cast<uint32_t>(last);
  try {
    const std::lock_guard lock(state().mutex);
    TraceRing* const ring = g_ring.load(std::memory_order_acquire);
    if (ring == nullptr) return 0;
    if (state().plans.find(plan.digest) == state().plans.end()) {
      const std::string report = plan.report.empty() ? "null" : plan.report;
      const std::string text = "{\"digest\": " + json_quote(plan.digest) + ", \"plan\": " + report + "}";
      state().plans.emplace(plan.digest, ring->put(TraceText::kPlan, text));
    }
    const auto [found, is_new] = state().islands.try_emplace(plan.digest + "/" + island.name, 0);
    if (is_new) {
      std::string text = "{\"digest\": " + json_quote(plan.digest) + ", \"island\": " + json_quote(island.name) +
                         ", \"device\": " + json_quote(plan.device) + ", \"steps\": [";
      for (std::size_t a = 0; a < island.alternatives.size(); ++a) {
        text += a > 0 ? ", [" : "[";
        const auto& steps = island.alternatives[a].run;
        for (std::size_t i = 0; i < steps.size(); ++i)
          text += (i > 0 ? ", [" : "[") + json_quote(steps[i].label) + ", " +
                  json_quote(plan.kernels[steps[i].kernel].symbol) + "]";
        text += "]";
      }
      found->second = ring->put(TraceText::kIsland, text + "]}");
    }
    known.store(number | found->second, std::memory_order_relaxed);
    return found->second;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void put_memory() noexcept {
  if (TraceRing* const ring = g_ring.load(std::memory_order_acquire); ring != nullptr)
    ring->set_memory(counted(Live::kWeightBytes), counted(Live::kBlockBytes));
}

Stage::~Stage() {
  if (begin_ns_ == 0 || !is_on()) return;
  TraceRecord record;
  record.kind = TraceKind::kSpan;
  record.begin_ns = begin_ns_;
  record.end_ns = now_ns();
  try {
    record.name = name(of_.empty() ? std::string(what_) : std::string(what_) + " " + std::string(of_));
  } catch (const std::bad_alloc&) {
    return;
  }
  put(record);
}

Session::Session() : number_([] {
  static std::atomic<uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}()), begin_ns_(now_ns()) {}

void Session::created() noexcept {
  if (!is_on() || begin_ns_ == 0) return;
  TraceRecord record;
  record.kind = TraceKind::kSession;
  record.session = number_;
  record.begin_ns = begin_ns_;
  record.end_ns = now_ns();
  put(record);
  put_memory();
  begin_ns_ = 0;
}

void Session::run_begins() const noexcept {
  if (is_on()) t_running = {number_, now_ns(), false};
}

void Session::run_ends() const noexcept {
  if (!is_on() || t_running.session != number_) return;
  TraceRecord record;
  record.kind = TraceKind::kRun;
  record.flags = t_running.failed ? kTraceFailed : 0;
  record.session = number_;
  record.begin_ns = t_running.begin_ns;
  record.end_ns = now_ns();
  t_running = {};
  put(record);
  put_memory();
}

void run_fails() noexcept { t_running.failed = true; }

}  // namespace xyntra::trace
