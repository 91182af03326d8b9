#include "planner_link.h"

#include <cxxabi.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "python_end.h"
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

}  // namespace

std::string expanded(const std::string& path) {
  const char* home = path.compare(0, 2, "~/") == 0 ? std::getenv("HOME") : nullptr;
  return home != nullptr ? home + path.substr(1) : path;
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

// Of what a thread is ended by there is no object to refer to: a null reference, which is no fault here.
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((no_sanitize("null")))
#endif
PlannerReply ask(const Planner& planner, const std::string& graph, const std::string& digest) {
  PlannerReply reply;
  int done = 0;
  try {
    done = planner.callback(graph.data(), graph.size(), digest.c_str(), &reply);
  } catch (const abi::__forced_unwind&) {
    stay();
  }
  if (done != 1 || !reply.given) return {true, false, "the planner ended without an answer"};
  return reply;
}

}  // namespace xyntra
