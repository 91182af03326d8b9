#include "trace_ring.h"

#include <cstring>
#include <new>

#include "system.h"

namespace xyntra {
namespace {

constexpr char kMagic[8] = {'X', 'Y', 'T', 'R', 'A', 'C', 'E', '1'};
constexpr std::size_t kPage = 4096;
constexpr std::size_t kTextBytes = std::size_t{32} << 20;  // pages that nobody writes to do not exist
constexpr uint64_t kBeingWritten = ~uint64_t{0};

uint32_t this_thread() noexcept {
  thread_local const auto number = system::thread_number();
  return number;
}

}  // namespace

struct TraceRing::Header {
  char magic[8];
  uint64_t record_bytes, records, records_at, text_bytes, text_at;
  int64_t pid;
  uint64_t process_start;
  std::atomic<uint64_t> next;       // how many records were begun
  std::atomic<uint64_t> text_used;  // bytes, all of them written
  std::atomic<uint64_t> text_lost;  // texts for which there was no room
  std::atomic<uint64_t> lost;       // records that met another writer in their slot
  std::atomic<uint64_t> weights, blocks;  // bytes
};

struct TraceRing::Slot {
  std::atomic<uint64_t> sequence;  // the record's number + 1, once it is written
  std::atomic<uint64_t> words[7];
};

TraceRing::TraceRing(std::size_t records) : mask_(records - 1) {
  const std::size_t text_at = kPage, records_at = text_at + kTextBytes, all = records_at + records * sizeof(Slot);
  const system::SharedMemory shared = system::share_memory("xyntra-trace", all);
  fd_ = shared.file;
  char* const base = static_cast<char*>(shared.data);
  header_ = new (base) Header{};
  texts_ = base + text_at;
  slots_ = reinterpret_cast<Slot*>(base + records_at);  // zero, as atomics begin
  header_->record_bytes = sizeof(Slot);
  header_->records = records;
  header_->records_at = records_at;
  header_->text_bytes = kTextBytes;
  header_->text_at = text_at;
  header_->pid = system::process_number();
  header_->process_start = system::process_start();
  header_->text_used.store(8, std::memory_order_relaxed);  // 0 is no text's place
  std::memcpy(header_->magic, kMagic, sizeof kMagic);
}

// A slot belongs to one writer at a time. One that is overtaken by a whole round gives up: the record would be the oldest anyway.
void TraceRing::put(const TraceRecord& record) noexcept {
  const uint64_t ticket = header_->next.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[ticket & mask_];
  uint64_t last = slot.sequence.load(std::memory_order_relaxed);
  if (last == kBeingWritten || last > ticket ||
      !slot.sequence.compare_exchange_strong(last, kBeingWritten, std::memory_order_acquire, std::memory_order_relaxed)) {
    header_->lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint32_t thread = record.thread != 0 ? record.thread : this_thread();
  const uint32_t first = record.session != 0 ? record.session : record.calls;
  const uint64_t words[7] = {
      static_cast<uint64_t>(record.kind) | uint64_t{record.flags} << 8 | uint64_t{record.alternative} << 16 |
          uint64_t{record.step} << 32,
      record.name | uint64_t{thread} << 32,
      static_cast<uint64_t>(record.begin_ns),
      static_cast<uint64_t>(record.end_ns),
      static_cast<uint64_t>(record.flops),
      static_cast<uint64_t>(record.bytes),
      first | uint64_t{record.tasks} << 32,
  };
  // Released, so that whoever sees a new word sees that the slot is being written, too.
  for (std::size_t i = 0; i < 7; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.sequence.store(ticket + 1, std::memory_order_release);
}

uint32_t TraceRing::put(TraceText kind, std::string_view text) noexcept {
  const std::lock_guard lock(texts_mutex_);
  const uint64_t at = header_->text_used.load(std::memory_order_relaxed);
  const uint64_t room = (8 + text.size() + 7) / 8 * 8;
  if (text.size() > kTextBytes || at + room > kTextBytes) {
    header_->text_lost.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const uint32_t head[2] = {static_cast<uint32_t>(kind), static_cast<uint32_t>(text.size())};
  std::memcpy(texts_ + at, head, sizeof head);
  std::memcpy(texts_ + at + sizeof head, text.data(), text.size());
  header_->text_used.store(at + room, std::memory_order_release);
  return static_cast<uint32_t>(at);
}

void TraceRing::set_memory(uint64_t weights, uint64_t blocks) noexcept {
  header_->weights.store(weights, std::memory_order_relaxed);
  header_->blocks.store(blocks, std::memory_order_relaxed);
}

}  // namespace xyntra
