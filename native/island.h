// One claimed island in one session: what ORT calls a node compute info. Here is what all backends have in common: where
// its tensors stand in the fused node, and how ORT asks for a run.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "evaluation.h"
#include "init_steps.h"
#include "live.h"
#include "ort.h"
#include "plan_source.h"
#include "trace.h"

namespace xyntra {

class Island : public OrtNodeComputeInfo {
 public:
  virtual ~Island() = default;
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;

 protected:
  Island(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtNode* fused_node);

  // One run; several threads may be in it at a time.
  virtual void compute(OrtKernelContext* context) = 0;

  // Valid while ORT compiles. The pages that a packed constant was read from go, where they are a file's.
  Constants constants_in(const OrtGraph* graph) const;
  void read_inputs(const OrtKernelContext* context, std::vector<InputView>& inputs) const;
  // Addresses of the outputs, which have the shapes that the evaluation says.
  void make_outputs(OrtKernelContext* context, const Evaluation& evaluation, std::vector<void*>& outputs) const;

  // Its place in the trace; 0 while that is off.
  uint32_t traced_as() const noexcept { return trace::is_on() ? trace::island(*usable_->plan, island_, traced_as_) : 0; }

  const Ort& ort_;
  const std::shared_ptr<const UsablePlan> usable_;
  const PlanIsland& island_;

 private:
  OrtStatus* compute_traced(OrtKernelContext* context) noexcept;
  std::vector<const OrtValue*> find_constants(const OrtGraph* graph) const;
  static OrtStatus* create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext* context, void** state);
  static OrtStatus* compute_callback(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  static void release_state(OrtNodeComputeInfo* self, void* state);

  const Counted<Live::kIslands> counted_;
  mutable std::atomic<uint64_t> traced_as_{0};
  std::vector<std::size_t> input_position_, output_position_;  // within the fused node
};

}  // namespace xyntra
