// Counts what this process has of ours at the moment. If a test finds memory growing, a growing count shows that it is ours;
// otherwise it is the C library's or ONNX Runtime's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace xyntra {

enum class Live : std::size_t {
  kSessions,
  kPlans,
  kIslands,
  kWorkspaces,
  kWeights,
  kWeightBytes,
  kBlocks,      // of the host's memory: temporaries, packed weights, literals
  kBlockBytes,  // without the pages that were given back
  kDeviceBuffers,
};
inline constexpr std::size_t kLives = 9;

void count(Live what, int64_t more) noexcept;
uint64_t counted(Live what) noexcept;
// A JSON object of all of them.
std::string counts_as_json();

// A member of what is counted as long as it lives.
template <Live kWhat>
class Counted {
 public:
  Counted() noexcept { count(kWhat, 1); }
  Counted(const Counted&) noexcept : Counted() {}
  Counted& operator=(const Counted&) noexcept { return *this; }
  ~Counted() { count(kWhat, -1); }
};

}  // namespace xyntra
