#include "context_nodes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "byte_io.h"
#include "graph_access.h"
#include "plan_fit.h"
#include "planner_link.h"
#include "sha256.h"
#include "trusted_file.h"
#include "version.h"

namespace xyntra {
namespace {

constexpr const char* kOperator = "EPContext";
constexpr const char* kDomain = "com.microsoft";
constexpr const char* kSource = "XyntraEP";
constexpr const char* kSuffix = ".xyntra";
constexpr std::size_t kMostFileBytes = std::size_t{1} << 31;

// Why a compiled model is not executed, for its user.
class Refusal : public Error {
 public:
  explicit Refusal(const std::string& why) : Error(kInvalidArgument, "XyntraEP does not execute this compiled model: " + why) {}
};

[[noreturn]] void refuse(const std::string& why) { throw Refusal(why); }

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

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string read_beside(const std::string& model_path, const std::string& name) {
  if (!is_plain_name(name)) refuse("the file that it names is not one beside the model");
  if (model_path.empty()) refuse("it was given from memory, and its compiled part is in the file " + name + " beside a model");
  TrustedFile file = read_trusted_file(folder_of(model_path) + '/' + name, kMostFileBytes);
  if (!file.error.empty()) refuse(file.error);
  return std::move(file.bytes);
}

// As a whole or not at all.
void write_file(const std::string& path, const std::string& bytes) {
  const std::string unfinished = path + ".unfinished";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw Error(kFail, "XyntraEP: " + unfinished + " cannot be written");
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0)
    throw Error(kFail, "XyntraEP: " + path + " cannot be written: " + std::strerror(errno));
}

// -- opening

std::shared_ptr<const CompiledModel> read_compiled(const std::string& model_path, bool embedded, std::string content,
                                                   const std::string& digests) {
  std::string bytes = embedded ? std::move(content) : read_beside(model_path, content);
  if (!digests.empty()) {
    const TrustedFile file = read_trusted_file(expanded(digests), kMostFileBytes);
    if (!file.error.empty()) refuse("compiled_digest: " + file.error);
    const std::string digest = sha256_hex(bytes);
    std::istringstream words(file.bytes);
    bool listed = false;
    for (std::string word; words >> word;) listed = listed || word == digest;
    if (!listed) refuse("its SHA-256 is " + digest + ", which " + digests + " does not list");
  }
  try {
    return CompiledModel::read(std::move(bytes));
  } catch (const FormatError& error) {
    refuse(error.what());
  }
}

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

// Kernels take for granted what the model said of its tensors when it was compiled.
void check_tensor(const Ort& ort, const GraphValue& value, const CompiledModel::Tensor& tensor) {
  const std::string name = "'" + tensor.name + "'";
  if (((value.flags & kConstant) != 0) != tensor.is_constant)
    refuse(name + (tensor.is_constant ? " is no constant" : " is a constant"));
  if (value.elem_type != tensor.elem_type) refuse(name + " has another type");
  if (!tensor.has_shape) return;
  bool has_shape = false;
  const std::vector<int64_t> dims = declared_dims(ort, value.info, has_shape);
  bool same = has_shape && dims.size() == tensor.dims.size();
  for (std::size_t i = 0; same && i < dims.size(); ++i) same = tensor.dims[i] < 0 || tensor.dims[i] == dims[i];
  if (!same) refuse(name + " has another shape");
}

using Names = std::unordered_map<std::string, std::string>;

// What a node reads and makes is told by its place: ONNX Runtime may have given tensors other names since. `names`: by those of the
// plan, to which those of the inputs are added.
void check_node(const Ort& ort, const GraphBuffer& graph, const GraphNode& node, const CompiledModel& compiled,
                const PlanIsland& island, const std::vector<uint32_t>& reads, Names& names) {
  if (node.inputs.size() != reads.size()) refuse("its node reads " + std::to_string(node.inputs.size()) + " tensors, not " +
                                                std::to_string(reads.size()));
  if (node.outputs.size() != island.outputs.size()) refuse("its node does not make what its island does");
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const CompiledModel::Tensor& tensor = compiled.tensors()[reads[i]];
    const GraphValue& value = graph.values()[static_cast<std::size_t>(node.inputs[i])];
    check_tensor(ort, value, tensor);
    names.emplace(tensor.name, value.name);
  }
}

// Gives an island of a plan the names that tensors have now.
void rename(PlanIsland& island, const GraphBuffer& graph, const GraphNode& node, const CompiledModel& compiled,
            const std::vector<uint32_t>& reads) {
  Names names;
  for (std::size_t i = 0; i < reads.size(); ++i)
    names.emplace(compiled.tensors()[reads[i]].name, graph.values()[static_cast<std::size_t>(node.inputs[i])].name);
  const auto now = [&](std::string& name) {
    const auto found = names.find(name);
    if (found == names.end()) refuse("its node does not read '" + name + "'");
    name = found->second;
  };
  for (PlanTensor& input : island.inputs) now(input.name);
  for (std::string& name : island.constants) now(name);
  for (std::size_t i = 0; i < island.outputs.size(); ++i)
    island.outputs[i].name = graph.values()[static_cast<std::size_t>(node.outputs[i])].name;
}

