// What block.h does not have: warpgroups with roles, as the PTX ISA says of "mbarrier", "cp.async.bulk.tensor", "Tensors: Swizzling
// modes", "wgmma.mma_async" and "Matrix-Descriptor Format".
//
// It is strict. A copy takes away at once what it will overwrite, and arrives when nobody can go on without; a product reads its
// operands in shared memory when it is waited for, those in registers at once. Descriptors are taken apart by their bits.
#include <map>

struct xy_tensor_map;

namespace {

constexpr unsigned kWarpgroup = 128;
constexpr std::size_t kSharedBegin = 1024;  // where shared memory that a launch gives has its first address
constexpr unsigned short kNan = 0x7fff;     // of f16 and of bf16

// What driver.cc makes of a tensor map; its words are in xy_tensor_map.
struct TensorMap {
  uint64_t magic, address, rank, extents[5], strides[4], box[3];  // box: 16 bits an axis
};
constexpr uint64_t kTensorMagic = 0x58594d4150000001;

struct Mbarrier {
  unsigned arrivals = 0, left = 0, phase = 0;
  long bytes = 0;

  void complete() {
    if (static_cast<int>(left) < 0) fail("more arrive at an mbarrier than its phase expects");
    if (left == 0 && bytes == 0) ++phase, left = arrivals;
  }
};

using Registers = std::array<int, 4>;

struct Product {
  uint64_t a, b;
  bool across_a, across_b, fresh;
  float (*value)(int, unsigned);
  std::vector<float*> sums;
  std::array<Registers, 4> rows = {};  // a in registers: those of the four threads that have the same rows
  bool in_registers = false;
};

struct Warpgroups {
  std::map<void*, Mbarrier> mbarriers;
  bool ready = false;
  std::vector<std::function<void()>> flying;
  std::map<unsigned, std::vector<Product>> open;                 // by thread
  std::map<unsigned, std::vector<std::vector<Product>>> groups;  // by thread
  std::map<unsigned, std::vector<std::pair<uint64_t, uint64_t>>> begun;  // by warpgroup: its products
  std::map<unsigned, std::size_t> count;                         // by thread: how many of them
} warpgroups;

Mbarrier& mbarrier_at(void* at) {
  const auto found = warpgroups.mbarriers.find(at);
  if (found != warpgroups.mbarriers.end() && warpgroups.ready) return found->second;
  fail("an mbarrier that is not ready");
  return warpgroups.mbarriers[at];
}

void init_mbarrier(void* at, int arrivals) {
  ++block_of_threads.moves;
  Mbarrier& made = warpgroups.mbarriers[at];
  made.arrivals = made.left = static_cast<unsigned>(arrivals);
}

void arrive(void* at, long bytes) {
  ++block_of_threads.moves;
  Mbarrier& mbarrier = mbarrier_at(at);
  --mbarrier.left;
  mbarrier.bytes += bytes;
  mbarrier.complete();
}

// All threads of the cluster's blocks, as at the beginning of their roles; who has done its part goes on to its end.
void meet_cluster() {
  ++block_of_threads.moves;
  __syncthreads();
}

int passed(void* at, int parity) {
  if (parity != 0 && parity != 1) fail("a parity is 0 or 1");
  if (mbarrier_at(at).phase % 2 != static_cast<unsigned>(parity)) return ++block_of_threads.moves, 1;
  Block& b = block_of_threads;
  ++b.waiting;
  swapcontext(&b.fibers[b.now].context, &b.home);
  return 0;
}

// Chunk c of row r of a box lies where c ^ r % 8 would.
void copy_tensor(void* to, const xy_tensor_map& given, void* at, std::vector<long> first, bool everywhere) {
  TensorMap map;
  memcpy(&map, &given, sizeof(map));
  const std::size_t rank = first.size();
  const std::size_t place = static_cast<std::size_t>(static_cast<unsigned char*>(to) - given_shared());
  if (map.magic != kTensorMagic || map.rank != rank) return fail("no map of a tensor with so many axes");
  if (reinterpret_cast<uintptr_t>(&given) % 64 != 0) return fail("a tensor map is not aligned");
  std::vector<long> box(rank);
  std::size_t rows = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    box[i] = static_cast<long>(map.box[i / 4] >> 16 * (i % 4) & 0xffff);
    if (i > 0) rows *= static_cast<std::size_t>(box[i]);
  }
  if (box[0] != 64 || place % 1024 != 0 || place + rows * 128 > block_of_threads.given_bytes)
    return fail("a box does not fit where it is copied to");
  Block& b = block_of_threads;
  const unsigned mine = b.now / b.threads;
  for (unsigned block = everywhere ? 0 : mine; block < (everywhere ? b.cluster : mine + 1); ++block) {
    auto* const target = of_block(static_cast<unsigned short*>(to), block);
    std::fill(target, target + rows * 64, kNan);
    warpgroups.flying.push_back([=, &mbarrier = mbarrier_at(of_block(static_cast<char*>(at), block))] {
      for (std::size_t r = 0; r < rows; ++r) {
        uint64_t address = map.address;
        bool inside = true;
        std::size_t rest = r;
        for (std::size_t i = 1; i < rank; ++i) {
          const long x = first[i] + static_cast<long>(rest % static_cast<std::size_t>(box[i]));
          rest /= static_cast<std::size_t>(box[i]);
          inside = inside && x >= 0 && x < static_cast<long>(map.extents[i]);
          address += static_cast<uint64_t>(x) * map.strides[i - 1];
        }
        for (std::size_t c = 0; c < 64; ++c) {
          const long x = first[0] + static_cast<long>(c);
          const bool there = inside && x >= 0 && x < static_cast<long>(map.extents[0]);
          const std::size_t chunk = (c / 8) ^ (r % 8);
          target[r * 64 + chunk * 8 + c % 8] = there ? reinterpret_cast<const unsigned short*>(address)[x] : 0;
        }
      }
      mbarrier.bytes -= static_cast<long>(rows * 128);
      mbarrier.complete();
    });
  }
  ++block_of_threads.moves;
}

