// k = 20, n = 12
typedef __INT64_TYPE__ i64;
__attribute__((visibility("default")))
void xy_gemm_pack_int4x16_16(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const unsigned char *const b_from0 = (const unsigned char *)buffers[0];
  const float *const b_from1 = (const float *)buffers[1];
  const unsigned char *const b_from2 = (const unsigned char *)buffers[2];
  int *const b_to3 = (int *)buffers[3];
  float *const b_to4 = (float *)buffers[4];
  signed char *const b_to5 = (signed char *)buffers[5];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    for (i64 j_ = 0; j_ < 16; j_ += 1) {
      const i64 n_ = ((unit_ * 16) + j_);
      const i64 row_ = (n_ * (n_ < 12));
      const i64 first_ = (row_ * 16);
      const i64 start_ = ((unit_ * 64) + j_);
      if ((n_ < 12)) {
        for (i64 w_ = 0; w_ < 4; w_ += 1) {
          *(b_to3 + (start_ + (w_ * 16))) = (int)(((((i64)*(b_from0 + (first_ + (w_ * 4)))) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 1)))) << 8ll)) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 2)))) << 16ll)) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 3)))) << 24ll));
        }
      } else {
        for (i64 w1 = 0; w1 < 4; w1 += 1) {
          *(b_to3 + (start_ + (w1 * 16))) = (int)0ll;
        }
      }
      const i64 first1 = (row_ * 2);
      const i64 start1 = ((unit_ * 32) + j_);
      for (i64 block_ = 0; block_ < 2; block_ += 1) {
        if ((n_ < 12)) {
          *(b_to4 + (start1 + (block_ * 16))) = (float)((float)*(b_from1 + (first1 + block_)));
        } else {
          *(b_to4 + (start1 + (block_ * 16))) = (float)0x0.0p+0f;
        }
      }
      const i64 start2 = ((unit_ * 32) + j_);
      for (i64 block1 = 0; block1 < 2; block1 += 1) {
        if ((n_ < 12)) {
          *(b_to5 + (start2 + (block1 * 16))) = (signed char)(((((i64)*(b_from2 + (row_ + (block1 / 2)))) >> ((block1 % 2) * 4)) & 15ll) - 8ll);
        } else {
          *(b_to5 + (start2 + (block1 * 16))) = (signed char)0ll;
        }
      }
    }
  }
}

