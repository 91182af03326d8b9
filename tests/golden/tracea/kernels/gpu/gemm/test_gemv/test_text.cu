struct __align__(16) xy_f32x4 { float e[4]; };
extern "C" __global__ void __launch_bounds__(256) xy_pointwise_f32(const float *b_i0, float *b_o1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int packet_ = ((block * 256) + thread);
  if ((packet_ < 147456)) {
    const int at_ = (packet_ * 4);
    const xy_f32x4 packet1 = *(const xy_f32x4 *)(b_i0 + at_);
    const float v_ = packet1.e[0];
    const float v1 = packet1.e[1];
    const float v2 = packet1.e[2];
    const float v3 = packet1.e[3];
    *(xy_f32x4 *)(b_o1 + at_) = xy_f32x4{{v_, v1, v2, v3}};
  }
}

static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
static __device__ __forceinline__ int xy_max_index(int a, int b) { return a > b ? a : b; }
struct __align__(16) xy_f32x4 { float e[4]; };
extern "C" __global__ void __launch_bounds__(256) xy_gemv_f32_f32_2(const float *b_a0, const float *b_b1, float *b_out2) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) float part_[512];
  const int i_ = (block % 24);
  const int i1 = (block / 24);
  const int column_ = (i_ * 32);
  const int o_ = (thread & 7);
  const int k_ = (thread >> 3);
  const int first_ = (column_ + (o_ * 4));
  float sum_ = 0x0.0p+0f;
  float sum1 = 0x0.0p+0f;
  float sum2 = 0x0.0p+0f;
  float sum3 = 0x0.0p+0f;
  float sum4 = 0x0.0p+0f;
  float sum5 = 0x0.0p+0f;
  float sum6 = 0x0.0p+0f;
  float sum7 = 0x0.0p+0f;
  const int begin_ = (i1 * 256);
  const int end_ = xy_max_index(begin_, xy_min_index((begin_ + 256), 768));
  for (int at_ = (begin_ + (k_ * 4)); at_ < (end_ - 3); at_ += 128) {
    const xy_f32x4 packet1 = *(const xy_f32x4 *)(b_b1 + first_ + (at_ * 768));
    const float y_ = packet1.e[0];
    const float y1 = packet1.e[1];
    const float y2 = packet1.e[2];
    const float y3 = packet1.e[3];
    const xy_f32x4 packet2 = *(const xy_f32x4 *)(b_b1 + first_ + ((at_ + 1) * 768));
    const float y4 = packet2.e[0];
    const float y5 = packet2.e[1];
    const float y6 = packet2.e[2];
    const float y7 = packet2.e[3];
    const xy_f32x4 packet3 = *(const xy_f32x4 *)(b_b1 + first_ + ((at_ + 2) * 768));
    const float y8 = packet3.e[0];
    const float y9 = packet3.e[1];
    const float y10 = packet3.e[2];
    const float y11 = packet3.e[3];
    const xy_f32x4 packet4 = *(const xy_f32x4 *)(b_b1 + first_ + ((at_ + 3) * 768));
    const float y12 = packet4.e[0];
    const float y13 = packet4.e[1];
    const float y14 = packet4.e[2];
    const float y15 = packet4.e[3];
    const xy_f32x4 packet5 = *(const xy_f32x4 *)(b_a0 + at_);
    const float x_ = packet5.e[0];
    const float x1 = packet5.e[1];
    const float x2 = packet5.e[2];
    const float x3 = packet5.e[3];
    sum_ = (x_ * y_ + sum_);
    sum1 = (x_ * y1 + sum1);
    sum2 = (x_ * y2 + sum2);
    sum3 = (x_ * y3 + sum3);
    sum_ = (x1 * y4 + sum_);
    sum1 = (x1 * y5 + sum1);
    sum2 = (x1 * y6 + sum2);
    sum3 = (x1 * y7 + sum3);
    sum_ = (x2 * y8 + sum_);
    sum1 = (x2 * y9 + sum1);
    sum2 = (x2 * y10 + sum2);
    sum3 = (x2 * y11 + sum3);
    sum_ = (x3 * y12 + sum_);
    sum1 = (x3 * y13 + sum1);
    sum2 = (x3 * y14 + sum2);
    sum3 = (x3 * y15 + sum3);
    const xy_f32x4 packet6 = *(const xy_f32x4 *)(b_a0 + 768 + at_);
    const float x4 = packet6.e[0];
    const float x5 = packet6.e[1];
    const float x6 = packet6.e[2];
    const float x7 = packet6.e[3];
    sum4 = (x4 * y_ + sum4);
    sum5 = (x4 * y1 + sum5);
    sum6 = (x4 * y2 + sum6);
    sum7 = (x4 * y3 + sum7);
    sum4 = (x5 * y4 + sum4);
    sum5 = (x5 * y5 + sum5);
    sum6 = (x5 * y6 + sum6);
    sum7 = (x5 * y7 + sum7);
    sum4 = (x6 * y8 + sum4);
    sum5 = (x6 * y9 + sum5);
    sum6 = (x6 * y10 + sum6);
    sum7 = (x6 * y11 + sum7);
    sum4 = (x7 * y12 + sum4);
    sum5 = (x7 * y13 + sum5);
    sum6 = (x7 * y14 + sum6);
    sum7 = (x7 * y15 + sum7);
  }
  sum_ = (sum_ + __shfl_xor_sync(0xffffffffu, sum_, 8));
  sum1 = (sum1 + __shfl_xor_sync(0xffffffffu, sum1, 8));
  sum2 = (sum2 + __shfl_xor_sync(0xffffffffu, sum2, 8));
  sum3 = (sum3 + __shfl_xor_sync(0xffffffffu, sum3, 8));
  sum4 = (sum4 + __shfl_xor_sync(0xffffffffu, sum4, 8));
  sum5 = (sum5 + __shfl_xor_sync(0xffffffffu, sum5, 8));
  sum6 = (sum6 + __shfl_xor_sync(0xffffffffu, sum6, 8));
  sum7 = (sum7 + __shfl_xor_sync(0xffffffffu, sum7, 8));
  sum_ = (sum_ + __shfl_xor_sync(0xffffffffu, sum_, 16));
  sum1 = (sum1 + __shfl_xor_sync(0xffffffffu, sum1, 16));
  sum2 = (sum2 + __shfl_xor_sync(0xffffffffu, sum2, 16));
  sum3 = (sum3 + __shfl_xor_sync(0xffffffffu, sum3, 16));
  sum4 = (sum4 + __shfl_xor_sync(0xffffffffu, sum4, 16));
  sum5 = (sum5 + __shfl_xor_sync(0xffffffffu, sum5, 16));
  sum6 = (sum6 + __shfl_xor_sync(0xffffffffu, sum6, 16));
  sum7 = (sum7 + __shfl_xor_sync(0xffffffffu, sum7, 16));
  if (((k_ % 4) == 0)) {
    const int base_ = (((k_ / 4) * 64) + (o_ * 4));
    *(xy_f32x4 *)(part_ + base_) = xy_f32x4{{sum_, sum1, sum2, sum3}};
    *(xy_f32x4 *)(part_ + (base_ + 32)) = xy_f32x4{{sum4, sum5, sum6, sum7}};
  }
  __syncthreads();
  const int part1 = (i1 * 1536);
  for (int result_ = thread; result_ < 64; result_ += 256) {
    const int place_ = (result_ % 32);
    const int n_ = (((column_ + (((place_ % 32) / 4) * 4)) + ((place_ / 32) * 4)) + (place_ % 4));
    const int m_ = (result_ / 32);
    if (((m_ < 2) & (n_ < 768))) {
      float total_ = 0x0.0p+0f;
      for (int part2 = 0; part2 < 8; part2 += 1) {
        total_ = (total_ + *(part_ + ((part2 * 64) + result_)));
      }
      *(b_out2 + part1 + ((m_ * 768) + n_)) = total_;
    }
  }
}

extern "C" __global__ void __launch_bounds__(128) xy_sums_f32_parts(const float *b_sums0, float *b_out1, const float *b_i2) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int element_ = ((block * 128) + thread);
  if ((element_ < 1536)) {
    float total_ = 0x0.0p+0f;
    for (int part_ = 0; part_ < 3; part_ += 1) {
      total_ = (total_ + *(b_sums0 + ((part_ * 1536) + element_)));
    }
    const int i_ = (element_ % 768);
    const int i1 = (element_ / 768);
    const float x_ = *(b_i2 + i_);
    *(b_out1 + ((i1 * 768) + i_)) = (total_ + x_);
  }
}
