// Reading ORT's graph objects: every getter has one of three forms, so three small functions cover them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ort.h"
#include "system.h"

namespace xyntra {

// OrtStatus* getter(object, T* out)
template <class Object, class Owner, class T>
T get(const Ort& ort, Object* object, Slot<OrtStatus*(Owner*, T*)> slot) {
  T value{};
  ort.check(ort[slot](object, &value));
  return value;
}

// A pair of functions, one that counts and one that fills.
template <class Owner, class T>
void get_all(const Ort& ort, const Owner* object, Slot<OrtStatus*(const Owner*, size_t*)> count,
             Slot<OrtStatus*(const Owner*, T*, size_t)> fill, std::vector<T>& items) {
  items.assign(get(ort, object, count), T{});
  if (!items.empty()) ort.check(ort[fill](object, items.data(), items.size()));
}

template <class Owner, class T>
std::vector<T> get_all(const Ort& ort, const Owner* object, Slot<OrtStatus*(const Owner*, size_t*)> count,
                       Slot<OrtStatus*(const Owner*, T*, size_t)> fill) {
  std::vector<T> items;
  get_all(ort, object, count, fill, items);
  return items;
}

inline std::string model_path_of(const Ort& ort, const OrtGraph* graph) {
  return system::from_system(get(ort, graph, api::kGraphGetModelPath));
}

struct TensorShape {
  int elem_type = 0;
  const int64_t* dims = nullptr;  // ORT's own, valid as long as the value
  std::size_t rank = 0;
};

inline TensorShape tensor_shape(const Ort& ort, const OrtValue* value) {
  TensorShape shape;
  ort.check(ort[api::kGetTensorTypeAndShapeReference](value, &shape.elem_type, &shape.dims, &shape.rank));
  return shape;
}

// What ORT gave to be released.
template <class Object>
class Owned {
 public:
  Owned(const Ort& ort, Object* object, Slot<void(Object*)> release) : ort_(ort), object_(object), release_(release) {}
  ~Owned() { ort_[release_](object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  const Object* get() const noexcept { return object_; }

 private:
  const Ort& ort_;
  Object* object_;
  Slot<void(Object*)> release_;
};

}  // namespace xyntra
