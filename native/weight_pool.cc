#include "weight_pool.h"

#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include "live.h"
#include "ort.h"

namespace xyntra {
namespace {

struct HashOfHash {
  std::size_t operator()(const Hash128& hash) const noexcept {
    std::size_t value;
    std::memcpy(&value, hash.data(), sizeof(value));
    return value;
  }
};

struct Known {
  const PoolEntry* entry;  // to recognise it when it dies; alive only if `weight` still is
  std::weak_ptr<const PoolEntry> weight;
};

struct Pool {
  std::mutex mutex;
  std::unordered_multimap<Hash128, Known, HashOfHash> known;
};

Pool& pool() {
  static auto* const instance = new Pool;  // leaked: sessions may end after static destructors ran
  return *instance;
}

std::vector<PooledWeight> alive_with(const Hash128& hash) {
  std::vector<PooledWeight> weights;
  const std::lock_guard lock(pool().mutex);
  const auto range = pool().known.equal_range(hash);
  for (auto at = range.first; at != range.second; ++at) {
    weights.emplace_back();  // first, because a weight must not end under the lock
    weights.back() = at->second.weight.lock();
    if (weights.back() == nullptr) weights.pop_back();
  }
  return weights;
}

}  // namespace

PoolEntry::PoolEntry(std::shared_ptr<PoolBlock> block, const char* data, std::size_t bytes, const Hash128& hash)
    : block_(std::move(block)), data_(data), bytes_(bytes), hash_(hash) {
  block_->hold(begin(), begin() + PoolWriter::room_for(bytes_));
  count(Live::kWeights, 1);
  count(Live::kWeightBytes, static_cast<int64_t>(bytes_));
}

PoolEntry::~PoolEntry() {
  count(Live::kWeights, -1);
  count(Live::kWeightBytes, -static_cast<int64_t>(bytes_));
  block_->let_go(begin(), begin() + PoolWriter::room_for(bytes_));
  Pool& all = pool();
  const std::lock_guard lock(all.mutex);
  const auto range = all.known.equal_range(hash_);
  for (auto at = range.first; at != range.second; ++at) {
    if (at->second.entry == this) {
      all.known.erase(at);
      return;
    }
  }
}

PoolWriter::PoolWriter(std::size_t capacity) {
  if (capacity != 0) block_ = std::make_shared<PoolBlock>(capacity);
}

PoolWriter::~PoolWriter() {
  if (block_) block_->finish(used_);
}

char* PoolWriter::open(std::size_t bytes) {
  const std::size_t room = room_for(bytes);
  if (!block_ || room > block_->size() - used_) throw NoMemory(room, "packed weights");
  char* data = block_->data() + used_;
  used_ += room;
  std::memset(data + bytes, 0, room - bytes);  // read past the end must be defined, and equal in every process
  return data;
}

PooledWeight PoolWriter::close(char* data, std::size_t bytes) {
  const Hash128 hash = hash128(data, bytes);
  // Compared outside of the lock. Two threads that pack the same weight at the same moment may each keep their own:
  // right, if not thrifty.
  for (const PooledWeight& known : alive_with(hash)) {
    if (known->size() != bytes || std::memcmp(known->data(), data, bytes) != 0) continue;
    const bool last_opened = data + room_for(bytes) == block_->data() + used_;
    if (last_opened) used_ -= room_for(bytes);
    return known;
  }
  auto weight = std::make_shared<const PoolEntry>(block_, data, bytes, hash);
  const std::lock_guard lock(pool().mutex);
  pool().known.emplace(hash, Known{weight.get(), weight});
  return weight;
}

uint64_t pool_bytes() noexcept { return counted(Live::kWeightBytes); }

}  // namespace xyntra
