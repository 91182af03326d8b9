#include "reports.h"

#include <cstring>
#include <map>
#include <mutex>

namespace xyntra::reports {
namespace {

constexpr std::size_t kMostTokens = 64;  // nobody leaves more behind by intention

struct Store {
  std::mutex mutex;
  std::map<std::string, std::string> reports;
};

Store& store() {
  static auto* const instance = new Store;
  return *instance;
}

}  // namespace

void put(const std::string& token, std::string report) {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  if (all.reports.size() >= kMostTokens) all.reports.erase(all.reports.begin());
  all.reports[token] = std::move(report);
}

std::size_t take(const std::string& token, char* buffer, std::size_t capacity) {
  Store& all = store();
  const std::lock_guard lock(all.mutex);
  const auto found = all.reports.find(token);
  if (found == all.reports.end()) return 0;
  const std::size_t bytes = found->second.size();
  if (bytes <= capacity) {
    std::memcpy(buffer, found->second.data(), bytes);
    all.reports.erase(found);
  }
  return bytes;
}

}  // namespace xyntra::reports
