__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void pipeline(__global const float *b_x0, __global float *b_y1, const int p_0, const int unused) {
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  __local float stage_[768] __attribute__((aligned(16)));
  for (int ahead_ = 0; ahead_ < 2; ahead_ += 1) {
    if ((ahead_ < p_0)) {
      *(__local float4 *)(stage_ + ((ahead_ % 3) * 256) + (thread * 4)) = *(__global const float4 *)(b_x0 + ((ahead_ * 256) + (thread * 4)));
    }
  }
  for (int step_ = 0; step_ < p_0; step_ += 1) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const float4 packet1 = *(__local const float4 *)(stage_ + ((step_ % 3) * 256) + (((thread + 1) % 64) * 4));
    const float v_ = packet1.s0;
    const float v1 = packet1.s1;
    const float v2 = packet1.s2;
    const float v3 = packet1.s3;
    *(b_y1 + ((step_ * 64) + thread)) = (((v_ + v1) + v2) + v3);
    if (((step_ + 2) < p_0)) {
      *(__local float4 *)(stage_ + (((step_ + 2) % 3) * 256) + (thread * 4)) = *(__global const float4 *)(b_x0 + (((step_ + 2) * 256) + (thread * 4)));
    }
  }
}
