#include "hash128.h"

#include <cstring>

namespace xyntra {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kStripe = kLanes * sizeof(uint64_t);

// Odd constants with about 32 bits set (digits of pi, made odd).
constexpr uint64_t kKeys[kLanes] = {0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1, 0x082efa98ec4e6c89,
                                    0x452821e638d01377, 0xbe5466cf34e90c6d, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917};

inline uint64_t fold(uint64_t a, uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Each word enters its own lane through a multiplication and the neighbour's by addition, so a change of one word
// cannot vanish in a single lane. Eight lanes hide the latency of the multiplier.
inline void mix(uint64_t (&lanes)[kLanes], const uint8_t* stripe) noexcept {
  uint64_t words[kLanes];
  std::memcpy(words, stripe, kStripe);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = fold(lanes[i] ^ words[i], kKeys[i]) + words[i ^ 1];
}

uint64_t finish(const uint64_t (&lanes)[kLanes], std::size_t first_key, uint64_t bytes) noexcept {
  uint64_t h = bytes * kKeys[first_key];
  for (std::size_t i = 0; i < kLanes; ++i) h = fold(h ^ lanes[i], kKeys[(first_key + i) % kLanes]) + lanes[i] + i;
  h ^= h >> 32;
  h *= kKeys[3];
  h ^= h >> 29;
  return h;
}

}  // namespace

Hash128 hash128(const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const uint8_t*>(data);
  uint64_t lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = kKeys[(i + 5) % kLanes];
  std::size_t left = bytes;
  for (; left >= kStripe; left -= kStripe, at += kStripe) mix(lanes, at);
  if (left != 0) {
    uint8_t tail[kStripe] = {};  // zero padding is unambiguous because the length enters in finish()
    std::memcpy(tail, at, left);
    mix(lanes, tail);
  }
  const uint64_t halves[2] = {finish(lanes, 0, bytes), finish(lanes, 5, bytes)};
  Hash128 result;
  std::memcpy(result.data(), halves, sizeof(halves));
  return result;
}

std::string to_hex(const Hash128& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.size());
  for (const uint8_t byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace xyntra
