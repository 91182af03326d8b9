// Reading protobuf's wire format (https://protobuf.dev/programming-guides/encoding): the fields of one message, in order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "byte_io.h"

namespace xyntra {

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : left_(message) {}

  // Goes on to the next field; false at the end.
  bool next() {
    if (left_.empty()) return false;
    const uint64_t key = varint();
    field_ = key >> 3;
    if (field_ == 0 || field_ > kMostFields) throw FormatError("a field of the model has no number");
    number_ = 0;
    bytes_ = {};
    switch (key & 7) {
      case kVarint: number_ = varint(); break;
      case kFixed64: number_ = fixed<uint64_t>(); break;
      case kBytes: bytes_ = take(varint()); break;
      case kFixed32: number_ = fixed<uint32_t>(); break;
      default: throw FormatError("a field of the model has a type that does not exist");
    }
    is_bytes_ = (key & 7) == kBytes;
    return true;
  }

  uint64_t field() const noexcept { return field_; }
  bool is_bytes() const noexcept { return is_bytes_; }
  uint64_t number() const noexcept { return number_; }
  int64_t signed_number() const noexcept { return static_cast<int64_t>(number_); }
  std::string_view bytes() const noexcept { return bytes_; }

  // The numbers of a repeated field, whether they are packed or this is one of them.
  template <class Visit>
  void varints(Visit visit) const {
    if (!is_bytes_) return visit(static_cast<int64_t>(number_));
    ProtobufReader packed(bytes_);
    while (!packed.left_.empty()) visit(static_cast<int64_t>(packed.varint()));
  }

 private:
  enum Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  static constexpr uint64_t kMostFields = (uint64_t{1} << 29) - 1;

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) throw FormatError("the model ends too early");
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw FormatError("a number of the model does not end");
  }
  std::string_view take(uint64_t n) {
    if (n > left_.size()) throw FormatError("the model ends too early");
    const std::string_view taken = left_.substr(0, n);
    left_.remove_prefix(n);
    return taken;
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view left_, bytes_;
  uint64_t field_ = 0, number_ = 0;
  bool is_bytes_ = false;
};

}  // namespace xyntra
