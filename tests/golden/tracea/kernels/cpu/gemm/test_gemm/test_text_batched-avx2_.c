// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f32x2 __attribute__((vector_size(8), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x8 xy_splat_f32x8(float a) { return (f32x8){a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x8 xy_load_n_f32_f32x8(const float *p, i64 n) { const int m = n >= 8 ? 8 : n <= 0 ? 0 : (int)n; return __builtin_ia32_maskloadps256((const f32x8 *)p, (i32x8){0, 1, 2, 3, 4, 5, 6, 7} < (i32x8){m, m, m, m, m, m, m, m}); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x8(float *p, f32x8 v, i64 n) { if (n >= 8) { *(f32x8 *)p = v; return; } if (n <= 0) return; f32x4 h = __builtin_shufflevector(v, v, 0, 1, 2, 3); if (n & 4) { *(f32x4 *)p = h; p += 4; h = __builtin_shufflevector(v, v, 4, 5, 6, 7); } f32x2 q = __builtin_shufflevector(h, h, 0, 1); if (n & 2) { *(f32x2 *)p = q; p += 2; q = __builtin_shufflevector(h, h, 2, 3); } if (n & 1) *p = q[0]; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void alone_16_2(const float *a, const float *w, i64 row, i64 column, const float *b_i3, float *b_out2) {
  const i64 left_ = (12 - column);
  if ((16 <= left_)) {
    f32x8 c_ = (f32x8){0};
    f32x8 c1 = (f32x8){0};
    f32x8 c2 = (f32x8){0};
    f32x8 c3 = (f32x8){0};
    f32x8 c4 = (f32x8){0};
    f32x8 c5 = (f32x8){0};
    f32x8 c6 = (f32x8){0};
    f32x8 c7 = (f32x8){0};
    for (i64 k_ = 0; k_ < 4; k_ += 4) {
      const f32x8 w_ = (*(const f32x8 *)(w + (k_ * 12)));
      const f32x8 w1 = (*(const f32x8 *)(w + ((k_ * 12) + 8)));
      const f32x8 x_ = xy_splat_f32x8(((float)*(a + k_)));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x_), "x"(w_));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x_), "x"(w1));
      const f32x8 x1 = xy_splat_f32x8(((float)*(a + (5 + k_))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x1), "x"(w_));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x1), "x"(w1));
      const f32x8 w2 = (*(const f32x8 *)(w + ((k_ + 1) * 12)));
      const f32x8 w3 = (*(const f32x8 *)(w + (((k_ + 1) * 12) + 8)));
      const f32x8 x2 = xy_splat_f32x8(((float)*(a + (k_ + 1))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x2), "x"(w2));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x2), "x"(w3));
      const f32x8 x3 = xy_splat_f32x8(((float)*(a + (5 + (k_ + 1)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x3), "x"(w2));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x3), "x"(w3));
      const f32x8 w4 = (*(const f32x8 *)(w + ((k_ + 2) * 12)));
      const f32x8 w5 = (*(const f32x8 *)(w + (((k_ + 2) * 12) + 8)));
      const f32x8 x4 = xy_splat_f32x8(((float)*(a + (k_ + 2))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x4), "x"(w4));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x4), "x"(w5));
      const f32x8 x5 = xy_splat_f32x8(((float)*(a + (5 + (k_ + 2)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x5), "x"(w4));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x5), "x"(w5));
      const f32x8 w6 = (*(const f32x8 *)(w + ((k_ + 3) * 12)));
      const f32x8 w7 = (*(const f32x8 *)(w + (((k_ + 3) * 12) + 8)));
      const f32x8 x6 = xy_splat_f32x8(((float)*(a + (k_ + 3))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x6), "x"(w6));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x6), "x"(w7));
      const f32x8 x7 = xy_splat_f32x8(((float)*(a + (5 + (k_ + 3)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x7), "x"(w6));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x7), "x"(w7));
    }
    for (i64 k1 = 4; k1 < 5; k1 += 1) {
      const f32x8 w8 = (*(const f32x8 *)(w + (k1 * 12)));
      const f32x8 w9 = (*(const f32x8 *)(w + ((k1 * 12) + 8)));
      const f32x8 x8 = xy_splat_f32x8(((float)*(a + k1)));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x8), "x"(w8));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x8), "x"(w9));
      const f32x8 x9 = xy_splat_f32x8(((float)*(a + (5 + k1))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x9), "x"(w8));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x9), "x"(w9));
    }
    c_ = (c_ + c4);
    c1 = (c1 + c5);
    c2 = (c2 + c6);
    c3 = (c3 + c7);
    const f32x8 x10 = (*(const f32x8 *)(b_i3 + column));
    const f32x8 v_ = (c_ + x10);
    *(f32x8 *)(b_out2 + ((row * 12) + column)) = v_;
    const f32x8 v1 = (c2 + x10);
    *(f32x8 *)(b_out2 + (((row + 1) * 12) + column)) = v1;
    const f32x8 x11 = (*(const f32x8 *)(b_i3 + (column + 8)));
    const f32x8 v2 = (c1 + x11);
    *(f32x8 *)(b_out2 + ((row * 12) + (column + 8))) = v2;
    const f32x8 v3 = (c3 + x11);
    *(f32x8 *)(b_out2 + (((row + 1) * 12) + (column + 8))) = v3;
  } else {
    f32x8 c8 = (f32x8){0};
    f32x8 c9 = (f32x8){0};
    f32x8 c10 = (f32x8){0};
    f32x8 c11 = (f32x8){0};
    f32x8 c12 = (f32x8){0};
    f32x8 c13 = (f32x8){0};
    f32x8 c14 = (f32x8){0};
    f32x8 c15 = (f32x8){0};
    for (i64 k2 = 0; k2 < 4; k2 += 4) {
      const f32x8 w10 = xy_load_n_f32_f32x8(w + (k2 * 12), left_);
      const f32x8 w11 = xy_load_n_f32_f32x8(w + ((k2 * 12) + 8), (left_ - 8));
      const f32x8 x12 = xy_splat_f32x8(((float)*(a + k2)));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x12), "x"(w10));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x12), "x"(w11));
      const f32x8 x13 = xy_splat_f32x8(((float)*(a + (5 + k2))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x13), "x"(w10));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x13), "x"(w11));
      const f32x8 w12 = xy_load_n_f32_f32x8(w + ((k2 + 1) * 12), left_);
      const f32x8 w13 = xy_load_n_f32_f32x8(w + (((k2 + 1) * 12) + 8), (left_ - 8));
      const f32x8 x14 = xy_splat_f32x8(((float)*(a + (k2 + 1))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c12) : "x"(x14), "x"(w12));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c13) : "x"(x14), "x"(w13));
      const f32x8 x15 = xy_splat_f32x8(((float)*(a + (5 + (k2 + 1)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c14) : "x"(x15), "x"(w12));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c15) : "x"(x15), "x"(w13));
      const f32x8 w14 = xy_load_n_f32_f32x8(w + ((k2 + 2) * 12), left_);
      const f32x8 w15 = xy_load_n_f32_f32x8(w + (((k2 + 2) * 12) + 8), (left_ - 8));
      const f32x8 x16 = xy_splat_f32x8(((float)*(a + (k2 + 2))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x16), "x"(w14));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x16), "x"(w15));
      const f32x8 x17 = xy_splat_f32x8(((float)*(a + (5 + (k2 + 2)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x17), "x"(w14));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x17), "x"(w15));
      const f32x8 w16 = xy_load_n_f32_f32x8(w + ((k2 + 3) * 12), left_);
      const f32x8 w17 = xy_load_n_f32_f32x8(w + (((k2 + 3) * 12) + 8), (left_ - 8));
      const f32x8 x18 = xy_splat_f32x8(((float)*(a + (k2 + 3))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c12) : "x"(x18), "x"(w16));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c13) : "x"(x18), "x"(w17));
      const f32x8 x19 = xy_splat_f32x8(((float)*(a + (5 + (k2 + 3)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c14) : "x"(x19), "x"(w16));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c15) : "x"(x19), "x"(w17));
    }
    for (i64 k3 = 4; k3 < 5; k3 += 1) {
      const f32x8 w18 = xy_load_n_f32_f32x8(w + (k3 * 12), left_);
      const f32x8 w19 = xy_load_n_f32_f32x8(w + ((k3 * 12) + 8), (left_ - 8));
      const f32x8 x20 = xy_splat_f32x8(((float)*(a + k3)));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x20), "x"(w18));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x20), "x"(w19));
      const f32x8 x21 = xy_splat_f32x8(((float)*(a + (5 + k3))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x21), "x"(w18));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x21), "x"(w19));
    }
    c8 = (c8 + c12);
    c9 = (c9 + c13);
    c10 = (c10 + c14);
    c11 = (c11 + c15);
    const i64 count_ = (left_ - 8);
    const f32x8 x22 = xy_load_n_f32_f32x8(b_i3 + column, left_);
    const f32x8 v4 = (c8 + x22);
    xy_store_n_f32_f32x8(b_out2 + ((row * 12) + column), v4, left_);
    const f32x8 v5 = (c10 + x22);
    xy_store_n_f32_f32x8(b_out2 + (((row + 1) * 12) + column), v5, left_);
    const f32x8 x23 = xy_load_n_f32_f32x8(b_i3 + (column + 8), count_);
    const f32x8 v6 = (c9 + x23);
    xy_store_n_f32_f32x8(b_out2 + ((row * 12) + (column + 8)), v6, count_);
    const f32x8 v7 = (c11 + x23);
    xy_store_n_f32_f32x8(b_out2 + (((row + 1) * 12) + (column + 8)), v7, count_);
  }
}
__attribute__((visibility("default")))
void xy_gemm_f32_6x16_avx2(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 begin_ = (unit_ * 227);
    const i64 end_ = xy_min_index((begin_ + 227), 1);
    for (i64 block_ = begin_; block_ < end_; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      alone_16_2(b_a0 + (row_ * 5), b_w1, row_, 0, b_i3, b_out2);
    }
  }
}
