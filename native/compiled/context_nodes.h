// EPContext nodes (domain com.microsoft): how ONNX Runtime keeps in a model what a provider has compiled. The first of a graph holds
// a compiled model, or the name of a file beside the model that does; the others name it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiled_model.h"
#include "graph_buffer.h"
#include "plan_source.h"

namespace xyntra {

// What a session says about compiled models.
struct AheadOfTime {
  bool writes = false;     // ep.context_enable: a model with EPContext nodes is made
  bool is_only = false;    // session.compile_only: and nothing is executed
  bool embeds = false;     // ep.context_embed_mode: all is in the model, no file beside it
  std::string file;        // ep.context_file_path: of the model that is made; empty: beside the given one
  std::string digests;     // provider option compiled_digest: a file with the SHA-256 of what may be executed; empty: not asked for

  static AheadOfTime read(const std::vector<std::pair<std::string, std::string>>& session, const Options& options);
};

// An EPContext node and the island that it stands for.
struct ContextNode {
  const GraphNode* node = nullptr;
  std::size_t island = 0;
  std::shared_ptr<const UsablePlan> usable;
};

// The EPContext nodes of a graph that are ours.
std::vector<const GraphNode*> context_nodes(const Ort& ort, const GraphBuffer& graph);

// What `nodes` hold, ready to be executed, all or nothing: throws Error with the reason why not.
std::vector<ContextNode> open_context_nodes(const Ort& ort, const OrtGraph* graph, const GraphBuffer& read,
                                            const std::vector<const GraphNode*>& nodes, const AheadOfTime& ahead);

// The node that stands for an island in the model which ONNX Runtime writes; it becomes ONNX Runtime's. The `main` one holds the
// compiled model, or writes the file. `model_path`: of the model that was given, "" for one in memory.
OrtNode* make_context_node(const Ort& ort, const OrtNode* fused_node, const UsablePlan& usable, std::size_t island, bool main,
                           const AheadOfTime& ahead, const std::string& model_path);

}  // namespace xyntra
