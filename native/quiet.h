// Gives back memory that no run has used for a while, without a thread of our own: the next run that ends in the process, of any
// session, does it. While nothing runs, nothing is given back.
#pragma once

#include <cstdint>

namespace xyntra::quiet {

using Time = int64_t;  // milliseconds

// A few nanoseconds, and as many milliseconds inexact.
Time now() noexcept;
// What has been unused for so long goes.
Time period() noexcept;
Time set_period(Time period) noexcept;  // returns the last one

// Somebody who keeps memory for the next run.
class Keeper {
 public:
  // `self` lives as long as this object; `give_back` is called on any thread that ends a run.
  using GiveBack = void (*)(void* self, Time unused_since) noexcept;
  Keeper(void* self, GiveBack give_back);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  friend void run_ended(Time now) noexcept;
  void* const self_;
  const GiveBack give_back_;
  Keeper* next_ = nullptr;
  Keeper** here_ = nullptr;  // what points to this one
};

// Asks the keepers, if they have not been asked for a while.
void run_ended(Time now) noexcept;

}  // namespace xyntra::quiet
