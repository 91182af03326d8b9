// The little JSON that native code writes itself. Names come from models and plans, where any bytes may stand: those that are no
// UTF-8 become the escapes that Python has for them (surrogateescape).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xyntra {

// How many bytes of UTF-8 the text begins with: those of one character, or 0.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const auto second = byte(1);  // neither longer than needed, nor a surrogate, nor beyond the last character
  const bool odd = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) || (lead == 0xf0 && second < 0x90) ||
                   (lead == 0xf4 && second >= 0x90);
  return odd ? 0 : length;
}

inline std::string json_quote(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const std::size_t length = utf8_length(text.substr(i));
      if (length == 0) {
        out += "\\udc";
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
        continue;
      }
      out += text.substr(i, length);
      i += length - 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

}  // namespace xyntra
