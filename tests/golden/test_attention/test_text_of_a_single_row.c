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
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) int xy_bits_i32x1(float a) { union { float a; int b; } u; u.a = a; return u.b; }
static inline __attribute__((always_inline)) float xy_bits_f32x1(int a) { union { int a; float b; } u; u.a = a; return u.b; }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x16(f32x16 a) { f32x8 h16 = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15); f32x4 h8 = __builtin_shufflevector(h16, h16, 0, 1, 2, 3) + __builtin_shufflevector(h16, h16, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) i32x16 xy_splat_i32x16(int a) { return (i32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_select_f32x16(i32x16 m, f32x16 a, f32x16 b) { return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b)); }
static inline __attribute__((always_inline)) f32x8 xy_max_f32x8(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) float xy_reduce_max_f32x16(f32x16 a) { f32x8 h16 = xy_max_f32x8(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); f32x4 h8 = xy_max_f32x4(__builtin_shufflevector(h16, h16, 0, 1, 2, 3), __builtin_shufflevector(h16, h16, 4, 5, 6, 7)); f32x4 h4 = xy_max_f32x4(__builtin_shufflevector(h8, h8, 0, 1, 2, 3), __builtin_shufflevector(h8, h8, 2, 3, 2, 3)); float h2 = xy_max_f32x1(h4[0], h4[1]); return h2; }
static __attribute__((noinline)) void sums_16_1(const float *weights, const float *v, i64 v_row, float *sums, const float *factors, i64 columns) {
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
  const f32x16 factor_ = xy_splat_f32x16(((float)*(factors)));
  *(f32x16 *)(sums) = ((*(const f32x16 *)(sums)) * factor_ + c_);
}
static inline __attribute__((always_inline)) f32x16 xm_exp2_nonpositive_16(f32x16 x) {
  const f32x16 y_ = xy_max_f32x16((f32x16){(-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f), (-0x1.f800000000000p+6f)}, x);
  const f32x16 t_ = (y_ + (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 n_ = (t_ - (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 f_ = (y_ - n_);
  const i32x16 k_ = (((i32x16)t_) - (i32x16){1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504, 1262485504});
  const f32x16 p_ = (((((((f32x16){0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f, 0x1.41fbbc0000000p-13f} * f_ + (f32x16){0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f, 0x1.5f3e520000000p-10f}) * f_ + (f32x16){0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f, 0x1.3b2d4c0000000p-7f}) * f_ + (f32x16){0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f, 0x1.c6aee80000000p-5f}) * f_ + (f32x16){0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f, 0x1.ebfbdc0000000p-3f}) * f_ + (f32x16){0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f, 0x1.62e4300000000p-1f}) * f_ + (f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
  return ((f32x16)(((i32x16)p_) + (k_ << (i32x16){23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23})));
}
static inline __attribute__((always_inline)) float xm_exp2_nonpositive_1(float x) {
  const float y_ = xy_max_f32x1((-0x1.f800000000000p+6f), x);
  const float t_ = (y_ + 0x1.8000000000000p+23f);
  const float n_ = (t_ - 0x1.8000000000000p+23f);
  const float f_ = (y_ - n_);
  const int k_ = (xy_bits_i32x1(t_) - 1262485504);
  const float p_ = ((((((0x1.41fbbc0000000p-13f * f_ + 0x1.5f3e520000000p-10f) * f_ + 0x1.3b2d4c0000000p-7f) * f_ + 0x1.c6aee80000000p-5f) * f_ + 0x1.ebfbdc0000000p-3f) * f_ + 0x1.62e4300000000p-1f) * f_ + 0x1.0000000000000p+0f);
  return xy_bits_f32x1((xy_bits_i32x1(p_) + (k_ << 23)));
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
  float maxima_[12] __attribute__((aligned(64)));
  float totals_[12] __attribute__((aligned(64)));
  float factors_[12] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 2);
    const i64 i1 = (unit_ / 2);
    for (i64 i2 = 0; i2 < 1; i2 += 1) {
      *(maxima_ + i2) = (float)(-__builtin_inff());
      *(totals_ + i2) = (float)0x0.0p+0f;
    }
    for (i64 i3 = 0; i3 < 16; i3 += 16) {
      *(f32x16 *)(sums_ + i3) = (f32x16){0};
    }
    const i64 passes_ = xy_max_index(((p_0 + 511) / 512), 1);
    const i64 each_ = ((xy_max_index((((p_0 + (passes_ - 1)) / passes_) + 31), 32) / 32) * 32);
    for (i64 column_ = 0; column_ < p_0; column_ += each_) {
      const i64 here_ = xy_min_index(each_, (p_0 - column_));
      float query_[16] __attribute__((aligned(64)));
      *(f32x16 *)(query_) = (f32x16){0};
      for (i64 d_ = 0; d_ < 16; d_ += 1) {
        *(query_ + d_) = (float)((float)*(b_q0 + ((i1 * 32) + (i_ * 16)) + d_));
      }
      for (i64 t_ = 0; t_ < here_; t_ += 1) {
        const i64 key_ = ((column_ + t_) * 32);
        const f32x16 total_ = ((*(const f32x16 *)(query_)) * (*(const f32x16 *)(b_k1 + key_ + ((i1 * p_1) + (i_ * 16)))) + (f32x16){0});
        *(scores_ + t_) = (float)xy_reduce_add_f32x16(total_);
      }
      const i64 padded_ = (((here_ + 31) / 32) * 32);
      for (i64 t1 = 0; t1 < padded_; t1 += 16) {
        const i64 left_ = (here_ - t1);
        if ((16 <= left_)) {
          const f32x16 product_ = (*(const f32x16 *)(scores_ + t1));
          const f32x16 v_ = (product_ * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from_ = (column_ + t1);
          const f32x16 x_ = (*(const f32x16 *)(b_x4 + from_));
          const f32x16 v1 = (v_ + x_);
          *(f32x16 *)(scores_ + t1) = v1;
        } else {
          const f32x16 product1 = (*(const f32x16 *)(scores_ + t1));
          const f32x16 v2 = (product1 * (f32x16){0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f, 0x1.0000000000000p-2f});
          const i64 from1 = (column_ + t1);
          const f32x16 x1 = xy_load_n_f32_f32x16(b_x4 + from1, left_);
          const f32x16 v3 = (v2 + x1);
          *(f32x16 *)(scores_ + t1) = xy_select_f32x16(((i32x16)((i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < xy_splat_i32x16(((int)left_)))), v3, (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
        }
      }
      for (i64 i4 = 0; i4 < 1; i4 += 1) {
        const i64 row_ = (i4 * 528);
        f32x16 top_ = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        f32x16 top1 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        for (i64 t2 = 0; t2 < here_; t2 += 32) {
          top_ = xy_max_f32x16((*(const f32x16 *)(scores_ + row_ + t2)), top_);
          top1 = xy_max_f32x16((*(const f32x16 *)(scores_ + row_ + (t2 + 16))), top1);
        }
        const float old_ = ((float)*(maxima_ + i4));
        const float new_ = xy_max_f32x1(xy_reduce_max_f32x16(xy_max_f32x16(top_, top1)), old_);
        const float base_ = ((-(new_ == (-__builtin_inff()))) ? 0x0.0p+0f : new_);
        const f32x16 bases_ = (f32x16){base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_, base_};
        f32x16 part_ = (f32x16){0};
        f32x16 part1 = (f32x16){0};
        for (i64 t3 = 0; t3 < here_; t3 += 32) {
          const f32x16 weight_ = xm_exp2_nonpositive_16((((*(const f32x16 *)(scores_ + row_ + t3)) - bases_) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
          *(f32x16 *)(scores_ + row_ + t3) = weight_;
          part_ = (part_ + weight_);
          const f32x16 weight1 = xm_exp2_nonpositive_16((((*(const f32x16 *)(scores_ + row_ + (t3 + 16))) - bases_) * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f}));
          *(f32x16 *)(scores_ + row_ + (t3 + 16)) = weight1;
          part1 = (part1 + weight1);
        }
        const float factor_ = xm_exp2_nonpositive_1(((old_ - base_) * 0x1.7154760000000p+0f));
        *(maxima_ + i4) = (float)new_;
        *(factors_ + i4) = (float)factor_;
        *(totals_ + i4) = (float)((((float)*(totals_ + i4)) * factor_) + xy_reduce_add_f32x16((part_ + part1)));
      }
      const i64 v_at_ = (((i1 * p_1) + (i_ * 16)) + (column_ * 32));
      sums_16_1(scores_, b_v2 + v_at_, 32, sums_, factors_, here_);
    }
    for (i64 i5 = 0; i5 < 1; i5 += 1) {
      const float total1 = ((float)*(totals_ + i5));
      const float top2 = ((float)*(maxima_ + i5));
      const float scale_ = ((-(top2 == (-__builtin_inff()))) ? ((0 < p_0) ? __builtin_nanf("") : 0x0.0p+0f) : (0x1.0000000000000p+0f / total1));
      for (i64 e_ = 0; e_ < 16; e_ += 16) {
        const f32x16 value_ = ((*(const f32x16 *)(sums_ + ((i5 * 16) + e_))) * (f32x16){scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_, scale_});
        *(f32x16 *)(b_out3 + ((i_ * 16) + e_)) = value_;
      }
    }
  }
}
