#include "ep.h"

#include <algorithm>

#include "claims.h"
#include "cpu_island.h"
#include "tensor_device.h"
#include "device_island.h"
#include "graph_access.h"
#include "json.h"
#include "python_end.h"
#include "reports.h"

namespace xyntra {
namespace {

constexpr uint32_t kTellsCreation = 27;  // the API from which on ORT calls OnSessionInitializationEnd

Options with_option(Options options, const std::string& name, const std::string& value) {
  options.erase(std::remove_if(options.begin(), options.end(), [&](const auto& option) { return option.first == name; }),
                options.end());
  options.emplace_back(name, value);
  std::sort(options.begin(), options.end());
  return options;
}

// For who compiles only: ONNX Runtime wants something to release.
class WrittenIsland : public Island {
 public:
  WrittenIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtNode* fused_node)
      : Island(ort, std::move(usable), island, fused_node) {}

 private:
  void compute(OrtKernelContext*) override { throw Error(kNotImplemented, "XyntraEP has compiled this model and executes nothing of it"); }
};

}  // namespace

Ep::Ep(const Ort& ort, const OrtLogger* logger, Options options, AheadOfTime ahead, int ordinal)
    : OrtEp{},
      ort_(ort),
      logger_(logger),
      options_(trace::begin_as_asked(std::move(options), trace_problem_)),
      ahead_(std::move(ahead)),
      ordinal_(ordinal) {
  ort_version_supported = ort_.api_version();
  GetName = name_callback;
  GetCapability = capability_callback;
  Compile = compile_callback;
  GetCompiledModelCompatibilityInfo = compatibility_callback;
  ReleaseNodeComputeInfos = release_callback;
  SetDynamicOptions = options_callback;
  OnRunStart = run_begins_callback;
  OnRunEnd = run_ends_callback;
  OnSessionInitializationEnd = created_callback;
  if (ordinal_ < 0) return;
  copies_ = std::make_unique<const CopyKernels>(ort_, kEpName, ordinal_);
  GetKernelRegistry = registry_callback;
  Sync = sync_callback;
}

// ORT calls this once per subgraph, for the main graph, and again after functions were inlined: everything accumulates.
void Ep::get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  const trace::Stage stage("capability");
  auto read = std::make_unique<const GraphBuffer>(ort_, graph, options_);
  const auto& nodes = read->nodes();
  if (std::all_of(nodes.begin(), nodes.end(), [](const GraphNode& node) { return node.taken; })) return;
  if (!trace_problem_.empty()) return refuse(*read, trace_problem_, info);
  // ONNX Runtime writes EPContext nodes into the main graph only.
  if (ahead_.writes && get(ort_, graph, api::kGraphGetParentNode) != nullptr) return;
  if (const auto compiled = context_nodes(ort_, *read); !compiled.empty()) return take_compiled(graph, *read, compiled, info);

  std::shared_ptr<const UsablePlan> usable;
  try {
    if (ahead_.writes) model_path_ = model_path_of(ort_, graph);
    usable = std::make_shared<const UsablePlan>(plan_for(*read, options_));
  } catch (const Error& error) {  // of what cannot be compiled ahead of time: who asks for it wants nothing else
    return refuse(*read, error.what(), info);
  }
  std::string moved;
  if (usable->plan && usable->plan->may_move) moved = why_device_fails(*usable);
  if (!moved.empty()) {
    ort_.log(logger_, kWarning, "XyntraEP computes on the CPU: " + moved);
    const Options on_cpu = with_option(options_, "backend", "cpu");
    read = std::make_unique<const GraphBuffer>(ort_, graph, on_cpu);
    usable = std::make_shared<const UsablePlan>(find_plan(*read, on_cpu, ordinal_));
  }
  const GraphBuffer& buffer = *read;
  std::vector<std::string> declined;
  if (usable->plan) {
    ort_.log(logger_, usable->plan->log_level, usable->plan->log_line);
    if (usable->plan->refuse) {
      refuse(buffer, usable->plan->message, info);
    } else {
      declined = claim(buffer, usable, info);
    }
  } else if (!usable->failure.empty()) {
    ort_.log(logger_, kWarning,
             "XyntraEP takes nothing of graph '" + std::string(buffer.graph_name()) + "': " + usable->failure);
  }
  record(buffer, *usable, declined, moved);
}

