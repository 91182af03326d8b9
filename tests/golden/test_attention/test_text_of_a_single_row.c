// rows = 1, columns = t, depth = 16, width = 16
// score: add(mul(acc0, 0.25), in3[i0, 0, 0, i3])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) i32x16 xy_splat_i32x16(int a) { return (i32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_select_f32x16(i32x16 m, f32x16 a, f32x16 b) { return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b)); }
static inline __attribute__((always_inline)) f32x8 xy_max_f32x8(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_max_f32x16(f32x16 a) { f32x8 h16 = xy_max_f32x8(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); f32x4 h8 = xy_max_f32x4(__builtin_shufflevector(h16, h16, 0, 1, 2, 3), __builtin_shufflevector(h16, h16, 4, 5, 6, 7)); f32x4 h4 = xy_max_f32x4(__builtin_shufflevector(h8, h8, 0, 1, 2, 3), __builtin_shufflevector(h8, h8, 2, 3, 2, 3)); float h2 = xy_max_f32x1(h4[0], h4[1]); return h2; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x16(f32x16 a) { f32x8 h16 = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15); f32x4 h8 = __builtin_shufflevector(h16, h16, 0, 1, 2, 3) + __builtin_shufflevector(h16, h16, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static __attribute__((noinline)) void sums_16_1(const float *weights, const float *v, i64 start, i64 v_row, i64 columns, const float *scales, i64 batch, i64 head, i64 row, float *sums, const float *factors, i64 first, i64 last, float *b_out3) {
  f32x16 c_ = (f32x16){0};
  f32x16 c1 = (f32x16){0};
  f32x16 c2 = (f32x16){0};
  f32x16 c3 = (f32x16){0};
  const i64 whole_ = (columns - (columns % 4));
  for (i64 k_ = 0; k_ < whole_; k_ += 4) {
    const f32x16 w_ = (*(const f32x16 *)(v + (k_ * v_row)));
    const f32x16 x_ = xy_splat_f32x16(((float)*(weights + k_)));
    c_ = (x_ * w_ + c_);
    const f32x16 w1 = (*(const f32x16 *)(v + ((k_ + 1) * v_row)));
    const f32x16 x1 = xy_splat_f32x16(((float)*(weights + (k_ + 1))));
    c1 = (x1 * w1 + c1);
    const f32x16 w2 = (*(const f32x16 *)(v + ((k_ + 2) * v_row)));
    const f32x16 x2 = xy_splat_f32x16(((float)*(weights + (k_ + 2))));
    c2 = (x2 * w2 + c2);
    const f32x16 w3 = (*(const f32x16 *)(v + ((k_ + 3) * v_row)));
    const f32x16 x3 = xy_splat_f32x16(((float)*(weights + (k_ + 3))));
    c3 = (x3 * w3 + c3);
  }
  for (i64 k1 = whole_; k1 < columns; k1 += 1) {
    const f32x16 w4 = (*(const f32x16 *)(v + (k1 * v_row)));
    const f32x16 x4 = xy_splat_f32x16(((float)*(weights + k1)));
    c_ = (x4 * w4 + c_);
  }
  c_ = (c_ + c1);
  c_ = (c_ + c2);
  c_ = (c_ + c3);
  f32x16 sum_ = c_;
  if ((first == 0)) {
    const f32x16 factor_ = xy_splat_f32x16(((float)*(factors)));
    sum_ = ((*(const f32x16 *)(sums + start)) * factor_ + sum_);
  }
  if (last) {
    const f32x16 scale_ = xy_splat_f32x16(((float)*(scales)));
    const f32x16 value_ = (sum_ * scale_);
    *(f32x16 *)(b_out3 + ((head * 16) + start)) = value_;
  } else {
    *(f32x16 *)(sums + start) = sum_;
  }
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
void xy_attention_f32_12x32_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_q0 = (const float *)buffers[0];
  const float *const b_k1 = (const float *)buffers[1];
  const float *const b_v2 = (const float *)buffers[2];
  float *const b_out3 = (float *)buffers[3];
  const float *const b_x4 = (const float *)buffers[4];
  const i64 p_0 = params[0];
  const i64 p_1 = params[1];
  float scores_[6336] __attribute__((aligned(64)));
  float sums_[192] __attribute__((aligned(64)));
  float maxima_[16] __attribute__((aligned(64)));
  float totals_[16] __attribute__((aligned(64)));
  float factors_[16] __attribute__((aligned(64)));
  float scales_[16] __attribute__((aligned(64)));
  float tops_[16] __attribute__((aligned(64)));
  float bases_[16] __attribute__((aligned(64)));
  float parts_[16] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 2);
    const i64 i1 = (unit_ / 2);
    *(f32x16 *)(maxima_) = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x16 *)(totals_) = (f32x16){0};
    *(f32x16 *)(tops_) = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x16 *)(parts_) = (f32x16){0};
    const i64 passes_ = xy_max_index(((p_0 + 511) / 512), 1);
    const i64 each_ = ((xy_max_index((((p_0 + (passes_ - 1)) / passes_) + 31), 32) / 32) * 32);
    for (i64 pass_ = 0; pass_ < passes_; pass_ += 1) {
      const i64 column_ = (pass_ * each_);
      const i64 here_ = xy_max_index(xy_min_index(each_, (p_0 - column_)), 0);
      float query_[192] __attribute__((aligned(64)));
      for (i64 i2 = 0; i2 < 1; i2 += 1) {
        *(f32x16 *)(query_ + (i2 * 16)) = (f32x16){0};
        for (i64 d_ = 0; d_ < 16; d_ += 1) {
          *(query_ + ((i2 * 16) + d_)) = (float)((float)*(b_q0 + ((i1 * 32) + (i_ * 16)) + ((i2 * 32) + d_)));
        }
      }
      for (i64 t_ = 0; t_ < here_; t_ += 16) {
        const i64 left_ = (here_ - t_);
        const i64 at_ = (column_ + t_);
        const i64 key_ = ((at_ + xy_min_index((left_ - 1), 0)) * 32);
        const i64 key1 = ((at_ + xy_min_index((left_ - 1), 1)) * 32);
        const i64 key2 = ((at_ + xy_min_index((left_ - 1), 2)) * 32);
        const i64 key3 = ((at_ + xy_min_index((left_ - 1), 3)) * 32);
        const i64 key4 = ((at_ + xy_min_index((left_ - 1), 4)) * 32);
        const i64 key5 = ((at_ + xy_min_index((left_ - 1), 5)) * 32);
        const i64 key6 = ((at_ + xy_min_index((left_ - 1), 6)) * 32);
        const i64 key7 = ((at_ + xy_min_index((left_ - 1), 7)) * 32);
        const i64 key8 = ((at_ + xy_min_index((left_ - 1), 8)) * 32);
        const i64 key9 = ((at_ + xy_min_index((left_ - 1), 9)) * 32);
        const i64 key10 = ((at_ + xy_min_index((left_ - 1), 10)) * 32);
        const i64 key11 = ((at_ + xy_min_index((left_ - 1), 11)) * 32);
        const i64 key12 = ((at_ + xy_min_index((left_ - 1), 12)) * 32);
        const i64 key13 = ((at_ + xy_min_index((left_ - 1), 13)) * 32);
        const i64 key14 = ((at_ + xy_min_index((left_ - 1), 14)) * 32);
        const i64 key15 = ((at_ + xy_min_index((left_ - 1), 15)) * 32);
        for (i64 i3 = 0; i3 < 1; i3 += 1) {
          const f32x16 q_ = (*(const f32x16 *)(query_ + (i3 * 16)));
          const f32x16 total_ = (q_ * (*(const f32x16 *)(b_k1 + key_ + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total1 = (q_ * (*(const f32x16 *)(b_k1 + key1 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total2 = (q_ * (*(const f32x16 *)(b_k1 + key2 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total3 = (q_ * (*(const f32x16 *)(b_k1 + key3 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total4 = (q_ * (*(const f32x16 *)(b_k1 + key4 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total5 = (q_ * (*(const f32x16 *)(b_k1 + key5 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total6 = (q_ * (*(const f32x16 *)(b_k1 + key6 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total7 = (q_ * (*(const f32x16 *)(b_k1 + key7 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total8 = (q_ * (*(const f32x16 *)(b_k1 + key8 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total9 = (q_ * (*(const f32x16 *)(b_k1 + key9 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total10 = (q_ * (*(const f32x16 *)(b_k1 + key10 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total11 = (q_ * (*(const f32x16 *)(b_k1 + key11 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total12 = (q_ * (*(const f32x16 *)(b_k1 + key12 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total13 = (q_ * (*(const f32x16 *)(b_k1 + key13 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total14 = (q_ * (*(const f32x16 *)(b_k1 + key14 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 total15 = (q_ * (*(const f32x16 *)(b_k1 + key15 + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
          const f32x16 s_ = (__builtin_shufflevector(total_, total8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total_, total8, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s1 = (__builtin_shufflevector(total1, total9, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total1, total9, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s2 = (__builtin_shufflevector(total2, total10, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total2, total10, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s3 = (__builtin_shufflevector(total3, total11, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total3, total11, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s4 = (__builtin_shufflevector(total4, total12, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total4, total12, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s5 = (__builtin_shufflevector(total5, total13, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total5, total13, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s6 = (__builtin_shufflevector(total6, total14, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total6, total14, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s7 = (__builtin_shufflevector(total7, total15, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + __builtin_shufflevector(total7, total15, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
          const f32x16 s8 = (__builtin_shufflevector(s_, s4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(s_, s4, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
          const f32x16 s9 = (__builtin_shufflevector(s1, s5, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(s1, s5, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
          const f32x16 s10 = (__builtin_shufflevector(s2, s6, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(s2, s6, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
          const f32x16 s11 = (__builtin_shufflevector(s3, s7, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + __builtin_shufflevector(s3, s7, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
          const f32x16 s12 = (__builtin_shufflevector(s8, s10, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + __builtin_shufflevector(s8, s10, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
          const f32x16 s13 = (__builtin_shufflevector(s9, s11, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + __builtin_shufflevector(s9, s11, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
          const f32x16 s14 = (__builtin_shufflevector(s12, s13, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) + __builtin_shufflevector(s12, s13, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31));
          *(f32x16 *)(scores_ + ((i3 * 528) + t_)) = s14;
        }
      }
      for (i64 i4 = 0; i4 < 1; i4 += 1) {
        const i64 row_ = (i4 * 528);
        const i64 whole_ = ((here_ / 32) * 32);
        f32x16 top_ = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        f32x16 top1 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        for (i64 t1 = 0; t1 < whole_; t1 += 32) {
          const f32x16 value_ = (*(const f32x16 *)(scores_ + row_ + t1));
          const f32x16 v_ = (value_ * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from_ = (column_ + t1);
          const f32x16 x_ = (*(const f32x16 *)(b_x4 + from_));
          const f32x16 v1 = (v_ + x_);
          *(f32x16 *)(scores_ + row_ + t1) = v1;
          top_ = xy_max_f32x16(v1, top_);
          const f32x16 value1 = (*(const f32x16 *)(scores_ + row_ + (t1 + 16)));
          const f32x16 v2 = (value1 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from1 = (column_ + (t1 + 16));
          const f32x16 x1 = (*(const f32x16 *)(b_x4 + from1));
          const f32x16 v3 = (v2 + x1);
          *(f32x16 *)(scores_ + row_ + (t1 + 16)) = v3;
          top1 = xy_max_f32x16(v3, top1);
        }
        for (i64 t2 = whole_; t2 < here_; t2 += 32) {
          const i64 left1 = (here_ - t2);
          const f32x16 value2 = (*(const f32x16 *)(scores_ + row_ + t2));
          const f32x16 v4 = (value2 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from2 = (column_ + t2);
          const f32x16 x2 = xy_load_n_f32_f32x16(b_x4 + from2, left1);
          const f32x16 v5 = (v4 + x2);
          const f32x16 score_ = xy_select_f32x16(((i32x16)((i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < xy_splat_i32x16(((int)left1)))), v5, (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x16 *)(scores_ + row_ + t2) = score_;
          top_ = xy_max_f32x16(score_, top_);
          const i64 left2 = ((here_ - t2) - 16);
          const f32x16 value3 = (*(const f32x16 *)(scores_ + row_ + (t2 + 16)));
          const f32x16 v6 = (value3 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from3 = (column_ + (t2 + 16));
          const f32x16 x3 = xy_load_n_f32_f32x16(b_x4 + from3, left2);
          const f32x16 v7 = (v6 + x3);
          const f32x16 score1 = xy_select_f32x16(((i32x16)((i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < xy_splat_i32x16(((int)left2)))), v7, (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x16 *)(scores_ + row_ + (t2 + 16)) = score1;
          top1 = xy_max_f32x16(score1, top1);
        }
        *(tops_ + i4) = (float)xy_reduce_max_f32x16(xy_max_f32x16(top_, top1));
      }
      const f32x16 v8 = (*(const f32x16 *)(maxima_));
      const f32x16 v9 = (*(const f32x16 *)(tops_));
      const f32x16 new_ = xy_max_f32x16(v9, v8);
      const f32x16 base_ = xy_select_f32x16(((i32x16)(new_ == (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())})), (f32x16){0}, new_);
      *(f32x16 *)(maxima_) = new_;
      *(f32x16 *)(bases_) = base_;
      const f32x16 factor_ = xm_exp2_weight_16(((v8 - base_) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
      *(f32x16 *)(factors_) = factor_;
      for (i64 i5 = 0; i5 < 1; i5 += 1) {
        const i64 row1 = (i5 * 528);
        const float b_ = ((float)*(bases_ + i5));
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
        *(parts_ + i5) = (float)xy_reduce_add_f32x16((part_ + part1));
      }
      const f32x16 v10 = (*(const f32x16 *)(totals_));
      const f32x16 v11 = (*(const f32x16 *)(factors_));
      const f32x16 v12 = (*(const f32x16 *)(parts_));
      *(f32x16 *)(totals_) = (v10 * v11 + v12);
      const i64 last_ = (passes_ <= (pass_ + 1));
      if (last_) {
        const float none_ = ((0 < p_0) ? __builtin_nanf("") : 0x0.0p+0f);
        const f32x16 nothing_ = (f32x16){none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_, none_};
        const f32x16 v13 = (*(const f32x16 *)(totals_));
        const f32x16 scale_ = xy_select_f32x16(((i32x16)(v13 == (f32x16){0})), nothing_, ((f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / v13));
        *(f32x16 *)(scales_) = scale_;
      }
      const i64 v_at_ = (((i1 * p_1) + (i_ * 16)) + (column_ * 32));
      sums_16_1(scores_, b_v2 + v_at_, 0, 32, here_, scales_, i1, i_, 0, sums_, factors_, (pass_ == 0), last_, b_out3);
    }
  }
}