inline uint64_t __cvta_generic_to_shared(const void* at) {
  return static_cast<uint64_t>(static_cast<const unsigned char*>(at) - given_shared()) + kSharedBegin;
}

// Element (r, k) of a matrix of 16-bit elements, r along m or n.
unsigned short element(uint64_t descriptor, bool across, unsigned r, unsigned k) {
  const uint64_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                 stride = (descriptor >> 32 & 0x3fff) << 4;
  const uint64_t others = descriptor & ~(0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 3ull << 62);
  if (descriptor >> 62 != 1 || others != 0) return fail("a descriptor that is not of swizzled rows of 128 bytes"), 0;
  uint64_t at = start + (across ? r / 64 * leading + k / 8 * stride + k % 8 * 128 + r % 64 * 2
                                : r / 8 * stride + r % 8 * 128 + k * 2);
  at ^= (at >> 7 & 7) << 4;
  if (at < kSharedBegin || at - kSharedBegin + 2 > block_of_threads.given_bytes) return fail("a matrix outside of shared memory"), 0;
  unsigned short found;
  memcpy(&found, given_shared() + (at - kSharedBegin), 2);
  return found;
}

// All threads of a warpgroup begin the same product; each has its part of the sums.
void begin_product(Product product) {
  Block& b = block_of_threads;
  const std::pair<uint64_t, uint64_t> both{product.a, product.b};
  auto& begun = warpgroups.begun[b.now / kWarpgroup];
  const std::size_t number = warpgroups.count[b.now]++;
  if (number == begun.size()) begun.push_back(both);
  if (number > begun.size() || begun[number] != both) return fail("threads of a warpgroup begin different products");
  warpgroups.open[b.now].push_back(std::move(product));
}

void begin_product(Registers own, Product product) {
  Block& b = block_of_threads;
  const unsigned first = b.now - b.now % 4;
  std::copy(own.begin(), own.end(), b.fragments[b.now].begin());
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) std::copy_n(b.fragments[first + i].begin(), 4, product.rows[i].begin());
  __syncthreads();
  product.in_registers = true;
  begin_product(std::move(product));
}

void commit_products() {
  const unsigned me = block_of_threads.now;
  warpgroups.groups[me].push_back(std::move(warpgroups.open[me]));
  warpgroups.open[me].clear();
}

// Sum i of thread t is in row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) + i % 2.
void multiply(const Product& p, unsigned t) {
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned row = 16 * (t / 32) + t % 32 / 4 + 8 * half;
    float a[16];
    for (unsigned k = 0; k < 16; ++k)
      a[k] = p.in_registers ? p.value(p.rows[k % 8 / 2][half + k / 8 * 2], k % 2) : p.value(element(p.a, p.across_a, row, k), 0);
    for (unsigned i = 2 * half; i < p.sums.size(); i += i % 2 ? 3 : 1) {
      const unsigned column = 8 * (i / 4) + 2 * (t % 4) + i % 2;
      float sum = p.fresh ? 0.0f : *p.sums[i];
      for (unsigned k = 0; k < 16; ++k) sum += a[k] * p.value(element(p.b, p.across_b, column, k), 0);
      *p.sums[i] = sum;
    }
  }
}

void wait_products(std::size_t pending) {
  const unsigned me = block_of_threads.now;
  auto& groups = warpgroups.groups[me];
  for (; groups.size() > pending; groups.erase(groups.begin()))
    for (const Product& product : groups.front()) multiply(product, me % kWarpgroup);
}

// Nobody can go on: copies arrive. False when there is none.
bool land_copies() {
  const auto flying = std::move(warpgroups.flying);
  warpgroups.flying.clear();
  for (const auto& land : flying) land();
  return !flying.empty();
}

void end_warpgroups() {
  for (const auto& [thread, groups] : warpgroups.groups)
    if (!groups.empty() || !warpgroups.open[thread].empty()) fail("a product is under way when its block ends");
  if (!warpgroups.flying.empty()) fail("a copy is under way when its block ends");
  warpgroups = {};
}

}  // namespace
