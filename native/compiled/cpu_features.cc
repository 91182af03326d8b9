#include "cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "matrix_tiles.h"
#include "system.h"

namespace xyntra {
namespace {

constexpr std::string_view kTiles = "amx_";

bool begins_with_any(const std::string& feature, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return feature.compare(0, prefix.size(), prefix) == 0; });
}

// As `limited` of the doctor's profile has it.
bool is_beyond(const std::string& feature, const std::string& widest) {
  if (widest == "avx512") return begins_with_any(feature, {kTiles});
  if (widest == "avx2") return begins_with_any(feature, {kTiles, "avx512", "avx_vnni"});
  return widest == "scalar" && begins_with_any(feature, {kTiles, "avx", "fma", "f16c", "asimd"});
}

}  // namespace

std::string lacking_feature(const std::vector<std::string>& wanted) {
  static const auto* const features = [] {
    const std::vector<std::string> found = system::cpu_features();
    return new std::set<std::string>(found.begin(), found.end());
  }();
  const char* isa = std::getenv("XYNTRA_ISA");
  std::string widest = isa != nullptr ? isa : "";
  for (char& c : widest) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const std::string& feature : wanted) {
    if (features->count(feature) == 0 || is_beyond(feature, widest)) return feature;
    if (begins_with_any(feature, {kTiles}) && !permit_matrix_tiles().empty()) return feature;
  }
  return {};
}

}  // namespace xyntra
