typedef __INT64_TYPE__ i64;
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
__attribute__((visibility("default")))
void xy_conv2d_generic(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_x0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 4);
    const i64 i1 = (unit_ / 4);
    const i64 i2 = (i1 % 16);
    const i64 i3 = (i1 / 16);
    for (i64 o_ = 0; o_ < 4; o_ += 1) {
      float acc_ = 0x0.0p+0f;
      const i64 i4 = (i_ - 1);
      const i64 t_ = xy_max_index(0, (0 - i4));
      const i64 t1 = xy_min_index(3, xy_max_index(0, (4 - i4)));
      const i64 i5 = (o_ - 1);
      const i64 t2 = xy_max_index(0, (0 - i5));
      const i64 t3 = xy_min_index(3, xy_max_index(0, (4 - i5)));
      for (i64 c_ = 0; c_ < 16; c_ += 1) {
        for (i64 t4 = t_; t4 < t1; t4 += 1) {
          for (i64 t5 = t2; t5 < t3; t5 += 1) {
            const float a_ = ((float)*(b_x0 + ((((i3 * 256) + c_) + ((i4 + t4) * 64)) + ((i5 + t5) * 16))));
            const float b_ = ((float)*(b_w1 + ((((i2 * 144) + (c_ * 9)) + (t4 * 3)) + t5)));
            acc_ = (a_ * b_ + acc_);
          }
        }
      }
      const float x_ = ((float)*(b_i3 + (unit_ / 4)));
      *(b_out2 + (((unit_ / 4) + ((unit_ % 4) * 64)) + (o_ * 16))) = (float)xy_max_f32x1(0x0.0p+0f, (acc_ + x_));
    }
  }
}
__attribute__((visibility("default"))) const unsigned xy_conv2d_generic_takes[2] = {4, 0};
