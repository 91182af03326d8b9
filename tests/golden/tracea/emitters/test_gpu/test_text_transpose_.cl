__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void transpose(__global const float *b_x0, __global float *b_y1, const int p_0, const int p_1, const int unused) {
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  __local float tile_[1024] __attribute__((aligned(16)));
  const int across_ = (p_1 / 32);
  const int top_ = ((block / across_) * 32);
  const int left_ = ((block % across_) * 32);
  const int c_ = ((thread & 7) * 4);
  const int r_ = (thread >> 3);
  const float4 packet1 = *(__global const float4 *)(b_x0 + ((((top_ + r_) * p_1) + left_) + c_));
  const float v_ = packet1.s0;
  const float v1 = packet1.s1;
  const float v2 = packet1.s2;
  const float v3 = packet1.s3;
  *(__local float4 *)(tile_ + ((r_ * 32) + (c_ ^ ((r_ & 12) << 1)))) = (float4)(v_, v1, v2, v3);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int c1 = ((thread & 7) + ((thread >> 6) * 8));
  const int r1 = (((thread >> 3) & 7) * 4);
  const float w_ = *(tile_ + ((r1 * 32) + (c1 ^ ((r1 & 12) << 1))));
  const float w1 = *(tile_ + (((r1 + 1) * 32) + (c1 ^ (((r1 + 1) & 12) << 1))));
  const float w2 = *(tile_ + (((r1 + 2) * 32) + (c1 ^ (((r1 + 2) & 12) << 1))));
  const float w3 = *(tile_ + (((r1 + 3) * 32) + (c1 ^ (((r1 + 3) & 12) << 1))));
  *(__global float4 *)(b_y1 + ((((left_ + c1) * p_0) + top_) + r1)) = (float4)(w_, w1, w2, w3);
}
