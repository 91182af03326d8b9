typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
__attribute__((visibility("default")))
void xy_gemm_pack_f32_16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_b0 = (const float *)buffers[0];
  float *const b_panels1 = (float *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 column_ = (unit_ * 16);
    const i64 valid_ = (12 - column_);
    const i64 to_ = (column_ * 5);
    if ((valid_ < 16)) {
      for (i64 k_ = 0; k_ < 5; k_ += 1) {
        *(f32x16 *)(b_panels1 + to_ + (k_ * 16)) = xy_load_n_f32_f32x16(b_b0 + column_ + (k_ * 12), valid_);
      }
    } else {
      for (i64 k1 = 0; k1 < 5; k1 += 1) {
        *(f32x16 *)(b_panels1 + to_ + (k1 * 16)) = (*(const f32x16 *)(b_b0 + column_ + (k1 * 12)));
      }
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x16(float *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); __builtin_ia32_storeups512_mask((float *)p, v, k); }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void alone_16_2(const float *a, const float *w, i64 row, i64 column, const float *b_i3, float *b_out2) {
  const i64 left_ = (12 - column);
  f32x16 c_ = (f32x16){0};
  f32x16 c1 = (f32x16){0};
  f32x16 c2 = (f32x16){0};
  f32x16 c3 = (f32x16){0};
  f32x16 c4 = (f32x16){0};
  f32x16 c5 = (f32x16){0};
  f32x16 c6 = (f32x16){0};
  f32x16 c7 = (f32x16){0};
  for (i64 k_ = 0; k_ < 4; k_ += 4) {
    const i64 line_ = (k_ * 16);
    const f32x16 w_ = (*(const f32x16 *)(w + (k_ * 16)));
    const f32x16 x_ = xy_splat_f32x16(((float)*(a + k_)));
    c_ = (x_ * w_ + c_);
    const f32x16 x1 = xy_splat_f32x16(((float)*(a + (5 + k_))));
    c1 = (x1 * w_ + c1);
    __builtin_prefetch(w + 512 + line_, 0, 3);
    const f32x16 w1 = (*(const f32x16 *)(w + ((k_ + 1) * 16)));
    const f32x16 x2 = xy_splat_f32x16(((float)*(a + (k_ + 1))));
    c2 = (x2 * w1 + c2);
    const f32x16 x3 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 1)))));
    c3 = (x3 * w1 + c3);
    __builtin_prefetch(w + 512 + (line_ + 16), 0, 3);
    const f32x16 w2 = (*(const f32x16 *)(w + ((k_ + 2) * 16)));
    const f32x16 x4 = xy_splat_f32x16(((float)*(a + (k_ + 2))));
    c4 = (x4 * w2 + c4);
    const f32x16 x5 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 2)))));
    c5 = (x5 * w2 + c5);
    __builtin_prefetch(w + 512 + (line_ + 32), 0, 3);
    const f32x16 w3 = (*(const f32x16 *)(w + ((k_ + 3) * 16)));
    const f32x16 x6 = xy_splat_f32x16(((float)*(a + (k_ + 3))));
    c6 = (x6 * w3 + c6);
    const f32x16 x7 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 3)))));
    c7 = (x7 * w3 + c7);
    __builtin_prefetch(w + 512 + (line_ + 48), 0, 3);
  }
  for (i64 k1 = 4; k1 < 5; k1 += 1) {
    const f32x16 w4 = (*(const f32x16 *)(w + (k1 * 16)));
    const f32x16 x8 = xy_splat_f32x16(((float)*(a + k1)));
    c_ = (x8 * w4 + c_);
    const f32x16 x9 = xy_splat_f32x16(((float)*(a + (5 + k1))));
    c1 = (x9 * w4 + c1);
  }
  c_ = (c_ + c2);
  c1 = (c1 + c3);
  c_ = (c_ + c4);
  c1 = (c1 + c5);
  c_ = (c_ + c6);
  c1 = (c1 + c7);
  const f32x16 x10 = xy_load_n_f32_f32x16(b_i3 + column, left_);
  const f32x16 v_ = (c_ + x10);
  xy_store_n_f32_f32x16(b_out2 + ((row * 12) + column), v_, left_);
  const f32x16 v1 = (c1 + x10);
  xy_store_n_f32_f32x16(b_out2 + (((row + 1) * 12) + column), v1, left_);
}
__attribute__((visibility("default")))
void xy_gemm_f32_16x16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 begin_ = (unit_ * 85);
    const i64 end_ = xy_min_index((begin_ + 85), 1);
    for (i64 block_ = begin_; block_ < end_; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      alone_16_2(b_a0 + (row_ * 5), b_w1, row_, 0, b_i3, b_out2);
    }
  }
}