UsablePlan Ep::plan_for(const GraphBuffer& graph, const Options& options) const {
  return ahead_.writes ? compile_ahead(graph, !ahead_.is_only) : find_plan(graph, options, ordinal_);
}

void Ep::take_compiled(const OrtGraph* graph, const GraphBuffer& read, const std::vector<const GraphNode*>& nodes,
                       OrtEpGraphSupportInfo* info) {
  std::vector<ContextNode> opened;
  std::string why;
  try {
    if (ahead_.writes) throw Error(kInvalidArgument, "XyntraEP: the model was compiled ahead of time already");
    if (ordinal_ >= 0) throw Error(kInvalidArgument, "XyntraEP executes models that were compiled ahead of time on the processor");
    opened = open_context_nodes(ort_, graph, read, nodes, ahead_);
  } catch (const Error& error) {
    why = error.what();
  }
  if (!why.empty()) {
    for (const GraphNode* node : nodes) {  // nobody else can take one, and ONNX Runtime would say no more than that
      fuse({node->node}, info);
      pending_.push_back({{node->id}, nullptr, 0, why});
    }
    return;
  }
  std::string unused;
  for (const auto& [key, value] : options_) {
    if (key != "compiled_digest" && key != "log_level" && key != "cache_dir") unused += (unused.empty() ? "" : ", ") + key + '=' + value;
  }
  if (!unused.empty())
    ort_.log(logger_, kWarning, "XyntraEP: " + unused + " says nothing for a model that was compiled ahead of time");
  for (const ContextNode& node : opened) {
    fuse({node.node->node}, info);
    pending_.push_back({{node.node->id}, node.usable, node.island, {}});
  }
  const Plan& plan = *opened.front().usable->plan;
  ort_.log(logger_, std::min<int>(plan.log_level, kInfo), plan.log_line + ", compiled ahead of time");
  record(read, *opened.front().usable, {}, {});
}

// A failing GetCapability is only logged by ORT, and Compile is not called when nothing is claimed: so claim one node.
void Ep::refuse(const GraphBuffer& graph, const std::string& message, OrtEpGraphSupportInfo* info) {
  const auto& nodes = graph.nodes();
  const auto free = std::find_if(nodes.begin(), nodes.end(), [](const GraphNode& node) { return !node.taken; });
  fuse({free->node}, info);
  pending_.push_back({{free->id}, nullptr, 0, message.empty() ? "XyntraEP refuses this session" : message});
}

std::vector<std::string> Ep::claim(const GraphBuffer& graph, std::shared_ptr<const UsablePlan> usable,
                                   OrtEpGraphSupportInfo* info) {
  const Plan& plan = *usable->plan;
  const Claims claims(graph, plan, usable->kernels);
  for (std::size_t i = 0; i < plan.islands.size(); ++i) {
    const std::string& why = claims.declined()[i];
    if (!why.empty()) {
      ort_.log(logger_, kWarning, "XyntraEP leaves island '" + plan.islands[i].name + "' to ONNX Runtime: " + why);
      continue;
    }
    fuse(claims.nodes_of(plan.islands[i]), info);
    pending_.push_back({plan.islands[i].nodes, usable, i, {}});
  }
  return claims.declined();
}

