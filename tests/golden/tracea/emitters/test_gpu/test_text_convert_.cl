static inline float xy_round_f16(float v) { unsigned short h; vstore_half_rte(v, 0, (__private half *)&h); return vload_half(0, (__private half *)&h); }
static inline unsigned short xy_narrow_bf16(float v) { unsigned b = (unsigned)as_int(v); return (unsigned short)(v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16); }
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void convert_4(__global const unsigned short *b_x0, __global const unsigned char *b_x1, __global const signed char *b_x2, __global unsigned short *b_y3, __global unsigned char *b_y4, __global long *b_y5, const int go) {
  if (!go) return;
  const int block = (int)get_group_id(0);
  const int thread = (int)get_local_id(0);
  const int at_ = (((block * 32) + thread) * 4);
  for (int i_ = 0; i_ < 4; i_ += 4) {
    const float4 packet1 = vloada_half4(0, (const __global half *)(b_x0 + (at_ + i_)));
    const float v_ = packet1.s0;
    const float v1 = packet1.s1;
    const float v2 = packet1.s2;
    const float v3 = packet1.s3;
    *(__global ushort4 *)(b_y3 + (at_ + i_)) = (ushort4)(xy_narrow_bf16(xy_round_f16(v_)), xy_narrow_bf16(xy_round_f16(v1)), xy_narrow_bf16(xy_round_f16(v2)), xy_narrow_bf16(xy_round_f16(v3)));
  }
  for (int i1 = 0; i1 < 4; i1 += 4) {
    const int v4 = (-(*(b_x1 + (at_ + i1) + 0) != 0));
    const int v5 = (-(*(b_x1 + (at_ + i1) + 1) != 0));
    const int v6 = (-(*(b_x1 + (at_ + i1) + 2) != 0));
    const int v7 = (-(*(b_x1 + (at_ + i1) + 3) != 0));
    *(b_y4 + (at_ + i1) + 0) = (unsigned char)(v4 & 1);
    *(b_y4 + (at_ + i1) + 1) = (unsigned char)(v5 & 1);
    *(b_y4 + (at_ + i1) + 2) = (unsigned char)(v6 & 1);
    *(b_y4 + (at_ + i1) + 3) = (unsigned char)(v7 & 1);
  }
  for (int i2 = 0; i2 < 4; i2 += 2) {
    const long v8 = ((long)*(b_x2 + (at_ + i2) + 0));
    const long v9 = ((long)*(b_x2 + (at_ + i2) + 1));
    *(__global long2 *)(b_y5 + (at_ + i2)) = (long2)(v8, v9);
  }
}
