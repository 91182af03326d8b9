// What ORT asks for when the library is registered: a name, a device, and a provider for each session.
#pragma once

#include "ep.h"
#include "ort.h"

namespace xyntra {

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const Ort& ort);

 private:
  static OrtStatus* devices_callback(OrtEpFactory* self, const OrtHardwareDevice* const* devices, std::size_t n,
                                     OrtEpDevice** out, std::size_t most, std::size_t* n_out);
  static OrtStatus* create_callback(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                                    std::size_t, const OrtSessionOptions* session, const OrtLogger* logger,
                                    OrtEp** out);
  static void release_callback(OrtEpFactory* self, OrtEp* ep);

  const Ort& ort_;
};

}  // namespace xyntra