void Ep::fuse(const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* info) const {
  OrtNodeFusionOptions options{};
  options.ort_version_supported = ort_.api_version();
  // Weights live packed in our pool, the originals may go; but a model that is written has them beside what is compiled.
  options.drop_constant_initializers = !ahead_.writes;
  ort_.check(ort_.ep()[ep_api::kAddNodesToFuse](info, nodes.data(), nodes.size(), &options));
}

void Ep::record(const GraphBuffer& graph, const UsablePlan& usable, const std::vector<std::string>& declined,
                const std::string& moved) {
  std::string text = "{\"graph\": " + json_quote(graph.graph_name()) + ", \"digest\": " + json_quote(usable.digest) +
                     ", \"stored\": " + (usable.stored ? "true" : "false") +
                     ", \"compiled\": " + (usable.from_model ? "true" : "false") +
                     ", \"failure\": " + json_quote(usable.failure) + ", \"moved\": " + json_quote(moved);
  text += ", \"unclaimed\": {";
  const char* separator = "";
  for (std::size_t i = 0; i < declined.size(); ++i) {
    if (declined[i].empty()) continue;
    text += separator + json_quote(usable.plan->islands[i].name) + ": " + json_quote(declined[i]);
    separator = ", ";
  }
  text += "}, \"plan\": ";
  text += usable.plan && !usable.plan->report.empty() ? usable.plan->report : "null";
  reports_.push_back(text + "}");
}

void Ep::compile(const OrtGraph** graphs, const OrtNode** fused_nodes, std::size_t n, OrtNodeComputeInfo** infos,
                 OrtNode** context_nodes) {
  std::vector<Pending> islands;
  std::size_t room = 0;
  for (std::size_t i = 0; i < n; ++i) {
    islands.push_back(take_pending(graphs[i]));
    const Pending& island = islands.back();
    if (!island.refusal.empty()) throw Error(kInvalidArgument, island.refusal);
    if (island.usable->device == nullptr && !(ahead_.writes && ahead_.is_only)) room += CpuProgram::pool_room(island.usable->plan->islands[island.island]);
  }
  PoolWriter pool(room);
  const auto tensors = ordinal_ >= 0 ? DeviceWorkspace::Tensors::kOnDevice : DeviceWorkspace::Tensors::kOnHost;
  std::vector<std::unique_ptr<Island>> compiled;  // on failure ORT releases none of them
  for (std::size_t i = 0; i < n; ++i) {
    const Pending& island = islands[i];
    const trace::Stage stage("packing", island.usable->plan->islands[island.island].name);
    if (ahead_.writes && ahead_.is_only) {
      compiled.push_back(std::make_unique<WrittenIsland>(ort_, island.usable, island.island, fused_nodes[i]));
    } else if (island.usable->device == nullptr) {
      compiled.push_back(
          std::make_unique<CpuIsland>(ort_, island.usable, island.island, graphs[i], fused_nodes[i], pool));
    } else {
      compiled.push_back(
          std::make_unique<DeviceIsland>(ort_, island.usable, island.island, graphs[i], fused_nodes[i], tensors));
      device_ = island.usable->device;
    }
  }
  const UsablePlan* main = nullptr;
  for (std::size_t i = 0; i < n && ahead_.writes; ++i) {
    const UsablePlan& usable = *islands[i].usable;
    context_nodes[i] = make_context_node(ort_, fused_nodes[i], usable, islands[i].island, &usable != main, ahead_, model_path_);
    main = &usable;
    compatibility_ = usable.compiled->compatibility();
  }
  for (std::size_t i = 0; i < n; ++i) infos[i] = compiled[i].release();
  if (ort_.api_version() < kTellsCreation) traced_.created();
}

