// A fast 128-bit hash for digests, checksums and interning. Not cryptographic: it finds damage and equal content; the
// files it is used on are trusted through their owner and mode (trusted_file.h), never through their hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace xyntra {

using Hash128 = std::array<uint8_t, 16>;

Hash128 hash128(const void* data, std::size_t bytes) noexcept;
std::string to_hex(const Hash128& hash);

}  // namespace xyntra
