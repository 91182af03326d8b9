#include "plan_source.h"

#include <algorithm>
#include <cstdlib>

#include "plan_fit.h"
#include "planner_link.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

// The variable is asked for at every session, as the planner does it: it may have been set after the import.
std::string cache_dir(const Options& options, const Planner& planner) {
  for (const auto& [key, value] : options) {
    if (key == "cache_dir" && !value.empty()) return expanded(value);
  }
  const char* variable = std::getenv("XYNTRA_CACHE_DIR");
  return variable != nullptr && *variable != '\0' ? expanded(variable) : planner.default_cache_dir;
}

bool depends_hold(const Plan& plan, const GraphBuffer& graph) {
  return std::all_of(plan.depends.begin(), plan.depends.end(), [&](const PlanDepend& depend) {
    const int32_t index = graph.find_value(depend.value);
    if (index < 0) return false;
    const GraphValue& value = graph.values()[static_cast<std::size_t>(index)];
    return (value.flags & kConstant) != 0 && hash128(value.data, value.bytes) == depend.hash;
  });
}

bool suits(const UsablePlan& usable, int ordinal) {
  return ordinal < 0 || (usable.device != nullptr && usable.device->ordinal() == ordinal);
}

// A kernel reads as many buffers and parameters as it was made for, however long the tables are that it is given. On a device its
// driver knows how many a kernel takes.
void check_arguments(const Plan& plan, std::vector<LoadedKernel>& kernels) {
  for (const PlanIsland& island : plan.islands) {
    for (const Alternative& alternative : island.alternatives) {
      for (const auto* steps : {&alternative.init, &alternative.run}) {
        for (const PlanStep& step : *steps) {
          LoadedKernel& kernel = kernels[step.kernel];
          if (kernel.function == nullptr || (step.buffers.size() == kernel.buffers && step.params.size() == kernel.params))
            continue;
          kernel.function = nullptr;
          kernel.error = "step '" + step.label + "' gives " + kernel.symbol + " " + std::to_string(step.buffers.size()) +
                         " buffers and " + std::to_string(step.params.size()) + " parameters, it takes " +
                         std::to_string(kernel.buffers) + " and " + std::to_string(kernel.params);
        }
      }
    }
  }
}

// Successors of kernels are compiled after their plan is stored, and perhaps never were.
bool has_successors(const Plan& plan) {
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.successor.empty()) continue;
    if (!load_sealed_kernel(plan.whole_path(kernel.successor), kernel.successor_symbol).usable()) return false;
  }
  return true;
}

// A stored plan is used whole or not at all: the planner can repair what is missing. Where there is none (`alone`), it is used
// without successors, too.
bool use_stored(const std::string& dir, const GraphBuffer& graph, int ordinal, bool alone, UsablePlan& usable) {
  const TrustedFile file = read_trusted_file(dir + "/plans/" + usable.digest + ".plan");
  if (file.verdict == TrustedFile::Verdict::kDistrusted) usable.failure = "its stored plan is not used: " + file.error;
  if (!file.error.empty()) return false;
  std::shared_ptr<const Plan> plan;
  try {
    plan = Plan::read(file.bytes);
  } catch (const FormatError&) {
    return false;
  }
  if (plan->digest != usable.digest || !depends_hold(*plan, graph)) return false;
  for (const PlanIsland& island : plan->islands) {
    if (!why_unfit(island, graph).empty()) return false;
  }
  load_kernels(*plan, usable);
  for (const LoadedKernel& kernel : usable.kernels) {
    if (kernel.usable()) continue;
    usable.failure = "its stored plan is not used: " + kernel.error;
    return false;
  }
  if (!suits(usable, ordinal) || (!alone && !has_successors(*plan))) return false;
  usable.plan = std::move(plan);
  usable.stored = true;
  return true;
}

}  // namespace

