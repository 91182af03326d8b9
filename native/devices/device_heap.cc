#include "device_heap.h"

#include <algorithm>
#include <iterator>

#include "tensor_device.h"
#include "memory_block.h"

namespace xyntra {
namespace {

constexpr std::size_t kLeast = 512;

// Eight sizes for each power of two: tensors whose shapes change a little find their memory again.
std::size_t size_class(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  std::size_t step = kLeast;
  while (step * 16 < bytes) step *= 2;
  return align_up(bytes, step);
}

}  // namespace

void* DeviceHeap::take(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  bytes = size_class(bytes);
  void* memory = nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const Idle& idle) { return idle.bytes == bytes; });
  if (found != idle_.rend()) {
    memory = found->memory;
    idle_bytes_ -= bytes;
    idle_.erase(std::next(found).base());
  } else {
    memory = allocate(bytes);
  }
  try {
    used_.emplace(static_cast<char*>(memory), bytes);
  } catch (...) {
    device_.release(memory);
    throw;
  }
  used_bytes_ += bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  return memory;
}

void* DeviceHeap::allocate(std::size_t bytes) {
  try {
    return device_.allocate(bytes, "a tensor");
  } catch (const Error&) {
    if (!drop_idle()) throw;
  }
  return device_.allocate(bytes, "a tensor");
}

void DeviceHeap::give_back(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(static_cast<char*>(memory));
  if (found == used_.end()) return;
  const std::size_t bytes = found->second;
  used_.erase(found);
  used_bytes_ -= bytes;
  try {
    idle_.push_back({memory, bytes});
    idle_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    device_.release(memory);
  }
  while (idle_bytes_ > most_used_bytes_) {
    device_.release(idle_.front().memory);
    idle_bytes_ -= idle_.front().bytes;
    idle_.erase(idle_.begin());
  }
}

bool DeviceHeap::shrink() noexcept {
  const std::lock_guard lock(mutex_);
  return drop_idle();
}

bool DeviceHeap::drop_idle() noexcept {
  const bool any = !idle_.empty();
  for (const Idle& idle : idle_) device_.release(idle.memory);
  idle_.clear();
  idle_bytes_ = 0;
  most_used_bytes_ = used_bytes_;
  return any;
}

std::size_t DeviceHeap::room_at(const void* memory) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto* const at = static_cast<const char*>(memory);
  auto next = used_.upper_bound(const_cast<char*>(at));
  if (next == used_.begin()) return 0;
  --next;
  const char* const end = next->first + next->second;
  return at < end ? static_cast<std::size_t>(end - at) : 0;
}

}  // namespace xyntra