void check_depends(const GraphBuffer& graph, const Plan& plan, const Names& names) {
  for (const PlanDepend& depend : plan.depends) {
    const auto name = names.find(depend.value);
    const int32_t index = name == names.end() ? -1 : graph.find_value(name->second);
    const GraphValue* const value = index < 0 ? nullptr : &graph.values()[static_cast<std::size_t>(index)];
    if (value == nullptr || (value->flags & kConstant) == 0 || hash128(value->data, value->bytes) != depend.hash)
      refuse("the constant '" + depend.value + "' is another one than it was compiled for");
  }
}

// `partition_name`: the name of a compiled model and the number of an island.
std::string partition_of(const CompiledModel& compiled, std::size_t island) {
  return compiled.name() + '/' + std::to_string(island);
}

}  // namespace

AheadOfTime AheadOfTime::read(const std::vector<std::pair<std::string, std::string>>& session, const Options& options) {
  AheadOfTime ahead;
  for (const auto& [key, value] : session) {
    if (key == "ep.context_enable") ahead.writes = value == "1";
    if (key == "session.compile_only") ahead.is_only = value == "1";
    if (key == "ep.context_embed_mode") ahead.embeds = value == "1";
    if (key == "ep.context_file_path") ahead.file = value;
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
  const std::string model_path = get(ort, graph, api::kGraphGetModelPath);
  struct Opened {
    std::shared_ptr<const CompiledModel> compiled;
    std::vector<const GraphNode*> nodes;  // by island; null where none was found yet
    std::shared_ptr<const UsablePlan> usable;
  };
  std::map<std::string, Opened> opened;  // by the name of the compiled model
  for (const GraphNode* node : nodes) {
    if (number_attribute(ort, node->node, "main_context", 1) == 0) continue;
    auto content = text_attribute(ort, node->node, "ep_cache_context");
    if (!content) refuse("a node has no ep_cache_context");
    const bool embedded = number_attribute(ort, node->node, "embed_mode", 1) != 0;
    auto compiled = read_compiled(model_path, embedded, std::move(*content), ahead.digests);
    const std::size_t islands = compiled->islands().size();
    const std::string name = compiled->name();
    opened.emplace(name, Opened{std::move(compiled), std::vector<const GraphNode*>(islands), nullptr});
  }
  std::vector<ContextNode> found;
  std::vector<Opened*> models;
  for (const GraphNode* node : nodes) {
    const std::string partition = text_attribute(ort, node->node, "partition_name").value_or("");
    const std::size_t slash = partition.find('/');
    const auto model = opened.find(partition.substr(0, slash));
    if (slash == std::string::npos || model == opened.end()) refuse("a node names a compiled model that is not there");
    char* end = nullptr;
    const std::string digits = partition.substr(slash + 1);
    const unsigned long island = std::strtoul(digits.c_str(), &end, 10);
    if (digits.empty() || *end != '\0' || island >= model->second.nodes.size()) refuse("a node names an island that is not there");
    if (model->second.nodes[island] != nullptr) refuse("two nodes name the same island");
    model->second.nodes[island] = node;
    found.push_back({node, island, nullptr});
    models.push_back(&model->second);
  }
  for (auto& [name, model] : opened) {
    const CompiledModel& compiled = *model.compiled;
    Names names;
    const auto adapt = [&, &nodes_of = model.nodes](Plan& plan) {
      if (plan.islands.size() != nodes_of.size()) refuse("its plan is for other islands");
      for (std::size_t i = 0; i < nodes_of.size(); ++i) {
        if (nodes_of[i] == nullptr) continue;  // ONNX Runtime has dropped what nobody reads
        check_node(ort, read, *nodes_of[i], compiled, plan.islands[i], compiled.islands()[i], names);
        rename(plan.islands[i], read, *nodes_of[i], compiled, compiled.islands()[i]);
        if (const std::string why = why_unfit(plan.islands[i], read); !why.empty()) refuse(why);
      }
      check_depends(read, plan, names);
    };
    try {
      UsablePlan usable = plan_of(model.compiled, true, adapt);
      usable.from_model = true;
      usable.compiled = nullptr;  // some megabytes that ONNX Runtime has, too
      model.usable = std::make_shared<const UsablePlan>(std::move(usable));
    } catch (const Refusal&) {
      throw;
    } catch (const Error& error) {
      refuse(error.what());
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) found[i].usable = models[i]->usable;
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
