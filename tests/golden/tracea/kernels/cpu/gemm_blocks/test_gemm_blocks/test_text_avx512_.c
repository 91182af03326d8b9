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
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef signed char s_i8x16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int s_i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_load_i8_f32x16(const signed char *p) { i32x16 w; __asm__("vpmovsxbd %1, %0" : "=v"(w) : "m"(*(const s_i8x16 *)p)); return __builtin_convertvector(w, f32x16); }
static inline __attribute__((always_inline)) i32x16 xy_load_i32_i32x16(const int *p) { return __builtin_convertvector(*(const s_i32x16 *)p, i32x16); }
static inline __attribute__((always_inline)) f32x16 xy_nibble_f32x16(i32x16 i) { const f32x16 table = {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, -8.0f, -7.0f, -6.0f, -5.0f, -4.0f, -3.0f, -2.0f, -1.0f}; f32x16 r; __asm__("vpermps %1, %2, %0" : "=v"(r) : "v"(table), "v"(i)); return r; }
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x16(float *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); __builtin_ia32_storeups512_mask((float *)p, v, k); }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void direct_16_2(const float *a, const int *w, const float *scales, const signed char *zeros, i64 row, i64 column, const float *b_i5, float *b_out4) {
  f32x16 c_ = (f32x16){0};
  f32x16 c1 = (f32x16){0};
  for (i64 block_ = 0; block_ < 1; block_ += 1) {
    const i64 factors_at_ = (block_ * 16);
    const f32x16 scale_ = (*(const f32x16 *)(scales + factors_at_));
    const f32x16 zero_ = xy_load_i8_f32x16(zeros + factors_at_);
    const f32x16 offset_ = (-(zero_ * scale_));
    const i64 first_ = (block_ * 2);
    for (i64 group_ = 0; group_ < 2; group_ += 1) {
      const i64 place_ = (first_ + group_);
      const i64 group_at_ = (place_ * 16);
      const i32x16 word_ = xy_load_i32_i32x16(w + group_at_);
      const i32x16 word1 = (word_ ^ (i32x16){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
      const f32x16 q_ = xy_nibble_f32x16(word1);
      const f32x16 w_ = (q_ * scale_ + offset_);
      const f32x16 x_ = xy_splat_f32x16(((float)*(a + (place_ * 8))));
      c_ = (x_ * w_ + c_);
      const f32x16 x1 = xy_splat_f32x16(((float)*(a + (20 + (place_ * 8)))));
      c1 = (x1 * w_ + c1);
      const f32x16 q1 = xy_nibble_f32x16(word1 >> 4);
      const f32x16 w1 = (q1 * scale_ + offset_);
      const f32x16 x2 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 1))));
      c_ = (x2 * w1 + c_);
      const f32x16 x3 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 1)))));
      c1 = (x3 * w1 + c1);
      const f32x16 q2 = xy_nibble_f32x16(word1 >> 8);
      const f32x16 w2 = (q2 * scale_ + offset_);
      const f32x16 x4 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 2))));
      c_ = (x4 * w2 + c_);
      const f32x16 x5 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 2)))));
      c1 = (x5 * w2 + c1);
      const f32x16 q3 = xy_nibble_f32x16(word1 >> 12);
      const f32x16 w3 = (q3 * scale_ + offset_);
      const f32x16 x6 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 3))));
      c_ = (x6 * w3 + c_);
      const f32x16 x7 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 3)))));
      c1 = (x7 * w3 + c1);
      const f32x16 q4 = xy_nibble_f32x16(word1 >> 16);
      const f32x16 w4 = (q4 * scale_ + offset_);
      const f32x16 x8 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 4))));
      c_ = (x8 * w4 + c_);
      const f32x16 x9 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 4)))));
      c1 = (x9 * w4 + c1);
      const f32x16 q5 = xy_nibble_f32x16(word1 >> 20);
      const f32x16 w5 = (q5 * scale_ + offset_);
      const f32x16 x10 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 5))));
      c_ = (x10 * w5 + c_);
      const f32x16 x11 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 5)))));
      c1 = (x11 * w5 + c1);
      const f32x16 q6 = xy_nibble_f32x16(word1 >> 24);
      const f32x16 w6 = (q6 * scale_ + offset_);
      const f32x16 x12 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 6))));
      c_ = (x12 * w6 + c_);
      const f32x16 x13 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 6)))));
      c1 = (x13 * w6 + c1);
      const f32x16 q7 = xy_nibble_f32x16(word1 >> 28);
      const f32x16 w7 = (q7 * scale_ + offset_);
      const f32x16 x14 = xy_splat_f32x16(((float)*(a + ((place_ * 8) + 7))));
      c_ = (x14 * w7 + c_);
      const f32x16 x15 = xy_splat_f32x16(((float)*(a + (20 + ((place_ * 8) + 7)))));
      c1 = (x15 * w7 + c1);
      __builtin_prefetch(w + ((place_ * 16) + 512), 0, 2);
    }
  }
  const f32x16 scale1 = (*(const f32x16 *)(scales + 16));
  const f32x16 zero1 = xy_load_i8_f32x16(zeros + 16);
  const f32x16 offset1 = (-(zero1 * scale1));
  const i32x16 word2 = xy_load_i32_i32x16(w + 32);
  const i32x16 word3 = (word2 ^ (i32x16){-2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072, -2004318072});
  const f32x16 q8 = xy_nibble_f32x16(word3);
  const f32x16 w8 = (q8 * scale1 + offset1);
  const f32x16 x16 = xy_splat_f32x16(((float)*(a + 16)));
  c_ = (x16 * w8 + c_);
  const f32x16 x17 = xy_splat_f32x16(((float)*(a + 36)));
  c1 = (x17 * w8 + c1);
  const f32x16 q9 = xy_nibble_f32x16(word3 >> 4);
  const f32x16 w9 = (q9 * scale1 + offset1);
  const f32x16 x18 = xy_splat_f32x16(((float)*(a + 17)));
  c_ = (x18 * w9 + c_);
  const f32x16 x19 = xy_splat_f32x16(((float)*(a + 37)));
  c1 = (x19 * w9 + c1);
  const f32x16 q10 = xy_nibble_f32x16(word3 >> 8);
  const f32x16 w10 = (q10 * scale1 + offset1);
  const f32x16 x20 = xy_splat_f32x16(((float)*(a + 18)));
  c_ = (x20 * w10 + c_);
  const f32x16 x21 = xy_splat_f32x16(((float)*(a + 38)));
  c1 = (x21 * w10 + c1);
  const f32x16 q11 = xy_nibble_f32x16(word3 >> 12);
  const f32x16 w11 = (q11 * scale1 + offset1);
  const f32x16 x22 = xy_splat_f32x16(((float)*(a + 19)));
  c_ = (x22 * w11 + c_);
  const f32x16 x23 = xy_splat_f32x16(((float)*(a + 39)));
  c1 = (x23 * w11 + c1);
  __builtin_prefetch(w + 544, 0, 2);
  const i64 left_ = (12 - column);
  if ((16 <= left_)) {
    const f32x16 x24 = (*(const f32x16 *)(b_i5 + column));
    const f32x16 v_ = (c_ + x24);
    *(f32x16 *)(b_out4 + ((row * 12) + column)) = v_;
    const f32x16 v1 = (c1 + x24);
    *(f32x16 *)(b_out4 + (((row + 1) * 12) + column)) = v1;
  } else {
    const f32x16 x25 = xy_load_n_f32_f32x16(b_i5 + column, left_);
    const f32x16 v2 = (c_ + x25);
    xy_store_n_f32_f32x16(b_out4 + ((row * 12) + column), v2, left_);
    const f32x16 v3 = (c1 + x25);
    xy_store_n_f32_f32x16(b_out4 + (((row + 1) * 12) + column), v3, left_);
  }
}
__attribute__((visibility("default")))
void xy_gemm_f32_int4x16_16x16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
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
