// a unit is one panel and a part of the rows of w
typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
__attribute__((visibility("default")))
void xy_conv_pack_3x3_16(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_w0 = (const float *)buffers[0];
  float *const b_packed1 = (float *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 panel_ = (unit_ * 144);
    const i64 m_ = (unit_ * 16);
    for (i64 j_ = 0; j_ < 16; j_ += 16) {
      for (i64 q_ = 0; q_ < 0; q_ += 16) {
        f32x16 r_ = (f32x16){0};
        if ((j_ < 16)) {
          r_ = (*(const f32x16 *)(b_w0 + (((m_ + j_) * 9) + q_)));
        }
        f32x16 r1 = (f32x16){0};
        if (((j_ + 1) < 16)) {
          r1 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 1) * 9) + q_)));
        }
        f32x16 r2 = (f32x16){0};
        if (((j_ + 2) < 16)) {
          r2 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 2) * 9) + q_)));
        }
        f32x16 r3 = (f32x16){0};
        if (((j_ + 3) < 16)) {
          r3 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 3) * 9) + q_)));
        }
        f32x16 r4 = (f32x16){0};
        if (((j_ + 4) < 16)) {
          r4 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 4) * 9) + q_)));
        }
        f32x16 r5 = (f32x16){0};
        if (((j_ + 5) < 16)) {
          r5 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 5) * 9) + q_)));
        }
        f32x16 r6 = (f32x16){0};
        if (((j_ + 6) < 16)) {
          r6 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 6) * 9) + q_)));
        }
        f32x16 r7 = (f32x16){0};
        if (((j_ + 7) < 16)) {
          r7 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 7) * 9) + q_)));
        }
        f32x16 r8 = (f32x16){0};
        if (((j_ + 8) < 16)) {
          r8 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 8) * 9) + q_)));
        }
        f32x16 r9 = (f32x16){0};
        if (((j_ + 9) < 16)) {
          r9 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 9) * 9) + q_)));
        }
        f32x16 r10 = (f32x16){0};
        if (((j_ + 10) < 16)) {
          r10 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 10) * 9) + q_)));
        }
        f32x16 r11 = (f32x16){0};
        if (((j_ + 11) < 16)) {
          r11 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 11) * 9) + q_)));
        }
        f32x16 r12 = (f32x16){0};
        if (((j_ + 12) < 16)) {
          r12 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 12) * 9) + q_)));
        }
        f32x16 r13 = (f32x16){0};
        if (((j_ + 13) < 16)) {
          r13 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 13) * 9) + q_)));
        }
        f32x16 r14 = (f32x16){0};
        if (((j_ + 14) < 16)) {
          r14 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 14) * 9) + q_)));
        }
        f32x16 r15 = (f32x16){0};
        if (((j_ + 15) < 16)) {
          r15 = (*(const f32x16 *)(b_w0 + ((((m_ + j_) + 15) * 9) + q_)));
        }
        const f32x16 t_ = __builtin_shufflevector(r_, r8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t1 = __builtin_shufflevector(r_, r8, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t2 = __builtin_shufflevector(r1, r9, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t3 = __builtin_shufflevector(r1, r9, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t4 = __builtin_shufflevector(r2, r10, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t5 = __builtin_shufflevector(r2, r10, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t6 = __builtin_shufflevector(r3, r11, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t7 = __builtin_shufflevector(r3, r11, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t8 = __builtin_shufflevector(r4, r12, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t9 = __builtin_shufflevector(r4, r12, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t10 = __builtin_shufflevector(r5, r13, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t11 = __builtin_shufflevector(r5, r13, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t12 = __builtin_shufflevector(r6, r14, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t13 = __builtin_shufflevector(r6, r14, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t14 = __builtin_shufflevector(r7, r15, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        const f32x16 t15 = __builtin_shufflevector(r7, r15, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        const f32x16 t16 = __builtin_shufflevector(t_, t8, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t17 = __builtin_shufflevector(t_, t8, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t18 = __builtin_shufflevector(t2, t10, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t19 = __builtin_shufflevector(t2, t10, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t20 = __builtin_shufflevector(t4, t12, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t21 = __builtin_shufflevector(t4, t12, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t22 = __builtin_shufflevector(t6, t14, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t23 = __builtin_shufflevector(t6, t14, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t24 = __builtin_shufflevector(t1, t9, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t25 = __builtin_shufflevector(t1, t9, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t26 = __builtin_shufflevector(t3, t11, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t27 = __builtin_shufflevector(t3, t11, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t28 = __builtin_shufflevector(t5, t13, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t29 = __builtin_shufflevector(t5, t13, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t30 = __builtin_shufflevector(t7, t15, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        const f32x16 t31 = __builtin_shufflevector(t7, t15, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        const f32x16 t32 = __builtin_shufflevector(t16, t20, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t33 = __builtin_shufflevector(t16, t20, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t34 = __builtin_shufflevector(t18, t22, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t35 = __builtin_shufflevector(t18, t22, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t36 = __builtin_shufflevector(t17, t21, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t37 = __builtin_shufflevector(t17, t21, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t38 = __builtin_shufflevector(t19, t23, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t39 = __builtin_shufflevector(t19, t23, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t40 = __builtin_shufflevector(t24, t28, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t41 = __builtin_shufflevector(t24, t28, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t42 = __builtin_shufflevector(t26, t30, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t43 = __builtin_shufflevector(t26, t30, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t44 = __builtin_shufflevector(t25, t29, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t45 = __builtin_shufflevector(t25, t29, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t46 = __builtin_shufflevector(t27, t31, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        const f32x16 t47 = __builtin_shufflevector(t27, t31, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const f32x16 t48 = __builtin_shufflevector(t32, t34, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t49 = __builtin_shufflevector(t32, t34, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t50 = __builtin_shufflevector(t33, t35, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t51 = __builtin_shufflevector(t33, t35, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t52 = __builtin_shufflevector(t36, t38, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t53 = __builtin_shufflevector(t36, t38, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t54 = __builtin_shufflevector(t37, t39, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t55 = __builtin_shufflevector(t37, t39, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t56 = __builtin_shufflevector(t40, t42, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t57 = __builtin_shufflevector(t40, t42, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t58 = __builtin_shufflevector(t41, t43, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t59 = __builtin_shufflevector(t41, t43, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t60 = __builtin_shufflevector(t44, t46, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t61 = __builtin_shufflevector(t44, t46, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        const f32x16 t62 = __builtin_shufflevector(t45, t47, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        const f32x16 t63 = __builtin_shufflevector(t45, t47, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        *(f32x16 *)(b_packed1 + panel_ + ((((q_ % 9) + (q_ / 9)) * 16) + j_)) = t48;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 1) % 9) + ((q_ + 1) / 9)) * 16) + j_)) = t49;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 2) % 9) + ((q_ + 2) / 9)) * 16) + j_)) = t50;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 3) % 9) + ((q_ + 3) / 9)) * 16) + j_)) = t51;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 4) % 9) + ((q_ + 4) / 9)) * 16) + j_)) = t52;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 5) % 9) + ((q_ + 5) / 9)) * 16) + j_)) = t53;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 6) % 9) + ((q_ + 6) / 9)) * 16) + j_)) = t54;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 7) % 9) + ((q_ + 7) / 9)) * 16) + j_)) = t55;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 8) % 9) + ((q_ + 8) / 9)) * 16) + j_)) = t56;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 9) % 9) + ((q_ + 9) / 9)) * 16) + j_)) = t57;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 10) % 9) + ((q_ + 10) / 9)) * 16) + j_)) = t58;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 11) % 9) + ((q_ + 11) / 9)) * 16) + j_)) = t59;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 12) % 9) + ((q_ + 12) / 9)) * 16) + j_)) = t60;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 13) % 9) + ((q_ + 13) / 9)) * 16) + j_)) = t61;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 14) % 9) + ((q_ + 14) / 9)) * 16) + j_)) = t62;
        *(f32x16 *)(b_packed1 + panel_ + (((((q_ + 15) % 9) + ((q_ + 15) / 9)) * 16) + j_)) = t63;
      }
    }
    for (i64 q1 = 0; q1 < 9; q1 += 1) {
      const i64 to_ = (((q1 % 9) + (q1 / 9)) * 16);
      const i64 from_ = ((((m_ * 9) + ((q1 / 9) * 9)) + (((q1 % 9) / 3) * 3)) + ((q1 % 9) % 3));
      for (i64 j1 = 0; j1 < 16; j1 += 1) {
        *(b_packed1 + panel_ + (to_ + j1)) = (float)((float)*(b_w0 + (from_ + (j1 * 9))));
      }
    }
  }
}
__attribute__((visibility("default"))) const unsigned xy_conv_pack_3x3_16_takes[2] = {2, 0};

typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void tile0_4x1(i64 at, i64 panel, i64 image, i64 m, i64 row, i64 pixel, i64 first, i64 stop, float *b_out2, const float *b_w1, const float *b_x0, const float *b_i3) {
  f32x16 acc_ = (f32x16){0};
  f32x16 acc1 = (f32x16){0};
  f32x16 acc2 = (f32x16){0};
  f32x16 acc3 = (f32x16){0};
  const i64 first_out_ = ((((image * 256) + m) + (row * 64)) + (pixel * 16));
  __builtin_prefetch(b_out2 + first_out_, 1, 3);
  __builtin_prefetch(b_out2 + (first_out_ + 16), 1, 3);
  __builtin_prefetch(b_out2 + (first_out_ + 32), 1, 3);
  __builtin_prefetch(b_out2 + (first_out_ + 48), 1, 3);
  for (i64 ky_ = first; ky_ < stop; ky_ += 1) {
    const i64 x_row_ = (at + (ky_ * 64));
    const i64 w_row_ = (panel + (ky_ * 48));
    const f32x16 b_ = (*(const f32x16 *)(b_w1 + w_row_));
    const f32x16 b1 = (*(const f32x16 *)(b_w1 + w_row_ + 16));
    const f32x16 b2 = (*(const f32x16 *)(b_w1 + w_row_ + 32));
    const f32x16 a_ = (*(const f32x16 *)(b_x0 + x_row_ + 16));
    acc1 = (a_ * b_ + acc1);
    acc_ = (a_ * b1 + acc_);
    const f32x16 a1 = (*(const f32x16 *)(b_x0 + x_row_ + 32));
    acc2 = (a1 * b_ + acc2);
    acc1 = (a1 * b1 + acc1);
    acc_ = (a1 * b2 + acc_);
    const f32x16 a2 = (*(const f32x16 *)(b_x0 + x_row_ + 48));
    acc3 = (a2 * b_ + acc3);
    acc2 = (a2 * b1 + acc2);
    acc1 = (a2 * b2 + acc1);
    const f32x16 a3 = (*(const f32x16 *)(b_x0 + x_row_ + 64));
    acc3 = (a3 * b1 + acc3);
    acc2 = (a3 * b2 + acc2);
  }
  const f32x16 x_ = (*(const f32x16 *)(b_i3 + m));
  const f32x16 v_ = (acc_ + x_);
  const f32x16 v1 = xy_max_f32x16((f32x16){0}, v_);
  *(f32x16 *)(b_out2 + (((row * 64) + (pixel * 16)) + m)) = v1;
  const f32x16 v2 = (acc1 + x_);
  const f32x16 v3 = xy_max_f32x16((f32x16){0}, v2);
  *(f32x16 *)(b_out2 + (((row * 64) + ((pixel + 1) * 16)) + m)) = v3;
  const f32x16 v4 = (acc2 + x_);
  const f32x16 v5 = xy_max_f32x16((f32x16){0}, v4);
  *(f32x16 *)(b_out2 + (((row * 64) + ((pixel + 2) * 16)) + m)) = v5;
  const f32x16 v6 = (acc3 + x_);
  const f32x16 v7 = xy_max_f32x16((f32x16){0}, v6);
  *(f32x16 *)(b_out2 + (((row * 64) + ((pixel + 3) * 16)) + m)) = v7;
}
__attribute__((visibility("default")))
void xy_conv_depthwise_3x3_f32_14x1(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_x0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_i3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 x_image_ = (unit_ * 256);
    for (i64 panel_ = 0; panel_ < 1; panel_ += 1) {
      const i64 m_ = (panel_ * 16);
      const i64 w_panel_ = (panel_ * 144);
      const i64 x_group_ = (x_image_ + m_);
      for (i64 y_ = 0; y_ < 4; y_ += 1) {
        const i64 x_y_ = (y_ - 1);
        const i64 ky_first_ = xy_max_index(0, (0 - x_y_));
        const i64 ky_stop_ = xy_min_index(3, xy_max_index(0, (4 - x_y_)));
        const i64 x_row_ = (x_group_ + (x_y_ * 64));
        for (i64 t_ = 0; t_ < 1; t_ += 1) {
          const i64 pixel_ = (t_ * 4);
          const i64 at_ = (x_row_ + ((pixel_ - 1) * 16));
          tile0_4x1(at_, w_panel_, unit_, m_, y_, pixel_, ky_first_, ky_stop_, b_out2, b_w1, b_x0, b_i3);
        }
      }
    }
  }
}
__attribute__((visibility("default"))) const unsigned xy_conv_depthwise_3x3_f32_14x1_takes[2] = {4, 0};
