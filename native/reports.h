// Passes reports from a session to its caller: `explain` gives a token through set_ep_dynamic_options, the session stores its
// report under it, and the caller takes it.
#pragma once

#include <string>

namespace xyntra::reports {

void put(const std::string& token, std::string report);
// The report's size, 0 when there is none. It is copied and forgotten when `capacity` is enough.
std::size_t take(const std::string& token, char* buffer, std::size_t capacity);

}  // namespace xyntra::reports
