struct __align__(16) xy_f32x4 { float e[4]; };
static __device__ __forceinline__ float xy_max_f32(float a, float b) { return a > b ? a : b; }
extern "C" __global__ void __launch_bounds__(256) xy_pointwise_f32(const float *b_i0, const float *b_i1, float *b_o2, const int p_0) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int packet_ = ((block * 256) + thread);
  if ((packet_ < p_0)) {
    const int i_ = (packet_ % 192);
    const int i1 = (packet_ / 192);
    const long long h_ = (((long long)i1) * 768ll);
    const int at_ = (i_ * 4);
    const xy_f32x4 packet1 = *(const xy_f32x4 *)(b_i0 + (((int)h_) + at_));
    const float v_ = packet1.e[0];
    const float v1 = packet1.e[1];
    const float v2 = packet1.e[2];
    const float v3 = packet1.e[3];
    const xy_f32x4 packet2 = *(const xy_f32x4 *)(b_i1 + at_);
    const float v4 = packet2.e[0];
    const float v5 = packet2.e[1];
    const float v6 = packet2.e[2];
    const float v7 = packet2.e[3];
    *(xy_f32x4 *)(b_o2 + (((int)h_) + at_)) = xy_f32x4{{xy_max_f32(0x0.0p+0f, (v_ + v4)), xy_max_f32(0x0.0p+0f, (v1 + v5)), xy_max_f32(0x0.0p+0f, (v2 + v6)), xy_max_f32(0x0.0p+0f, (v3 + v7))}};
  }
}
