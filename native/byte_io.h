// Little-endian, unaligned reading and writing of the two binary formats (docs/graph-buffer.md, docs/plan-format.md).
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace xyntra {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the formats are little-endian and written by memcpy");

// Damaged or hostile bytes end here as an exception, never as a read outside of the buffer.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string_view text() {
    const auto n = read<uint32_t>();
    return {take(n), n};
  }
  // A count of things that take at least `least_bytes` each: what cannot be there is refused before it is allocated.
  uint32_t count(std::size_t least_bytes) {
    const auto n = read<uint32_t>();
    if (static_cast<uint64_t>(n) * least_bytes > left()) throw FormatError("a count exceeds the data");
    return n;
  }
  std::size_t left() const noexcept { return bytes_.size() - at_; }

 private:
  const char* take(std::size_t n) {
    if (n > left()) throw FormatError("the data ends too early");
    const char* from = bytes_.data() + at_;
    at_ += n;
    return from;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

class ByteWriter {
 public:
  template <class T>
  void put(T value) {
    raw(&value, sizeof(T));
  }
  void text(std::string_view value) {
    put(static_cast<uint32_t>(value.size()));
    raw(value.data(), value.size());
  }
  void raw(const void* from, std::size_t n) { bytes_.append(static_cast<const char*>(from), n); }
  template <class T>
  void patch(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  std::size_t size() const noexcept { return bytes_.size(); }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace xyntra