// m = 2, k = 20, n = 12, epilogue: add(acc0, in4[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef signed char s_i8x8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef int i32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int s_i32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f32x2 __attribute__((vector_size(8), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x8 xy_load_i8_f32x8(const signed char *p) { i32x8 w; __asm__("vpmovsxbd %1, %0" : "=v"(w) : "m"(*(const s_i8x8 *)p)); return __builtin_convertvector(w, f32x8); }
static inline __attribute__((always_inline)) i32x8 xy_load_i32_i32x8(const int *p) { return __builtin_convertvector(*(const s_i32x8 *)p, i32x8); }
static inline __attribute__((always_inline)) f32x8 xy_splat_f32x8(float a) { return (f32x8){a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x8 xy_load_n_f32_f32x8(const float *p, i64 n) { const int m = n >= 8 ? 8 : n <= 0 ? 0 : (int)n; return __builtin_ia32_maskloadps256((const f32x8 *)p, (i32x8){0, 1, 2, 3, 4, 5, 6, 7} < (i32x8){m, m, m, m, m, m, m, m}); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x8(float *p, f32x8 v, i64 n) { if (n >= 8) { *(f32x8 *)p = v; return; } if (n <= 0) return; f32x4 h = __builtin_shufflevector(v, v, 0, 1, 2, 3); if (n & 4) { *(f32x4 *)p = h; p += 4; h = __builtin_shufflevector(v, v, 4, 5, 6, 7); } f32x2 q = __builtin_shufflevector(h, h, 0, 1); if (n & 2) { *(f32x2 *)p = q; p += 2; q = __builtin_shufflevector(h, h, 2, 3); } if (n & 1) *p = q[0]; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void direct_16_2(const float *a, const int *w, const float *scales, const signed char *zeros, i64 row, i64 column, const float *b_i5, float *b_out4) {
  f32x8 c_ = (f32x8){0};
  f32x8 c1 = (f32x8){0};
  f32x8 c2 = (f32x8){0};
  f32x8 c3 = (f32x8){0};
  for (i64 block_ = 0; block_ < 1; block_ += 1) {
    const i64 factors_at_ = (block_ * 16);
    const f32x8 scale_ = (*(const f32x8 *)(scales + factors_at_));
    const f32x8 scale1 = (*(const f32x8 *)(scales + (factors_at_ + 8)));
    const f32x8 zero_ = xy_load_i8_f32x8(zeros + factors_at_);
    const f32x8 zero1 = xy_load_i8_f32x8(zeros + (factors_at_ + 8));
    const f32x8 offset_ = (-(zero_ * scale_));
    const f32x8 offset1 = (-(zero1 * scale1));
    const i64 first_ = (block_ * 2);
    for (i64 group_ = 0; group_ < 2; group_ += 1) {
      const i64 place_ = (first_ + group_);
      const i64 group_at_ = (place_ * 16);
      const i32x8 word_ = xy_load_i32_i32x8(w + group_at_);
      const i32x8 word1 = xy_load_i32_i32x8(w + (group_at_ + 8));
      const i32x8 word2 = (word_ ^ (i32x8){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
      const i32x8 word3 = (word1 ^ (i32x8){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
      const f32x8 q_ = __builtin_convertvector(((word2 << 28) >> 28), f32x8);
      const f32x8 q1 = __builtin_convertvector(((word3 << 28) >> 28), f32x8);
      const f32x8 w_ = (q_ * scale_ + offset_);
      const f32x8 w1 = (q1 * scale1 + offset1);
      const f32x8 x_ = xy_splat_f32x8(((float)*(a + (place_ * 8))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x_), "x"(w_));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x_), "x"(w1));
      const f32x8 x1 = xy_splat_f32x8(((float)*(a + (20 + (place_ * 8)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x1), "x"(w_));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x1), "x"(w1));
      const f32x8 q2 = __builtin_convertvector(((word2 << 24) >> 28), f32x8);
      const f32x8 q3 = __builtin_convertvector(((word3 << 24) >> 28), f32x8);
      const f32x8 w2 = (q2 * scale_ + offset_);
      const f32x8 w3 = (q3 * scale1 + offset1);
      const f32x8 x2 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 1))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x2), "x"(w2));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x2), "x"(w3));
      const f32x8 x3 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 1)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x3), "x"(w2));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x3), "x"(w3));
      const f32x8 q4 = __builtin_convertvector(((word2 << 20) >> 28), f32x8);
      const f32x8 q5 = __builtin_convertvector(((word3 << 20) >> 28), f32x8);
      const f32x8 w4 = (q4 * scale_ + offset_);
      const f32x8 w5 = (q5 * scale1 + offset1);
      const f32x8 x4 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 2))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x4), "x"(w4));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x4), "x"(w5));
      const f32x8 x5 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 2)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x5), "x"(w4));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x5), "x"(w5));
      const f32x8 q6 = __builtin_convertvector(((word2 << 16) >> 28), f32x8);
      const f32x8 q7 = __builtin_convertvector(((word3 << 16) >> 28), f32x8);
      const f32x8 w6 = (q6 * scale_ + offset_);
      const f32x8 w7 = (q7 * scale1 + offset1);
      const f32x8 x6 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 3))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x6), "x"(w6));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x6), "x"(w7));
      const f32x8 x7 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 3)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x7), "x"(w6));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x7), "x"(w7));
      const f32x8 q8 = __builtin_convertvector(((word2 << 12) >> 28), f32x8);
      const f32x8 q9 = __builtin_convertvector(((word3 << 12) >> 28), f32x8);
      const f32x8 w8 = (q8 * scale_ + offset_);
      const f32x8 w9 = (q9 * scale1 + offset1);
      const f32x8 x8 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 4))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x8), "x"(w8));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x8), "x"(w9));
      const f32x8 x9 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 4)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x9), "x"(w8));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x9), "x"(w9));
      const f32x8 q10 = __builtin_convertvector(((word2 << 8) >> 28), f32x8);
      const f32x8 q11 = __builtin_convertvector(((word3 << 8) >> 28), f32x8);
      const f32x8 w10 = (q10 * scale_ + offset_);
      const f32x8 w11 = (q11 * scale1 + offset1);
      const f32x8 x10 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 5))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x10), "x"(w10));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x10), "x"(w11));
      const f32x8 x11 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 5)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x11), "x"(w10));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x11), "x"(w11));
      const f32x8 q12 = __builtin_convertvector(((word2 << 4) >> 28), f32x8);
      const f32x8 q13 = __builtin_convertvector(((word3 << 4) >> 28), f32x8);
      const f32x8 w12 = (q12 * scale_ + offset_);
      const f32x8 w13 = (q13 * scale1 + offset1);
      const f32x8 x12 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 6))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x12), "x"(w12));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x12), "x"(w13));
      const f32x8 x13 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 6)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x13), "x"(w12));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x13), "x"(w13));
      const f32x8 q14 = __builtin_convertvector((word2 >> 28), f32x8);
      const f32x8 q15 = __builtin_convertvector((word3 >> 28), f32x8);
      const f32x8 w14 = (q14 * scale_ + offset_);
      const f32x8 w15 = (q15 * scale1 + offset1);
      const f32x8 x14 = xy_splat_f32x8(((float)*(a + ((place_ * 8) + 7))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x14), "x"(w14));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x14), "x"(w15));
      const f32x8 x15 = xy_splat_f32x8(((float)*(a + (20 + ((place_ * 8) + 7)))));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x15), "x"(w14));
      __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x15), "x"(w15));
      __builtin_prefetch(w + ((place_ * 16) + 256), 0, 2);
    }
  }
  const f32x8 scale2 = (*(const f32x8 *)(scales + 16));
  const f32x8 scale3 = (*(const f32x8 *)(scales + 24));
  const f32x8 zero2 = xy_load_i8_f32x8(zeros + 16);
  const f32x8 zero3 = xy_load_i8_f32x8(zeros + 24);
  const f32x8 offset2 = (-(zero2 * scale2));
  const f32x8 offset3 = (-(zero3 * scale3));
  const i32x8 word4 = xy_load_i32_i32x8(w + 32);
  const i32x8 word5 = xy_load_i32_i32x8(w + 40);
  const i32x8 word6 = (word4 ^ (i32x8){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
  const i32x8 word7 = (word5 ^ (i32x8){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
  const f32x8 q16 = __builtin_convertvector(((word6 << 28) >> 28), f32x8);
  const f32x8 q17 = __builtin_convertvector(((word7 << 28) >> 28), f32x8);
  const f32x8 w16 = (q16 * scale2 + offset2);
  const f32x8 w17 = (q17 * scale3 + offset3);
  const f32x8 x16 = xy_splat_f32x8(((float)*(a + 16)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x16), "x"(w16));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x16), "x"(w17));
  const f32x8 x17 = xy_splat_f32x8(((float)*(a + 36)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x17), "x"(w16));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x17), "x"(w17));
  const f32x8 q18 = __builtin_convertvector(((word6 << 24) >> 28), f32x8);
  const f32x8 q19 = __builtin_convertvector(((word7 << 24) >> 28), f32x8);
  const f32x8 w18 = (q18 * scale2 + offset2);
  const f32x8 w19 = (q19 * scale3 + offset3);
  const f32x8 x18 = xy_splat_f32x8(((float)*(a + 17)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x18), "x"(w18));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x18), "x"(w19));
  const f32x8 x19 = xy_splat_f32x8(((float)*(a + 37)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x19), "x"(w18));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x19), "x"(w19));
  const f32x8 q20 = __builtin_convertvector(((word6 << 20) >> 28), f32x8);
  const f32x8 q21 = __builtin_convertvector(((word7 << 20) >> 28), f32x8);
  const f32x8 w20 = (q20 * scale2 + offset2);
  const f32x8 w21 = (q21 * scale3 + offset3);
  const f32x8 x20 = xy_splat_f32x8(((float)*(a + 18)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x20), "x"(w20));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x20), "x"(w21));
  const f32x8 x21 = xy_splat_f32x8(((float)*(a + 38)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x21), "x"(w20));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x21), "x"(w21));
  const f32x8 q22 = __builtin_convertvector(((word6 << 16) >> 28), f32x8);
  const f32x8 q23 = __builtin_convertvector(((word7 << 16) >> 28), f32x8);
  const f32x8 w22 = (q22 * scale2 + offset2);
  const f32x8 w23 = (q23 * scale3 + offset3);
  const f32x8 x22 = xy_splat_f32x8(((float)*(a + 19)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x22), "x"(w22));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x22), "x"(w23));
  const f32x8 x23 = xy_splat_f32x8(((float)*(a + 39)));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x23), "x"(w22));
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x23), "x"(w23));
  __builtin_prefetch(w + 288, 0, 2);
  const i64 left_ = (12 - column);
  if ((16 <= left_)) {
    const f32x8 x24 = (*(const f32x8 *)(b_i5 + column));
    const f32x8 v_ = (c_ + x24);
    *(f32x8 *)(b_out4 + ((row * 12) + column)) = v_;
    const f32x8 v1 = (c2 + x24);
    *(f32x8 *)(b_out4 + (((row + 1) * 12) + column)) = v1;
    const f32x8 x25 = (*(const f32x8 *)(b_i5 + (column + 8)));
    const f32x8 v2 = (c1 + x25);
    *(f32x8 *)(b_out4 + ((row * 12) + (column + 8))) = v2;
    const f32x8 v3 = (c3 + x25);
    *(f32x8 *)(b_out4 + (((row + 1) * 12) + (column + 8))) = v3;
  } else {
    const i64 count_ = (left_ - 8);
    const f32x8 x26 = xy_load_n_f32_f32x8(b_i5 + column, left_);
    const f32x8 v4 = (c_ + x26);
    xy_store_n_f32_f32x8(b_out4 + ((row * 12) + column), v4, left_);
    const f32x8 v5 = (c2 + x26);
    xy_store_n_f32_f32x8(b_out4 + (((row + 1) * 12) + column), v5, left_);
    const f32x8 x27 = xy_load_n_f32_f32x8(b_i5 + (column + 8), count_);
    const f32x8 v6 = (c1 + x27);
    xy_store_n_f32_f32x8(b_out4 + ((row * 12) + (column + 8)), v6, count_);
    const f32x8 v7 = (c3 + x27);
    xy_store_n_f32_f32x8(b_out4 + (((row + 1) * 12) + (column + 8)), v7, count_);
  }
}
__attribute__((visibility("default")))
void xy_gemm_f32_int4x16_6x16_avx2(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const int *const b_w1 = (const int *)buffers[1];
  const float *const b_scales2 = (const float *)buffers[2];
  const signed char *const b_zeros3 = (const signed char *)buffers[3];
  float *const b_out4 = (float *)buffers[4];
  const float *const b_i5 = (const float *)buffers[5];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 factors_ = (unit_ * 32);
    const i64 panel_ = (unit_ * 64);
    const i64 column_ = (unit_ * 16);
    for (i64 rows_ = 0; rows_ < 1; rows_ += 1) {
      const i64 row_ = ((rows_ * 2) + xy_min_index(rows_, 0));
      direct_16_2(b_a0 + (row_ * 20), b_w1 + panel_, b_scales2 + factors_, b_zeros3 + factors_, row_, column_, b_i5, b_out4);
    }
  }
}
