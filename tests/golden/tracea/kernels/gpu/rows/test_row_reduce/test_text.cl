static inline float xy_max_f32(float a, float b) { return a > b ? a : b; }
static inline float xm_exp_nonpositive_1(float x) { return exp2(x * 0x1.715476p+0f); }
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void xy_rows_block_f32(__global const float *b_i0, __global float *b_o1, const int unused) {
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  __local float part_[128] __attribute__((aligned(16)));
  __local float part1[128] __attribute__((aligned(16)));
  const long h_ = (((long)block) * 768l);
  const int at_ = (thread * 4);
  const int at1 = (256 + (thread * 4));
  const int at2 = (512 + (thread * 4));
  float acc_ = (-INFINITY);
  float acc1 = (-INFINITY);
  float acc2 = (-INFINITY);
  float acc3 = (-INFINITY);
  float acc4 = (-INFINITY);
  const float4 packet1 = *(__global const float4 *)(b_i0 + (((int)h_) + at_));
  const float v_ = packet1.s0;
  const float v1 = packet1.s1;
  const float v2 = packet1.s2;
  const float v3 = packet1.s3;
  const float4 packet2 = *(__global const float4 *)(b_i0 + (((int)h_) + at1));
  const float v4 = packet2.s0;
  const float v5 = packet2.s1;
  const float v6 = packet2.s2;
  const float v7 = packet2.s3;
  const float4 packet3 = *(__global const float4 *)(b_i0 + (((int)h_) + at2));
  const float v8 = packet3.s0;
  const float v9 = packet3.s1;
  const float v10 = packet3.s2;
  const float v11 = packet3.s3;
  acc_ = xy_max_f32(v_, acc_);
  acc1 = xy_max_f32(v1, acc1);
  acc2 = xy_max_f32(v2, acc2);
  acc3 = xy_max_f32(v3, acc3);
  acc_ = xy_max_f32(v4, acc_);
  acc1 = xy_max_f32(v5, acc1);
  acc2 = xy_max_f32(v6, acc2);
  acc3 = xy_max_f32(v7, acc3);
  acc_ = xy_max_f32(v8, acc_);
  acc1 = xy_max_f32(v9, acc1);
  acc2 = xy_max_f32(v10, acc2);
  acc3 = xy_max_f32(v11, acc3);
  acc_ = xy_max_f32(acc1, acc_);
  acc_ = xy_max_f32(acc2, acc_);
  acc_ = xy_max_f32(acc3, acc_);
  *(part_ + thread) = acc_;
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 32)) {
    const float other_ = *(part_ + (thread + 32));
    acc_ = xy_max_f32(other_, acc_);
    *(part_ + 64 + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 16)) {
    const float other1 = *(part_ + 64 + (thread + 16));
    acc_ = xy_max_f32(other1, acc_);
    *(part_ + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 8)) {
    const float other2 = *(part_ + (thread + 8));
    acc_ = xy_max_f32(other2, acc_);
    *(part_ + 64 + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 4)) {
    const float other3 = *(part_ + 64 + (thread + 4));
    acc_ = xy_max_f32(other3, acc_);
    *(part_ + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 2)) {
    const float other4 = *(part_ + (thread + 2));
    acc_ = xy_max_f32(other4, acc_);
    *(part_ + 64 + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 1)) {
    const float other5 = *(part_ + 64 + (thread + 1));
    acc_ = xy_max_f32(other5, acc_);
    *(part_ + thread) = acc_;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float other6 = *(part_);
  acc4 = xy_max_f32(other6, acc4);
  float acc5 = 0x0.0p+0f;
  float acc6 = 0x0.0p+0f;
  float acc7 = 0x0.0p+0f;
  float acc8 = 0x0.0p+0f;
  float acc9 = 0x0.0p+0f;
  const float x_ = xm_exp_nonpositive_1((v_ - acc4));
  const float x1 = xm_exp_nonpositive_1((v1 - acc4));
  const float x2 = xm_exp_nonpositive_1((v2 - acc4));
  const float x3 = xm_exp_nonpositive_1((v3 - acc4));
  const float x4 = xm_exp_nonpositive_1((v4 - acc4));
  const float x5 = xm_exp_nonpositive_1((v5 - acc4));
  const float x6 = xm_exp_nonpositive_1((v6 - acc4));
  const float x7 = xm_exp_nonpositive_1((v7 - acc4));
  const float x8 = xm_exp_nonpositive_1((v8 - acc4));
  const float x9 = xm_exp_nonpositive_1((v9 - acc4));
  const float x10 = xm_exp_nonpositive_1((v10 - acc4));
  const float x11 = xm_exp_nonpositive_1((v11 - acc4));
  acc5 = (acc5 + x_);
  acc6 = (acc6 + x1);
  acc7 = (acc7 + x2);
  acc8 = (acc8 + x3);
  acc5 = (acc5 + x4);
  acc6 = (acc6 + x5);
  acc7 = (acc7 + x6);
  acc8 = (acc8 + x7);
  acc5 = (acc5 + x8);
  acc6 = (acc6 + x9);
  acc7 = (acc7 + x10);
  acc8 = (acc8 + x11);
  acc5 = (acc5 + acc6);
  acc5 = (acc5 + acc7);
  acc5 = (acc5 + acc8);
  *(part1 + thread) = acc5;
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 32)) {
    const float other7 = *(part1 + (thread + 32));
    acc5 = (acc5 + other7);
    *(part1 + 64 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 16)) {
    const float other8 = *(part1 + 64 + (thread + 16));
    acc5 = (acc5 + other8);
    *(part1 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 8)) {
    const float other9 = *(part1 + (thread + 8));
    acc5 = (acc5 + other9);
    *(part1 + 64 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 4)) {
    const float other10 = *(part1 + 64 + (thread + 4));
    acc5 = (acc5 + other10);
    *(part1 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 2)) {
    const float other11 = *(part1 + (thread + 2));
    acc5 = (acc5 + other11);
    *(part1 + 64 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((thread < 1)) {
    const float other12 = *(part1 + 64 + (thread + 1));
    acc5 = (acc5 + other12);
    *(part1 + thread) = acc5;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float other13 = *(part1);
  acc9 = (acc9 + other13);
  const float h1 = (0x1.0000000000000p+0f / acc9);
  *(__global float4 *)(b_o1 + (((int)h_) + at_)) = (float4)((x_ * h1), (x1 * h1), (x2 * h1), (x3 * h1));
  *(__global float4 *)(b_o1 + (((int)h_) + at1)) = (float4)((x4 * h1), (x5 * h1), (x6 * h1), (x7 * h1));
  *(__global float4 *)(b_o1 + (((int)h_) + at2)) = (float4)((x8 * h1), (x9 * h1), (x10 * h1), (x11 * h1));
}
