#include "island.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "file_pages.h"
#include "graph_access.h"
#include "python_end.h"

namespace xyntra {
namespace {

std::vector<std::size_t> positions(const Ort& ort, const std::vector<PlanTensor>& tensors,
                                   const std::vector<const OrtValueInfo*>& infos, const char* what) {
  std::unordered_map<std::string_view, std::size_t> position;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i] != nullptr) position.emplace(get(ort, infos[i], api::kGetValueInfoName), i);
  }
  std::vector<std::size_t> found;
  for (const PlanTensor& tensor : tensors) {
    const auto at = position.find(tensor.name);
    if (at == position.end())
      throw Error(kFail, std::string("XyntraEP: the fused node has no ") + what + " '" + tensor.name + "'");
    found.push_back(at->second);
  }
  return found;
}

}  // namespace

Island::Island(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtNode* fused_node)
    : OrtNodeComputeInfo{},
      ort_(ort),
      usable_(std::move(usable)),
      island_(usable_->plan->islands[island]),
      input_position_(positions(ort, island_.inputs,
                                get_all(ort, fused_node, api::kNodeGetNumInputs, api::kNodeGetInputs), "input")),
      output_position_(positions(ort, island_.outputs,
                                 get_all(ort, fused_node, api::kNodeGetNumOutputs, api::kNodeGetOutputs), "output")) {
  ort_version_supported = ort_.api_version();
  CreateState = create_state;
  Compute = compute_callback;
  ReleaseState = release_state;
}

std::vector<const OrtValue*> Island::find_constants(const OrtGraph* graph) const {
  const std::vector<std::string>& names = island_.constants;
  std::vector<const OrtValue*> found(names.size());
  if (names.empty()) return found;
  std::unordered_map<std::string_view, const OrtValue*> wanted;  // of a compiled model two may have the same name
  for (const std::string& name : names) wanted.emplace(name, nullptr);
  // Through the nodes' inputs: the graph's own list of initializers lacks those of an outer scope.
  std::vector<const OrtValueInfo*> infos;
  const auto look = [&](const OrtNode* node, auto count, auto fill) {
    get_all(ort_, node, count, fill, infos);
    for (const auto* info : infos) {
      if (info == nullptr) continue;
      const auto name = wanted.find(get(ort_, info, api::kGetValueInfoName));
      if (name == wanted.end() || name->second != nullptr) continue;
      name->second = get(ort_, info, api::kValueInfoGetInitializerValue);
    }
  };
  for (const auto* node : get_all(ort_, graph, api::kGraphGetNumNodes, api::kGraphGetNodes)) {
    look(node, api::kNodeGetNumInputs, api::kNodeGetInputs);
    look(node, api::kNodeGetNumImplicitInputs, api::kNodeGetImplicitInputs);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    found[i] = wanted.at(names[i]);
    if (found[i] == nullptr) throw Error(kFail, "XyntraEP: the constant '" + names[i] + "' is gone");
  }
  return found;
}

Constants Island::constants_in(const OrtGraph* graph) const {
  auto found = std::make_shared<const std::vector<const OrtValue*>>(find_constants(graph));
  const auto data = [this, found](std::size_t i) -> const void* { return get(ort_, (*found)[i], api::kGetTensorData); };
  const auto bytes = [this, found](std::size_t i) { return get(ort_, (*found)[i], api::kGetTensorSizeInBytes); };
  return {data, bytes, [data, bytes](std::size_t i) { give_back_file_pages(data(i), bytes(i)); }};
}

void Island::read_inputs(const OrtKernelContext* context, std::vector<InputView>& inputs) const {
  inputs.resize(input_position_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OrtValue* value = nullptr;
    ort_.check(ort_[api::kKernelContextGetInput](context, input_position_[i], &value));
    if (value == nullptr) throw Error(kInvalidArgument, "XyntraEP: input '" + island_.inputs[i].name + "' is missing");
    const TensorShape shape = tensor_shape(ort_, value);
    inputs[i] = {get(ort_, value, api::kGetTensorData), shape.dims, shape.rank};
  }
}

void Island::make_outputs(OrtKernelContext* context, const Evaluation& evaluation, std::vector<void*>& outputs) const {
  outputs.resize(output_position_.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& dims = evaluation.output_dims(i);
    OrtValue* value = nullptr;
    try {
      ort_.check(ort_[api::kKernelContextGetOutput](context, output_position_[i], dims.data(), dims.size(), &value));
    } catch (const Error& error) {
      throw Error(error.code(), "XyntraEP: output '" + island_.outputs[i].name + "': " + error.what());
    }
    outputs[i] = get(ort_, value, api::kGetTensorMutableData);
  }
}

OrtStatus* Island::create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
  *state = self;  // all state is in workspaces, which belong to runs
  return nullptr;
}

OrtStatus* Island::compute_traced(OrtKernelContext* context) noexcept {
  TraceRecord record;
  record.kind = TraceKind::kIsland;
  record.name = traced_as();
  record.begin_ns = trace::now_ns();
  OrtStatus* const status = guard_run(ort_, [&] { compute(context); });
  record.end_ns = trace::now_ns();
  if (status != nullptr) {
    record.flags = kTraceFailed;
    trace::run_fails();
  }
  trace::put(record);
  return status;
}

OrtStatus* Island::compute_callback(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  auto& island = *static_cast<Island*>(self);
  OrtStatus* const status =
      trace::is_on() ? island.compute_traced(context) : guard_run(island.ort_, [&] { island.compute(context); });
  stay_if_python_goes();
  return status;
}

void Island::release_state(OrtNodeComputeInfo*, void*) {}

}  // namespace xyntra
