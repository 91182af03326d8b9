// A ring of records in memory that other processes of the same user can read: what happens in this process, the newest of it.
// Any thread may write at any time and waits for none; a reader finds out which records were overwritten meanwhile.
// docs/tracing.md has the layout.
//
// The memory has no name that somebody could take before us, and nothing of it stays when the process dies. On Linux it is a memfd,
// sealed against shrinking, so that a reader never meets its end; whoever may look at /proc/PID/fd of this process may read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace xyntra {

enum class TraceKind : uint8_t { kSession = 1, kSpan, kRun, kIsland, kStep, kShare, kDeviceStep };

inline constexpr uint32_t kTraceAllSteps = ~uint32_t{0};  // of a device, together
inline constexpr uint8_t kTraceFailed = 1;  // a flag: it ended with an error

struct TraceRecord {
  TraceKind kind{};
  uint8_t flags = 0;  // of a step: how many threads had a share of it, 0 where the calling one carried it out
  uint16_t alternative = 0;
  uint32_t step = 0;
  uint32_t name = 0;    // a text's place: of a span what it is called, else the island
  uint32_t thread = 0;  // the system's number of it; 0: the calling thread's
  int64_t begin_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  int64_t flops = 0, bytes = 0;
  uint32_t calls = 0;    // iterations of a loop
  uint32_t tasks = 0;    // of a step, or of a thread's share of it
  uint32_t session = 0;  // of sessions and runs, instead of calls
};

// What the texts in the ring are.
enum class TraceText : uint32_t { kName = 1, kPlan, kIsland, kFile };

class TraceRing {
 public:
  // So many records, a power of two. Throws std::system_error.
  explicit TraceRing(std::size_t records);
  TraceRing(const TraceRing&) = delete;
  TraceRing& operator=(const TraceRing&) = delete;

  void put(const TraceRecord& record) noexcept;
  // Its place, which is its number; 0 when there is no room for more.
  uint32_t put(TraceText kind, std::string_view text) noexcept;
  // What memory the process has of ours at the moment, for who looks on.
  void set_memory(uint64_t weights, uint64_t blocks) noexcept;
  int fd() const noexcept { return fd_; }

 private:
  struct Header;
  struct Slot;

  int fd_ = -1;
  Header* header_ = nullptr;
  char* texts_ = nullptr;
  Slot* slots_ = nullptr;
  uint64_t mask_ = 0;
  std::mutex texts_mutex_;
};

}  // namespace xyntra
