// rows = 1, columns = t, depth = 16, width = 16
// score: add(mul(acc0, 0.25), in3[i0, 0, 0, i3])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) i32x16 xy_splat_i32x16(int a) { return (i32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_select_f32x16(i32x16 m, f32x16 a, f32x16 b) { return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b)); }
static inline __attribute__((always_inline)) f32x8 xy_max_f32x8(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_max_f32x16(f32x16 a) { f32x8 h16 = xy_max_f32x8(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); f32x4 h8 = xy_max_f32x4(__builtin_shufflevector(h16, h16, 0, 1, 2, 3), __builtin_shufflevector(h16, h16, 4, 5, 6, 7)); f32x4 h4 = xy_max_f32x4(__builtin_shufflevector(h8, h8, 0, 1, 2, 3), __builtin_shufflevector(h8, h8, 2, 3, 2, 3)); float h2 = xy_max_f32x1(h4[0], h4[1]); return h2; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x16(f32x16 a) { f32x8 h16 = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15); f32x4 h8 = __builtin_shufflevector(h16, h16, 0, 1, 2, 3) + __builtin_shufflevector(h16, h16, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static __attribute__((noinline)) void products_1(const float *query, const float *keys, i64 exist, float *out) {
  float dots_[32] __attribute__((aligned(64)));
  for (i64 g_ = 0; g_ < 2; g_ += 1) {
    const i64 first_ = (g_ * 8);
    const i64 column_ = (xy_min_index(first_, (exist - 1)) * 32);
    const i64 column1 = (xy_min_index((first_ + 1), (exist - 1)) * 32);
    const i64 column2 = (xy_min_index((first_ + 2), (exist - 1)) * 32);
    const i64 column3 = (xy_min_index((first_ + 3), (exist - 1)) * 32);
    const i64 column4 = (xy_min_index((first_ + 4), (exist - 1)) * 32);
    const i64 column5 = (xy_min_index((first_ + 5), (exist - 1)) * 32);
    const i64 column6 = (xy_min_index((first_ + 6), (exist - 1)) * 32);
    const i64 column7 = (xy_min_index((first_ + 7), (exist - 1)) * 32);
    const i64 share_ = (g_ * 8);
    const i64 next_ = (xy_min_index(share_, 15) * 32);
    const i64 next1 = (xy_min_index((share_ + 1), 15) * 32);
    const i64 next2 = (xy_min_index((share_ + 2), 15) * 32);
    const i64 next3 = (xy_min_index((share_ + 3), 15) * 32);
    const i64 next4 = (xy_min_index((share_ + 4), 15) * 32);
    const i64 next5 = (xy_min_index((share_ + 5), 15) * 32);
    const i64 next6 = (xy_min_index((share_ + 6), 15) * 32);
    const i64 next7 = (xy_min_index((share_ + 7), 15) * 32);
    f32x16 c_ = (f32x16){0};
    f32x16 c1 = (f32x16){0};
    f32x16 c2 = (f32x16){0};
    f32x16 c3 = (f32x16){0};
    f32x16 c4 = (f32x16){0};
    f32x16 c5 = (f32x16){0};
    f32x16 c6 = (f32x16){0};
    f32x16 c7 = (f32x16){0};
    for (i64 k_ = 0; k_ < 16; k_ += 16) {
      const f32x16 x_ = (*(const f32x16 *)(query + k_));
      const f32x16 y_ = (*(const f32x16 *)(keys + column_ + k_));
      c_ = (x_ * y_ + c_);
      const f32x16 y1 = (*(const f32x16 *)(keys + column1 + k_));
      c1 = (x_ * y1 + c1);
      const f32x16 y2 = (*(const f32x16 *)(keys + column2 + k_));
      c2 = (x_ * y2 + c2);
      const f32x16 y3 = (*(const f32x16 *)(keys + column3 + k_));
      c3 = (x_ * y3 + c3);
      const f32x16 y4 = (*(const f32x16 *)(keys + column4 + k_));
      c4 = (x_ * y4 + c4);
      const f32x16 y5 = (*(const f32x16 *)(keys + column5 + k_));
      c5 = (x_ * y5 + c5);
      const f32x16 y6 = (*(const f32x16 *)(keys + column6 + k_));
      c6 = (x_ * y6 + c6);
      const f32x16 y7 = (*(const f32x16 *)(keys + column7 + k_));
      c7 = (x_ * y7 + c7);
      __builtin_prefetch(keys + next_ + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next1 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next2 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next3 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next4 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next5 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next6 + 4096 + k_, 0, 2);
      __builtin_prefetch(keys + next7 + 4096 + k_, 0, 2);
    }
    const f32x16 s_ = (__builtin_shufflevector(c_, c4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(c_, c4, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    const f32x16 s1 = (__builtin_shufflevector(c1, c5, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(c1, c5, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    const f32x16 s2 = (__builtin_shufflevector(c2, c6, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(c2, c6, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    const f32x16 s3 = (__builtin_shufflevector(c3, c7, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(c3, c7, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    const f32x16 s4 = (__builtin_shufflevector(s_, s2, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + __builtin_shufflevector(s_, s2, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
    const f32x16 s5 = (__builtin_shufflevector(s1, s3, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + __builtin_shufflevector(s1, s3, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
    const f32x16 s6 = (__builtin_shufflevector(s4, s5, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) + __builtin_shufflevector(s4, s5, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31));
    *(f32x16 *)(dots_ + (g_ * 16)) = s6;
  }
  const f32x16 s7 = (__builtin_shufflevector((*(const f32x16 *)(dots_)), (*(const f32x16 *)(dots_ + 16)), 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector((*(const f32x16 *)(dots_)), (*(const f32x16 *)(dots_ + 16)), 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
  *(f32x16 *)(out) = s7;
}
static __attribute__((noinline)) void sums_16_1(const float *weights, const float *v, const float *fetched, float *sums, i64 columns) {
  f32x16 c_ = (f32x16){0};
  f32x16 c1 = (f32x16){0};
  f32x16 c2 = (f32x16){0};
  f32x16 c3 = (f32x16){0};
  c_ = (*(const f32x16 *)(sums));
  const i64 whole_ = (columns - (columns % 4));
  for (i64 k_ = 0; k_ < whole_; k_ += 4) {
    const f32x16 w_ = (*(const f32x16 *)(v + (k_ * 32)));
    const f32x16 x_ = xy_splat_f32x16(((float)*(weights + k_)));
    c_ = (x_ * w_ + c_);
    const f32x16 w1 = (*(const f32x16 *)(v + ((k_ + 1) * 32)));
    const f32x16 x1 = xy_splat_f32x16(((float)*(weights + (k_ + 1))));
    c1 = (x1 * w1 + c1);
    const f32x16 w2 = (*(const f32x16 *)(v + ((k_ + 2) * 32)));
    const f32x16 x2 = xy_splat_f32x16(((float)*(weights + (k_ + 2))));
    c2 = (x2 * w2 + c2);
    const f32x16 w3 = (*(const f32x16 *)(v + ((k_ + 3) * 32)));
    const f32x16 x3 = xy_splat_f32x16(((float)*(weights + (k_ + 3))));
    c3 = (x3 * w3 + c3);
  }
  for (i64 k1 = whole_; k1 < columns; k1 += 1) {
    const f32x16 w4 = (*(const f32x16 *)(v + (k1 * 32)));
    const f32x16 x4 = xy_splat_f32x16(((float)*(weights + k1)));
    c_ = (x4 * w4 + c_);
  }
  c_ = (c_ + c1);
  c_ = (c_ + c2);
  c_ = (c_ + c3);
  *(f32x16 *)(sums) = c_;
}
static inline __attribute__((always_inline)) f32x16 xm_exp2_weight_16(f32x16 x) {
  const f32x16 y_ = xy_max_f32x16((f32x16){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)}, x);
  const f32x16 t_ = (y_ + (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 n_ = (t_ - (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 f_ = (y_ - n_);
  const f32x16 p_ = ((((((f32x16){0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f} * f_ + (f32x16){0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f}) * f_ + (f32x16){0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f}) * f_ + (f32x16){0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f}) * f_ + (f32x16){0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f}) * f_ + (f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
  return ((f32x16)(((i32x16)p_) + (((i32x16)t_) << (i32x16){23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23})));
}
__attribute__((visibility("default")))
void xy_attention_few_f32_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_q0 = (const float *)buffers[0];
  const float *const b_k1 = (const float *)buffers[1];
  const float *const b_v2 = (const float *)buffers[2];
  float *const b_out3 = (float *)buffers[3];
  float *const b_sums4 = (float *)buffers[4];
  float *const b_states5 = (float *)buffers[5];
  const float *const b_i6 = (const float *)buffers[6];
  const i64 p_0 = params[0];
  const i64 p_1 = params[1];
  const i64 p_2 = params[2];
  float scores_[528] __attribute__((aligned(64)));
  float query_[16] __attribute__((aligned(64)));
  float sums_[16] __attribute__((aligned(64)));
  float maxima_[16] __attribute__((aligned(64)));
  float totals_[16] __attribute__((aligned(64)));
  float factors_[16] __attribute__((aligned(64)));
  float scales_[16] __attribute__((aligned(64)));
  float tops_[16] __attribute__((aligned(64)));
  float bases_[16] __attribute__((aligned(64)));
  float parts_[16] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % p_0);
    const i64 i1 = (unit_ / p_0);
    const i64 i2 = (i1 % 2);
    const i64 i3 = (i1 / 2);
    *(f32x16 *)(maxima_) = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x16 *)(totals_) = (f32x16){0};
    *(f32x16 *)(tops_) = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x16 *)(parts_) = (f32x16){0};
    const i64 q_at_ = ((i3 * 32) + (i2 * 16));
    for (i64 i4 = 0; i4 < 1; i4 += 1) {
      *(f32x16 *)(query_ + (i4 * 16)) = (f32x16){0};
      for (i64 d_ = 0; d_ < 16; d_ += 1) {
        *(query_ + ((i4 * 16) + d_)) = (float)((float)*(b_q0 + q_at_ + ((i4 * 32) + d_)));
      }
    }
    const i64 share_ = (((((p_1 + (p_0 - 1)) / p_0) + 31) / 32) * 32);
    const i64 begin_ = xy_min_index((i_ * share_), p_1);
    const i64 end_ = xy_min_index((begin_ + share_), p_1);
    const i64 length_ = (end_ - begin_);
    const i64 passes_ = xy_max_index(((length_ + 511) / 512), 1);
    const i64 each_ = ((xy_max_index((((length_ + (passes_ - 1)) / passes_) + 31), 32) / 32) * 32);
    for (i64 pass_ = 0; pass_ < passes_; pass_ += 1) {
      const i64 column_ = (begin_ + (pass_ * each_));
      const i64 here_ = xy_max_index(xy_min_index(each_, (end_ - column_)), 0);
      const i64 k_at_ = (((i3 * p_2) + (i2 * 16)) + (column_ * 32));
      for (i64 t_ = 0; t_ < here_; t_ += 16) {
        const i64 exist_ = xy_min_index((here_ - t_), 16);
        products_1(query_, b_k1 + (t_ * 32) + k_at_, exist_, scores_ + t_);
      }
      for (i64 i5 = 0; i5 < 1; i5 += 1) {
        const i64 row_ = (i5 * 528);
        const i64 whole_ = ((here_ / 32) * 32);
        f32x16 top_ = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        f32x16 top1 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        for (i64 t1 = 0; t1 < whole_; t1 += 32) {
          const f32x16 value_ = (*(const f32x16 *)(scores_ + row_ + t1));
          const f32x16 v_ = (value_ * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const f32x16 x_ = (*(const f32x16 *)(b_i6 + (column_ + t1)));
          const f32x16 v1 = (v_ + x_);
          *(f32x16 *)(scores_ + row_ + t1) = v1;
          top_ = xy_max_f32x16(v1, top_);
          const f32x16 value1 = (*(const f32x16 *)(scores_ + row_ + (t1 + 16)));
          const f32x16 v2 = (value1 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const f32x16 x1 = (*(const f32x16 *)(b_i6 + (column_ + (t1 + 16))));
          const f32x16 v3 = (v2 + x1);
          *(f32x16 *)(scores_ + row_ + (t1 + 16)) = v3;
          top1 = xy_max_f32x16(v3, top1);
        }
        for (i64 t2 = whole_; t2 < here_; t2 += 32) {
          const i64 left_ = (here_ - t2);
          const f32x16 value2 = (*(const f32x16 *)(scores_ + row_ + t2));
          const f32x16 v4 = (value2 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const f32x16 x2 = xy_load_n_f32_f32x16(b_i6 + (column_ + t2), left_);
          const f32x16 v5 = (v4 + x2);
          const f32x16 score_ = xy_select_f32x16(((i32x16)((i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < xy_splat_i32x16(((int)left_)))), v5, (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x16 *)(scores_ + row_ + t2) = score_;
          top_ = xy_max_f32x16(score_, top_);
          const i64 left1 = ((here_ - t2) - 16);
          const f32x16 value3 = (*(const f32x16 *)(scores_ + row_ + (t2 + 16)));
          const f32x16 v6 = (value3 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const f32x16 x3 = xy_load_n_f32_f32x16(b_i6 + (column_ + (t2 + 16)), left1);
          const f32x16 v7 = (v6 + x3);
          const f32x16 score1 = xy_select_f32x16(((i32x16)((i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < xy_splat_i32x16(((int)left1)))), v7, (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x16 *)(scores_ + row_ + (t2 + 16)) = score1;
          top1 = xy_max_f32x16(score1, top1);
        }
        *(tops_ + i5) = (float)xy_reduce_max_f32x16(xy_max_f32x16(top_, top1));
      }
      const f32x16 v8 = (*(const f32x16 *)(maxima_));
      const f32x16 v9 = (*(const f32x16 *)(tops_));
      const f32x16 new_ = xy_max_f32x16(v9, v8);
      const f32x16 base_ = xy_select_f32x16(((i32x16)(new_ == (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())})), (f32x16){0}, new_);
      *(f32x16 *)(maxima_) = new_;
      *(f32x16 *)(bases_) = base_;
      const f32x16 factor_ = xm_exp2_weight_16(((v8 - base_) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
      *(f32x16 *)(factors_) = factor_;
      for (i64 i6 = 0; i6 < 1; i6 += 1) {
        const i64 row1 = (i6 * 528);
        const float b_ = ((float)*(bases_ + i6));
        const f32x16 base1 = (f32x16){b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_, b_};
        f32x16 part_ = (f32x16){0};
        f32x16 part1 = (f32x16){0};
        for (i64 t3 = 0; t3 < here_; t3 += 32) {
          const f32x16 weight_ = xm_exp2_weight_16((((*(const f32x16 *)(scores_ + row1 + t3)) - base1) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
          *(f32x16 *)(scores_ + row1 + t3) = weight_;
          part_ = (part_ + weight_);
          const f32x16 weight1 = xm_exp2_weight_16((((*(const f32x16 *)(scores_ + row1 + (t3 + 16))) - base1) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
          *(f32x16 *)(scores_ + row1 + (t3 + 16)) = weight1;
          part1 = (part1 + weight1);
        }
        *(parts_ + i6) = (float)xy_reduce_add_f32x16((part_ + part1));
      }
      const f32x16 v10 = (*(const f32x16 *)(totals_));
      const f32x16 v11 = (*(const f32x16 *)(factors_));
      const f32x16 v12 = (*(const f32x16 *)(parts_));
      *(f32x16 *)(totals_) = (v10 * v11 + v12);
      const i64 last_ = (passes_ <= (pass_ + 1));
      if (last_) {
        const float none_ = ((0 < p_1) ? __builtin_nanf("") : 0x0.0p+0f);
        const f32x16 nothing_ = (f32x16){none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_};
        const f32x16 v13 = (*(const f32x16 *)(totals_));
        const f32x16 scale_ = xy_select_f32x16(((i32x16)(v13 == (f32x16){0})), nothing_, ((f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / v13));
        *(f32x16 *)(scales_) = scale_;
      }
      const i64 begins_ = (pass_ == 0);
      if (begins_) {
        for (i64 at_ = 0; at_ < 16; at_ += 16) {
          *(f32x16 *)(sums_ + at_) = (f32x16){0};
        }
      } else {
        for (i64 i7 = 0; i7 < 1; i7 += 1) {
          const float f_ = ((float)*(factors_ + i7));
          const f32x16 factor1 = (f32x16){f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_, f_};
          for (i64 e_ = (i7 * 16); e_ < ((i7 + 1) * 16); e_ += 16) {
            *(f32x16 *)(sums_ + e_) = ((*(const f32x16 *)(sums_ + e_)) * factor1);
          }
        }
      }
      const i64 v_at_ = (((i3 * p_2) + (i2 * 16)) + (column_ * 32));
      for (i64 column1 = 0; column1 < here_; column1 += 256) {
        const i64 here1 = xy_min_index((here_ - column1), 256);
        const i64 rows_of_v_ = (column1 * 32);
        sums_16_1(scores_ + column1, b_v2 + rows_of_v_ + v_at_, b_v2 + (rows_of_v_ + 4096) + v_at_, sums_, here1);
      }
      if (last_) {
        if ((p_0 == 1)) {
          for (i64 i8 = 0; i8 < 1; i8 += 1) {
            const float s_ = ((float)*(scales_ + i8));
            const f32x16 scale1 = (f32x16){s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_, s_};
            for (i64 e1 = 0; e1 < 16; e1 += 16) {
              const f32x16 value4 = ((*(const f32x16 *)(sums_ + (i8 * 16) + e1)) * scale1);
              *(f32x16 *)(b_out3 + ((i2 * 16) + e1)) = value4;
            }
          }
        } else {
          for (i64 at1 = 0; at1 < 16; at1 += 16) {
            *(f32x16 *)(b_sums4 + ((unit_ * 16) + at1)) = (*(const f32x16 *)(sums_ + at1));
          }
          for (i64 i9 = 0; i9 < 1; i9 += 1) {
            *(b_states5 + ((unit_ + i9) * 2)) = (float)((float)*(maxima_ + i9));
            *(b_states5 + (((unit_ + i9) * 2) + 1)) = (float)((float)*(totals_ + i9));
          }
        }
      }
    }
  }
}

typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_select_f32x16(i32x16 m, f32x16 a, f32x16 b) { return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b)); }
static inline __attribute__((always_inline)) f32x16 xm_exp2_weight_16(f32x16 x) {
  const f32x16 y_ = xy_max_f32x16((f32x16){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)}, x);
  const f32x16 t_ = (y_ + (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 n_ = (t_ - (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 f_ = (y_ - n_);
  const f32x16 p_ = ((((((f32x16){0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f} * f_ + (f32x16){0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f}) * f_ + (f32x16){0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f}) * f_ + (f32x16){0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f}) * f_ + (f32x16){0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f}) * f_ + (f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
  return ((f32x16)(((i32x16)p_) + (((i32x16)t_) << (i32x16){23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23})));
}
__attribute__((visibility("default")))
void xy_attention_combine_16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_sums0 = (const float *)buffers[0];
  const float *const b_states1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const i64 p_0 = params[0];
  const i64 p_1 = params[1];
  float totals_[16] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 2);
    const i64 i1 = (unit_ / 2);
    const i64 first_ = (unit_ * p_0);
    float best_ = (-__builtin_inff());
    for (i64 part_ = 0; part_ < p_0; part_ += 1) {
      best_ = xy_max_f32x1(((float)*(b_states1 + ((first_ + part_) * 2))), best_);
    }
    const float base_ = ((-(best_ == (-__builtin_inff()))) ? 0x0.0p+0f : best_);
    f32x16 total_ = (f32x16){0};
    for (i64 e_ = 0; e_ < 16; e_ += 16) {
      *(f32x16 *)(totals_ + e_) = (f32x16){0};
    }
    for (i64 part1 = 0; part1 < p_0; part1 += 1) {
      const i64 at_ = (first_ + part1);
      const f32x16 shrunk_ = xm_exp2_weight_16((xy_splat_f32x16((((float)*(b_states1 + (at_ * 2))) - base_)) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
      total_ = (xy_splat_f32x16(((float)*(b_states1 + ((at_ * 2) + 1)))) * shrunk_ + total_);
      for (i64 e1 = 0; e1 < 16; e1 += 16) {
        *(f32x16 *)(totals_ + e1) = ((*(const f32x16 *)(b_sums0 + ((at_ * 16) + e1))) * shrunk_ + (*(const f32x16 *)(totals_ + e1)));
      }
    }
    const float none_ = ((0 < p_1) ? __builtin_nanf("") : 0x0.0p+0f);
    const f32x16 nothing_ = (f32x16){none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_};
    const f32x16 scale_ = xy_select_f32x16(((i32x16)(total_ == (f32x16){0})), nothing_, ((f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / total_));
    for (i64 e2 = 0; e2 < 16; e2 += 16) {
      const f32x16 value_ = ((*(const f32x16 *)(totals_ + e2)) * scale_);
      *(f32x16 *)(b_out2 + ((i_ * 16) + e2)) = value_;
    }
  }
}
