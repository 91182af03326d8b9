// The graph that ORT shows in GetCapability: flat bytes for Python (docs/graph-buffer.md), its digest, and the few
// facts that native code needs itself (which node reads which value).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byte_io.h"
#include "ort.h"

namespace xyntra {

enum ValueFlag : uint32_t {
  kGraphInput = 1,
  kGraphOutput = 2,
  kConstant = 4,
  kOuterScope = 8,
  kOverridable = 16,
  kZeros = 32,
};

struct GraphValue {
  std::string_view name;  // ORT's own text, valid as long as the OrtGraph is
  int elem_type = 0;      // 0: no tensor
  uint32_t flags = 0;
  uint64_t bytes = 0;  // of a constant
  const void* data = nullptr;
  const OrtValueInfo* info = nullptr;
};

struct GraphNode {
  const OrtNode* node = nullptr;
  uint64_t id = 0;
  std::string_view op_type, domain;  // ORT's own texts
  bool taken = false;           // another provider owns it
  std::vector<int32_t> inputs;  // explicit, then implicit; indices of values, missing ones left out
  std::vector<int32_t> outputs;
};

using Options = std::vector<std::pair<std::string, std::string>>;  // sorted by key

class GraphBuffer {
 public:
  // Reads the whole graph; nothing of it is kept beyond the call of GetCapability.
  GraphBuffer(const Ort& ort, const OrtGraph* graph, const Options& options);

  // `identity` is what besides the graph decides a plan: code version, CPU features, compiler.
  std::string digest(std::string_view identity) const;

  const std::string& bytes() const noexcept { return out_.bytes(); }
  const std::vector<GraphNode>& nodes() const noexcept { return nodes_; }
  const std::vector<GraphValue>& values() const noexcept { return values_; }
  std::string_view graph_name() const noexcept { return graph_name_; }
  // -1 when the graph has no such value.
  int32_t find_value(std::string_view name) const;

 private:
  int32_t value_index(const OrtValueInfo* info);
  void write_header(const OrtGraph* graph, const Options& options);
  void write_value(GraphValue& value, const OrtValueInfo* info);
  void write_type(const OrtValueInfo* info, int& elem_type);
  void write_node(const OrtNode* node, ByteWriter& out);
  void write_attribute(const OrtOpAttr* attribute, ByteWriter& out);
  void write_tensor(const OrtOpAttr* attribute, ByteWriter& out);

  const Ort& ort_;
  ByteWriter out_;
  ByteWriter value_bytes_;
  std::string_view graph_name_;
  std::pair<std::size_t, std::size_t> path_span_;  // where the model path is, left out of the digest
  std::vector<std::size_t> pointers_;              // where data pointers are, taken as zero by the digest
  std::unordered_map<std::string_view, int32_t> value_of_name_;
  std::vector<GraphValue> values_;
  std::vector<GraphNode> nodes_;
  std::vector<char> scratch_;
  std::vector<const OrtValueInfo*> infos_;
};

}  // namespace xyntra
