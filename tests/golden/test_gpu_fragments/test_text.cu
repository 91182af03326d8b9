static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
static __device__ __forceinline__ int xy_max_index(int a, int b) { return a > b ? a : b; }
static __device__ __forceinline__ void xy_copy_16(void *to, const void *from, int valid) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid) : "memory"); }
static __device__ __forceinline__ void xy_load_fragments(int &a, int &b, int &c, int &d, const void *from) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory"); }
static __device__ __forceinline__ void xy_fragment_dot_f16(float &c0, float &c1, float &c2, float &c3, int a0, int a1, int a2, int a3, int b0, int b1) { asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }
extern "C" __global__ void __launch_bounds__(64) xy_gemm_f16_fragments_64x64(const unsigned short *b_a0, const unsigned short *b_b1, float *b_out2) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) unsigned short tile_[6144];
  __shared__ __align__(16) unsigned short tile1[6144];
  const int i_ = (block % 12);
  const int i1 = (block / 12);
  const int row_ = (i1 * 64);
  const int column_ = (i_ * 64);
  const int start_ = (row_ * 768);
  const int k_ = ((thread & 3) * 8);
  const int o_ = (thread >> 2);
  const int lane_ = (thread % 32);
  const int o1 = ((lane_ & 7) + (((lane_ >> 3) & 1) * 8));
  const int k1 = ((lane_ >> 4) * 8);
  const int left_ = (64 - row_);
  const int start1 = (column_ * 768);
  const int k2 = ((thread & 3) * 8);
  const int o2 = (thread >> 2);
  const int lane1 = (thread % 32);
  const int o3 = ((lane1 & 7) + ((lane1 >> 4) * 8));
  const int k3 = (((lane1 >> 3) & 1) * 8);
  const int left1 = (768 - column_);
  float sum_ = 0x0.0p+0f;
  float sum1 = 0x0.0p+0f;
  float sum2 = 0x0.0p+0f;
  float sum3 = 0x0.0p+0f;
  float sum4 = 0x0.0p+0f;
  float sum5 = 0x0.0p+0f;
  float sum6 = 0x0.0p+0f;
  float sum7 = 0x0.0p+0f;
  float sum8 = 0x0.0p+0f;
  float sum9 = 0x0.0p+0f;
  float sum10 = 0x0.0p+0f;
  float sum11 = 0x0.0p+0f;
  float sum12 = 0x0.0p+0f;
  float sum13 = 0x0.0p+0f;
  float sum14 = 0x0.0p+0f;
  float sum15 = 0x0.0p+0f;
  float sum16 = 0x0.0p+0f;
  float sum17 = 0x0.0p+0f;
  float sum18 = 0x0.0p+0f;
  float sum19 = 0x0.0p+0f;
  float sum20 = 0x0.0p+0f;
  float sum21 = 0x0.0p+0f;
  float sum22 = 0x0.0p+0f;
  float sum23 = 0x0.0p+0f;
  float sum24 = 0x0.0p+0f;
  float sum25 = 0x0.0p+0f;
  float sum26 = 0x0.0p+0f;
  float sum27 = 0x0.0p+0f;
  float sum28 = 0x0.0p+0f;
  float sum29 = 0x0.0p+0f;
  float sum30 = 0x0.0p+0f;
  float sum31 = 0x0.0p+0f;
  float sum32 = 0x0.0p+0f;
  float sum33 = 0x0.0p+0f;
  float sum34 = 0x0.0p+0f;
  float sum35 = 0x0.0p+0f;
  float sum36 = 0x0.0p+0f;
  float sum37 = 0x0.0p+0f;
  float sum38 = 0x0.0p+0f;
  float sum39 = 0x0.0p+0f;
  float sum40 = 0x0.0p+0f;
  float sum41 = 0x0.0p+0f;
  float sum42 = 0x0.0p+0f;
  float sum43 = 0x0.0p+0f;
  float sum44 = 0x0.0p+0f;
  float sum45 = 0x0.0p+0f;
  float sum46 = 0x0.0p+0f;
  float sum47 = 0x0.0p+0f;
  float sum48 = 0x0.0p+0f;
  float sum49 = 0x0.0p+0f;
  float sum50 = 0x0.0p+0f;
  float sum51 = 0x0.0p+0f;
  float sum52 = 0x0.0p+0f;
  float sum53 = 0x0.0p+0f;
  float sum54 = 0x0.0p+0f;
  float sum55 = 0x0.0p+0f;
  float sum56 = 0x0.0p+0f;
  float sum57 = 0x0.0p+0f;
  float sum58 = 0x0.0p+0f;
  float sum59 = 0x0.0p+0f;
  float sum60 = 0x0.0p+0f;
  float sum61 = 0x0.0p+0f;
  float sum62 = 0x0.0p+0f;
  float sum63 = 0x0.0p+0f;
  const int lane2 = (thread & 31);
  const int n_ = (((thread >> 5) & 1) * 32);
  for (int ahead_ = 0; ahead_ < 2; ahead_ += 1) {
    if ((ahead_ < 24)) {
      const int begin_ = (ahead_ * 32);
      const int end_ = (768 - begin_);
      const int valid_ = ((o_ < left_) ? xy_min_index((end_ - k_), 8) : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + ((o_ * 32) + (k_ ^ ((o_ & 6) << 2))), b_a0 + start_ + ((o_ * 768) + (begin_ + k_)), xy_min_index(xy_max_index(valid_, 0), 8) * 2);
      const int valid1 = (((o_ + 16) < left_) ? xy_min_index((end_ - k_), 8) : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 16) * 32) + (k_ ^ (((o_ + 16) & 6) << 2))), b_a0 + start_ + (((o_ + 16) * 768) + (begin_ + k_)), xy_min_index(xy_max_index(valid1, 0), 8) * 2);
      const int valid2 = (((o_ + 32) < left_) ? xy_min_index((end_ - k_), 8) : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 32) * 32) + (k_ ^ (((o_ + 32) & 6) << 2))), b_a0 + start_ + (((o_ + 32) * 768) + (begin_ + k_)), xy_min_index(xy_max_index(valid2, 0), 8) * 2);
      const int valid3 = (((o_ + 48) < left_) ? xy_min_index((end_ - k_), 8) : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 48) * 32) + (k_ ^ (((o_ + 48) & 6) << 2))), b_a0 + start_ + (((o_ + 48) * 768) + (begin_ + k_)), xy_min_index(xy_max_index(valid3, 0), 8) * 2);
      const int begin1 = (ahead_ * 32);
      const int end1 = (768 - begin1);
      const int valid4 = ((o2 < left1) ? xy_min_index((end1 - k2), 8) : 0);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + ((o2 * 32) + (k2 ^ ((o2 & 6) << 2))), b_b1 + start1 + ((o2 * 768) + (begin1 + k2)), xy_min_index(xy_max_index(valid4, 0), 8) * 2);
      const int valid5 = (((o2 + 16) < left1) ? xy_min_index((end1 - k2), 8) : 0);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((o2 + 16) * 32) + (k2 ^ (((o2 + 16) & 6) << 2))), b_b1 + start1 + (((o2 + 16) * 768) + (begin1 + k2)), xy_min_index(xy_max_index(valid5, 0), 8) * 2);
      const int valid6 = (((o2 + 32) < left1) ? xy_min_index((end1 - k2), 8) : 0);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((o2 + 32) * 32) + (k2 ^ (((o2 + 32) & 6) << 2))), b_b1 + start1 + (((o2 + 32) * 768) + (begin1 + k2)), xy_min_index(xy_max_index(valid6, 0), 8) * 2);
      const int valid7 = (((o2 + 48) < left1) ? xy_min_index((end1 - k2), 8) : 0);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((o2 + 48) * 32) + (k2 ^ (((o2 + 48) & 6) << 2))), b_b1 + start1 + (((o2 + 48) * 768) + (begin1 + k2)), xy_min_index(xy_max_index(valid7, 0), 8) * 2);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step_ = 0; step_ < 24; step_ += 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const int next_ = (step_ + 2);
    if ((next_ < 24)) {
      const int begin2 = (next_ * 32);
      const int end2 = (768 - begin2);
      const int valid8 = ((o_ < left_) ? xy_min_index((end2 - k_), 8) : 0);
      xy_copy_16(tile_ + ((next_ % 3) * 2048) + ((o_ * 32) + (k_ ^ ((o_ & 6) << 2))), b_a0 + start_ + ((o_ * 768) + (begin2 + k_)), xy_min_index(xy_max_index(valid8, 0), 8) * 2);
      const int valid9 = (((o_ + 16) < left_) ? xy_min_index((end2 - k_), 8) : 0);
      xy_copy_16(tile_ + ((next_ % 3) * 2048) + (((o_ + 16) * 32) + (k_ ^ (((o_ + 16) & 6) << 2))), b_a0 + start_ + (((o_ + 16) * 768) + (begin2 + k_)), xy_min_index(xy_max_index(valid9, 0), 8) * 2);
      const int valid10 = (((o_ + 32) < left_) ? xy_min_index((end2 - k_), 8) : 0);
      xy_copy_16(tile_ + ((next_ % 3) * 2048) + (((o_ + 32) * 32) + (k_ ^ (((o_ + 32) & 6) << 2))), b_a0 + start_ + (((o_ + 32) * 768) + (begin2 + k_)), xy_min_index(xy_max_index(valid10, 0), 8) * 2);
      const int valid11 = (((o_ + 48) < left_) ? xy_min_index((end2 - k_), 8) : 0);
      xy_copy_16(tile_ + ((next_ % 3) * 2048) + (((o_ + 48) * 32) + (k_ ^ (((o_ + 48) & 6) << 2))), b_a0 + start_ + (((o_ + 48) * 768) + (begin2 + k_)), xy_min_index(xy_max_index(valid11, 0), 8) * 2);
      const int begin3 = (next_ * 32);
      const int end3 = (768 - begin3);
      const int valid12 = ((o2 < left1) ? xy_min_index((end3 - k2), 8) : 0);
      xy_copy_16(tile1 + ((next_ % 3) * 2048) + ((o2 * 32) + (k2 ^ ((o2 & 6) << 2))), b_b1 + start1 + ((o2 * 768) + (begin3 + k2)), xy_min_index(xy_max_index(valid12, 0), 8) * 2);
      const int valid13 = (((o2 + 16) < left1) ? xy_min_index((end3 - k2), 8) : 0);
      xy_copy_16(tile1 + ((next_ % 3) * 2048) + (((o2 + 16) * 32) + (k2 ^ (((o2 + 16) & 6) << 2))), b_b1 + start1 + (((o2 + 16) * 768) + (begin3 + k2)), xy_min_index(xy_max_index(valid13, 0), 8) * 2);
      const int valid14 = (((o2 + 32) < left1) ? xy_min_index((end3 - k2), 8) : 0);
      xy_copy_16(tile1 + ((next_ % 3) * 2048) + (((o2 + 32) * 32) + (k2 ^ (((o2 + 32) & 6) << 2))), b_b1 + start1 + (((o2 + 32) * 768) + (begin3 + k2)), xy_min_index(xy_max_index(valid14, 0), 8) * 2);
      const int valid15 = (((o2 + 48) < left1) ? xy_min_index((end3 - k2), 8) : 0);
      xy_copy_16(tile1 + ((next_ % 3) * 2048) + (((o2 + 48) * 32) + (k2 ^ (((o2 + 48) & 6) << 2))), b_b1 + start1 + (((o2 + 48) * 768) + (begin3 + k2)), xy_min_index(xy_max_index(valid15, 0), 8) * 2);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int k4 = 0; k4 < 32; k4 += 16) {
      int part_, part1, part2, part3;
      xy_load_fragments(part_, part1, part2, part3, tile_ + ((step_ % 3) * 2048) + ((o1 * 32) + ((k1 + k4) ^ ((o1 & 6) << 2))));
      int part4, part5, part6, part7;
      xy_load_fragments(part4, part5, part6, part7, tile_ + ((step_ % 3) * 2048) + (((o1 + 16) * 32) + ((k1 + k4) ^ (((o1 + 16) & 6) << 2))));
      int part8, part9, part10, part11;
      xy_load_fragments(part8, part9, part10, part11, tile_ + ((step_ % 3) * 2048) + (((o1 + 32) * 32) + ((k1 + k4) ^ (((o1 + 32) & 6) << 2))));
      int part12, part13, part14, part15;
      xy_load_fragments(part12, part13, part14, part15, tile_ + ((step_ % 3) * 2048) + (((o1 + 48) * 32) + ((k1 + k4) ^ (((o1 + 48) & 6) << 2))));
      int part16, part17, part18, part19;
      xy_load_fragments(part16, part17, part18, part19, tile1 + ((step_ % 3) * 2048) + (((o3 + n_) * 32) + ((k3 + k4) ^ (((o3 + n_) & 6) << 2))));
      int part20, part21, part22, part23;
      xy_load_fragments(part20, part21, part22, part23, tile1 + ((step_ % 3) * 2048) + (((o3 + (n_ + 16)) * 32) + ((k3 + k4) ^ (((o3 + (n_ + 16)) & 6) << 2))));
      xy_fragment_dot_f16(sum_, sum1, sum2, sum3, part_, part1, part2, part3, part16, part17);
      xy_fragment_dot_f16(sum4, sum5, sum6, sum7, part_, part1, part2, part3, part18, part19);
      xy_fragment_dot_f16(sum8, sum9, sum10, sum11, part_, part1, part2, part3, part20, part21);
      xy_fragment_dot_f16(sum12, sum13, sum14, sum15, part_, part1, part2, part3, part22, part23);
      xy_fragment_dot_f16(sum16, sum17, sum18, sum19, part4, part5, part6, part7, part16, part17);
      xy_fragment_dot_f16(sum20, sum21, sum22, sum23, part4, part5, part6, part7, part18, part19);
      xy_fragment_dot_f16(sum24, sum25, sum26, sum27, part4, part5, part6, part7, part20, part21);
      xy_fragment_dot_f16(sum28, sum29, sum30, sum31, part4, part5, part6, part7, part22, part23);
      xy_fragment_dot_f16(sum32, sum33, sum34, sum35, part8, part9, part10, part11, part16, part17);
      xy_fragment_dot_f16(sum36, sum37, sum38, sum39, part8, part9, part10, part11, part18, part19);
      xy_fragment_dot_f16(sum40, sum41, sum42, sum43, part8, part9, part10, part11, part20, part21);
      xy_fragment_dot_f16(sum44, sum45, sum46, sum47, part8, part9, part10, part11, part22, part23);
      xy_fragment_dot_f16(sum48, sum49, sum50, sum51, part12, part13, part14, part15, part16, part17);
      xy_fragment_dot_f16(sum52, sum53, sum54, sum55, part12, part13, part14, part15, part18, part19);
      xy_fragment_dot_f16(sum56, sum57, sum58, sum59, part12, part13, part14, part15, part20, part21);
      xy_fragment_dot_f16(sum60, sum61, sum62, sum63, part12, part13, part14, part15, part22, part23);
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  const int lane3 = (thread & 31);
  const int n1 = (((thread >> 5) & 1) * 32);
  const int m_ = (row_ + (lane3 / 4));
  const int n2 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m_ < 64)) {
    if ((n2 < 768)) {
      *(b_out2 + ((m_ * 768) + n2)) = sum_;
    }
  }
  const int m1 = (row_ + (lane3 / 4));
  const int n3 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m1 < 64)) {
    if ((n3 < 768)) {
      *(b_out2 + ((m1 * 768) + n3)) = sum1;
    }
  }
  const int m2 = ((row_ + (lane3 / 4)) + 8);
  const int n4 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m2 < 64)) {
    if ((n4 < 768)) {
      *(b_out2 + ((m2 * 768) + n4)) = sum2;
    }
  }
  const int m3 = ((row_ + (lane3 / 4)) + 8);
  const int n5 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m3 < 64)) {
    if ((n5 < 768)) {
      *(b_out2 + ((m3 * 768) + n5)) = sum3;
    }
  }
  const int m4 = (row_ + (lane3 / 4));
  const int n6 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m4 < 64)) {
    if ((n6 < 768)) {
      *(b_out2 + ((m4 * 768) + n6)) = sum4;
    }
  }
  const int m5 = (row_ + (lane3 / 4));
  const int n7 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m5 < 64)) {
    if ((n7 < 768)) {
      *(b_out2 + ((m5 * 768) + n7)) = sum5;
    }
  }
  const int m6 = ((row_ + (lane3 / 4)) + 8);
  const int n8 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m6 < 64)) {
    if ((n8 < 768)) {
      *(b_out2 + ((m6 * 768) + n8)) = sum6;
    }
  }
  const int m7 = ((row_ + (lane3 / 4)) + 8);
  const int n9 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m7 < 64)) {
    if ((n9 < 768)) {
      *(b_out2 + ((m7 * 768) + n9)) = sum7;
    }
  }
  const int m8 = (row_ + (lane3 / 4));
  const int n10 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m8 < 64)) {
    if ((n10 < 768)) {
      *(b_out2 + ((m8 * 768) + n10)) = sum8;
    }
  }
  const int m9 = (row_ + (lane3 / 4));
  const int n11 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m9 < 64)) {
    if ((n11 < 768)) {
      *(b_out2 + ((m9 * 768) + n11)) = sum9;
    }
  }
  const int m10 = ((row_ + (lane3 / 4)) + 8);
  const int n12 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m10 < 64)) {
    if ((n12 < 768)) {
      *(b_out2 + ((m10 * 768) + n12)) = sum10;
    }
  }
  const int m11 = ((row_ + (lane3 / 4)) + 8);
  const int n13 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m11 < 64)) {
    if ((n13 < 768)) {
      *(b_out2 + ((m11 * 768) + n13)) = sum11;
    }
  }
  const int m12 = (row_ + (lane3 / 4));
  const int n14 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m12 < 64)) {
    if ((n14 < 768)) {
      *(b_out2 + ((m12 * 768) + n14)) = sum12;
    }
  }
  const int m13 = (row_ + (lane3 / 4));
  const int n15 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m13 < 64)) {
    if ((n15 < 768)) {
      *(b_out2 + ((m13 * 768) + n15)) = sum13;
    }
  }
  const int m14 = ((row_ + (lane3 / 4)) + 8);
  const int n16 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m14 < 64)) {
    if ((n16 < 768)) {
      *(b_out2 + ((m14 * 768) + n16)) = sum14;
    }
  }
  const int m15 = ((row_ + (lane3 / 4)) + 8);
  const int n17 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m15 < 64)) {
    if ((n17 < 768)) {
      *(b_out2 + ((m15 * 768) + n17)) = sum15;
    }
  }
  const int m16 = ((row_ + 16) + (lane3 / 4));
  const int n18 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m16 < 64)) {
    if ((n18 < 768)) {
      *(b_out2 + ((m16 * 768) + n18)) = sum16;
    }
  }
  const int m17 = ((row_ + 16) + (lane3 / 4));
  const int n19 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m17 < 64)) {
    if ((n19 < 768)) {
      *(b_out2 + ((m17 * 768) + n19)) = sum17;
    }
  }
  const int m18 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n20 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m18 < 64)) {
    if ((n20 < 768)) {
      *(b_out2 + ((m18 * 768) + n20)) = sum18;
    }
  }
  const int m19 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n21 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m19 < 64)) {
    if ((n21 < 768)) {
      *(b_out2 + ((m19 * 768) + n21)) = sum19;
    }
  }
  const int m20 = ((row_ + 16) + (lane3 / 4));
  const int n22 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m20 < 64)) {
    if ((n22 < 768)) {
      *(b_out2 + ((m20 * 768) + n22)) = sum20;
    }
  }
  const int m21 = ((row_ + 16) + (lane3 / 4));
  const int n23 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m21 < 64)) {
    if ((n23 < 768)) {
      *(b_out2 + ((m21 * 768) + n23)) = sum21;
    }
  }
  const int m22 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n24 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m22 < 64)) {
    if ((n24 < 768)) {
      *(b_out2 + ((m22 * 768) + n24)) = sum22;
    }
  }
  const int m23 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n25 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m23 < 64)) {
    if ((n25 < 768)) {
      *(b_out2 + ((m23 * 768) + n25)) = sum23;
    }
  }
  const int m24 = ((row_ + 16) + (lane3 / 4));
  const int n26 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m24 < 64)) {
    if ((n26 < 768)) {
      *(b_out2 + ((m24 * 768) + n26)) = sum24;
    }
  }
  const int m25 = ((row_ + 16) + (lane3 / 4));
  const int n27 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m25 < 64)) {
    if ((n27 < 768)) {
      *(b_out2 + ((m25 * 768) + n27)) = sum25;
    }
  }
  const int m26 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n28 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m26 < 64)) {
    if ((n28 < 768)) {
      *(b_out2 + ((m26 * 768) + n28)) = sum26;
    }
  }
  const int m27 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n29 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m27 < 64)) {
    if ((n29 < 768)) {
      *(b_out2 + ((m27 * 768) + n29)) = sum27;
    }
  }
  const int m28 = ((row_ + 16) + (lane3 / 4));
  const int n30 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m28 < 64)) {
    if ((n30 < 768)) {
      *(b_out2 + ((m28 * 768) + n30)) = sum28;
    }
  }
  const int m29 = ((row_ + 16) + (lane3 / 4));
  const int n31 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m29 < 64)) {
    if ((n31 < 768)) {
      *(b_out2 + ((m29 * 768) + n31)) = sum29;
    }
  }
  const int m30 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n32 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m30 < 64)) {
    if ((n32 < 768)) {
      *(b_out2 + ((m30 * 768) + n32)) = sum30;
    }
  }
  const int m31 = (((row_ + 16) + (lane3 / 4)) + 8);
  const int n33 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m31 < 64)) {
    if ((n33 < 768)) {
      *(b_out2 + ((m31 * 768) + n33)) = sum31;
    }
  }
  const int m32 = ((row_ + 32) + (lane3 / 4));
  const int n34 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m32 < 64)) {
    if ((n34 < 768)) {
      *(b_out2 + ((m32 * 768) + n34)) = sum32;
    }
  }
  const int m33 = ((row_ + 32) + (lane3 / 4));
  const int n35 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m33 < 64)) {
    if ((n35 < 768)) {
      *(b_out2 + ((m33 * 768) + n35)) = sum33;
    }
  }
  const int m34 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n36 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m34 < 64)) {
    if ((n36 < 768)) {
      *(b_out2 + ((m34 * 768) + n36)) = sum34;
    }
  }
  const int m35 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n37 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m35 < 64)) {
    if ((n37 < 768)) {
      *(b_out2 + ((m35 * 768) + n37)) = sum35;
    }
  }
  const int m36 = ((row_ + 32) + (lane3 / 4));
  const int n38 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m36 < 64)) {
    if ((n38 < 768)) {
      *(b_out2 + ((m36 * 768) + n38)) = sum36;
    }
  }
  const int m37 = ((row_ + 32) + (lane3 / 4));
  const int n39 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m37 < 64)) {
    if ((n39 < 768)) {
      *(b_out2 + ((m37 * 768) + n39)) = sum37;
    }
  }
  const int m38 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n40 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m38 < 64)) {
    if ((n40 < 768)) {
      *(b_out2 + ((m38 * 768) + n40)) = sum38;
    }
  }
  const int m39 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n41 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m39 < 64)) {
    if ((n41 < 768)) {
      *(b_out2 + ((m39 * 768) + n41)) = sum39;
    }
  }
  const int m40 = ((row_ + 32) + (lane3 / 4));
  const int n42 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m40 < 64)) {
    if ((n42 < 768)) {
      *(b_out2 + ((m40 * 768) + n42)) = sum40;
    }
  }
  const int m41 = ((row_ + 32) + (lane3 / 4));
  const int n43 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m41 < 64)) {
    if ((n43 < 768)) {
      *(b_out2 + ((m41 * 768) + n43)) = sum41;
    }
  }
  const int m42 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n44 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m42 < 64)) {
    if ((n44 < 768)) {
      *(b_out2 + ((m42 * 768) + n44)) = sum42;
    }
  }
  const int m43 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n45 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m43 < 64)) {
    if ((n45 < 768)) {
      *(b_out2 + ((m43 * 768) + n45)) = sum43;
    }
  }
  const int m44 = ((row_ + 32) + (lane3 / 4));
  const int n46 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m44 < 64)) {
    if ((n46 < 768)) {
      *(b_out2 + ((m44 * 768) + n46)) = sum44;
    }
  }
  const int m45 = ((row_ + 32) + (lane3 / 4));
  const int n47 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m45 < 64)) {
    if ((n47 < 768)) {
      *(b_out2 + ((m45 * 768) + n47)) = sum45;
    }
  }
  const int m46 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n48 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m46 < 64)) {
    if ((n48 < 768)) {
      *(b_out2 + ((m46 * 768) + n48)) = sum46;
    }
  }
  const int m47 = (((row_ + 32) + (lane3 / 4)) + 8);
  const int n49 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m47 < 64)) {
    if ((n49 < 768)) {
      *(b_out2 + ((m47 * 768) + n49)) = sum47;
    }
  }
  const int m48 = ((row_ + 48) + (lane3 / 4));
  const int n50 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m48 < 64)) {
    if ((n50 < 768)) {
      *(b_out2 + ((m48 * 768) + n50)) = sum48;
    }
  }
  const int m49 = ((row_ + 48) + (lane3 / 4));
  const int n51 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m49 < 64)) {
    if ((n51 < 768)) {
      *(b_out2 + ((m49 * 768) + n51)) = sum49;
    }
  }
  const int m50 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n52 = ((column_ + n1) + ((lane3 % 4) * 2));
  if ((m50 < 64)) {
    if ((n52 < 768)) {
      *(b_out2 + ((m50 * 768) + n52)) = sum50;
    }
  }
  const int m51 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n53 = (((column_ + n1) + ((lane3 % 4) * 2)) + 1);
  if ((m51 < 64)) {
    if ((n53 < 768)) {
      *(b_out2 + ((m51 * 768) + n53)) = sum51;
    }
  }
  const int m52 = ((row_ + 48) + (lane3 / 4));
  const int n54 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m52 < 64)) {
    if ((n54 < 768)) {
      *(b_out2 + ((m52 * 768) + n54)) = sum52;
    }
  }
  const int m53 = ((row_ + 48) + (lane3 / 4));
  const int n55 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m53 < 64)) {
    if ((n55 < 768)) {
      *(b_out2 + ((m53 * 768) + n55)) = sum53;
    }
  }
  const int m54 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n56 = (((column_ + n1) + 8) + ((lane3 % 4) * 2));
  if ((m54 < 64)) {
    if ((n56 < 768)) {
      *(b_out2 + ((m54 * 768) + n56)) = sum54;
    }
  }
  const int m55 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n57 = ((((column_ + n1) + 8) + ((lane3 % 4) * 2)) + 1);
  if ((m55 < 64)) {
    if ((n57 < 768)) {
      *(b_out2 + ((m55 * 768) + n57)) = sum55;
    }
  }
  const int m56 = ((row_ + 48) + (lane3 / 4));
  const int n58 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m56 < 64)) {
    if ((n58 < 768)) {
      *(b_out2 + ((m56 * 768) + n58)) = sum56;
    }
  }
  const int m57 = ((row_ + 48) + (lane3 / 4));
  const int n59 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m57 < 64)) {
    if ((n59 < 768)) {
      *(b_out2 + ((m57 * 768) + n59)) = sum57;
    }
  }
  const int m58 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n60 = (((column_ + n1) + 16) + ((lane3 % 4) * 2));
  if ((m58 < 64)) {
    if ((n60 < 768)) {
      *(b_out2 + ((m58 * 768) + n60)) = sum58;
    }
  }
  const int m59 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n61 = ((((column_ + n1) + 16) + ((lane3 % 4) * 2)) + 1);
  if ((m59 < 64)) {
    if ((n61 < 768)) {
      *(b_out2 + ((m59 * 768) + n61)) = sum59;
    }
  }
  const int m60 = ((row_ + 48) + (lane3 / 4));
  const int n62 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m60 < 64)) {
    if ((n62 < 768)) {
      *(b_out2 + ((m60 * 768) + n62)) = sum60;
    }
  }
  const int m61 = ((row_ + 48) + (lane3 / 4));
  const int n63 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m61 < 64)) {
    if ((n63 < 768)) {
      *(b_out2 + ((m61 * 768) + n63)) = sum61;
    }
  }
  const int m62 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n64 = (((column_ + n1) + 24) + ((lane3 % 4) * 2));
  if ((m62 < 64)) {
    if ((n64 < 768)) {
      *(b_out2 + ((m62 * 768) + n64)) = sum62;
    }
  }
  const int m63 = (((row_ + 48) + (lane3 / 4)) + 8);
  const int n65 = ((((column_ + n1) + 24) + ((lane3 % 4) * 2)) + 1);
  if ((m63 < 64)) {
    if ((n65 < 768)) {
      *(b_out2 + ((m63 * 768) + n65)) = sum63;
    }
  }
}
