#include "planner_link.h"

#include <cstdlib>
#include <mutex>
#include <utility>

#include "python_end.h"
#include "system.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

struct Attached {
  std::mutex mutex;
  Planner planner;
};

Attached& attached() {
  static auto* const instance = new Attached;
  return *instance;
}

// Options may also stand in a file, whose place and size are the planner's rule (xyntra_ep/options.py). Where it is not to be
// used, a plan says so or there is none: so why not decides, too.
std::string options_file() {
  constexpr std::size_t kMostBytes = 1 << 20;
  const char* named = std::getenv("XYNTRA_CONFIG");
  const TrustedFile file =
      read_trusted_file(named != nullptr && *named != '\0' ? expanded(named) : "fusion.toml", kMostBytes);
  return file.verdict == TrustedFile::Verdict::kMissing ? std::string() : file.bytes + file.error;
}

// A thread that Python ends does not come back from it: the C library unwinds its stack, and from here on that cannot be done.
struct StaysUnlessBack {
  bool is_back = false;
  ~StaysUnlessBack() {
    if (!is_back) stay();
  }
};

}  // namespace

std::string expanded(const std::string& path) {
  const char* home = path.compare(0, 2, "~/") == 0 ? std::getenv("HOME") : nullptr;
  return system::with_slashes(home != nullptr ? home + path.substr(1) : path);
}

std::string Planner::full_identity() const {
  std::string text = identity;
  for (const std::string& name : watched) {
    const char* value = std::getenv(name.c_str());
    text += name + '=' + (value != nullptr ? value : "") + '\n';
  }
  return text + options_file();
}

void attach_planner(Planner planner) {
  const std::lock_guard lock(attached().mutex);
  attached().planner = std::move(planner);
}

Planner attached_planner() {
  const std::lock_guard lock(attached().mutex);
  return attached().planner;
}

PlannerReply ask(const Planner& planner, const std::string& graph, const std::string& digest) {
  PlannerReply reply;
  StaysUnlessBack python;
  const int done = planner.callback(graph.data(), graph.size(), digest.c_str(), &reply);
  python.is_back = true;
  if (done != 1 || !reply.given) return {true, false, "the planner ended without an answer"};
  return reply;
}

}  // namespace xyntra
