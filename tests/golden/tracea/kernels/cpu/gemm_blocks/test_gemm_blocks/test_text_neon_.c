// k = 20, n = 12
typedef __INT64_TYPE__ i64;
__attribute__((visibility("default")))
void xy_gemm_pack_int4x16_12(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const unsigned char *const b_from0 = (const unsigned char *)buffers[0];
  const float *const b_from1 = (const float *)buffers[1];
  const unsigned char *const b_from2 = (const unsigned char *)buffers[2];
  int *const b_to3 = (int *)buffers[3];
  float *const b_to4 = (float *)buffers[4];
  signed char *const b_to5 = (signed char *)buffers[5];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    for (i64 j_ = 0; j_ < 12; j_ += 1) {
      const i64 n_ = ((unit_ * 12) + j_);
      const i64 row_ = (n_ * (n_ < 12));
      const i64 first_ = (row_ * 16);
      const i64 start_ = ((unit_ * 48) + j_);
      if ((n_ < 12)) {
        for (i64 w_ = 0; w_ < 4; w_ += 1) {
          *(b_to3 + (start_ + (w_ * 12))) = (int)(((((i64)*(b_from0 + (first_ + (w_ * 4)))) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 1)))) << 8ll)) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 2)))) << 16ll)) | (((i64)*(b_from0 + (first_ + ((w_ * 4) + 3)))) << 24ll));
        }
      } else {
        for (i64 w1 = 0; w1 < 4; w1 += 1) {
          *(b_to3 + (start_ + (w1 * 12))) = (int)0ll;
        }
      }
      const i64 first1 = (row_ * 2);
      const i64 start1 = ((unit_ * 24) + j_);
      for (i64 block_ = 0; block_ < 2; block_ += 1) {
        if ((n_ < 12)) {
          *(b_to4 + (start1 + (block_ * 12))) = (float)((float)*(b_from1 + (first1 + block_)));
        } else {
          *(b_to4 + (start1 + (block_ * 12))) = (float)0x0.0p+0f;
        }
      }
      const i64 start2 = ((unit_ * 24) + j_);
      for (i64 block1 = 0; block1 < 2; block1 += 1) {
        if ((n_ < 12)) {
          *(b_to5 + (start2 + (block1 * 12))) = (signed char)(((((i64)*(b_from2 + (row_ + (block1 / 2)))) >> ((block1 % 2) * 4)) & 15ll) - 8ll);
        } else {
          *(b_to5 + (start2 + (block1 * 12))) = (signed char)0ll;
        }
      }
    }
  }
}

