typedef __INT64_TYPE__ i64;
__attribute__((visibility("default")))
void xy_gemm_f32_generic(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const float *const b_b1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 a_row_ = (unit_ * 5);
    for (i64 n_ = 0; n_ < 12; n_ += 1) {
      float total_ = 0x0.0p+0f;
      for (i64 k_ = 0; k_ < 5; k_ += 1) {
        total_ = (((float)*(b_a0 + a_row_ + k_)) * ((float)*(b_b1 + ((k_ * 12) + n_))) + total_);
      }
      const float x_ = ((float)*(b_i3 + n_));
      *(b_out2 + ((unit_ * 12) + n_)) = (float)(total_ + x_);
    }
  }
}
