#include "planner_link.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

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

// Options may also stand in a file, whose place is the planner's rule (xyntra_ep/options.py).
std::string options_file() {
  const char* named = std::getenv("XYNTRA_CONFIG");
  std::ifstream file(named != nullptr && *named != '\0' ? named : "fusion.toml", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

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
  const int done = planner.callback(graph.data(), graph.size(), digest.c_str(), &reply);
  if (done != 1 || !reply.given) return {true, false, "the planner ended without an answer"};
  return reply;
}

}  // namespace xyntra
