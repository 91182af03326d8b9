typedef __INT64_TYPE__ i64;
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int s_words_bf16x16 __attribute__((vector_size(64), aligned(2), may_alias));
typedef int s_words_bf16x1 __attribute__((aligned(2), may_alias));
static inline __attribute__((always_inline)) i32x16 xy_pack_pairs_i32x16(f32x16 low, f32x16 high) { typedef short words __attribute__((vector_size(64))); words w; __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(w) : "v"(low), "v"(high)); return (i32x16)__builtin_shufflevector(w, w, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_words_bf16_i32x16(unsigned short *p, i32x16 v) { *(s_words_bf16x16 *)p = v; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) int xy_bits_i32x1(float a) { union { float a; int b; } u; u.a = a; return u.b; }
static inline __attribute__((always_inline)) unsigned short xy_narrow_bf16(float v) { unsigned b = (unsigned)xy_bits_i32x1(v); return (unsigned short)(v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16); }
static inline __attribute__((always_inline)) int xy_pack_pairs_i32x1(float low, float high) { return (int)(xy_narrow_bf16(low) | (unsigned)xy_narrow_bf16(high) << 16); }
static inline __attribute__((always_inline)) void xy_store_words_bf16_i32x1(unsigned short *p, int v) { *(s_words_bf16x1 *)p = v; }
__attribute__((visibility("default")))
void xy_gemm_pairs_f32_16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_b0 = (const float *)buffers[0];
  unsigned short *const b_panels1 = (unsigned short *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 column_ = (unit_ * 16);
    const i64 valid_ = (12 - column_);
    const i64 to_ = (unit_ * 96);
    if ((valid_ < 16)) {
      for (i64 pair_ = 0; pair_ < 2; pair_ += 1) {
        const i64 first_ = ((pair_ * 2) * 12);
        xy_store_words_bf16_i32x16(b_panels1 + to_ + ((pair_ * 16) * 2), xy_pack_pairs_i32x16(xy_load_n_f32_f32x16(b_b0 + column_ + first_, valid_), xy_load_n_f32_f32x16(b_b0 + column_ + (first_ + 12), valid_)));
      }
    } else {
      for (i64 pair1 = 0; pair1 < 2; pair1 += 1) {
        const i64 first1 = ((pair1 * 2) * 12);
        xy_store_words_bf16_i32x16(b_panels1 + to_ + ((pair1 * 16) * 2), xy_pack_pairs_i32x16((*(const f32x16 *)(b_b0 + column_ + first1)), (*(const f32x16 *)(b_b0 + column_ + (first1 + 12)))));
      }
    }
    const i64 exist_ = xy_min_index(valid_, 16);
    for (i64 pair2 = 2; pair2 < 3; pair2 += 1) {
      for (i64 n_ = 0; n_ < exist_; n_ += 1) {
        const i64 first2 = (((pair2 * 2) * 12) + n_);
        xy_store_words_bf16_i32x1(b_panels1 + to_ + (((pair2 * 16) + n_) * 2), xy_pack_pairs_i32x1(((float)*(b_b0 + column_ + first2)), 0x0.0p+0f));
      }
      for (i64 n1 = exist_; n1 < 16; n1 += 1) {
        xy_store_words_bf16_i32x1(b_panels1 + to_ + (((pair2 * 16) + n1) * 2), 0);
      }
    }
    for (i64 pair3 = 3; pair3 < 3; pair3 += 1) {
      xy_store_words_bf16_i32x16(b_panels1 + to_ + ((pair3 * 16) * 2), (i32x16){0});
    }
  }
}

typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef unsigned short s_bf16x16 __attribute__((vector_size(32), aligned(2), may_alias));
typedef short s_i16x16 __attribute__((vector_size(32), aligned(2), may_alias));
static inline __attribute__((always_inline)) void xy_store_bf16_f32x16(unsigned short *p, f32x16 v) { s_bf16x16 r; __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(v)); *(s_bf16x16 *)p = r; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_bf16_f32x16(unsigned short *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); s_bf16x16 r; __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(v)); __builtin_ia32_storedquhi256_mask((s_i16x16 *)p, (s_i16x16)r, k); }
static inline __attribute__((always_inline)) int xy_bits_i32x1(float a) { union { float a; int b; } u; u.a = a; return u.b; }
static inline __attribute__((always_inline)) unsigned short xy_narrow_bf16(float v) { unsigned b = (unsigned)xy_bits_i32x1(v); return (unsigned short)(v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16); }
static inline __attribute__((always_inline)) void xy_store_bf16_f32x1(unsigned short *p, float v) { p[0] = xy_narrow_bf16(v); }
__attribute__((visibility("default")))
void xy_gemm_round_f32_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  unsigned short *const b_rows1 = (unsigned short *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 from_ = (unit_ * 5);
    const i64 to_ = (unit_ * 6);
    for (i64 k_ = 0; k_ < 0; k_ += 16) {
      xy_store_bf16_f32x16(b_rows1 + (to_ + k_), (*(const f32x16 *)(b_a0 + (from_ + k_))));
    }
    xy_store_n_bf16_f32x16(b_rows1 + to_, xy_load_n_f32_f32x16(b_a0 + from_, 5), 6);
    for (i64 k1 = 6; k1 < 6; k1 += 1) {
      xy_store_bf16_f32x1(b_rows1 + (to_ + k1), 0x0.0p+0f);
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int s_words_bf16x16 __attribute__((vector_size(64), aligned(2), may_alias));
typedef int s_words_bf16x1 __attribute__((aligned(2), may_alias));
static inline __attribute__((always_inline)) i32x16 xy_load_words_bf16_i32x16(const unsigned short *p) { return *(const s_words_bf16x16 *)p; }
static inline __attribute__((always_inline)) i32x16 xy_splat_i32x16(int a) { return (i32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) int xy_load_words_bf16_i32x1(const unsigned short *p) { return *(const s_words_bf16x1 *)p; }
static inline __attribute__((always_inline)) f32x16 xy_pair_dot_f32x16(i32x16 a, i32x16 b, f32x16 c) { __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b)); return c; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x16(float *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); __builtin_ia32_storeups512_mask((float *)p, v, k); }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void alone_16_2(const unsigned short *a, const unsigned short *w, i64 row, i64 column, const float *b_i3, float *b_out2) {
  const i64 left_ = (12 - column);
  f32x16 c_ = (f32x16){0};
  f32x16 c1 = (f32x16){0};
  f32x16 c2 = (f32x16){0};
  f32x16 c3 = (f32x16){0};
  f32x16 c4 = (f32x16){0};
  f32x16 c5 = (f32x16){0};
  f32x16 c6 = (f32x16){0};
  f32x16 c7 = (f32x16){0};
  for (i64 k_ = 0; k_ < 0; k_ += 4) {
    const i64 line_ = (k_ * 32);
    const i32x16 w_ = xy_load_words_bf16_i32x16(w + (k_ * 32));
    const i32x16 x_ = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (k_ * 2)));
    c_ = xy_pair_dot_f32x16(x_, w_, c_);
    const i32x16 x1 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (6 + (k_ * 2))));
    c1 = xy_pair_dot_f32x16(x1, w_, c1);
    __builtin_prefetch(w + 1024 + line_, 0, 3);
    const i32x16 w1 = xy_load_words_bf16_i32x16(w + ((k_ + 1) * 32));
    const i32x16 x2 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + ((k_ + 1) * 2)));
    c2 = xy_pair_dot_f32x16(x2, w1, c2);
    const i32x16 x3 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (6 + ((k_ + 1) * 2))));
    c3 = xy_pair_dot_f32x16(x3, w1, c3);
    __builtin_prefetch(w + 1024 + (line_ + 32), 0, 3);
    const i32x16 w2 = xy_load_words_bf16_i32x16(w + ((k_ + 2) * 32));
    const i32x16 x4 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + ((k_ + 2) * 2)));
    c4 = xy_pair_dot_f32x16(x4, w2, c4);
    const i32x16 x5 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (6 + ((k_ + 2) * 2))));
    c5 = xy_pair_dot_f32x16(x5, w2, c5);
    __builtin_prefetch(w + 1024 + (line_ + 64), 0, 3);
    const i32x16 w3 = xy_load_words_bf16_i32x16(w + ((k_ + 3) * 32));
    const i32x16 x6 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + ((k_ + 3) * 2)));
    c6 = xy_pair_dot_f32x16(x6, w3, c6);
    const i32x16 x7 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (6 + ((k_ + 3) * 2))));
    c7 = xy_pair_dot_f32x16(x7, w3, c7);
    __builtin_prefetch(w + 1024 + (line_ + 96), 0, 3);
  }
  for (i64 k1 = 0; k1 < 3; k1 += 1) {
    const i32x16 w4 = xy_load_words_bf16_i32x16(w + (k1 * 32));
    const i32x16 x8 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (k1 * 2)));
    c_ = xy_pair_dot_f32x16(x8, w4, c_);
    const i32x16 x9 = xy_splat_i32x16(xy_load_words_bf16_i32x1(a + (6 + (k1 * 2))));
    c1 = xy_pair_dot_f32x16(x9, w4, c1);
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
void xy_gemm_pairs_16x16_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const unsigned short *const b_a0 = (const unsigned short *)buffers[0];
  const unsigned short *const b_w1 = (const unsigned short *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 begin_ = (unit_ * 85);
    const i64 end_ = xy_min_index((begin_ + 85), 1);
    for (i64 block_ = begin_; block_ < end_; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      alone_16_2(b_a0 + (row_ * 6), b_w1, row_, 0, b_i3, b_out2);
    }
  }
}