void load_kernels(const Plan& plan, UsablePlan& usable) {
  std::string missing;
  if (!plan.device.empty()) {
    const auto found = Device::find(plan.device);
    usable.device = found.device;
    missing = found.error;
  }
  usable.kernels.clear();
  usable.kernels.reserve(plan.kernels.size());
  for (const PlanKernel& kernel : plan.kernels) {
    if (!missing.empty()) {
      usable.kernels.emplace_back().error = missing;
      continue;
    }
    if (usable.compiled != nullptr) {
      usable.kernels.push_back(load_kernel(usable.compiled->kernel(kernel.hash), kernel));
      continue;
    }
    usable.kernels.push_back(load_kernel(plan.whole_path(kernel.path), kernel, usable.device));
  }
  check_arguments(plan, usable.kernels);
}

UsablePlan plan_of(std::shared_ptr<const CompiledModel> compiled, bool execute, const std::function<void(Plan&)>& adapt) {
  UsablePlan usable;
  usable.compiled = std::move(compiled);
  std::string why_not;
  const CompiledModel::Target* target = &usable.compiled->targets().front();
  if (execute) target = usable.compiled->best(why_not);
  if (target == nullptr) throw Error(kInvalidArgument, why_not);
  try {
    const std::shared_ptr<Plan> plan = Plan::read(target->plan);
    if (adapt) adapt(*plan);
    usable.plan = plan;
  } catch (const FormatError& error) {
    throw Error(kInvalidArgument, std::string("its plan cannot be used: ") + error.what());
  }
  if (usable.plan->refuse || !usable.plan->device.empty()) throw Error(kInvalidArgument, "its plan is not for a processor");
  usable.digest = usable.plan->digest;
  if (!execute) return usable;
  load_kernels(*usable.plan, usable);
  for (const LoadedKernel& kernel : usable.kernels) {
    if (!kernel.usable()) throw Error(kInvalidArgument, kernel.error);
  }
  return usable;
}

UsablePlan compile_ahead(const GraphBuffer& graph, bool execute) {
  const Planner planner = attached_planner();
  if (planner.callback == nullptr)
    throw Error(kInvalidArgument, "to compile a model ahead of time takes Python: `xyntra compile`, or `import xyntra_ep` before");
  UsablePlan usable;
  usable.digest = graph.digest(planner.full_identity());
  const PlannerReply reply = ask(planner, graph.bytes(), usable.digest);
  try {
    if (!reply.is_plan) throw Error(kFail, reply.bytes);
    if (CompiledModel::is_one(reply.bytes)) return plan_of(CompiledModel::read(reply.bytes), execute);
    usable.plan = Plan::read(reply.bytes);
  } catch (const FormatError& error) {
    throw Error(kFail, std::string("the planner's answer cannot be read: ") + error.what());
  }
  return usable;
}

UsablePlan find_plan(const GraphBuffer& graph, const Options& options, int ordinal) {
  const Planner planner = attached_planner();
  UsablePlan usable;
  usable.digest = graph.digest(planner.full_identity());
  const std::string dir = cache_dir(options, planner);
  if (!dir.empty() && use_stored(dir, graph, ordinal, planner.callback == nullptr, usable)) return usable;
  if (planner.callback == nullptr) return usable;
  usable.failure.clear();  // the planner tells it

  const PlannerReply reply = ask(planner, graph.bytes(), usable.digest);
  if (!reply.is_plan) {
    usable.failure = reply.bytes.empty() ? "the planner failed without a reason" : reply.bytes;
    return usable;
  }
  try {
    usable.plan = Plan::read(reply.bytes);
    load_kernels(*usable.plan, usable);
  } catch (const FormatError& error) {
    usable.failure = std::string("the planner's answer is not a valid plan: ") + error.what();
  }
  if (usable.plan && !usable.plan->refuse && !suits(usable, ordinal)) {
    usable.plan.reset();
    usable.failure = "its plan is not for the device " + std::to_string(ordinal) + " that the session is on";
  }
  return usable;
}

}  // namespace xyntra
