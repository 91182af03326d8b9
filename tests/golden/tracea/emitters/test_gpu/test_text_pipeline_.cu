static __device__ __forceinline__ void xy_copy_16(void *to, const void *from, int valid) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid) : "memory"); }
struct __align__(16) xy_f32x4 { float e[4]; };
extern "C" __global__ void __launch_bounds__(64) pipeline(const float *b_x0, float *b_y1, const int p_0) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) float stage_[768];
  for (int ahead_ = 0; ahead_ < 2; ahead_ += 1) {
    if ((ahead_ < p_0)) {
      xy_copy_16(stage_ + ((ahead_ % 3) * 256) + (thread * 4), b_x0 + ((ahead_ * 256) + (thread * 4)), 16);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step_ = 0; step_ < p_0; step_ += 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const xy_f32x4 packet1 = *(const xy_f32x4 *)(stage_ + ((step_ % 3) * 256) + (((thread + 1) % 64) * 4));
    const float v_ = packet1.e[0];
    const float v1 = packet1.e[1];
    const float v2 = packet1.e[2];
    const float v3 = packet1.e[3];
    *(b_y1 + ((step_ * 64) + thread)) = (((v_ + v1) + v2) + v3);
    if (((step_ + 2) < p_0)) {
      xy_copy_16(stage_ + (((step_ + 2) % 3) * 256) + (thread * 4), b_x0 + (((step_ + 2) * 256) + (thread * 4)), 16);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}
