static __device__ __forceinline__ float xy_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
struct __align__(16) xy_f32x4 { float e[4]; };
static __device__ __forceinline__ float xy_max_f32(float a, float b) { return a > b ? a : b; }
static __device__ __forceinline__ float xm_exp_nonpositive_1(float x) { return xy_exp2(x * 0x1.715476p+0f); }
extern "C" __global__ void __launch_bounds__(256) xy_rows_block_f32(const float *b_i0, float *b_o1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) float part_[8];
  __shared__ __align__(16) float part1[8];
  const long long h_ = (((long long)block) * 768ll);
  const int at_ = (thread * 4);
  const int at1 = xy_min_index(at_, 764);
  float acc_ = (-__int_as_float(0x7f800000));
  float acc1 = (-__int_as_float(0x7f800000));
  float acc2 = (-__int_as_float(0x7f800000));
  float acc3 = (-__int_as_float(0x7f800000));
  float acc4 = (-__int_as_float(0x7f800000));
  const xy_f32x4 packet1 = *(const xy_f32x4 *)(b_i0 + (((int)h_) + at1));
  const float v_ = packet1.e[0];
  const float v1 = packet1.e[1];
  const float v2 = packet1.e[2];
  const float v3 = packet1.e[3];
  if ((at_ < 768)) {
    acc_ = xy_max_f32(v_, acc_);
    acc1 = xy_max_f32(v1, acc1);
    acc2 = xy_max_f32(v2, acc2);
    acc3 = xy_max_f32(v3, acc3);
  }
  acc_ = xy_max_f32(acc1, acc_);
  acc_ = xy_max_f32(acc2, acc_);
  acc_ = xy_max_f32(acc3, acc_);
  const float other_ = __shfl_xor_sync(0xffffffffu, acc_, 16);
  acc_ = xy_max_f32(other_, acc_);
  const float other1 = __shfl_xor_sync(0xffffffffu, acc_, 8);
  acc_ = xy_max_f32(other1, acc_);
  const float other2 = __shfl_xor_sync(0xffffffffu, acc_, 4);
  acc_ = xy_max_f32(other2, acc_);
  const float other3 = __shfl_xor_sync(0xffffffffu, acc_, 2);
  acc_ = xy_max_f32(other3, acc_);
  const float other4 = __shfl_xor_sync(0xffffffffu, acc_, 1);
  acc_ = xy_max_f32(other4, acc_);
  if (((thread % 32) == 0)) {
    *(part_ + (thread / 32)) = acc_;
  }
  __syncthreads();
  const float other5 = *(part_);
  acc4 = xy_max_f32(other5, acc4);
  const float other6 = *(part_ + 1);
  acc4 = xy_max_f32(other6, acc4);
  const float other7 = *(part_ + 2);
  acc4 = xy_max_f32(other7, acc4);
  const float other8 = *(part_ + 3);
  acc4 = xy_max_f32(other8, acc4);
  const float other9 = *(part_ + 4);
  acc4 = xy_max_f32(other9, acc4);
  const float other10 = *(part_ + 5);
  acc4 = xy_max_f32(other10, acc4);
  const float other11 = *(part_ + 6);
  acc4 = xy_max_f32(other11, acc4);
  const float other12 = *(part_ + 7);
  acc4 = xy_max_f32(other12, acc4);
  float acc5 = 0x0.0p+0f;
  float acc6 = 0x0.0p+0f;
  float acc7 = 0x0.0p+0f;
  float acc8 = 0x0.0p+0f;
  float acc9 = 0x0.0p+0f;
  const float x_ = xm_exp_nonpositive_1((v_ - acc4));
  const float x1 = xm_exp_nonpositive_1((v1 - acc4));
  const float x2 = xm_exp_nonpositive_1((v2 - acc4));
  const float x3 = xm_exp_nonpositive_1((v3 - acc4));
  if ((at_ < 768)) {
    acc5 = (acc5 + x_);
    acc6 = (acc6 + x1);
    acc7 = (acc7 + x2);
    acc8 = (acc8 + x3);
  }
  acc5 = (acc5 + acc6);
  acc5 = (acc5 + acc7);
  acc5 = (acc5 + acc8);
  const float other13 = __shfl_xor_sync(0xffffffffu, acc5, 16);
  acc5 = (acc5 + other13);
  const float other14 = __shfl_xor_sync(0xffffffffu, acc5, 8);
  acc5 = (acc5 + other14);
  const float other15 = __shfl_xor_sync(0xffffffffu, acc5, 4);
  acc5 = (acc5 + other15);
  const float other16 = __shfl_xor_sync(0xffffffffu, acc5, 2);
  acc5 = (acc5 + other16);
  const float other17 = __shfl_xor_sync(0xffffffffu, acc5, 1);
  acc5 = (acc5 + other17);
  if (((thread % 32) == 0)) {
    *(part1 + (thread / 32)) = acc5;
  }
  __syncthreads();
  const float other18 = *(part1);
  acc9 = (acc9 + other18);
  const float other19 = *(part1 + 1);
  acc9 = (acc9 + other19);
  const float other20 = *(part1 + 2);
  acc9 = (acc9 + other20);
  const float other21 = *(part1 + 3);
  acc9 = (acc9 + other21);
  const float other22 = *(part1 + 4);
  acc9 = (acc9 + other22);
  const float other23 = *(part1 + 5);
  acc9 = (acc9 + other23);
  const float other24 = *(part1 + 6);
  acc9 = (acc9 + other24);
  const float other25 = *(part1 + 7);
  acc9 = (acc9 + other25);
  const float h1 = (0x1.0000000000000p+0f / acc9);
  if ((at_ < 768)) {
    *(xy_f32x4 *)(b_o1 + (((int)h_) + at1)) = xy_f32x4{{(x_ * h1), (x1 * h1), (x2 * h1), (x3 * h1)}};
  }
}
