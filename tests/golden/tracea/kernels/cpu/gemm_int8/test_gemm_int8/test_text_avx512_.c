// k = 5, n = 12
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef signed char s_i8x16 __attribute__((vector_size(16), aligned(1), may_alias));
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) f32x16 xy_abs_f32x16(f32x16 a) { return (f32x16)((i32x16)a & 0x7fffffff); }
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) f32x16 xy_select_f32x16(i32x16 m, f32x16 a, f32x16 b) { return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b)); }
static inline __attribute__((always_inline)) f32x16 xy_rint_f32x16(f32x16 a) { return __builtin_ia32_rndscaleps_mask(a, 8, a, -1, 4); }
static inline __attribute__((always_inline)) f32x16 xy_min_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_minps512(a, b, 4);
#else
 return __builtin_ia32_minps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) void xy_store_i8_i32x16(signed char *p, i32x16 v) { s_i8x16 r; __asm__("vpmovdb %1, %0" : "=v"(r) : "v"(v)); *(s_i8x16 *)p = r; }
__attribute__((visibility("default")))
void xy_gemm_quantise_f32_16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_b0 = (const float *)buffers[0];
  signed char *const b_panels1 = (signed char *)buffers[1];
  float *const b_scales2 = (float *)buffers[2];
  (void)params;
  float piece_[4096] __attribute__((aligned(64)));
  float largest_[16] __attribute__((aligned(64)));
  float broken_[16] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 column_ = (unit_ * 16);
    *(f32x16 *)(largest_) = (f32x16){0};
    *(f32x16 *)(broken_) = (f32x16){0};
    for (i64 turn_ = 0; turn_ < 2; turn_ += 1) {
      for (i64 first_ = 0; first_ < 5; first_ += 256) {
        const i64 rows_ = xy_min_index((5 - first_), 256);
        const i64 from_ = (column_ + (first_ * 12));
        const i64 valid_ = (12 - column_);
        if ((valid_ < 16)) {
          for (i64 k_ = 0; k_ < rows_; k_ += 1) {
            *(f32x16 *)(piece_ + (k_ * 16)) = xy_load_n_f32_f32x16(b_b0 + from_ + (k_ * 12), valid_);
          }
        } else {
          for (i64 k1 = 0; k1 < rows_; k1 += 1) {
            *(f32x16 *)(piece_ + (k1 * 16)) = (*(const f32x16 *)(b_b0 + from_ + (k1 * 12)));
          }
        }
        if ((turn_ < 1)) {
          f32x16 most_ = (*(const f32x16 *)(largest_));
          f32x16 wrong_ = (*(const f32x16 *)(broken_));
          for (i64 k2 = 0; k2 < rows_; k2 += 1) {
            const f32x16 x_ = (*(const f32x16 *)(piece_ + (k2 * 16)));
            most_ = xy_max_f32x16(xy_abs_f32x16(x_), most_);
            wrong_ = (wrong_ + (x_ * (f32x16){0}));
          }
          *(f32x16 *)(largest_) = most_;
          *(f32x16 *)(broken_) = wrong_;
        } else {
          const f32x16 scale_ = ((*(const f32x16 *)(largest_)) * (f32x16){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f});
          const f32x16 divisor_ = xy_select_f32x16(((i32x16)((f32x16){0} < scale_)), scale_, (f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
          for (i64 k3 = 0; k3 < rows_; k3 += 1) {
            const f32x16 level_ = xy_max_f32x16(xy_min_f32x16((f32x16){0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f}, xy_rint_f32x16(((*(const f32x16 *)(piece_ + (k3 * 16))) / divisor_))), (f32x16){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)});
            xy_store_i8_i32x16(b_panels1 + ((((unit_ * 5) + first_) * 16) + (k3 * 16)), __builtin_convertvector(level_, i32x16));
          }
        }
      }
      if ((turn_ < 1)) {
        *(f32x16 *)(b_scales2 + column_) = (((*(const f32x16 *)(largest_)) * (f32x16){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f}) + (*(const f32x16 *)(broken_)));
      }
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef signed char s_i8x16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_load_i8_f32x16(const signed char *p) { i32x16 w; __asm__("vpmovsxbd %1, %0" : "=v"(w) : "m"(*(const s_i8x16 *)p)); return __builtin_convertvector(w, f32x16); }
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x16(float *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); __builtin_ia32_storeups512_mask((float *)p, v, k); }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void direct_16_2(const float *a, const signed char *w, i64 row, i64 column, const float *b_scales2, const float *b_i4, float *b_out3) {
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
    const f32x16 w_ = xy_load_i8_f32x16(w + (k_ * 16));
    const f32x16 x_ = xy_splat_f32x16(((float)*(a + k_)));
    c_ = (x_ * w_ + c_);
    const f32x16 x1 = xy_splat_f32x16(((float)*(a + (5 + k_))));
    c1 = (x1 * w_ + c1);
    const f32x16 w1 = xy_load_i8_f32x16(w + ((k_ + 1) * 16));
    const f32x16 x2 = xy_splat_f32x16(((float)*(a + (k_ + 1))));
    c2 = (x2 * w1 + c2);
    const f32x16 x3 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 1)))));
    c3 = (x3 * w1 + c3);
    const f32x16 w2 = xy_load_i8_f32x16(w + ((k_ + 2) * 16));
    const f32x16 x4 = xy_splat_f32x16(((float)*(a + (k_ + 2))));
    c4 = (x4 * w2 + c4);
    const f32x16 x5 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 2)))));
    c5 = (x5 * w2 + c5);
    const f32x16 w3 = xy_load_i8_f32x16(w + ((k_ + 3) * 16));
    const f32x16 x6 = xy_splat_f32x16(((float)*(a + (k_ + 3))));
    c6 = (x6 * w3 + c6);
    const f32x16 x7 = xy_splat_f32x16(((float)*(a + (5 + (k_ + 3)))));
    c7 = (x7 * w3 + c7);
    __builtin_prefetch(w + 2048 + line_, 0, 3);
  }
  for (i64 k1 = 4; k1 < 5; k1 += 1) {
    const f32x16 w4 = xy_load_i8_f32x16(w + (k1 * 16));
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
  const i64 left_ = (12 - column);
  if ((16 <= left_)) {
    const f32x16 scale_ = (*(const f32x16 *)(b_scales2 + column));
    const f32x16 sum_ = (c_ * scale_);
    const f32x16 x10 = (*(const f32x16 *)(b_i4 + column));
    const f32x16 v_ = (sum_ + x10);
    *(f32x16 *)(b_out3 + ((row * 12) + column)) = v_;
    const f32x16 sum1 = (c1 * scale_);
    const f32x16 v1 = (sum1 + x10);
    *(f32x16 *)(b_out3 + (((row + 1) * 12) + column)) = v1;
  } else {
    const f32x16 scale1 = (*(const f32x16 *)(b_scales2 + column));
    const f32x16 sum2 = (c_ * scale1);
    const f32x16 x11 = xy_load_n_f32_f32x16(b_i4 + column, left_);
    const f32x16 v2 = (sum2 + x11);
    xy_store_n_f32_f32x16(b_out3 + ((row * 12) + column), v2, left_);
    const f32x16 sum3 = (c1 * scale1);
    const f32x16 v3 = (sum3 + x11);
    xy_store_n_f32_f32x16(b_out3 + (((row + 1) * 12) + column), v3, left_);
  }
}
__attribute__((visibility("default")))
void xy_gemm_f32_int8_16x16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const signed char *const b_w1 = (const signed char *)buffers[1];
  const float *const b_scales2 = (const float *)buffers[2];
  float *const b_out3 = (float *)buffers[3];
  const float *const b_i4 = (const float *)buffers[4];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 w_at_ = (unit_ * 80);
    const i64 column_ = (unit_ * 16);
    for (i64 block_ = 0; block_ < 1; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      direct_16_2(b_a0 + (row_ * 5), b_w1 + w_at_, row_, column_, b_scales2, b_i4, b_out3);
    }
  }
}
