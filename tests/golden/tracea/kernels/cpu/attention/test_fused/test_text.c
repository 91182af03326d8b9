typedef __INT64_TYPE__ i64;
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
__attribute__((visibility("default")))
void xy_attention_keys_f32_16_avx2(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_k0 = (const float *)buffers[0];
  float *const b_keys1 = (float *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 2);
    const i64 i1 = (unit_ / 2);
    const i64 i2 = (i1 % 2);
    const i64 i3 = (i1 / 2);
    const i64 column_ = (i_ * 16);
    const i64 from_ = (((i3 * 320) + (i2 * 8)) + (column_ * 16));
    const i64 valid_ = (20 - column_);
    const i64 to_ = (unit_ * 128);
    for (i64 n_ = 0; n_ < 16; n_ += 8) {
      const i64 exist_ = (valid_ - n_);
      for (i64 k_ = 0; k_ < 8; k_ += 8) {
        f32x8 r_ = (f32x8){0};
        if ((0 < exist_)) {
          r_ = (*(const f32x8 *)(b_k0 + from_ + ((n_ * 16) + k_)));
        }
        f32x8 r1 = (f32x8){0};
        if ((1 < exist_)) {
          r1 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 1) * 16) + k_)));
        }
        f32x8 r2 = (f32x8){0};
        if ((2 < exist_)) {
          r2 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 2) * 16) + k_)));
        }
        f32x8 r3 = (f32x8){0};
        if ((3 < exist_)) {
          r3 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 3) * 16) + k_)));
        }
        f32x8 r4 = (f32x8){0};
        if ((4 < exist_)) {
          r4 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 4) * 16) + k_)));
        }
        f32x8 r5 = (f32x8){0};
        if ((5 < exist_)) {
          r5 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 5) * 16) + k_)));
        }
        f32x8 r6 = (f32x8){0};
        if ((6 < exist_)) {
          r6 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 6) * 16) + k_)));
        }
        f32x8 r7 = (f32x8){0};
        if ((7 < exist_)) {
          r7 = (*(const f32x8 *)(b_k0 + from_ + (((n_ + 7) * 16) + k_)));
        }
        const f32x8 t_ = __builtin_shufflevector(r_, r4, 0, 1, 2, 3, 8, 9, 10, 11);
        const f32x8 t1 = __builtin_shufflevector(r_, r4, 4, 5, 6, 7, 12, 13, 14, 15);
        const f32x8 t2 = __builtin_shufflevector(r1, r5, 0, 1, 2, 3, 8, 9, 10, 11);
        const f32x8 t3 = __builtin_shufflevector(r1, r5, 4, 5, 6, 7, 12, 13, 14, 15);
        const f32x8 t4 = __builtin_shufflevector(r2, r6, 0, 1, 2, 3, 8, 9, 10, 11);
        const f32x8 t5 = __builtin_shufflevector(r2, r6, 4, 5, 6, 7, 12, 13, 14, 15);
        const f32x8 t6 = __builtin_shufflevector(r3, r7, 0, 1, 2, 3, 8, 9, 10, 11);
        const f32x8 t7 = __builtin_shufflevector(r3, r7, 4, 5, 6, 7, 12, 13, 14, 15);
        const f32x8 t8 = __builtin_shufflevector(t_, t4, 0, 1, 8, 9, 4, 5, 12, 13);
        const f32x8 t9 = __builtin_shufflevector(t_, t4, 2, 3, 10, 11, 6, 7, 14, 15);
        const f32x8 t10 = __builtin_shufflevector(t2, t6, 0, 1, 8, 9, 4, 5, 12, 13);
        const f32x8 t11 = __builtin_shufflevector(t2, t6, 2, 3, 10, 11, 6, 7, 14, 15);
        const f32x8 t12 = __builtin_shufflevector(t1, t5, 0, 1, 8, 9, 4, 5, 12, 13);
        const f32x8 t13 = __builtin_shufflevector(t1, t5, 2, 3, 10, 11, 6, 7, 14, 15);
        const f32x8 t14 = __builtin_shufflevector(t3, t7, 0, 1, 8, 9, 4, 5, 12, 13);
        const f32x8 t15 = __builtin_shufflevector(t3, t7, 2, 3, 10, 11, 6, 7, 14, 15);
        const f32x8 t16 = __builtin_shufflevector(t8, t10, 0, 8, 2, 10, 4, 12, 6, 14);
        const f32x8 t17 = __builtin_shufflevector(t8, t10, 1, 9, 3, 11, 5, 13, 7, 15);
        const f32x8 t18 = __builtin_shufflevector(t9, t11, 0, 8, 2, 10, 4, 12, 6, 14);
        const f32x8 t19 = __builtin_shufflevector(t9, t11, 1, 9, 3, 11, 5, 13, 7, 15);
        const f32x8 t20 = __builtin_shufflevector(t12, t14, 0, 8, 2, 10, 4, 12, 6, 14);
        const f32x8 t21 = __builtin_shufflevector(t12, t14, 1, 9, 3, 11, 5, 13, 7, 15);
        const f32x8 t22 = __builtin_shufflevector(t13, t15, 0, 8, 2, 10, 4, 12, 6, 14);
        const f32x8 t23 = __builtin_shufflevector(t13, t15, 1, 9, 3, 11, 5, 13, 7, 15);
        *(f32x8 *)(b_keys1 + to_ + ((k_ * 16) + n_)) = t16;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 1) * 16) + n_)) = t17;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 2) * 16) + n_)) = t18;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 3) * 16) + n_)) = t19;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 4) * 16) + n_)) = t20;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 5) * 16) + n_)) = t21;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 6) * 16) + n_)) = t22;
        *(f32x8 *)(b_keys1 + to_ + (((k_ + 7) * 16) + n_)) = t23;
      }
    }
  }
}

