static __device__ __forceinline__ float xy_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
static __device__ __forceinline__ float xm_exp2_1(float x) { return exp2f(x); }
static __device__ __forceinline__ float xm_exp2_nonpositive_1(float x) { return xy_exp2(x); }
static __device__ __forceinline__ float xm_exp2_weight_1(float x) { return xy_exp2(x); }
static __device__ __forceinline__ float xm_exp2_weight_bf16_1(float x) { return xy_exp2(x); }
static __device__ __forceinline__ float xm_exp_nonpositive_1(float x) { return xy_exp2(x * 0x1.715476p+0f); }
extern "C" __global__ void __launch_bounds__(64) exponentials(const float *b_x0, float *b_y1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int at_ = (((block * 5) * 64) + thread);
  *(b_y1 + at_) = xm_exp2_1(*(b_x0 + at_));
  const int at1 = ((((block * 5) + 1) * 64) + thread);
  *(b_y1 + at1) = xm_exp2_nonpositive_1(*(b_x0 + at1));
  const int at2 = ((((block * 5) + 2) * 64) + thread);
  *(b_y1 + at2) = xm_exp2_weight_1(*(b_x0 + at2));
  const int at3 = ((((block * 5) + 3) * 64) + thread);
  *(b_y1 + at3) = xm_exp2_weight_bf16_1(*(b_x0 + at3));
  const int at4 = ((((block * 5) + 4) * 64) + thread);
  *(b_y1 + at4) = xm_exp_nonpositive_1(*(b_x0 + at4));
}
