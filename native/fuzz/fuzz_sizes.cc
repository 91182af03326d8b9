// A program of sizes and the elements that it is given. What is not spoiled is what 128 bits say.
#include <vector>

#include "expressions.h"
#include "fuzz.h"

namespace {

using namespace xyntra;

// Elements in the order of the bytes, which need not suffice.
std::vector<int64_t> elements(const uint8_t* data, std::size_t size, std::size_t n) {
  std::vector<int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    uint64_t value = 0;
    for (std::size_t k = 0; k < 8 && 8 * i + k < size; ++k) value |= uint64_t{data[8 * i + k]} << (8 * k);
    values[i] = static_cast<int64_t>(value);
  }
  return values;
}

}  // namespace

// The first byte says how many bytes of elements follow; the program is behind them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0 || size - 1 < data[0]) return 0;
  const std::size_t n = data[0];
  const auto bytes = fuzz::text(data + 1 + n, size - 1 - n);
  Expressions program;
  try {
    ByteReader in(bytes);
    program.read(in);
  } catch (const FormatError&) {
    return 0;
  }
  const std::vector<int64_t> symbols = elements(data + 1, n, program.symbols().size());
  std::vector<int64_t> values(program.size());
  const bool fits = program.evaluate(symbols.data(), values.data());
  const std::vector<uint8_t> spoiled = program.spoiled(values);

  // Once more, from the bytes: 9 for each symbol, 25 for each operation.
  ByteReader in(bytes);
  for (uint32_t i = in.read<uint32_t>(); i > 0; --i) in.read<uint8_t>(), in.read<uint32_t>(), in.read<uint32_t>();
  in.read<uint32_t>();
  bool all_fit = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto op = in.read<uint8_t>();
    const auto a = in.read<int64_t>(), b = in.read<int64_t>();
    in.read<int64_t>();
    if (op >= 2 && op <= 4) {  // ADD, SUB, MUL
      const __int128 x = values[a], y = values[b];
      const __int128 exact = op == 2 ? x + y : op == 3 ? x - y : x * y;
      const bool one_fits = exact >= INT64_MIN && exact <= INT64_MAX;
      all_fit = all_fit && one_fits;
      fuzz::must(!one_fits || values[i] == static_cast<int64_t>(exact), "a number that fits is exact");
      fuzz::must(one_fits || values[i] == (exact < 0 ? INT64_MIN : INT64_MAX), "one that does not is the nearest");
      fuzz::must((spoiled[i] != 0) == (!one_fits || spoiled[a] != 0 || spoiled[b] != 0), "what does not fit spoils");
    }
    fuzz::must(!fits || spoiled[i] == 0, "where everything fits nothing is spoiled");
  }
  fuzz::must(!fits || all_fit, "what does not fit is noticed");
  program.fixed_values();
  return 0;
}
