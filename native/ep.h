// The provider within one session: claims islands in GetCapability, makes them runnable in Compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "context_nodes.h"
#include "copy_kernels.h"
#include "island.h"
#include "graph_buffer.h"
#include "live.h"
#include "ort.h"
#include "plan_source.h"
#include "trace.h"

namespace xyntra {

inline constexpr const char* kEpName = "XyntraEP";
inline constexpr const char* kOptionPrefix = "ep.xyntraep.";

class Ep : public OrtEp {
 public:
  // `ordinal`: of the device whose memory the session's tensors are in, -1 for the host's.
  Ep(const Ort& ort, const OrtLogger* logger, Options options, AheadOfTime ahead, int ordinal);
  const Ort& ort() const noexcept { return ort_; }

 private:
  // Claimed and not yet compiled.
  struct Pending {
    std::vector<uint64_t> nodes;  // sorted
    std::shared_ptr<const UsablePlan> usable;
    std::size_t island = 0;
    std::string refusal;  // when not empty: Compile fails with it
  };

  void get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  // Of a graph that was compiled ahead of time; nothing else of it is ours.
  void take_compiled(const OrtGraph* graph, const GraphBuffer& read, const std::vector<const GraphNode*>& nodes,
                     OrtEpGraphSupportInfo* info);
  UsablePlan plan_for(const GraphBuffer& graph, const Options& options) const;
  void refuse(const GraphBuffer& graph, const std::string& message, OrtEpGraphSupportInfo* info);
  std::vector<std::string> claim(const GraphBuffer& graph, std::shared_ptr<const UsablePlan> usable,
                                 OrtEpGraphSupportInfo* info);
  void fuse(const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* info) const;
  // `moved`: why the graph is not on the device that was chosen for it.
  void record(const GraphBuffer& graph, const UsablePlan& usable, const std::vector<std::string>& declined,
              const std::string& moved);
  void compile(const OrtGraph** graphs, const OrtNode** fused_nodes, std::size_t n, OrtNodeComputeInfo** infos,
               OrtNode** context_nodes);
  Pending take_pending(const OrtGraph* graph);
  void set_dynamic_option(const std::string& key, const std::string& value);

  static const char* name_callback(const OrtEp* self);
  static OrtStatus* capability_callback(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  static OrtStatus* compile_callback(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, std::size_t n,
                                     OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  static const char* compatibility_callback(OrtEp* self, const OrtGraph* graph);
  static void release_callback(OrtEp* self, OrtNodeComputeInfo** infos, std::size_t n);
  static OrtStatus* registry_callback(OrtEp* self, const OrtKernelRegistry** out);
  static OrtStatus* sync_callback(OrtEp* self);
  static OrtStatus* run_begins_callback(OrtEp* self, const OrtRunOptions*);
  static OrtStatus* run_ends_callback(OrtEp* self, const OrtRunOptions*, bool sync);
  static OrtStatus* created_callback(OrtEp* self);
  static OrtStatus* options_callback(OrtEp* self, const char* const* keys, const char* const* values, std::size_t n);

  const Counted<Live::kSessions> counted_;
  const Ort& ort_;
  const OrtLogger* const logger_;
  std::string trace_problem_;  // why the session cannot be traced as it asks for
  const Options options_;
  const AheadOfTime ahead_;
  std::string model_path_;     // while a model is compiled ahead of time
  std::string compatibility_;  // of what was compiled
  trace::Session traced_;
  const int ordinal_;
  const Device* device_ = nullptr;  // of islands that were made ready; null: none is on one
  std::unique_ptr<const CopyKernels> copies_;  // with `ordinal`
  std::vector<Pending> pending_;
  std::vector<std::string> reports_;  // JSON, one per call of GetCapability
};

}  // namespace xyntra
