#include "opened_island.h"

#include <utility>

#include "ort.h"

namespace xyntra {
namespace {

const PlanIsland& checked(const UsablePlan& usable, std::size_t number) {
  if (usable.device != nullptr) throw Error(kInvalidArgument, "an island is opened on the CPU only");
  if (number >= usable.plan->islands.size()) throw Error(kInvalidArgument, "the plan has no such island");
  return usable.plan->islands[number];
}

const ConstantView& constant(const std::vector<ConstantView>& constants, std::size_t i) {
  if (i >= constants.size()) throw Error(kInvalidArgument, "the island has other constants");
  return constants[i];
}

Constants known(const std::vector<ConstantView>& constants) {
  return {[&](std::size_t i) { return constant(constants, i).data; }, [&](std::size_t i) { return constant(constants, i).bytes; }};
}

}  // namespace

UsablePlan usable_plan(std::string_view bytes, const std::string& name) {
  UsablePlan usable;
  usable.plan = Plan::read(bytes);
  load_kernels(*usable.plan, usable);
  for (const LoadedKernel& kernel : usable.kernels) {
    if (!kernel.usable()) throw Error(kFail, name + ": " + kernel.error);
  }
  return usable;
}

OpenedIsland::OpenedIsland(UsablePlan usable, std::size_t number, const std::vector<ConstantView>& constants)
    : OpenedIsland(std::make_shared<const UsablePlan>(std::move(usable)), number, known(constants)) {
  if (island_.constants.size() != constants.size()) throw Error(kInvalidArgument, "the island has other constants");
}

OpenedIsland::OpenedIsland(std::shared_ptr<const UsablePlan> usable, std::size_t number, const Constants& constants)
    : usable_(std::move(usable)),
      island_(checked(*usable_, number)),
      pool_(CpuProgram::pool_room(island_)),
      program_(usable_, number, constants, pool_) {}

OpenedIsland::Run::Run(OpenedIsland& island, const std::vector<InputView>& inputs)
    : island_(island),
      lease_(island.workspaces_.take([&] { return std::make_unique<Workspace>(island.island_); })),
      workspace_(*lease_) {
  if (inputs.size() != island.island_.inputs.size()) throw Error(kInvalidArgument, "the island has other inputs");
  workspace_.inputs = inputs;
  workspace_.prepare(island.program_.alternatives());
}

void OpenedIsland::Run::bind(const std::vector<void*>& outputs) {
  if (outputs.size() != island_.island_.outputs.size()) throw Error(kInvalidArgument, "the island has other outputs");
  workspace_.outputs = outputs;
  workspace_.bind();
}

void OpenedIsland::Run::carry_out(const Tasks& tasks) { island_.program_.run(workspace_, tasks); }

void OpenedIsland::Run::end() {
  if (const PlanFault* fault = workspace_.fault()) workspace_.evaluation().refuse(fault->message, workspace_.inputs);
  workspace_.deliver();
  workspace_.count_threads();
}

}  // namespace xyntra
