typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x16(f32x16 a) { f32x8 h16 = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15); f32x4 h8 = __builtin_shufflevector(h16, h16, 0, 1, 2, 3) + __builtin_shufflevector(h16, h16, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static inline __attribute__((always_inline)) float xy_sqrt_f32x1(float a) { return __builtin_sqrtf(a); }
__attribute__((visibility("default")))
void xy_rows_f32_x16(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_i0 = (const float *)buffers[0];
  const float *const b_i1 = (const float *)buffers[1];
  float *const b_o2 = (float *)buffers[2];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 first_ = (unit_ * 5);
    const i64 last_ = xy_min_index((first_ + 5), 128);
    for (i64 row_ = first_; row_ < last_; row_ += 1) {
      const i64 h_ = (((i64)row_) * 768ll);
      float acc_ = 0x0.0p+0f;
      f32x16 acc1 = (f32x16){0};
      f32x16 acc2 = (f32x16){0};
      f32x16 acc3 = (f32x16){0};
      f32x16 acc4 = (f32x16){0};
      for (i64 i_ = 0; i_ < 768; i_ += 64) {
        const f32x16 v_ = (*(const f32x16 *)(b_i0 + (((i64)h_) + i_)));
        acc1 = (acc1 + v_);
        const f32x16 v1 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 16))));
        acc2 = (acc2 + v1);
        const f32x16 v2 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 32))));
        acc3 = (acc3 + v2);
        const f32x16 v3 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 48))));
        acc4 = (acc4 + v3);
      }
      acc1 = (acc1 + acc2);
      acc3 = (acc3 + acc4);
      acc1 = (acc1 + acc3);
      acc_ = (acc_ + xy_reduce_add_f32x16(acc1));
      const float h1 = (acc_ / 0x1.8000000000000p+9f);
      float acc5 = 0x0.0p+0f;
      f32x16 acc6 = (f32x16){0};
      f32x16 acc7 = (f32x16){0};
      f32x16 acc8 = (f32x16){0};
      f32x16 acc9 = (f32x16){0};
      for (i64 i1 = 0; i1 < 768; i1 += 64) {
        const f32x16 v4 = (*(const f32x16 *)(b_i0 + (((i64)h_) + i1)));
        const f32x16 v5 = (v4 - (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        const f32x16 v6 = (v5 * v5);
        acc6 = (acc6 + v6);
        const f32x16 v7 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 16))));
        const f32x16 v8 = (v7 - (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        const f32x16 v9 = (v8 * v8);
        acc7 = (acc7 + v9);
        const f32x16 v10 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 32))));
        const f32x16 v11 = (v10 - (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        const f32x16 v12 = (v11 * v11);
        acc8 = (acc8 + v12);
        const f32x16 v13 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 48))));
        const f32x16 v14 = (v13 - (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        const f32x16 v15 = (v14 * v14);
        acc9 = (acc9 + v15);
      }
      acc6 = (acc6 + acc7);
      acc8 = (acc8 + acc9);
      acc6 = (acc6 + acc8);
      acc5 = (acc5 + xy_reduce_add_f32x16(acc6));
      const float h2 = (0x1.0000000000000p+0f / xy_sqrt_f32x1(((acc5 / 0x1.8000000000000p+9f) + 0x1.4f8b580000000p-17f)));
      for (i64 i2 = 0; i2 < 768; i2 += 16) {
        const f32x16 v16 = (*(const f32x16 *)(b_i0 + (((i64)h_) + i2)));
        const f32x16 v17 = (v16 - (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        const f32x16 v18 = (v17 * (f32x16){h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2, h2});
        const f32x16 v19 = (*(const f32x16 *)(b_i1 + i2));
        const f32x16 v20 = (v18 * v19);
        *(f32x16 *)(b_o2 + (((i64)h_) + i2)) = v20;
      }
    }
  }
}
__attribute__((visibility("default"))) const unsigned xy_rows_f32_x16_takes[2] = {3, 0};