// m = 2, k = 20, n = 12, epilogue: add(acc0, in4[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef signed char s_i8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef short s_i16x4 __attribute__((vector_size(8), aligned(2), may_alias));
typedef int s_i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x4 xy_load_i8_f32x4(const signed char *p) { return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(*(const s_i8x4 *)p, s_i16x4), i32x4), f32x4); }
static inline __attribute__((always_inline)) i32x4 xy_load_i32_i32x4(const int *p) { return __builtin_convertvector(*(const s_i32x4 *)p, i32x4); }
static inline __attribute__((always_inline)) f32x4 xy_splat_f32x4(float a) { return (f32x4){a, a, a, a}; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void direct_12_2(const float *a, const int *w, const float *scales, const signed char *zeros, i64 row, i64 column, const float *b_i5, float *b_out4) {
  f32x4 c_ = (f32x4){0};
  f32x4 c1 = (f32x4){0};
  f32x4 c2 = (f32x4){0};
  f32x4 c3 = (f32x4){0};
  f32x4 c4 = (f32x4){0};
  f32x4 c5 = (f32x4){0};
  for (i64 block_ = 0; block_ < 1; block_ += 1) {
    const i64 factors_at_ = (block_ * 12);
    const f32x4 scale_ = (*(const f32x4 *)(scales + factors_at_));
    const f32x4 scale1 = (*(const f32x4 *)(scales + (factors_at_ + 4)));
    const f32x4 scale2 = (*(const f32x4 *)(scales + (factors_at_ + 8)));
    const f32x4 zero_ = xy_load_i8_f32x4(zeros + factors_at_);
    const f32x4 zero1 = xy_load_i8_f32x4(zeros + (factors_at_ + 4));
    const f32x4 zero2 = xy_load_i8_f32x4(zeros + (factors_at_ + 8));
    const f32x4 offset_ = (-(zero_ * scale_));
    const f32x4 offset1 = (-(zero1 * scale1));
    const f32x4 offset2 = (-(zero2 * scale2));
    const i64 first_ = (block_ * 2);
    for (i64 group_ = 0; group_ < 2; group_ += 1) {
      const i64 place_ = (first_ + group_);
      const i64 group_at_ = (place_ * 12);
      const i32x4 word_ = xy_load_i32_i32x4(w + group_at_);
      const i32x4 word1 = xy_load_i32_i32x4(w + (group_at_ + 4));
      const i32x4 word2 = xy_load_i32_i32x4(w + (group_at_ + 8));
      const i32x4 word3 = (word_ ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
      const i32x4 word4 = (word1 ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
      const i32x4 word5 = (word2 ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
      const f32x4 q_ = __builtin_convertvector(((word3 << 28) >> 28), f32x4);
      const f32x4 q1 = __builtin_convertvector(((word4 << 28) >> 28), f32x4);
      const f32x4 q2 = __builtin_convertvector(((word5 << 28) >> 28), f32x4);
      const f32x4 w_ = (q_ * scale_ + offset_);
      const f32x4 w1 = (q1 * scale1 + offset1);
      const f32x4 w2 = (q2 * scale2 + offset2);
      const f32x4 x_ = xy_splat_f32x4(((float)*(a + (place_ * 8))));
      c_ = (x_ * w_ + c_);
      c1 = (x_ * w1 + c1);
      c2 = (x_ * w2 + c2);
      const f32x4 x1 = xy_splat_f32x4(((float)*(a + (20 + (place_ * 8)))));
      c3 = (x1 * w_ + c3);
      c4 = (x1 * w1 + c4);
      c5 = (x1 * w2 + c5);
      const f32x4 q3 = __builtin_convertvector(((word3 << 24) >> 28), f32x4);
      const f32x4 q4 = __builtin_convertvector(((word4 << 24) >> 28), f32x4);
      const f32x4 q5 = __builtin_convertvector(((word5 << 24) >> 28), f32x4);
      const f32x4 w3 = (q3 * scale_ + offset_);
      const f32x4 w4 = (q4 * scale1 + offset1);
      const f32x4 w5 = (q5 * scale2 + offset2);
      const f32x4 x2 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 1))));
      c_ = (x2 * w3 + c_);
      c1 = (x2 * w4 + c1);
      c2 = (x2 * w5 + c2);
      const f32x4 x3 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 1)))));
      c3 = (x3 * w3 + c3);
      c4 = (x3 * w4 + c4);
      c5 = (x3 * w5 + c5);
      const f32x4 q6 = __builtin_convertvector(((word3 << 20) >> 28), f32x4);
      const f32x4 q7 = __builtin_convertvector(((word4 << 20) >> 28), f32x4);
      const f32x4 q8 = __builtin_convertvector(((word5 << 20) >> 28), f32x4);
      const f32x4 w6 = (q6 * scale_ + offset_);
      const f32x4 w7 = (q7 * scale1 + offset1);
      const f32x4 w8 = (q8 * scale2 + offset2);
      const f32x4 x4 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 2))));
      c_ = (x4 * w6 + c_);
      c1 = (x4 * w7 + c1);
      c2 = (x4 * w8 + c2);
      const f32x4 x5 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 2)))));
      c3 = (x5 * w6 + c3);
      c4 = (x5 * w7 + c4);
      c5 = (x5 * w8 + c5);
      const f32x4 q9 = __builtin_convertvector(((word3 << 16) >> 28), f32x4);
      const f32x4 q10 = __builtin_convertvector(((word4 << 16) >> 28), f32x4);
      const f32x4 q11 = __builtin_convertvector(((word5 << 16) >> 28), f32x4);
      const f32x4 w9 = (q9 * scale_ + offset_);
      const f32x4 w10 = (q10 * scale1 + offset1);
      const f32x4 w11 = (q11 * scale2 + offset2);
      const f32x4 x6 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 3))));
      c_ = (x6 * w9 + c_);
      c1 = (x6 * w10 + c1);
      c2 = (x6 * w11 + c2);
      const f32x4 x7 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 3)))));
      c3 = (x7 * w9 + c3);
      c4 = (x7 * w10 + c4);
      c5 = (x7 * w11 + c5);
      const f32x4 q12 = __builtin_convertvector(((word3 << 12) >> 28), f32x4);
      const f32x4 q13 = __builtin_convertvector(((word4 << 12) >> 28), f32x4);
      const f32x4 q14 = __builtin_convertvector(((word5 << 12) >> 28), f32x4);
      const f32x4 w12 = (q12 * scale_ + offset_);
      const f32x4 w13 = (q13 * scale1 + offset1);
      const f32x4 w14 = (q14 * scale2 + offset2);
      const f32x4 x8 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 4))));
      c_ = (x8 * w12 + c_);
      c1 = (x8 * w13 + c1);
      c2 = (x8 * w14 + c2);
      const f32x4 x9 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 4)))));
      c3 = (x9 * w12 + c3);
      c4 = (x9 * w13 + c4);
      c5 = (x9 * w14 + c5);
      const f32x4 q15 = __builtin_convertvector(((word3 << 8) >> 28), f32x4);
      const f32x4 q16 = __builtin_convertvector(((word4 << 8) >> 28), f32x4);
      const f32x4 q17 = __builtin_convertvector(((word5 << 8) >> 28), f32x4);
      const f32x4 w15 = (q15 * scale_ + offset_);
      const f32x4 w16 = (q16 * scale1 + offset1);
      const f32x4 w17 = (q17 * scale2 + offset2);
      const f32x4 x10 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 5))));
      c_ = (x10 * w15 + c_);
      c1 = (x10 * w16 + c1);
      c2 = (x10 * w17 + c2);
      const f32x4 x11 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 5)))));
      c3 = (x11 * w15 + c3);
      c4 = (x11 * w16 + c4);
      c5 = (x11 * w17 + c5);
      const f32x4 q18 = __builtin_convertvector(((word3 << 4) >> 28), f32x4);
      const f32x4 q19 = __builtin_convertvector(((word4 << 4) >> 28), f32x4);
      const f32x4 q20 = __builtin_convertvector(((word5 << 4) >> 28), f32x4);
      const f32x4 w18 = (q18 * scale_ + offset_);
      const f32x4 w19 = (q19 * scale1 + offset1);
      const f32x4 w20 = (q20 * scale2 + offset2);
      const f32x4 x12 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 6))));
      c_ = (x12 * w18 + c_);
      c1 = (x12 * w19 + c1);
      c2 = (x12 * w20 + c2);
      const f32x4 x13 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 6)))));
      c3 = (x13 * w18 + c3);
      c4 = (x13 * w19 + c4);
      c5 = (x13 * w20 + c5);
      const f32x4 q21 = __builtin_convertvector((word3 >> 28), f32x4);
      const f32x4 q22 = __builtin_convertvector((word4 >> 28), f32x4);
      const f32x4 q23 = __builtin_convertvector((word5 >> 28), f32x4);
      const f32x4 w21 = (q21 * scale_ + offset_);
      const f32x4 w22 = (q22 * scale1 + offset1);
      const f32x4 w23 = (q23 * scale2 + offset2);
      const f32x4 x14 = xy_splat_f32x4(((float)*(a + ((place_ * 8) + 7))));
      c_ = (x14 * w21 + c_);
      c1 = (x14 * w22 + c1);
      c2 = (x14 * w23 + c2);
      const f32x4 x15 = xy_splat_f32x4(((float)*(a + (20 + ((place_ * 8) + 7)))));
      c3 = (x15 * w21 + c3);
      c4 = (x15 * w22 + c4);
      c5 = (x15 * w23 + c5);
      __builtin_prefetch(w + ((place_ * 12) + 128), 0, 2);
    }
  }
  const f32x4 scale3 = (*(const f32x4 *)(scales + 12));
  const f32x4 scale4 = (*(const f32x4 *)(scales + 16));
  const f32x4 scale5 = (*(const f32x4 *)(scales + 20));
  const f32x4 zero3 = xy_load_i8_f32x4(zeros + 12);
  const f32x4 zero4 = xy_load_i8_f32x4(zeros + 16);
  const f32x4 zero5 = xy_load_i8_f32x4(zeros + 20);
  const f32x4 offset3 = (-(zero3 * scale3));
  const f32x4 offset4 = (-(zero4 * scale4));
  const f32x4 offset5 = (-(zero5 * scale5));
  const i32x4 word6 = xy_load_i32_i32x4(w + 24);
  const i32x4 word7 = xy_load_i32_i32x4(w + 28);
  const i32x4 word8 = xy_load_i32_i32x4(w + 32);
  const i32x4 word9 = (word6 ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
  const i32x4 word10 = (word7 ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
  const i32x4 word11 = (word8 ^ (i32x4){-2004318072, -2004318072, -2004318072, -2004318072});
  const f32x4 q24 = __builtin_convertvector(((word9 << 28) >> 28), f32x4);
  const f32x4 q25 = __builtin_convertvector(((word10 << 28) >> 28), f32x4);
  const f32x4 q26 = __builtin_convertvector(((word11 << 28) >> 28), f32x4);
  const f32x4 w24 = (q24 * scale3 + offset3);
  const f32x4 w25 = (q25 * scale4 + offset4);
  const f32x4 w26 = (q26 * scale5 + offset5);
  const f32x4 x16 = xy_splat_f32x4(((float)*(a + 16)));
  c_ = (x16 * w24 + c_);
  c1 = (x16 * w25 + c1);
  c2 = (x16 * w26 + c2);
  const f32x4 x17 = xy_splat_f32x4(((float)*(a + 36)));
  c3 = (x17 * w24 + c3);
  c4 = (x17 * w25 + c4);
  c5 = (x17 * w26 + c5);
  const f32x4 q27 = __builtin_convertvector(((word9 << 24) >> 28), f32x4);
  const f32x4 q28 = __builtin_convertvector(((word10 << 24) >> 28), f32x4);
  const f32x4 q29 = __builtin_convertvector(((word11 << 24) >> 28), f32x4);
  const f32x4 w27 = (q27 * scale3 + offset3);
  const f32x4 w28 = (q28 * scale4 + offset4);
  const f32x4 w29 = (q29 * scale5 + offset5);
  const f32x4 x18 = xy_splat_f32x4(((float)*(a + 17)));
  c_ = (x18 * w27 + c_);
  c1 = (x18 * w28 + c1);
  c2 = (x18 * w29 + c2);
  const f32x4 x19 = xy_splat_f32x4(((float)*(a + 37)));
  c3 = (x19 * w27 + c3);
  c4 = (x19 * w28 + c4);
  c5 = (x19 * w29 + c5);
  const f32x4 q30 = __builtin_convertvector(((word9 << 20) >> 28), f32x4);
  const f32x4 q31 = __builtin_convertvector(((word10 << 20) >> 28), f32x4);
  const f32x4 q32 = __builtin_convertvector(((word11 << 20) >> 28), f32x4);
  const f32x4 w30 = (q30 * scale3 + offset3);
  const f32x4 w31 = (q31 * scale4 + offset4);
  const f32x4 w32 = (q32 * scale5 + offset5);
  const f32x4 x20 = xy_splat_f32x4(((float)*(a + 18)));
  c_ = (x20 * w30 + c_);
  c1 = (x20 * w31 + c1);
  c2 = (x20 * w32 + c2);
  const f32x4 x21 = xy_splat_f32x4(((float)*(a + 38)));
  c3 = (x21 * w30 + c3);
  c4 = (x21 * w31 + c4);
  c5 = (x21 * w32 + c5);
  const f32x4 q33 = __builtin_convertvector(((word9 << 16) >> 28), f32x4);
  const f32x4 q34 = __builtin_convertvector(((word10 << 16) >> 28), f32x4);
  const f32x4 q35 = __builtin_convertvector(((word11 << 16) >> 28), f32x4);
  const f32x4 w33 = (q33 * scale3 + offset3);
  const f32x4 w34 = (q34 * scale4 + offset4);
  const f32x4 w35 = (q35 * scale5 + offset5);
  const f32x4 x22 = xy_splat_f32x4(((float)*(a + 19)));
  c_ = (x22 * w33 + c_);
  c1 = (x22 * w34 + c1);
  c2 = (x22 * w35 + c2);
  const f32x4 x23 = xy_splat_f32x4(((float)*(a + 39)));
  c3 = (x23 * w33 + c3);
  c4 = (x23 * w34 + c4);
  c5 = (x23 * w35 + c5);
  __builtin_prefetch(w + 152, 0, 2);
  const f32x4 x24 = (*(const f32x4 *)(b_i5 + column));
  const f32x4 v_ = (c_ + x24);
  *(f32x4 *)(b_out4 + ((row * 12) + column)) = v_;
  const f32x4 v1 = (c3 + x24);
  *(f32x4 *)(b_out4 + (((row + 1) * 12) + column)) = v1;
  const f32x4 x25 = (*(const f32x4 *)(b_i5 + (column + 4)));
  const f32x4 v2 = (c1 + x25);
  *(f32x4 *)(b_out4 + ((row * 12) + (column + 4))) = v2;
  const f32x4 v3 = (c4 + x25);
  *(f32x4 *)(b_out4 + (((row + 1) * 12) + (column + 4))) = v3;
  const f32x4 x26 = (*(const f32x4 *)(b_i5 + (column + 8)));
  const f32x4 v4 = (c2 + x26);
  *(f32x4 *)(b_out4 + ((row * 12) + (column + 8))) = v4;
  const f32x4 v5 = (c5 + x26);
  *(f32x4 *)(b_out4 + (((row + 1) * 12) + (column + 8))) = v5;
}
__attribute__((visibility("default")))
void xy_gemm_f32_int4x16_8x12_neon(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const int *const b_w1 = (const int *)buffers[1];
  const float *const b_scales2 = (const float *)buffers[2];
  const signed char *const b_zeros3 = (const signed char *)buffers[3];
  float *const b_out4 = (float *)buffers[4];
  const float *const b_i5 = (const float *)buffers[5];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 factors_ = (unit_ * 24);
    const i64 panel_ = (unit_ * 48);
    const i64 column_ = (unit_ * 12);
    for (i64 rows_ = 0; rows_ < 1; rows_ += 1) {
      const i64 row_ = ((rows_ * 2) + xy_min_index(rows_, 0));
      direct_12_2(b_a0 + (row_ * 20), b_w1 + panel_, b_scales2 + factors_, b_zeros3 + factors_, row_, column_, b_i5, b_out4);
    }
  }
}