// Node ids repeat between a graph and its subgraphs, and ORT compiles a graph before it shows the next one: the latest
// claim with these nodes is meant.
Ep::Pending Ep::take_pending(const OrtGraph* graph) {
  std::vector<uint64_t> ids;
  for (const auto* node : get_all(ort_, graph, api::kGraphGetNumNodes, api::kGraphGetNodes))
    ids.push_back(get(ort_, node, api::kNodeGetId));
  std::sort(ids.begin(), ids.end());
  const auto found =
      std::find_if(pending_.rbegin(), pending_.rend(), [&](const Pending& pending) { return pending.nodes == ids; });
  if (found == pending_.rend()) throw Error(kFail, "XyntraEP was given an island to compile that it did not claim");
  Pending pending = std::move(*found);
  pending_.erase(std::next(found).base());
  return pending;
}

void Ep::set_dynamic_option(const std::string& key, const std::string& value) {
  if (key == "xyntra.explain_token") {
    std::string all = "[";
    for (const std::string& report : reports_) all += (all.size() > 1 ? ",\n" : "") + report;
    reports::put(value, all + "]");
  } else if (key.rfind("xyntra.", 0) == 0) {
    throw Error(kInvalidArgument, "XyntraEP has no dynamic option '" + key + "'. There is xyntra.explain_token");
  }  // others are for other providers
}

const char* Ep::name_callback(const OrtEp*) { return kEpName; }

OrtStatus* Ep::capability_callback(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  auto& ep = *static_cast<Ep*>(self);
  OrtStatus* const status = guard(ep.ort_, [&] {
    try {
      ep.get_capability(graph, info);
    } catch (const std::exception& error) {
      // ORT would print an error and go on without us. That is what happens, but it is no error of the user's.
      ep.ort_.log(ep.logger_, kWarning, std::string("XyntraEP takes nothing: ") + error.what());
    }
  });
  stay_if_python_goes();
  return status;
}

OrtStatus* Ep::compile_callback(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, std::size_t n,
                                OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
  auto& ep = *static_cast<Ep*>(self);
  OrtStatus* const status = guard(ep.ort_, [&] { ep.compile(graphs, fused_nodes, n, infos, context_nodes); });
  stay_if_python_goes();
  return status;
}

const char* Ep::compatibility_callback(OrtEp* self, const OrtGraph*) { return static_cast<Ep*>(self)->compatibility_.c_str(); }

void Ep::release_callback(OrtEp*, OrtNodeComputeInfo** infos, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) delete static_cast<Island*>(infos[i]);
}

OrtStatus* Ep::registry_callback(OrtEp* self, const OrtKernelRegistry** out) {
  *out = static_cast<Ep*>(self)->copies_->registry();
  return nullptr;
}

// Asked for by who has bound tensors that others still write on the device.
OrtStatus* Ep::sync_callback(OrtEp* self) {
  const auto& ep = *static_cast<Ep*>(self);
  return guard(ep.ort_, [&] { TensorDevice::at(ep.ordinal_).synchronize(); });
}

// Of a session whose tensors are on a device, ORT would move inputs there, and say of a lost one that there is no memory, before
// it asks an island.
OrtStatus* Ep::run_begins_callback(OrtEp* self, const OrtRunOptions*) {
  auto& ep = *static_cast<Ep*>(self);
  ep.traced_.run_begins();
  if (ep.ordinal_ < 0 || ep.device_ == nullptr) return nullptr;
  return guard_run(ep.ort_, [&] { ep.device_->require_alive(); });
}

OrtStatus* Ep::run_ends_callback(OrtEp* self, const OrtRunOptions*, bool) {
  static_cast<Ep*>(self)->traced_.run_ends();
  return nullptr;
}

OrtStatus* Ep::created_callback(OrtEp* self) {
  static_cast<Ep*>(self)->traced_.created();
  return nullptr;
}

OrtStatus* Ep::options_callback(OrtEp* self, const char* const* keys, const char* const* values, std::size_t n) {
  auto& ep = *static_cast<Ep*>(self);
  return guard(ep.ort_, [&] {
    for (std::size_t i = 0; i < n; ++i) ep.set_dynamic_option(keys[i], values[i]);
  });
}

}  // namespace xyntra
