#include "context_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "graph_access.h"
#include "open_nodes.h"
#include "system.h"
#include "version.h"

namespace xyntra {
namespace {

constexpr const char* kOperator = "EPContext";
constexpr const char* kDomain = "com.microsoft";
constexpr const char* kSource = "XyntraEP";
constexpr const char* kSuffix = ".xyntra";

// -- attributes

const OrtOpAttr* find_attribute(const Ort& ort, const OrtNode* node, std::string_view name) {
  for (const auto* attribute : get_all(ort, node, api::kNodeGetNumAttributes, api::kNodeGetAttributes)) {
    if (attribute != nullptr && get(ort, attribute, api::kOpAttrGetName) == name) return attribute;
  }
  return nullptr;
}

std::optional<std::string> text_attribute(const Ort& ort, const OrtNode* node, std::string_view name) {
  const OrtOpAttr* const attribute = find_attribute(ort, node, name);
  if (attribute == nullptr || get(ort, attribute, api::kOpAttrGetType) != kString) return std::nullopt;
  std::size_t bytes = 0;
  if (OrtStatus* status = ort[api::kReadOpAttr](attribute, kString, nullptr, 0, &bytes)) ort[api::kReleaseStatus](status);
  std::string text(bytes, '\0');
  if (bytes != 0) ort.check(ort[api::kReadOpAttr](attribute, kString, text.data(), text.size(), &bytes));
  return text;
}

int64_t number_attribute(const Ort& ort, const OrtNode* node, std::string_view name, int64_t otherwise) {
  const OrtOpAttr* const attribute = find_attribute(ort, node, name);
  if (attribute == nullptr || get(ort, attribute, api::kOpAttrGetType) != kInt) return otherwise;
  std::size_t bytes = 0;
  int64_t value = otherwise;
  ort.check(ort[api::kReadOpAttr](attribute, kInt, &value, sizeof value, &bytes));
  return value;
}

// Attributes of a node that is made: ONNX Runtime copies them.
class Attributes {
 public:
  explicit Attributes(const Ort& ort) : ort_(ort) {}
  ~Attributes() {
    for (OrtOpAttr* attribute : made_) ort_[api::kReleaseOpAttr](attribute);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void add(Text name, int64_t value) { add(name, &value, 1, kInt); }
  void add(Text name, const std::string& value) {
    if (value.size() > INT32_MAX) throw Error(kInvalidArgument, "XyntraEP: what was compiled is too large to be embedded in a model");
    add(name, value.data(), static_cast<int>(value.size()), kString);
  }
  OrtOpAttr** data() noexcept { return made_.data(); }
  std::size_t size() const noexcept { return made_.size(); }

 private:
  void add(Text name, const void* data, int n, AttributeType type) {
    OrtOpAttr* attribute = nullptr;
    ort_.check(ort_[api::kCreateOpAttr](name, data, n, type, &attribute));
    made_.push_back(attribute);
  }

  const Ort& ort_;
  std::vector<OrtOpAttr*> made_;
};

// -- files

// As a whole or not at all.
void write_file(const std::string& path, const std::string& bytes) {
  const std::string unfinished = path + ".unfinished";
  {
    std::ofstream file(system::to_system(unfinished), std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw Error(kFail, "XyntraEP: " + unfinished + " cannot be written");
  }
  std::error_code problem;
  std::filesystem::rename(system::to_system(unfinished), system::to_system(path), problem);
  if (problem) throw Error(kFail, "XyntraEP: " + path + " cannot be written: " + problem.message());
}

// -- opening

std::vector<int64_t> declared_dims(const Ort& ort, const OrtValueInfo* info, bool& has_shape) {
  const auto* type = get(ort, info, api::kGetValueInfoTypeInfo);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (type != nullptr && get(ort, type, api::kGetOnnxTypeFromTypeInfo) == kOnnxTypeTensor)
    tensor = get(ort, type, api::kCastTypeInfoToTensorInfo);
  has_shape = tensor != nullptr && ort[api::kTensorTypeAndShapeHasShape](tensor);
  if (!has_shape) return {};
  std::vector<int64_t> dims(get(ort, tensor, api::kGetDimensionsCount));
  ort.check(ort[api::kGetDimensions](tensor, dims.data(), dims.size()));
  return dims;
}

NodeTensor tensor_of(const Ort& ort, const GraphValue& value) {
  NodeTensor tensor;
  tensor.name = value.name;
  tensor.elem_type = value.elem_type;
  tensor.is_constant = (value.flags & kConstant) != 0;
  tensor.dims = declared_dims(ort, value.info, tensor.has_shape);
  tensor.data = value.data;
  tensor.bytes = value.bytes;
  return tensor;
}

}  // namespace

AheadOfTime AheadOfTime::read(const std::vector<std::pair<std::string, std::string>>& session, const Options& options) {
  AheadOfTime ahead;
  for (const auto& [key, value] : session) {
    if (key == "ep.context_enable") ahead.writes = value == "1";
    if (key == "session.compile_only") ahead.is_only = value == "1";
    if (key == "ep.context_embed_mode") ahead.embeds = value == "1";
    if (key == "ep.context_file_path") ahead.file = system::with_slashes(value);
  }
  if (const char* digests = std::getenv("XYNTRA_COMPILED_DIGEST")) ahead.digests = digests;
  for (const auto& [key, value] : options) {
    if (key == "compiled_digest") ahead.digests = value;
  }
  return ahead;
}

std::vector<const GraphNode*> context_nodes(const Ort& ort, const GraphBuffer& graph) {
  std::vector<const GraphNode*> found;
  for (const GraphNode& node : graph.nodes()) {
    if (!node.taken && node.op_type == kOperator && node.domain == kDomain && text_attribute(ort, node.node, "source") == kSource)
      found.push_back(&node);
  }
  return found;
}

std::vector<ContextNode> open_context_nodes(const Ort& ort, const OrtGraph* graph, const GraphBuffer& read,
                                            const std::vector<const GraphNode*>& nodes, const AheadOfTime& ahead) {
  std::vector<CompiledNode> compiled;
  for (const GraphNode* node : nodes) {
    CompiledNode& one = compiled.emplace_back();
    one.is_main = number_attribute(ort, node->node, "main_context", 1) != 0;
    one.is_embedded = number_attribute(ort, node->node, "embed_mode", 1) != 0;
    one.content = text_attribute(ort, node->node, "ep_cache_context").value_or("");
    one.partition = text_attribute(ort, node->node, "partition_name").value_or("");
    for (const int32_t i : node->inputs) one.inputs.push_back(tensor_of(ort, read.values()[static_cast<std::size_t>(i)]));
    for (const int32_t i : node->outputs) one.outputs.push_back(tensor_of(ort, read.values()[static_cast<std::size_t>(i)]));
  }
  const std::string model_path = model_path_of(ort, graph);
  const std::vector<OpenedNode> opened = open_nodes(std::move(compiled), model_path, ahead.digests);
  std::vector<ContextNode> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) found.push_back({nodes[i], opened[i].island, opened[i].usable});
  return found;
}

OrtNode* make_context_node(const Ort& ort, const OrtNode* fused_node, const UsablePlan& usable, std::size_t island, bool main,
                           const AheadOfTime& ahead, const std::string& model_path) {
  const CompiledModel& compiled = *usable.compiled;
  std::vector<Text> inputs, outputs;
  for (const uint32_t tensor : compiled.islands()[island]) inputs.push_back(compiled.tensors()[tensor].name.c_str());
  for (const PlanTensor& output : usable.plan->islands[island].outputs) outputs.push_back(output.name.c_str());
  Attributes attributes(ort);
  attributes.add("main_context", main ? 1 : 0);
  attributes.add("embed_mode", ahead.embeds ? 1 : 0);
  if (main && ahead.embeds) attributes.add("ep_cache_context", compiled.bytes());
  if (main && !ahead.embeds) {
    const std::string model = !ahead.file.empty() ? ahead.file : model_path;
    if (model.empty())
      throw Error(kInvalidArgument, "XyntraEP: a compiled model that is made in memory has no file beside it: embed what is compiled");
    const std::string last = model.substr(model.rfind('/') + 1);
    const std::string name = last.substr(0, last.rfind('.')) + '_' + compiled.name().substr(0, 16) + kSuffix;
    write_file(folder_of(model) + '/' + name, compiled.bytes());
    attributes.add("ep_cache_context", name);
  }
  attributes.add("source", std::string(kSource));
  attributes.add("ep_sdk_version", std::string(kVersion));
  attributes.add("partition_name", partition_of(compiled, island));
  std::string isas;
  for (const CompiledModel::Target& target : compiled.targets()) isas += (isas.empty() ? "" : ",") + target.isa;
  attributes.add("hardware_architecture", isas);

  OrtNode* node = nullptr;
  const FunctionTable editor(ort[api::kGetModelEditorApi]());
  // ONNX Runtime puts a node in the place of the fused one that has its name.
  ort.check(editor[editor_api::kCreateNode](kOperator, kDomain, get(ort, fused_node, api::kNodeGetName), inputs.data(), inputs.size(), outputs.data(),
                                            outputs.size(), attributes.data(), attributes.size(), &node));
  return node;
}

}  // namespace xyntra
