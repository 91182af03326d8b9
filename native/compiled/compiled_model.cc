#include "compiled_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "byte_io.h"
#include "cpu_features.h"
#include "plan.h"
#include "version.h"

namespace xyntra {
namespace {

constexpr std::array<char, 4> kMagic{'X', 'Y', 'C', 'M'};
constexpr uint32_t kCompiledVersion = 1;
constexpr std::string_view kFormat = "xyntra-compiled";

// A CompiledModelCompatibility of ONNX Runtime.
constexpr int kNotOurs = 0, kOptimal = 1, kBetterCompiledAnew = 2, kUnsupported = 3;

void require(bool holds, const std::string& what) {
  if (!holds) throw FormatError(what);
}

// Whether they are as wide as the machine has them.
bool uses_vectors(const std::vector<std::string>& features) {
  for (const char* wide : {"avx2", "avx512f"}) {
    if (lacking_feature({wide}).empty() && std::find(features.begin(), features.end(), wide) == features.end()) return false;
  }
  return true;
}

std::string number(uint32_t n) { return std::to_string(n); }

std::string other_version(const std::string& what, const std::string& found, uint32_t wanted) {
  return what + " has version " + found + ", and this release (" + kVersion + ") reads version " + number(wanted) +
         ": compile the model anew";
}

std::string not_for_this_machine(const std::string& lacking) {
  return "it was compiled for what this machine does not have: " + lacking;
}

}  // namespace

bool CompiledModel::is_one(std::string_view bytes) noexcept {
  return bytes.substr(0, kMagic.size()) == std::string_view(kMagic.data(), kMagic.size());
}

std::shared_ptr<const CompiledModel> CompiledModel::read(std::string bytes) {
  const std::shared_ptr<CompiledModel> model(new CompiledModel);
  model->bytes_ = std::move(bytes);
  const std::string_view all = model->bytes_;
  Hash128 checksum;
  require(all.size() >= kMagic.size() + 4 + checksum.size(), "it is cut short");
  require(is_one(all), "it is no compiled model of XyntraEP");
  ByteReader in(all.substr(kMagic.size(), all.size() - kMagic.size() - checksum.size()));
  // Before the checksum: of another version it may be another one.
  const auto version = in.read<uint32_t>();
  require(version == kCompiledVersion, other_version("its format", number(version), kCompiledVersion));
  std::memcpy(checksum.data(), all.data() + all.size() - checksum.size(), checksum.size());
  require(checksum == hash128(all.data(), all.size() - checksum.size()), "it is damaged or cut short: its checksum does not match");
  model->release_ = std::string(in.text());
  const auto plans = in.read<uint32_t>();
  require(plans == kPlanVersion, other_version("the format of its plans", number(plans), kPlanVersion));
  model->targets_.resize(in.count(12));
  require(!model->targets_.empty(), "it is for no instruction set");
  for (Target& target : model->targets_) {
    target.isa = std::string(in.text());
    target.features.resize(in.count(4));
    for (std::string& feature : target.features) feature = std::string(in.text());
    target.plan = in.text();
  }
  model->tensors_.resize(in.count(13));
  for (Tensor& tensor : model->tensors_) {
    tensor.name = std::string(in.text());
    tensor.elem_type = in.read<int32_t>();
    tensor.is_constant = in.read<uint8_t>() != 0;
    const auto rank = in.read<int32_t>();
    tensor.has_shape = rank >= 0;
    if (!tensor.has_shape) continue;
    require(static_cast<std::size_t>(rank) <= in.left() / sizeof(int64_t), "a count exceeds the data");
    tensor.dims.resize(static_cast<std::size_t>(rank));
    for (int64_t& dim : tensor.dims) dim = in.read<int64_t>();
  }
  model->islands_.resize(in.count(4));
  for (std::vector<uint32_t>& island : model->islands_) {
    island.resize(in.count(4));
    for (uint32_t& tensor : island) {
      tensor = in.read<uint32_t>();
      require(tensor < model->tensors_.size(), "an island reads a tensor that is not there");
    }
  }
  for (uint32_t left = in.count(20); left > 0; --left) {
    const auto hash = in.read<Hash128>();
    const std::string_view kernel = in.text();
    require(hash == hash128(kernel.data(), kernel.size()), "a kernel is damaged: its hash does not match");
    model->kernels_.emplace(hash, kernel);
  }
  require(in.left() == 0, "it has bytes too many");
  model->name_ = to_hex(hash128(all.data(), all.size()));
  return model;
}

const CompiledModel::Target* CompiledModel::best(std::string& why_not) const {
  std::string lacking;
  for (const Target& target : targets_) {
    const std::string feature = lacking_feature(target.features);
    if (feature.empty()) return &target;
    lacking += (lacking.empty() ? "" : ", ") + target.isa + " (" + feature + " is missing)";
  }
  why_not = not_for_this_machine(lacking);
  return nullptr;
}

std::string_view CompiledModel::kernel(const Hash128& hash) const {
  const auto found = kernels_.find(hash);
  return found == kernels_.end() ? std::string_view() : found->second;
}

// Words apart by spaces: the format, its version, that of plans, the release, then each target with what it needs.
std::string CompiledModel::compatibility() const {
  std::string text = std::string(kFormat) + ' ' + number(kCompiledVersion) + ' ' + number(kPlanVersion) + ' ' + release_;
  for (const Target& target : targets_) {
    text += ' ' + target.isa + ':';
    const char* separator = "";
    for (const std::string& feature : target.features) {
      text += separator + feature;
      separator = "+";
    }
  }
  return text;
}

int judge_compatibility(std::string_view text, std::string& why_not) {
  std::istringstream words{std::string(text)};
  std::string format, version, plans, release;
  if (!(words >> format) || format != kFormat) return kNotOurs;
  words >> version >> plans >> release;
  if (version != number(kCompiledVersion)) {
    why_not = other_version("its format", version, kCompiledVersion);
    return kUnsupported;
  }
  if (plans != number(kPlanVersion)) {
    why_not = other_version("the format of its plans", plans, kPlanVersion);
    return kUnsupported;
  }
  std::string lacking;
  for (std::string target; words >> target;) {
    const std::size_t colon = std::min(target.find(':'), target.size());
    std::vector<std::string> features;
    std::istringstream list(target.substr(std::min(colon + 1, target.size())));
    for (std::string feature; std::getline(list, feature, '+');) features.push_back(feature);
    const std::string feature = lacking_feature(features);
    if (feature.empty()) return uses_vectors(features) ? kOptimal : kBetterCompiledAnew;
    lacking += (lacking.empty() ? "" : ", ") + target.substr(0, colon) + " (" + feature + " is missing)";
  }
  why_not = not_for_this_machine(lacking.empty() ? "nothing" : lacking);
  return kUnsupported;
}

}  // namespace xyntra
