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
    const i64 to_ = (unit_ * 512);
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
    for (i64 pair3 = 3; pair3 < 16; pair3 += 1) {
      xy_store_words_bf16_i32x16(b_panels1 + to_ + ((pair3 * 16) * 2), (i32x16){0});
    }
  }
}

typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef unsigned short s_bf16x16 __attribute__((vector_size(32), aligned(2), may_alias));
static inline __attribute__((always_inline)) void xy_store_bf16_f32x16(unsigned short *p, f32x16 v) { s_bf16x16 r; __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(v)); *(s_bf16x16 *)p = r; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
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
    const i64 to_ = (unit_ * 32);
    for (i64 k_ = 0; k_ < 0; k_ += 16) {
      xy_store_bf16_f32x16(b_rows1 + (to_ + k_), (*(const f32x16 *)(b_a0 + (from_ + k_))));
    }
    xy_store_bf16_f32x16(b_rows1 + to_, xy_load_n_f32_f32x16(b_a0 + from_, 5));
    for (i64 k1 = 16; k1 < 32; k1 += 1) {
      xy_store_bf16_f32x1(b_rows1 + (to_ + k1), 0x0.0p+0f);
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef struct { unsigned char palette, start_row, reserved[14]; unsigned short row_bytes[16]; unsigned char rows[16]; } xy_tiles;
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x16 xy_load_n_f32_f32x16(const float *p, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); return __builtin_ia32_loadups512_mask((const float *)p, (f32x16){0}, k); }
static inline __attribute__((always_inline)) void xy_store_n_f32_f32x16(float *p, f32x16 v, i64 n) { unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1); __builtin_ia32_storeups512_mask((float *)p, v, k); }
__attribute__((visibility("default"), weak)) char xy_needs_tiles;
static __attribute__((noinline)) void block_1(const unsigned short *a, const unsigned short *w, i64 upper, float *sums, float *ready, i64 skip, i64 rows, i64 row, i64 column, const float *b_i3, float *b_out2) {
  __asm__ volatile("tilezero %%tmm0" ::);
  __asm__ volatile("tilezero %%tmm1" ::);
  for (i64 step_ = 0; step_ < 1; step_ += 1) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4" :: "r"(a + (step_ * 32)), "r"((i64)(64)) : "memory");
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm6" :: "r"(w + (step_ * 512)), "r"((i64)(64)) : "memory");
    __asm__ volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0" ::);
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm7" :: "r"(w + ((step_ * 512) + 512)), "r"((i64)(64)) : "memory");
    __asm__ volatile("tdpbf16ps %%tmm7, %%tmm4, %%tmm1" ::);
    const i64 first_ = xy_min_index((step_ * 32), rows);
    const i64 next_ = xy_min_index((first_ + 32), rows);
    const i64 left_ = (12 - column);
    if ((32 <= left_)) {
      for (i64 i_ = first_; i_ < next_; i_ += 1) {
        const i64 row_ = (row + i_);
        const f32x16 acc_ = (*(const f32x16 *)(ready + ((skip + i_) * 32)));
        const f32x16 x_ = (*(const f32x16 *)(b_i3 + column));
        const f32x16 v_ = (acc_ + x_);
        *(f32x16 *)(b_out2 + ((row_ * 12) + column)) = v_;
        const f32x16 acc1 = (*(const f32x16 *)(ready + (((skip + i_) * 32) + 16)));
        const f32x16 x1 = (*(const f32x16 *)(b_i3 + (column + 16)));
        const f32x16 v1 = (acc1 + x1);
        *(f32x16 *)(b_out2 + ((row_ * 12) + (column + 16))) = v1;
      }
    } else {
      for (i64 i1 = first_; i1 < next_; i1 += 1) {
        const i64 row1 = (row + i1);
        const f32x16 acc2 = (*(const f32x16 *)(ready + ((skip + i1) * 32)));
        const f32x16 x2 = xy_load_n_f32_f32x16(b_i3 + column, left_);
        const f32x16 v2 = (acc2 + x2);
        xy_store_n_f32_f32x16(b_out2 + ((row1 * 12) + column), v2, left_);
        const i64 count_ = (left_ - 16);
        const f32x16 acc3 = (*(const f32x16 *)(ready + (((skip + i1) * 32) + 16)));
        const f32x16 x3 = xy_load_n_f32_f32x16(b_i3 + (column + 16), count_);
        const f32x16 v3 = (acc3 + x3);
        xy_store_n_f32_f32x16(b_out2 + ((row1 * 12) + (column + 16)), v3, count_);
      }
    }
  }
  __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" :: "r"(sums), "r"((i64)(128)) : "memory");
  __asm__ volatile("tilestored %%tmm1, (%0,%1,1)" :: "r"(sums + 16), "r"((i64)(128)) : "memory");
}
static __attribute__((noinline)) void last(float *ready, i64 skip, i64 rows, i64 row, i64 column, const float *b_i3, float *b_out2) {
  const i64 left_ = (12 - column);
  if ((32 <= left_)) {
    for (i64 i_ = 0; i_ < rows; i_ += 1) {
      const i64 row_ = (row + i_);
      const f32x16 acc_ = (*(const f32x16 *)(ready + ((skip + i_) * 32)));
      const f32x16 x_ = (*(const f32x16 *)(b_i3 + column));
      const f32x16 v_ = (acc_ + x_);
      *(f32x16 *)(b_out2 + ((row_ * 12) + column)) = v_;
      const f32x16 acc1 = (*(const f32x16 *)(ready + (((skip + i_) * 32) + 16)));
      const f32x16 x1 = (*(const f32x16 *)(b_i3 + (column + 16)));
      const f32x16 v1 = (acc1 + x1);
      *(f32x16 *)(b_out2 + ((row_ * 12) + (column + 16))) = v1;
    }
  } else {
    for (i64 i1 = 0; i1 < rows; i1 += 1) {
      const i64 row1 = (row + i1);
      const f32x16 acc2 = (*(const f32x16 *)(ready + ((skip + i1) * 32)));
      const f32x16 x2 = xy_load_n_f32_f32x16(b_i3 + column, left_);
      const f32x16 v2 = (acc2 + x2);
      xy_store_n_f32_f32x16(b_out2 + ((row1 * 12) + column), v2, left_);
      const i64 count_ = (left_ - 16);
      const f32x16 acc3 = (*(const f32x16 *)(ready + (((skip + i1) * 32) + 16)));
      const f32x16 x3 = xy_load_n_f32_f32x16(b_i3 + (column + 16), count_);
      const f32x16 v3 = (acc3 + x3);
      xy_store_n_f32_f32x16(b_out2 + ((row1 * 12) + (column + 16)), v3, count_);
    }
  }
}
__attribute__((visibility("default")))
void xy_gemm_tiles_pairs_f32_avx512(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const unsigned short *const b_a0 = (const unsigned short *)buffers[0];
  const unsigned short *const b_w1 = (const unsigned short *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  const i64 upper_ = (0 ? 1 : 2);
  const i64 lower_ = (0 ? (2 - upper_) : 1);
  float scratch_[2048] __attribute__((aligned(64)));
  i64 free_ = 0;
  i64 ready_ = 0;
  i64 ready1 = 0;
  i64 ready2 = 0;
  i64 ready3 = 0;
  { xy_tiles t __attribute__((aligned(64))) = {1}; t.rows[0] = (unsigned char)(upper_); t.row_bytes[0] = (unsigned short)(64); t.rows[1] = (unsigned char)(upper_); t.row_bytes[1] = (unsigned short)(64); t.rows[2] = (unsigned char)(lower_); t.row_bytes[2] = (unsigned short)(64); t.rows[3] = (unsigned char)(lower_); t.row_bytes[3] = (unsigned short)(64); t.rows[4] = (unsigned char)(upper_); t.row_bytes[4] = (unsigned short)(64); t.rows[5] = (unsigned char)(lower_); t.row_bytes[5] = (unsigned short)(64); t.rows[6] = (unsigned char)(16); t.row_bytes[6] = (unsigned short)(64); t.rows[7] = (unsigned char)(16); t.row_bytes[7] = (unsigned short)(64); __asm__ volatile("ldtilecfg %0" :: "m"(t)); }
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 end_ = (unit_ + 1);
    for (i64 block_ = unit_; block_ < end_; block_ += 1) {
      const i64 row_ = (block_ * 2);
      const i64 start_ = xy_min_index(row_, 0);
      const i64 a_at_ = (start_ * 32);
      for (i64 panel_ = 0; panel_ < 1; panel_ += 1) {
        const i64 w_at_ = (panel_ * 1024);
        block_1(b_a0 + a_at_, b_w1 + w_at_, upper_, scratch_ + free_, scratch_ + (1024 - free_), ready_, ready1, ready2, ready3, b_i3, b_out2);
        const i64 column_ = (panel_ * 32);
        ready_ = (row_ - start_);
        ready1 = xy_min_index(2, (2 - row_));
        ready2 = row_;
        ready3 = column_;
        free_ = (1024 - free_);
      }
    }
  }
  __asm__ volatile("tilerelease" ::);
  last(scratch_ + (1024 - free_), ready_, ready1, ready2, ready3, b_i3, b_out2);
}
