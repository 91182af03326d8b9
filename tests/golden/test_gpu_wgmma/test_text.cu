struct __align__(64) xy_tensor_map { unsigned long long words[16]; };
static __device__ __forceinline__ void xy_mbarrier_init(void *at, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(arrivals) : "memory"); }
static __device__ __forceinline__ void xy_mbarriers_ready() { asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); }
static __device__ __forceinline__ int xy_passed(void *at, int parity) { int passed; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(passed) : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(parity) : "memory"); return passed; }
static __device__ __forceinline__ void xy_expect(void *at, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(bytes) : "memory"); }
static __device__ __forceinline__ void xy_copy_tensor_2(void *to, const xy_tensor_map &map, void *at, int x0, int x1) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(&map), "r"((unsigned)__cvta_generic_to_shared(at)), "r"(x0), "r"(x1) : "memory"); }
static __device__ __forceinline__ void xy_dot_bf16_128_01(unsigned long long a, unsigned long long b, float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1; }" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) : "l"(a), "l"(b)); }
static __device__ __forceinline__ unsigned long long xy_matrix(const void *at, int apart) { const unsigned long long address = __cvta_generic_to_shared(at); return (address & 0x3ffff) >> 4 | (unsigned long long)(apart >> 4) << 16 | 64ull << 32 | 1ull << 62; }
static __device__ __forceinline__ void xy_arrive(void *at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory"); }
static __device__ __forceinline__ void xy_products_complete_64(float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) :: "memory"); }
extern "C" __global__ void __launch_bounds__(256, 1) xy_gemm_bf16_wgmma_64x128(const unsigned short *b_a0, const unsigned short *b_b1, float *b_out2, const __grid_constant__ xy_tensor_map m_a0, const __grid_constant__ xy_tensor_map m_b1, const int p_0) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  extern __shared__ __align__(1024) unsigned char xy_shared[];
  unsigned short *const tile_ = (unsigned short *)(xy_shared + 0);
  unsigned short *const tile1 = (unsigned short *)(xy_shared + 24576);
  long long *const full_ = (long long *)(xy_shared + 73728);
  long long *const empty_ = (long long *)(xy_shared + 73776);
  const int i_ = (block % 6);
  const int i1 = (block / 6);
  const int row_ = (i1 * 64);
  const int column_ = (i_ * 128);
  if (thread == 0) {
    for (int i = 0; i < 3; ++i) xy_mbarrier_init(full_ + 2 * i, 1);
    for (int i = 0; i < 3; ++i) xy_mbarrier_init(empty_ + 2 * i, 4);
    xy_mbarriers_ready();
  }
  __syncthreads();
  if (thread < 128) {  // copies
    if (thread == 0) {
      for (int step_ = 0; step_ < 12; step_ += 1) {
        const int slot_ = (step_ % 3);
        while (!xy_passed(empty_ + (slot_ * 2), (1 - ((step_ / 3) % 2)))) {}
        xy_expect(full_ + (slot_ * 2), 24576);
        const int k_ = (step_ * 64);
        xy_copy_tensor_2(tile_ + (slot_ * 4096), m_a0, full_ + (slot_ * 2), k_, row_);
        xy_copy_tensor_2(tile1 + (slot_ * 8192), m_b1, full_ + (slot_ * 2), column_, k_);
        xy_copy_tensor_2(tile1 + 4096 + (slot_ * 8192), m_b1, full_ + (slot_ * 2), (column_ + 64), k_);
      }
    }
  }
  else {  // multiplies
    const int member_ = (thread - 128);
    const int group_ = (member_ / 128);
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
    const int down_ = (group_ * 4096);
    for (int step1 = 0; step1 < 12; step1 += 1) {
      const int slot1 = (step1 % 3);
      while (!xy_passed(full_ + (slot1 * 2), ((step1 / 3) % 2))) {}
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + down_, 16), xy_matrix(tile1 + (slot1 * 8192), 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down_ + 16), 16), xy_matrix(tile1 + (slot1 * 8192) + 1024, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down_ + 32), 16), xy_matrix(tile1 + (slot1 * 8192) + 2048, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down_ + 48), 16), xy_matrix(tile1 + (slot1 * 8192) + 3072, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if ((0 < step1)) {
        const int before_ = ((step1 - 1) % 3);
        if (thread % 32 == 0) xy_arrive(empty_ + (before_ * 2));
      }
    }
    xy_products_complete_64(sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
    const int lane_ = (member_ % 32);
    const int top_ = (((row_ + (group_ * 64)) + (((member_ % 128) / 32) * 16)) + (lane_ / 4));
    const int left_ = (column_ + ((lane_ % 4) * 2));
    if ((top_ < p_0)) {
      if ((left_ < 768)) {
        *(b_out2 + ((top_ * 768) + left_)) = sum_;
      }
    }
    const int n_ = (left_ + 1);
    if ((top_ < p_0)) {
      if ((n_ < 768)) {
        *(b_out2 + ((top_ * 768) + n_)) = sum1;
      }
    }
    const int m_ = (top_ + 8);
    if ((m_ < p_0)) {
      if ((left_ < 768)) {
        *(b_out2 + ((m_ * 768) + left_)) = sum2;
      }
    }
    const int m1 = (top_ + 8);
    const int n1 = (left_ + 1);
    if ((m1 < p_0)) {
      if ((n1 < 768)) {
        *(b_out2 + ((m1 * 768) + n1)) = sum3;
      }
    }
    const int n2 = (left_ + 8);
    if ((top_ < p_0)) {
      if ((n2 < 768)) {
        *(b_out2 + ((top_ * 768) + n2)) = sum4;
      }
    }
    const int n3 = ((left_ + 8) + 1);
    if ((top_ < p_0)) {
      if ((n3 < 768)) {
        *(b_out2 + ((top_ * 768) + n3)) = sum5;
      }
    }
    const int m2 = (top_ + 8);
    const int n4 = (left_ + 8);
    if ((m2 < p_0)) {
      if ((n4 < 768)) {
        *(b_out2 + ((m2 * 768) + n4)) = sum6;
      }
    }
    const int m3 = (top_ + 8);
    const int n5 = ((left_ + 8) + 1);
    if ((m3 < p_0)) {
      if ((n5 < 768)) {
        *(b_out2 + ((m3 * 768) + n5)) = sum7;
      }
    }
    const int n6 = (left_ + 16);
    if ((top_ < p_0)) {
      if ((n6 < 768)) {
        *(b_out2 + ((top_ * 768) + n6)) = sum8;
      }
    }
    const int n7 = ((left_ + 16) + 1);
    if ((top_ < p_0)) {
      if ((n7 < 768)) {
        *(b_out2 + ((top_ * 768) + n7)) = sum9;
      }
    }
    const int m4 = (top_ + 8);
    const int n8 = (left_ + 16);
    if ((m4 < p_0)) {
      if ((n8 < 768)) {
        *(b_out2 + ((m4 * 768) + n8)) = sum10;
      }
    }
    const int m5 = (top_ + 8);
    const int n9 = ((left_ + 16) + 1);
    if ((m5 < p_0)) {
      if ((n9 < 768)) {
        *(b_out2 + ((m5 * 768) + n9)) = sum11;
      }
    }
    const int n10 = (left_ + 24);
    if ((top_ < p_0)) {
      if ((n10 < 768)) {
        *(b_out2 + ((top_ * 768) + n10)) = sum12;
      }
    }
    const int n11 = ((left_ + 24) + 1);
    if ((top_ < p_0)) {
      if ((n11 < 768)) {
        *(b_out2 + ((top_ * 768) + n11)) = sum13;
      }
    }
    const int m6 = (top_ + 8);
    const int n12 = (left_ + 24);
    if ((m6 < p_0)) {
      if ((n12 < 768)) {
        *(b_out2 + ((m6 * 768) + n12)) = sum14;
      }
    }
    const int m7 = (top_ + 8);
    const int n13 = ((left_ + 24) + 1);
    if ((m7 < p_0)) {
      if ((n13 < 768)) {
        *(b_out2 + ((m7 * 768) + n13)) = sum15;
      }
    }
    const int n14 = (left_ + 32);
    if ((top_ < p_0)) {
      if ((n14 < 768)) {
        *(b_out2 + ((top_ * 768) + n14)) = sum16;
      }
    }
    const int n15 = ((left_ + 32) + 1);
    if ((top_ < p_0)) {
      if ((n15 < 768)) {
        *(b_out2 + ((top_ * 768) + n15)) = sum17;
      }
    }
    const int m8 = (top_ + 8);
    const int n16 = (left_ + 32);
    if ((m8 < p_0)) {
      if ((n16 < 768)) {
        *(b_out2 + ((m8 * 768) + n16)) = sum18;
      }
    }
    const int m9 = (top_ + 8);
    const int n17 = ((left_ + 32) + 1);
    if ((m9 < p_0)) {
      if ((n17 < 768)) {
        *(b_out2 + ((m9 * 768) + n17)) = sum19;
      }
    }
    const int n18 = (left_ + 40);
    if ((top_ < p_0)) {
      if ((n18 < 768)) {
        *(b_out2 + ((top_ * 768) + n18)) = sum20;
      }
    }
    const int n19 = ((left_ + 40) + 1);
    if ((top_ < p_0)) {
      if ((n19 < 768)) {
        *(b_out2 + ((top_ * 768) + n19)) = sum21;
      }
    }
    const int m10 = (top_ + 8);
    const int n20 = (left_ + 40);
    if ((m10 < p_0)) {
      if ((n20 < 768)) {
        *(b_out2 + ((m10 * 768) + n20)) = sum22;
      }
    }
    const int m11 = (top_ + 8);
    const int n21 = ((left_ + 40) + 1);
    if ((m11 < p_0)) {
      if ((n21 < 768)) {
        *(b_out2 + ((m11 * 768) + n21)) = sum23;
      }
    }
    const int n22 = (left_ + 48);
    if ((top_ < p_0)) {
      if ((n22 < 768)) {
        *(b_out2 + ((top_ * 768) + n22)) = sum24;
      }
    }
    const int n23 = ((left_ + 48) + 1);
    if ((top_ < p_0)) {
      if ((n23 < 768)) {
        *(b_out2 + ((top_ * 768) + n23)) = sum25;
      }
    }
    const int m12 = (top_ + 8);
    const int n24 = (left_ + 48);
    if ((m12 < p_0)) {
      if ((n24 < 768)) {
        *(b_out2 + ((m12 * 768) + n24)) = sum26;
      }
    }
    const int m13 = (top_ + 8);
    const int n25 = ((left_ + 48) + 1);
    if ((m13 < p_0)) {
      if ((n25 < 768)) {
        *(b_out2 + ((m13 * 768) + n25)) = sum27;
      }
    }
    const int n26 = (left_ + 56);
    if ((top_ < p_0)) {
      if ((n26 < 768)) {
        *(b_out2 + ((top_ * 768) + n26)) = sum28;
      }
    }
    const int n27 = ((left_ + 56) + 1);
    if ((top_ < p_0)) {
      if ((n27 < 768)) {
        *(b_out2 + ((top_ * 768) + n27)) = sum29;
      }
    }
    const int m14 = (top_ + 8);
    const int n28 = (left_ + 56);
    if ((m14 < p_0)) {
      if ((n28 < 768)) {
        *(b_out2 + ((m14 * 768) + n28)) = sum30;
      }
    }
    const int m15 = (top_ + 8);
    const int n29 = ((left_ + 56) + 1);
    if ((m15 < p_0)) {
      if ((n29 < 768)) {
        *(b_out2 + ((m15 * 768) + n29)) = sum31;
      }
    }
    const int n30 = (left_ + 64);
    if ((top_ < p_0)) {
      if ((n30 < 768)) {
        *(b_out2 + ((top_ * 768) + n30)) = sum32;
      }
    }
    const int n31 = ((left_ + 64) + 1);
    if ((top_ < p_0)) {
      if ((n31 < 768)) {
        *(b_out2 + ((top_ * 768) + n31)) = sum33;
      }
    }
    const int m16 = (top_ + 8);
    const int n32 = (left_ + 64);
    if ((m16 < p_0)) {
      if ((n32 < 768)) {
        *(b_out2 + ((m16 * 768) + n32)) = sum34;
      }
    }
    const int m17 = (top_ + 8);
    const int n33 = ((left_ + 64) + 1);
    if ((m17 < p_0)) {
      if ((n33 < 768)) {
        *(b_out2 + ((m17 * 768) + n33)) = sum35;
      }
    }
    const int n34 = (left_ + 72);
    if ((top_ < p_0)) {
      if ((n34 < 768)) {
        *(b_out2 + ((top_ * 768) + n34)) = sum36;
      }
    }
    const int n35 = ((left_ + 72) + 1);
    if ((top_ < p_0)) {
      if ((n35 < 768)) {
        *(b_out2 + ((top_ * 768) + n35)) = sum37;
      }
    }
    const int m18 = (top_ + 8);
    const int n36 = (left_ + 72);
    if ((m18 < p_0)) {
      if ((n36 < 768)) {
        *(b_out2 + ((m18 * 768) + n36)) = sum38;
      }
    }
    const int m19 = (top_ + 8);
    const int n37 = ((left_ + 72) + 1);
    if ((m19 < p_0)) {
      if ((n37 < 768)) {
        *(b_out2 + ((m19 * 768) + n37)) = sum39;
      }
    }
    const int n38 = (left_ + 80);
    if ((top_ < p_0)) {
      if ((n38 < 768)) {
        *(b_out2 + ((top_ * 768) + n38)) = sum40;
      }
    }
    const int n39 = ((left_ + 80) + 1);
    if ((top_ < p_0)) {
      if ((n39 < 768)) {
        *(b_out2 + ((top_ * 768) + n39)) = sum41;
      }
    }
    const int m20 = (top_ + 8);
    const int n40 = (left_ + 80);
    if ((m20 < p_0)) {
      if ((n40 < 768)) {
        *(b_out2 + ((m20 * 768) + n40)) = sum42;
      }
    }
    const int m21 = (top_ + 8);
    const int n41 = ((left_ + 80) + 1);
    if ((m21 < p_0)) {
      if ((n41 < 768)) {
        *(b_out2 + ((m21 * 768) + n41)) = sum43;
      }
    }
    const int n42 = (left_ + 88);
    if ((top_ < p_0)) {
      if ((n42 < 768)) {
        *(b_out2 + ((top_ * 768) + n42)) = sum44;
      }
    }
    const int n43 = ((left_ + 88) + 1);
    if ((top_ < p_0)) {
      if ((n43 < 768)) {
        *(b_out2 + ((top_ * 768) + n43)) = sum45;
      }
    }
    const int m22 = (top_ + 8);
    const int n44 = (left_ + 88);
    if ((m22 < p_0)) {
      if ((n44 < 768)) {
        *(b_out2 + ((m22 * 768) + n44)) = sum46;
      }
    }
    const int m23 = (top_ + 8);
    const int n45 = ((left_ + 88) + 1);
    if ((m23 < p_0)) {
      if ((n45 < 768)) {
        *(b_out2 + ((m23 * 768) + n45)) = sum47;
      }
    }
    const int n46 = (left_ + 96);
    if ((top_ < p_0)) {
      if ((n46 < 768)) {
        *(b_out2 + ((top_ * 768) + n46)) = sum48;
      }
    }
    const int n47 = ((left_ + 96) + 1);
    if ((top_ < p_0)) {
      if ((n47 < 768)) {
        *(b_out2 + ((top_ * 768) + n47)) = sum49;
      }
    }
    const int m24 = (top_ + 8);
    const int n48 = (left_ + 96);
    if ((m24 < p_0)) {
      if ((n48 < 768)) {
        *(b_out2 + ((m24 * 768) + n48)) = sum50;
      }
    }
    const int m25 = (top_ + 8);
    const int n49 = ((left_ + 96) + 1);
    if ((m25 < p_0)) {
      if ((n49 < 768)) {
        *(b_out2 + ((m25 * 768) + n49)) = sum51;
      }
    }
    const int n50 = (left_ + 104);
    if ((top_ < p_0)) {
      if ((n50 < 768)) {
        *(b_out2 + ((top_ * 768) + n50)) = sum52;
      }
    }
    const int n51 = ((left_ + 104) + 1);
    if ((top_ < p_0)) {
      if ((n51 < 768)) {
        *(b_out2 + ((top_ * 768) + n51)) = sum53;
      }
    }
    const int m26 = (top_ + 8);
    const int n52 = (left_ + 104);
    if ((m26 < p_0)) {
      if ((n52 < 768)) {
        *(b_out2 + ((m26 * 768) + n52)) = sum54;
      }
    }
    const int m27 = (top_ + 8);
    const int n53 = ((left_ + 104) + 1);
    if ((m27 < p_0)) {
      if ((n53 < 768)) {
        *(b_out2 + ((m27 * 768) + n53)) = sum55;
      }
    }
    const int n54 = (left_ + 112);
    if ((top_ < p_0)) {
      if ((n54 < 768)) {
        *(b_out2 + ((top_ * 768) + n54)) = sum56;
      }
    }
    const int n55 = ((left_ + 112) + 1);
    if ((top_ < p_0)) {
      if ((n55 < 768)) {
        *(b_out2 + ((top_ * 768) + n55)) = sum57;
      }
    }
    const int m28 = (top_ + 8);
    const int n56 = (left_ + 112);
    if ((m28 < p_0)) {
      if ((n56 < 768)) {
        *(b_out2 + ((m28 * 768) + n56)) = sum58;
      }
    }
    const int m29 = (top_ + 8);
    const int n57 = ((left_ + 112) + 1);
    if ((m29 < p_0)) {
      if ((n57 < 768)) {
        *(b_out2 + ((m29 * 768) + n57)) = sum59;
      }
    }
    const int n58 = (left_ + 120);
    if ((top_ < p_0)) {
      if ((n58 < 768)) {
        *(b_out2 + ((top_ * 768) + n58)) = sum60;
      }
    }
    const int n59 = ((left_ + 120) + 1);
    if ((top_ < p_0)) {
      if ((n59 < 768)) {
        *(b_out2 + ((top_ * 768) + n59)) = sum61;
      }
    }
    const int m30 = (top_ + 8);
    const int n60 = (left_ + 120);
    if ((m30 < p_0)) {
      if ((n60 < 768)) {
        *(b_out2 + ((m30 * 768) + n60)) = sum62;
      }
    }
    const int m31 = (top_ + 8);
    const int n61 = ((left_ + 120) + 1);
    if ((m31 < p_0)) {
      if ((n61 < 768)) {
        *(b_out2 + ((m31 * 768) + n61)) = sum63;
      }
    }
  }
}
