// A compiled model without its checksum, and what one says of itself for ONNX Runtime.
#include <string>

#include "byte_io.h"
#include "compiled_model.h"
#include "fuzz.h"
#include "plan.h"

namespace {

using namespace xyntra;
using fuzz::must;

void check(const CompiledModel& model) {
  must(!model.targets().empty(), "there is a target");
  for (const auto& island : model.islands()) {
    for (const uint32_t tensor : island) must(tensor < model.tensors().size(), "an island reads tensors that are there");
  }
  std::string why_not;
  const CompiledModel::Target* const best = model.best(why_not);
  must((best == nullptr) == !why_not.empty(), "what cannot be executed has a reason");
  judge_compatibility(model.compatibility(), why_not);
  for (const CompiledModel::Target& target : model.targets()) {
    try {
      Plan::read(target.plan);
    } catch (const FormatError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::string bytes(fuzz::text(data, size));
  std::string why_not;
  const int verdict = judge_compatibility(bytes, why_not);
  must(verdict >= 0 && verdict <= 3 && (verdict == 3) == !why_not.empty(), "a verdict is one of ONNX Runtime's");
  const Hash128 checksum = hash128(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
  try {
    check(*CompiledModel::read(bytes));
  } catch (const FormatError&) {
  }
  return 0;
}
