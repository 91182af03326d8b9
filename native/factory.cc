#include "factory.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "graph_access.h"
#include "version.h"

namespace xyntra {
namespace {

Options read_options(const Ort& ort, const OrtSessionOptions* session) {
  struct Release {
    const Ort& ort;
    void operator()(OrtKeyValuePairs* pairs) const { ort[api::kReleaseKeyValuePairs](pairs); }
  };
  const std::unique_ptr<OrtKeyValuePairs, Release> entries(get(ort, session, api::kGetSessionOptionsConfigEntries),
                                                           Release{ort});
  const Text* keys = nullptr;
  const Text* values = nullptr;
  std::size_t n = 0;
  ort[api::kGetKeyValuePairs](entries.get(), &keys, &values, &n);

  constexpr std::string_view prefix = kOptionPrefix;
  Options options;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view key = keys[i];
    if (key.substr(0, prefix.size()) == prefix) options.emplace_back(key.substr(prefix.size()), values[i]);
  }
  std::sort(options.begin(), options.end());
  return options;
}

}  // namespace

Factory::Factory(const Ort& ort) : OrtEpFactory{}, ort_(ort) {
  ort_version_supported = ort_.api_version();
  GetName = [](const OrtEpFactory*) { return kEpName; };
  GetVendor = [](const OrtEpFactory*) { return "XyntraEP"; };
  GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) { return kVersion; };
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** out) -> OrtStatus* {
    *out = nullptr;  // tensors stay in ordinary memory
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) { return false; };
  GetSupportedDevices = devices_callback;
  CreateEp = create_callback;
  ReleaseEp = release_callback;
}

OrtStatus* Factory::devices_callback(OrtEpFactory* self, const OrtHardwareDevice* const* devices, std::size_t n,
                                     OrtEpDevice** out, std::size_t most, std::size_t* n_out) {
  const Ort& ort = static_cast<Factory*>(self)->ort_;
  return guard(ort, [&] {
    *n_out = 0;
    for (std::size_t i = 0; i < n && *n_out < most; ++i) {
      if (ort[api::kHardwareDeviceType](devices[i]) != kHardwareCpu) continue;
      ort.check(ort.ep()[ep_api::kCreateEpDevice](self, devices[i], nullptr, nullptr, &out[*n_out]));
      ++*n_out;
      return;  // one device: a machine's CPUs are one to us
    }
  });
}

OrtStatus* Factory::create_callback(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                                    std::size_t, const OrtSessionOptions* session, const OrtLogger* logger,
                                    OrtEp** out) {
  const Ort& ort = static_cast<Factory*>(self)->ort_;
  return guard(ort, [&] { *out = std::make_unique<Ep>(ort, logger, read_options(ort, session)).release(); });
}

void Factory::release_callback(OrtEpFactory*, OrtEp* ep) { delete static_cast<Ep*>(ep); }

}  // namespace xyntra
