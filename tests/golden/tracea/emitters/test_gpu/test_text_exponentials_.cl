static inline float xm_exp2_1(float x) { return exp2(x); }
static inline float xm_exp2_nonpositive_1(float x) { return exp2(x); }
static inline float xm_exp2_weight_1(float x) { return exp2(x); }
static inline float xm_exp2_weight_bf16_1(float x) { return exp2(x); }
static inline float xm_exp_nonpositive_1(float x) { return exp2(x * 0x1.715476p+0f); }
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void exponentials(__global const float *b_x0, __global float *b_y1, const int go) {
  if (!go) return;
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
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
