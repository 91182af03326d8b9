// What the fuzzers have in common. Each file here is a program of libFuzzer over one kind of foreign bytes (docs/soundness.md).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace xyntra::fuzz {

// What must hold whatever the bytes say.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string_view text(const uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace xyntra::fuzz
