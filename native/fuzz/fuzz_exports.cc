// What the C functions do with bytes and texts of their callers, and the JSON that native code writes of them.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "exports.h"
#include "fuzz.h"
#include "json.h"
#include "reports.h"

namespace {

using namespace xyntra;
using fuzz::must;

// Where a string of JSON that begins at `at` ends; npos when it is none.
std::size_t end_of_string(const std::string& json, std::size_t at) {
  if (at >= json.size() || json[at] != '"') return std::string::npos;
  for (++at; at < json.size(); ++at) {
    const auto byte = static_cast<unsigned char>(json[at]);
    if (byte == '"') return at + 1;
    if (byte < 0x20) return std::string::npos;
    if (byte != '\\') continue;
    if (++at >= json.size()) return std::string::npos;
    if (json[at] != 'u') continue;
    for (int digit = 0; digit < 4; ++digit) {
      if (++at >= json.size() || std::strchr("0123456789abcdef", json[at]) == nullptr) return std::string::npos;
    }
  }
  return std::string::npos;
}

void check_hash(const uint8_t* data, std::size_t size) {
  uint8_t here[16], moved[16];
  xyntra_hash128(data, size, here);
  std::string copy(1, ' ');  // at another alignment
  copy.append(reinterpret_cast<const char*>(data), size);
  xyntra_hash128(copy.data() + 1, size, moved);
  must(std::memcmp(here, moved, sizeof(here)) == 0, "a hash is of the bytes, not of their address");
}

void check_report(const std::string& token, const std::string& text, std::size_t capacity) {
  reports::put(token, text);
  std::vector<char> buffer(capacity + 1, '#');
  const uint64_t wanted = xyntra_take_report(token.c_str(), buffer.data(), capacity);
  must(buffer[capacity] == '#', "a report is not written beyond its buffer");
  if (wanted == 0) return;  // the C function sees another token where this one has a NUL
  must(wanted == text.size(), "the size of a report is told");
  if (capacity >= wanted) must(std::equal(text.begin(), text.end(), buffer.begin()), "a report arrives as it was");
  buffer.resize(std::max(buffer.size(), text.size()));
  xyntra_take_report(token.c_str(), buffer.data(), buffer.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string all(fuzz::text(data, size));
  must(end_of_string(json_quote(all), 0) == json_quote(all).size(), "a text is one string of JSON");
  check_hash(data, size);
  if (size < 2) return 0;
  const std::size_t split = std::min<std::size_t>(data[0], size - 2);
  check_report(all.substr(2, split), all.substr(2 + split), data[1]);

  std::vector<std::string> texts(5);
  for (std::size_t i = 0; i < size; ++i) texts[i % 5] += all[i];
  xyntra_attach(nullptr, texts[0].c_str(), texts[1].c_str(), texts[2].c_str(), texts[3].c_str(), texts[4].c_str());
  PlannerReply reply;
  xyntra_reply(&reply, data[0] & 1, data, size);
  must(reply.bytes == all && reply.is_plan == ((data[0] & 1) != 0), "a reply arrives as it was");
  xyntra_cuda_at_hand(texts[0].find('/') == std::string::npos ? texts[0].c_str() : "");
  return 0;
}