// rows = 18, columns = 20, depth = 8, width = 16
// score: where(le(i3, i2), mul(acc0, 0.25), -inf)
typedef __INT64_TYPE__ i64;
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x8 xy_splat_f32x8(float a) { return (f32x8){a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x8 xy_max_f32x8(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i32x8 xy_splat_i32x8(int a) { return (i32x8){a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x8 xy_select_f32x8(i32x8 m, f32x8 a, f32x8 b) { return (f32x8)((m & (i32x8)a) | (~m & (i32x8)b)); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_max_f32x8(f32x8 a) { f32x4 h8 = xy_max_f32x4(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7)); f32x4 h4 = xy_max_f32x4(__builtin_shufflevector(h8, h8, 0, 1, 2, 3), __builtin_shufflevector(h8, h8, 2, 3, 2, 3)); float h2 = xy_max_f32x1(h4[0], h4[1]); return h2; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x8(f32x8 a) { f32x4 h8 = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static __attribute__((noinline)) void products_6(const float *q, const float *panel, float *out) {
  f32x8 c_ = (f32x8){0};
  f32x8 c1 = (f32x8){0};
  f32x8 c2 = (f32x8){0};
  f32x8 c3 = (f32x8){0};
  f32x8 c4 = (f32x8){0};
  f32x8 c5 = (f32x8){0};
  f32x8 c6 = (f32x8){0};
  f32x8 c7 = (f32x8){0};
  f32x8 c8 = (f32x8){0};
  f32x8 c9 = (f32x8){0};
  f32x8 c10 = (f32x8){0};
  f32x8 c11 = (f32x8){0};
  for (i64 k_ = 0; k_ < 8; k_ += 4) {
    const f32x8 w_ = (*(const f32x8 *)(panel + (k_ * 16)));
    const f32x8 w1 = (*(const f32x8 *)(panel + ((k_ * 16) + 8)));
    const f32x8 x_ = xy_splat_f32x8(((float)*(q + k_)));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x_), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x_), "x"(w1));
    const f32x8 x1 = xy_splat_f32x8(((float)*(q + (16 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x1), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x1), "x"(w1));
    const f32x8 x2 = xy_splat_f32x8(((float)*(q + (32 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x2), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x2), "x"(w1));
    const f32x8 x3 = xy_splat_f32x8(((float)*(q + (48 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x3), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x3), "x"(w1));
    const f32x8 x4 = xy_splat_f32x8(((float)*(q + (64 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x4), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x4), "x"(w1));
    const f32x8 x5 = xy_splat_f32x8(((float)*(q + (80 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x5), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x5), "x"(w1));
    const f32x8 w2 = (*(const f32x8 *)(panel + ((k_ + 1) * 16)));
    const f32x8 w3 = (*(const f32x8 *)(panel + (((k_ + 1) * 16) + 8)));
    const f32x8 x6 = xy_splat_f32x8(((float)*(q + (k_ + 1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x6), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x6), "x"(w3));
    const f32x8 x7 = xy_splat_f32x8(((float)*(q + (16 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x7), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x7), "x"(w3));
    const f32x8 x8 = xy_splat_f32x8(((float)*(q + (32 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x8), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x8), "x"(w3));
    const f32x8 x9 = xy_splat_f32x8(((float)*(q + (48 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x9), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x9), "x"(w3));
    const f32x8 x10 = xy_splat_f32x8(((float)*(q + (64 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x10), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x10), "x"(w3));
    const f32x8 x11 = xy_splat_f32x8(((float)*(q + (80 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x11), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x11), "x"(w3));
    const f32x8 w4 = (*(const f32x8 *)(panel + ((k_ + 2) * 16)));
    const f32x8 w5 = (*(const f32x8 *)(panel + (((k_ + 2) * 16) + 8)));
    const f32x8 x12 = xy_splat_f32x8(((float)*(q + (k_ + 2))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x12), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x12), "x"(w5));
    const f32x8 x13 = xy_splat_f32x8(((float)*(q + (16 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x13), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x13), "x"(w5));
    const f32x8 x14 = xy_splat_f32x8(((float)*(q + (32 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x14), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x14), "x"(w5));
    const f32x8 x15 = xy_splat_f32x8(((float)*(q + (48 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x15), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x15), "x"(w5));
    const f32x8 x16 = xy_splat_f32x8(((float)*(q + (64 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x16), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x16), "x"(w5));
    const f32x8 x17 = xy_splat_f32x8(((float)*(q + (80 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x17), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x17), "x"(w5));
    const f32x8 w6 = (*(const f32x8 *)(panel + ((k_ + 3) * 16)));
    const f32x8 w7 = (*(const f32x8 *)(panel + (((k_ + 3) * 16) + 8)));
    const f32x8 x18 = xy_splat_f32x8(((float)*(q + (k_ + 3))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x18), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x18), "x"(w7));
    const f32x8 x19 = xy_splat_f32x8(((float)*(q + (16 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x19), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x19), "x"(w7));
    const f32x8 x20 = xy_splat_f32x8(((float)*(q + (32 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x20), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x20), "x"(w7));
    const f32x8 x21 = xy_splat_f32x8(((float)*(q + (48 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x21), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x21), "x"(w7));
    const f32x8 x22 = xy_splat_f32x8(((float)*(q + (64 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x22), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x22), "x"(w7));
    const f32x8 x23 = xy_splat_f32x8(((float)*(q + (80 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x23), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x23), "x"(w7));
  }
  *(f32x8 *)(out) = c_;
  *(f32x8 *)(out + 8) = c1;
  *(f32x8 *)(out + 48) = c2;
  *(f32x8 *)(out + 56) = c3;
  *(f32x8 *)(out + 96) = c4;
  *(f32x8 *)(out + 104) = c5;
  *(f32x8 *)(out + 144) = c6;
  *(f32x8 *)(out + 152) = c7;
  *(f32x8 *)(out + 192) = c8;
  *(f32x8 *)(out + 200) = c9;
  *(f32x8 *)(out + 240) = c10;
  *(f32x8 *)(out + 248) = c11;
}
static __attribute__((noinline)) void sums_16_6(const float *weights, const float *v, i64 start, i64 v_row, i64 columns, const float *scales, i64 batch, i64 head, i64 row, float *b_out2) {
  f32x8 c_ = (f32x8){0};
  f32x8 c1 = (f32x8){0};
  f32x8 c2 = (f32x8){0};
  f32x8 c3 = (f32x8){0};
  f32x8 c4 = (f32x8){0};
  f32x8 c5 = (f32x8){0};
  f32x8 c6 = (f32x8){0};
  f32x8 c7 = (f32x8){0};
  f32x8 c8 = (f32x8){0};
  f32x8 c9 = (f32x8){0};
  f32x8 c10 = (f32x8){0};
  f32x8 c11 = (f32x8){0};
  const i64 whole_ = (columns - (columns % 4));
  for (i64 k_ = 0; k_ < whole_; k_ += 4) {
    const f32x8 w_ = (*(const f32x8 *)(v + (k_ * v_row)));
    const f32x8 w1 = (*(const f32x8 *)(v + ((k_ * v_row) + 8)));
    const f32x8 x_ = xy_splat_f32x8(((float)*(weights + k_)));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x_), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x_), "x"(w1));
    const f32x8 x1 = xy_splat_f32x8(((float)*(weights + (48 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x1), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x1), "x"(w1));
    const f32x8 x2 = xy_splat_f32x8(((float)*(weights + (96 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x2), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x2), "x"(w1));
    const f32x8 x3 = xy_splat_f32x8(((float)*(weights + (144 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x3), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x3), "x"(w1));
    const f32x8 x4 = xy_splat_f32x8(((float)*(weights + (192 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x4), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x4), "x"(w1));
    const f32x8 x5 = xy_splat_f32x8(((float)*(weights + (240 + k_))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x5), "x"(w_));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x5), "x"(w1));
    const f32x8 w2 = (*(const f32x8 *)(v + ((k_ + 1) * v_row)));
    const f32x8 w3 = (*(const f32x8 *)(v + (((k_ + 1) * v_row) + 8)));
    const f32x8 x6 = xy_splat_f32x8(((float)*(weights + (k_ + 1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x6), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x6), "x"(w3));
    const f32x8 x7 = xy_splat_f32x8(((float)*(weights + (48 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x7), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x7), "x"(w3));
    const f32x8 x8 = xy_splat_f32x8(((float)*(weights + (96 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x8), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x8), "x"(w3));
    const f32x8 x9 = xy_splat_f32x8(((float)*(weights + (144 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x9), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x9), "x"(w3));
    const f32x8 x10 = xy_splat_f32x8(((float)*(weights + (192 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x10), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x10), "x"(w3));
    const f32x8 x11 = xy_splat_f32x8(((float)*(weights + (240 + (k_ + 1)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x11), "x"(w2));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x11), "x"(w3));
    const f32x8 w4 = (*(const f32x8 *)(v + ((k_ + 2) * v_row)));
    const f32x8 w5 = (*(const f32x8 *)(v + (((k_ + 2) * v_row) + 8)));
    const f32x8 x12 = xy_splat_f32x8(((float)*(weights + (k_ + 2))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x12), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x12), "x"(w5));
    const f32x8 x13 = xy_splat_f32x8(((float)*(weights + (48 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x13), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x13), "x"(w5));
    const f32x8 x14 = xy_splat_f32x8(((float)*(weights + (96 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x14), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x14), "x"(w5));
    const f32x8 x15 = xy_splat_f32x8(((float)*(weights + (144 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x15), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x15), "x"(w5));
    const f32x8 x16 = xy_splat_f32x8(((float)*(weights + (192 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x16), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x16), "x"(w5));
    const f32x8 x17 = xy_splat_f32x8(((float)*(weights + (240 + (k_ + 2)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x17), "x"(w4));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x17), "x"(w5));
    const f32x8 w6 = (*(const f32x8 *)(v + ((k_ + 3) * v_row)));
    const f32x8 w7 = (*(const f32x8 *)(v + (((k_ + 3) * v_row) + 8)));
    const f32x8 x18 = xy_splat_f32x8(((float)*(weights + (k_ + 3))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x18), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x18), "x"(w7));
    const f32x8 x19 = xy_splat_f32x8(((float)*(weights + (48 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x19), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x19), "x"(w7));
    const f32x8 x20 = xy_splat_f32x8(((float)*(weights + (96 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x20), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x20), "x"(w7));
    const f32x8 x21 = xy_splat_f32x8(((float)*(weights + (144 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x21), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x21), "x"(w7));
    const f32x8 x22 = xy_splat_f32x8(((float)*(weights + (192 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x22), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x22), "x"(w7));
    const f32x8 x23 = xy_splat_f32x8(((float)*(weights + (240 + (k_ + 3)))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x23), "x"(w6));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x23), "x"(w7));
  }
  for (i64 k1 = whole_; k1 < columns; k1 += 1) {
    const f32x8 w8 = (*(const f32x8 *)(v + (k1 * v_row)));
    const f32x8 w9 = (*(const f32x8 *)(v + ((k1 * v_row) + 8)));
    const f32x8 x24 = xy_splat_f32x8(((float)*(weights + k1)));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c_) : "x"(x24), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c1) : "x"(x24), "x"(w9));
    const f32x8 x25 = xy_splat_f32x8(((float)*(weights + (48 + k1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c2) : "x"(x25), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c3) : "x"(x25), "x"(w9));
    const f32x8 x26 = xy_splat_f32x8(((float)*(weights + (96 + k1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c4) : "x"(x26), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c5) : "x"(x26), "x"(w9));
    const f32x8 x27 = xy_splat_f32x8(((float)*(weights + (144 + k1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c6) : "x"(x27), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c7) : "x"(x27), "x"(w9));
    const f32x8 x28 = xy_splat_f32x8(((float)*(weights + (192 + k1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c8) : "x"(x28), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c9) : "x"(x28), "x"(w9));
    const f32x8 x29 = xy_splat_f32x8(((float)*(weights + (240 + k1))));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c10) : "x"(x29), "x"(w8));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c11) : "x"(x29), "x"(w9));
  }
  const f32x8 scale_ = xy_splat_f32x8(((float)*(scales)));
  const f32x8 value_ = (c_ * scale_);
  *(f32x8 *)(b_out2 + (((head * 16) + (row * 32)) + start)) = value_;
  const f32x8 value1 = (c1 * scale_);
  *(f32x8 *)(b_out2 + (((head * 16) + (row * 32)) + (start + 8))) = value1;
  const f32x8 scale1 = xy_splat_f32x8(((float)*(scales + 1)));
  const f32x8 value2 = (c2 * scale1);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 1) * 32)) + start)) = value2;
  const f32x8 value3 = (c3 * scale1);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 1) * 32)) + (start + 8))) = value3;
  const f32x8 scale2 = xy_splat_f32x8(((float)*(scales + 2)));
  const f32x8 value4 = (c4 * scale2);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 2) * 32)) + start)) = value4;
  const f32x8 value5 = (c5 * scale2);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 2) * 32)) + (start + 8))) = value5;
  const f32x8 scale3 = xy_splat_f32x8(((float)*(scales + 3)));
  const f32x8 value6 = (c6 * scale3);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 3) * 32)) + start)) = value6;
  const f32x8 value7 = (c7 * scale3);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 3) * 32)) + (start + 8))) = value7;
  const f32x8 scale4 = xy_splat_f32x8(((float)*(scales + 4)));
  const f32x8 value8 = (c8 * scale4);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 4) * 32)) + start)) = value8;
  const f32x8 value9 = (c9 * scale4);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 4) * 32)) + (start + 8))) = value9;
  const f32x8 scale5 = xy_splat_f32x8(((float)*(scales + 5)));
  const f32x8 value10 = (c10 * scale5);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 5) * 32)) + start)) = value10;
  const f32x8 value11 = (c11 * scale5);
  *(f32x8 *)(b_out2 + (((head * 16) + ((row + 5) * 32)) + (start + 8))) = value11;
}
static inline __attribute__((always_inline)) f32x8 xm_exp2_weight_8(f32x8 x) {
  const f32x8 y_ = xy_max_f32x8((f32x8){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)}, x);
  const f32x8 t_ = (y_ + (f32x8){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x8 n_ = (t_ - (f32x8){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x8 f_ = (y_ - n_);
  const f32x8 p_ = ((((((f32x8){0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f} * f_ + (f32x8){0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f}) * f_ + (f32x8){0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f}) * f_ + (f32x8){0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f}) * f_ + (f32x8){0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f}) * f_ + (f32x8){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
  return ((f32x8)(((i32x8)p_) + (((i32x8)t_) << (i32x8){23, 23, 23, 23, 23, 23, 23, 23})));
}
__attribute__((visibility("default")))
void xy_attention_f32_6x16_avx2(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_q0 = (const float *)buffers[0];
  const float *const b_v1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_keys3 = (const float *)buffers[3];
  (void)params;
  float scores_[864] __attribute__((aligned(64)));
  float maxima_[24] __attribute__((aligned(64)));
  float totals_[24] __attribute__((aligned(64)));
  float factors_[24] __attribute__((aligned(64)));
  float scales_[24] __attribute__((aligned(64)));
  float tops_[24] __attribute__((aligned(64)));
  float bases_[24] __attribute__((aligned(64)));
  float parts_[24] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 i_ = (unit_ % 2);
    const i64 i1 = (unit_ / 2);
    *(f32x8 *)(maxima_) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(totals_) = (f32x8){0};
    *(f32x8 *)(tops_) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(parts_) = (f32x8){0};
    *(f32x8 *)(maxima_ + 8) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(totals_ + 8) = (f32x8){0};
    *(f32x8 *)(tops_ + 8) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(parts_ + 8) = (f32x8){0};
    *(f32x8 *)(maxima_ + 16) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(totals_ + 16) = (f32x8){0};
    *(f32x8 *)(tops_ + 16) = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
    *(f32x8 *)(parts_ + 16) = (f32x8){0};
    for (i64 pass_ = 0; pass_ < 1; pass_ += 1) {
      const i64 column_ = (pass_ * 32);
      const i64 here_ = xy_max_index(xy_min_index(32, (20 - column_)), 0);
      const i64 q_at_ = ((i1 * 288) + (i_ * 8));
      const i64 keys_ = (((i1 * 2) + i_) * 256);
      for (i64 t_ = 0; t_ < here_; t_ += 16) {
        for (i64 row_ = 0; row_ < 18; row_ += 6) {
          products_6(b_q0 + (row_ * 16) + q_at_, b_keys3 + (keys_ + ((column_ + t_) * 8)), scores_ + (row_ * 48) + t_);
        }
      }
      for (i64 i2 = 0; i2 < 18; i2 += 1) {
        const i64 row1 = (i2 * 48);
        const i64 whole_ = ((xy_max_index(xy_min_index(here_, ((i2 + 1) - column_)), 0) / 16) * 16);
        f32x8 top_ = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        f32x8 top1 = (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
        for (i64 t1 = 0; t1 < whole_; t1 += 16) {
          const f32x8 value_ = (*(const f32x8 *)(scores_ + row1 + t1));
          top_ = xy_max_f32x8(value_, top_);
          const f32x8 value1 = (*(const f32x8 *)(scores_ + row1 + (t1 + 8)));
          top1 = xy_max_f32x8(value1, top1);
        }
        for (i64 t2 = whole_; t2 < here_; t2 += 16) {
          const i64 left_ = (here_ - t2);
          const f32x8 value2 = (*(const f32x8 *)(scores_ + row1 + t2));
          const i64 seen_ = ((i2 + 1) - (column_ + t2));
          const f32x8 score_ = xy_select_f32x8(((i32x8)((i32x8){0, 1, 2, 3, 4, 5, 6, 7} < xy_splat_i32x8(((int)left_)))), xy_select_f32x8(((i32x8)((i32x8){0, 1, 2, 3, 4, 5, 6, 7} < xy_splat_i32x8(((int)seen_)))), value2, (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())}), (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x8 *)(scores_ + row1 + t2) = score_;
          top_ = xy_max_f32x8(score_, top_);
          const i64 left1 = ((here_ - t2) - 8);
          const f32x8 value3 = (*(const f32x8 *)(scores_ + row1 + (t2 + 8)));
          const i64 seen1 = ((i2 + 1) - (column_ + (t2 + 8)));
          const f32x8 score1 = xy_select_f32x8(((i32x8)((i32x8){0, 1, 2, 3, 4, 5, 6, 7} < xy_splat_i32x8(((int)left1)))), xy_select_f32x8(((i32x8)((i32x8){0, 1, 2, 3, 4, 5, 6, 7} < xy_splat_i32x8(((int)seen1)))), value3, (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())}), (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())});
          *(f32x8 *)(scores_ + row1 + (t2 + 8)) = score1;
          top1 = xy_max_f32x8(score1, top1);
        }
        *(tops_ + i2) = (float)xy_reduce_max_f32x8(xy_max_f32x8(top_, top1));
      }
      const f32x8 v_ = (*(const f32x8 *)(maxima_));
      const f32x8 v1 = (*(const f32x8 *)(tops_));
      const f32x8 new_ = xy_max_f32x8(v1, v_);
      const f32x8 base_ = xy_select_f32x8(((i32x8)(new_ == (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())})), (f32x8){0}, new_);
      *(f32x8 *)(maxima_) = new_;
      *(f32x8 *)(bases_) = base_;
      const f32x8 factor_ = xm_exp2_weight_8(((v_ - base_) * (f32x8){0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f}));
      *(f32x8 *)(factors_) = factor_;
      const f32x8 v2 = (*(const f32x8 *)(maxima_ + 8));
      const f32x8 v3 = (*(const f32x8 *)(tops_ + 8));
      const f32x8 new1 = xy_max_f32x8(v3, v2);
      const f32x8 base1 = xy_select_f32x8(((i32x8)(new1 == (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())})), (f32x8){0}, new1);
      *(f32x8 *)(maxima_ + 8) = new1;
      *(f32x8 *)(bases_ + 8) = base1;
      const f32x8 factor1 = xm_exp2_weight_8(((v2 - base1) * (f32x8){0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f}));
      *(f32x8 *)(factors_ + 8) = factor1;
      const f32x8 v4 = (*(const f32x8 *)(maxima_ + 16));
      const f32x8 v5 = (*(const f32x8 *)(tops_ + 16));
      const f32x8 new2 = xy_max_f32x8(v5, v4);
      const f32x8 base2 = xy_select_f32x8(((i32x8)(new2 == (f32x8){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())})), (f32x8){0}, new2);
      *(f32x8 *)(maxima_ + 16) = new2;
      *(f32x8 *)(bases_ + 16) = base2;
      const f32x8 factor2 = xm_exp2_weight_8(((v4 - base2) * (f32x8){0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f}));
      *(f32x8 *)(factors_ + 16) = factor2;
      for (i64 i3 = 0; i3 < 18; i3 += 1) {
        const i64 row2 = (i3 * 48);
        const float b_ = ((float)*(bases_ + i3));
        const f32x8 base3 = (f32x8){b_, b_, b_, b_, b_, b_, b_, b_};
        f32x8 part_ = (f32x8){0};
        f32x8 part1 = (f32x8){0};
        for (i64 t3 = 0; t3 < here_; t3 += 16) {
          const f32x8 weight_ = xm_exp2_weight_8((((*(const f32x8 *)(scores_ + row2 + t3)) - base3) * (f32x8){0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f}));
          *(f32x8 *)(scores_ + row2 + t3) = weight_;
          part_ = (part_ + weight_);
          const f32x8 weight1 = xm_exp2_weight_8((((*(const f32x8 *)(scores_ + row2 + (t3 + 8))) - base3) * (f32x8){0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f, 0x1.7154760000000p-2f}));
          *(f32x8 *)(scores_ + row2 + (t3 + 8)) = weight1;
          part1 = (part1 + weight1);
        }
        *(parts_ + i3) = (float)xy_reduce_add_f32x8((part_ + part1));
      }
      const f32x8 v6 = (*(const f32x8 *)(totals_));
      const f32x8 v7 = (*(const f32x8 *)(factors_));
      const f32x8 v8 = (*(const f32x8 *)(parts_));
      *(f32x8 *)(totals_) = (v6 * v7 + v8);
      const f32x8 v9 = (*(const f32x8 *)(totals_ + 8));
      const f32x8 v10 = (*(const f32x8 *)(factors_ + 8));
      const f32x8 v11 = (*(const f32x8 *)(parts_ + 8));
      *(f32x8 *)(totals_ + 8) = (v9 * v10 + v11);
      const f32x8 v12 = (*(const f32x8 *)(totals_ + 16));
      const f32x8 v13 = (*(const f32x8 *)(factors_ + 16));
      const f32x8 v14 = (*(const f32x8 *)(parts_ + 16));
      *(f32x8 *)(totals_ + 16) = (v12 * v13 + v14);
      const i64 last_ = (1 <= (pass_ + 1));
      if (last_) {
        const float none_ = (1 ? __builtin_nanf("") : 0x0.0p+0f);
        const f32x8 nothing_ = (f32x8){none_, none_, none_, none_, none_, none_, none_, none_};
        const f32x8 v15 = (*(const f32x8 *)(totals_));
        const f32x8 scale_ = xy_select_f32x8(((i32x8)(v15 == (f32x8){0})), nothing_, ((f32x8){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / v15));
        *(f32x8 *)(scales_) = scale_;
        const f32x8 v16 = (*(const f32x8 *)(totals_ + 8));
        const f32x8 scale1 = xy_select_f32x8(((i32x8)(v16 == (f32x8){0})), nothing_, ((f32x8){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / v16));
        *(f32x8 *)(scales_ + 8) = scale1;
        const f32x8 v17 = (*(const f32x8 *)(totals_ + 16));
        const f32x8 scale2 = xy_select_f32x8(((i32x8)(v17 == (f32x8){0})), nothing_, ((f32x8){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f} / v17));
        *(f32x8 *)(scales_ + 16) = scale2;
      }
      const i64 v_at_ = (((i1 * 640) + (i_ * 16)) + (column_ * 32));
      for (i64 row3 = 0; row3 < 18; row3 += 6) {
        sums_16_6(scores_ + (row3 * 48), b_v1 + v_at_, 0, 32, here_, scales_ + row3, i1, i_, row3, b_out2);
      }
    }
  }
}
