typedef __INT64_TYPE__ i64;
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
__attribute__((visibility("default")))
void xy_gemm_pack_f32_12_neon(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_b0 = (const float *)buffers[0];
  float *const b_panels1 = (float *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 column_ = (unit_ * 12);
    const i64 valid_ = (12 - column_);
    const i64 from_ = (column_ * 5);
    const i64 to_ = (column_ * 5);
    for (i64 n_ = 0; n_ < 12; n_ += 4) {
      const i64 exist_ = (valid_ - n_);
      for (i64 k_ = 0; k_ < 4; k_ += 4) {
        f32x4 r_ = (f32x4){0};
        if ((0 < exist_)) {
          r_ = (*(const f32x4 *)(b_b0 + from_ + ((n_ * 5) + k_)));
        }
        f32x4 r1 = (f32x4){0};
        if ((1 < exist_)) {
          r1 = (*(const f32x4 *)(b_b0 + from_ + (((n_ + 1) * 5) + k_)));
        }
        f32x4 r2 = (f32x4){0};
        if ((2 < exist_)) {
          r2 = (*(const f32x4 *)(b_b0 + from_ + (((n_ + 2) * 5) + k_)));
        }
        f32x4 r3 = (f32x4){0};
        if ((3 < exist_)) {
          r3 = (*(const f32x4 *)(b_b0 + from_ + (((n_ + 3) * 5) + k_)));
        }
        const f32x4 t_ = __builtin_shufflevector(r_, r2, 0, 1, 4, 5);
        const f32x4 t1 = __builtin_shufflevector(r_, r2, 2, 3, 6, 7);
        const f32x4 t2 = __builtin_shufflevector(r1, r3, 0, 1, 4, 5);
        const f32x4 t3 = __builtin_shufflevector(r1, r3, 2, 3, 6, 7);
        const f32x4 t4 = __builtin_shufflevector(t_, t2, 0, 4, 2, 6);
        const f32x4 t5 = __builtin_shufflevector(t_, t2, 1, 5, 3, 7);
        const f32x4 t6 = __builtin_shufflevector(t1, t3, 0, 4, 2, 6);
        const f32x4 t7 = __builtin_shufflevector(t1, t3, 1, 5, 3, 7);
        *(f32x4 *)(b_panels1 + to_ + ((k_ * 12) + n_)) = t4;
        *(f32x4 *)(b_panels1 + to_ + (((k_ + 1) * 12) + n_)) = t5;
        *(f32x4 *)(b_panels1 + to_ + (((k_ + 2) * 12) + n_)) = t6;
        *(f32x4 *)(b_panels1 + to_ + (((k_ + 3) * 12) + n_)) = t7;
      }
    }
    const i64 exist1 = xy_min_index(valid_, 12);
    for (i64 k1 = 4; k1 < 5; k1 += 1) {
      for (i64 n1 = 0; n1 < exist1; n1 += 1) {
        *(b_panels1 + to_ + ((k1 * 12) + n1)) = (float)((float)*(b_b0 + from_ + (k1 + (n1 * 5))));
      }
      for (i64 n2 = exist1; n2 < 12; n2 += 1) {
        *(b_panels1 + to_ + ((k1 * 12) + n2)) = (float)0x0.0p+0f;
      }
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x4 xy_splat_f32x4(float a) { return (f32x4){a, a, a, a}; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void alone_12_2(const float *a, const float *w, i64 row, i64 column, const float *b_i3, float *b_out2) {
  f32x4 c_ = (f32x4){0};
  f32x4 c1 = (f32x4){0};
  f32x4 c2 = (f32x4){0};
  f32x4 c3 = (f32x4){0};
  f32x4 c4 = (f32x4){0};
  f32x4 c5 = (f32x4){0};
  f32x4 c6 = (f32x4){0};
  f32x4 c7 = (f32x4){0};
  f32x4 c8 = (f32x4){0};
  f32x4 c9 = (f32x4){0};
  f32x4 c10 = (f32x4){0};
  f32x4 c11 = (f32x4){0};
  for (i64 k_ = 0; k_ < 4; k_ += 4) {
    const i64 line_ = (k_ * 12);
    const f32x4 w_ = (*(const f32x4 *)(w + (k_ * 12)));
    const f32x4 w1 = (*(const f32x4 *)(w + ((k_ * 12) + 4)));
    const f32x4 w2 = (*(const f32x4 *)(w + ((k_ * 12) + 8)));
    const f32x4 x_ = xy_splat_f32x4(((float)*(a + k_)));
    c_ = (x_ * w_ + c_);
    c1 = (x_ * w1 + c1);
    c2 = (x_ * w2 + c2);
    const f32x4 x1 = xy_splat_f32x4(((float)*(a + (5 + k_))));
    c3 = (x1 * w_ + c3);
    c4 = (x1 * w1 + c4);
    c5 = (x1 * w2 + c5);
    const f32x4 w3 = (*(const f32x4 *)(w + ((k_ + 1) * 12)));
    const f32x4 w4 = (*(const f32x4 *)(w + (((k_ + 1) * 12) + 4)));
    const f32x4 w5 = (*(const f32x4 *)(w + (((k_ + 1) * 12) + 8)));
    const f32x4 x2 = xy_splat_f32x4(((float)*(a + (k_ + 1))));
    c6 = (x2 * w3 + c6);
    c7 = (x2 * w4 + c7);
    c8 = (x2 * w5 + c8);
    const f32x4 x3 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 1)))));
    c9 = (x3 * w3 + c9);
    c10 = (x3 * w4 + c10);
    c11 = (x3 * w5 + c11);
    __builtin_prefetch(w + 128 + line_, 0, 3);
    const f32x4 w6 = (*(const f32x4 *)(w + ((k_ + 2) * 12)));
    const f32x4 w7 = (*(const f32x4 *)(w + (((k_ + 2) * 12) + 4)));
    const f32x4 w8 = (*(const f32x4 *)(w + (((k_ + 2) * 12) + 8)));
    const f32x4 x4 = xy_splat_f32x4(((float)*(a + (k_ + 2))));
    c_ = (x4 * w6 + c_);
    c1 = (x4 * w7 + c1);
    c2 = (x4 * w8 + c2);
    const f32x4 x5 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 2)))));
    c3 = (x5 * w6 + c3);
    c4 = (x5 * w7 + c4);
    c5 = (x5 * w8 + c5);
    __builtin_prefetch(w + 128 + (line_ + 16), 0, 3);
    const f32x4 w9 = (*(const f32x4 *)(w + ((k_ + 3) * 12)));
    const f32x4 w10 = (*(const f32x4 *)(w + (((k_ + 3) * 12) + 4)));
    const f32x4 w11 = (*(const f32x4 *)(w + (((k_ + 3) * 12) + 8)));
    const f32x4 x6 = xy_splat_f32x4(((float)*(a + (k_ + 3))));
    c6 = (x6 * w9 + c6);
    c7 = (x6 * w10 + c7);
    c8 = (x6 * w11 + c8);
    const f32x4 x7 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 3)))));
    c9 = (x7 * w9 + c9);
    c10 = (x7 * w10 + c10);
    c11 = (x7 * w11 + c11);
    __builtin_prefetch(w + 128 + (line_ + 32), 0, 3);
  }
  for (i64 k1 = 4; k1 < 5; k1 += 1) {
    const f32x4 w12 = (*(const f32x4 *)(w + (k1 * 12)));
    const f32x4 w13 = (*(const f32x4 *)(w + ((k1 * 12) + 4)));
    const f32x4 w14 = (*(const f32x4 *)(w + ((k1 * 12) + 8)));
    const f32x4 x8 = xy_splat_f32x4(((float)*(a + k1)));
    c_ = (x8 * w12 + c_);
    c1 = (x8 * w13 + c1);
    c2 = (x8 * w14 + c2);
    const f32x4 x9 = xy_splat_f32x4(((float)*(a + (5 + k1))));
    c3 = (x9 * w12 + c3);
    c4 = (x9 * w13 + c4);
    c5 = (x9 * w14 + c5);
  }
  c_ = (c_ + c6);
  c1 = (c1 + c7);
  c2 = (c2 + c8);
  c3 = (c3 + c9);
  c4 = (c4 + c10);
  c5 = (c5 + c11);
  const f32x4 x10 = (*(const f32x4 *)(b_i3 + column));
  const f32x4 v_ = (c_ + x10);
  *(f32x4 *)(b_out2 + ((row * 12) + column)) = v_;
  const f32x4 v1 = (c3 + x10);
  *(f32x4 *)(b_out2 + (((row + 1) * 12) + column)) = v1;
  const f32x4 x11 = (*(const f32x4 *)(b_i3 + (column + 4)));
  const f32x4 v2 = (c1 + x11);
  *(f32x4 *)(b_out2 + ((row * 12) + (column + 4))) = v2;
  const f32x4 v3 = (c4 + x11);
  *(f32x4 *)(b_out2 + (((row + 1) * 12) + (column + 4))) = v3;
  const f32x4 x12 = (*(const f32x4 *)(b_i3 + (column + 8)));
  const f32x4 v4 = (c2 + x12);
  *(f32x4 *)(b_out2 + ((row * 12) + (column + 8))) = v4;
  const f32x4 v5 = (c5 + x12);
  *(f32x4 *)(b_out2 + (((row + 1) * 12) + (column + 8))) = v5;
}
__attribute__((visibility("default")))
void xy_gemm_f32_8x12_neon(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 begin_ = (unit_ * 170);
    const i64 end_ = xy_min_index((begin_ + 170), 1);
    for (i64 block_ = begin_; block_ < end_; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      alone_12_2(b_a0 + (row_ * 5), b_w1, row_, 0, b_i3, b_out2);
    }
  }
}
