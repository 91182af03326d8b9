// The connection to the planner: a callback that Python attaches. Without it only stored plans are executed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xyntra {

// Returns 1 after it has called xyntra_reply() once with `reply`. ctypes turns an exception into 0, so 0 is a failure.
using PlannerCallback = int (*)(const void* graph, uint64_t bytes, const char* digest, void* reply);

struct Planner {
  PlannerCallback callback = nullptr;
  std::string identity;  // code version, CPU features, compiler
  std::string default_cache_dir;
  std::vector<std::string> watched;  // environment variables that stand in for provider options

  // What besides the graph decides a plan, as of now: the identity, the watched variables and the options file.
  std::string full_identity() const;
};

// A path as people write it in variables and options.
std::string expanded(const std::string& path);

struct PlannerReply {
  bool given = false;
  bool is_plan = false;
  std::string bytes;  // the plan, or why there is none
};

void attach_planner(Planner planner);
// A copy: no lock may be held while Python runs, another thread may need it to get out of Python.
Planner attached_planner();

PlannerReply ask(const Planner& planner, const std::string& graph, const std::string& digest);

}  // namespace xyntra
