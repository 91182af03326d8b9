struct __align__(64) xy_tensor_map { unsigned long long words[16]; };
static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
static __device__ __forceinline__ void xy_mbarrier_init(void *at, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(arrivals) : "memory"); }
static __device__ __forceinline__ void xy_mbarriers_ready() { asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); }
static __device__ __forceinline__ int xy_passed(void *at, int parity) { int passed; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(passed) : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(parity) : "memory"); return passed; }
static __device__ __forceinline__ void xy_expect(void *at, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(bytes) : "memory"); }
static __device__ __forceinline__ void xy_copy_tensor_2(void *to, const xy_tensor_map &map, void *at, int x0, int x1) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(&map), "r"((unsigned)__cvta_generic_to_shared(at)), "r"(x0), "r"(x1) : "memory"); }
static __device__ __forceinline__ void xy_dot_bf16_128_01(unsigned long long a, unsigned long long b, float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1; }" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) : "l"(a), "l"(b)); }
static __device__ __forceinline__ unsigned long long xy_matrix(const void *at, int apart) { const unsigned long long address = __cvta_generic_to_shared(at); return (address & 0x3ffff) >> 4 | (unsigned long long)(apart >> 4) << 16 | 64ull << 32 | 1ull << 62; }
static __device__ __forceinline__ void xy_arrive(void *at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory"); }
static __device__ __forceinline__ void xy_products_complete_64(float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) :: "memory"); }
struct __align__(8) xy_f32x2 { float e[2]; };
extern "C" __global__ void __launch_bounds__(256, 1) xy_gemm_bf16_wgmma_64x128(const unsigned short *b_a0, const unsigned short *b_b1, float *b_out2, const __grid_constant__ xy_tensor_map m_a0, const __grid_constant__ xy_tensor_map m_b1, const int p_0, const int p_1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  extern __shared__ __align__(1024) unsigned char xy_shared[];
  unsigned short *const tile_ = (unsigned short *)(xy_shared + 0);
  unsigned short *const tile1 = (unsigned short *)(xy_shared + 24576);
  long long *const full_ = (long long *)(xy_shared + 73728);
  long long *const empty_ = (long long *)(xy_shared + 73776);
  const int band_ = (block / 48);
  const int inside_ = (block - (band_ * 48));
  const int rows_ = xy_min_index((p_0 - (band_ * 8)), 8);
  const int down_ = ((band_ * 8) + (inside_ % rows_));
  const int across_ = (inside_ / rows_);
  const int row_ = (down_ * 64);
  const int column_ = (across_ * 128);
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
    const int down1 = (group_ * 4096);
    for (int step1 = 0; step1 < 12; step1 += 1) {
      const int slot1 = (step1 % 3);
      while (!xy_passed(full_ + (slot1 * 2), ((step1 / 3) % 2))) {}
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + down1, 16), xy_matrix(tile1 + (slot1 * 8192), 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down1 + 16), 16), xy_matrix(tile1 + (slot1 * 8192) + 1024, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down1 + 32), 16), xy_matrix(tile1 + (slot1 * 8192) + 2048, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096) + (down1 + 48), 16), xy_matrix(tile1 + (slot1 * 8192) + 3072, 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
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
    if ((top_ < p_1)) {
      if ((left_ < 768)) {
        const int from_ = ((top_ * 768) + left_);
        *(xy_f32x2 *)(b_out2 + from_) = xy_f32x2{{sum_, sum1}};
      }
      const int n_ = (left_ + 8);
      if ((n_ < 768)) {
        const int from1 = ((top_ * 768) + n_);
        *(xy_f32x2 *)(b_out2 + from1) = xy_f32x2{{sum4, sum5}};
      }
      const int n1 = (left_ + 16);
      if ((n1 < 768)) {
        const int from2 = ((top_ * 768) + n1);
        *(xy_f32x2 *)(b_out2 + from2) = xy_f32x2{{sum8, sum9}};
      }
      const int n2 = (left_ + 24);
      if ((n2 < 768)) {
        const int from3 = ((top_ * 768) + n2);
        *(xy_f32x2 *)(b_out2 + from3) = xy_f32x2{{sum12, sum13}};
      }
      const int n3 = (left_ + 32);
      if ((n3 < 768)) {
        const int from4 = ((top_ * 768) + n3);
        *(xy_f32x2 *)(b_out2 + from4) = xy_f32x2{{sum16, sum17}};
      }
      const int n4 = (left_ + 40);
      if ((n4 < 768)) {
        const int from5 = ((top_ * 768) + n4);
        *(xy_f32x2 *)(b_out2 + from5) = xy_f32x2{{sum20, sum21}};
      }
      const int n5 = (left_ + 48);
      if ((n5 < 768)) {
        const int from6 = ((top_ * 768) + n5);
        *(xy_f32x2 *)(b_out2 + from6) = xy_f32x2{{sum24, sum25}};
      }
      const int n6 = (left_ + 56);
      if ((n6 < 768)) {
        const int from7 = ((top_ * 768) + n6);
        *(xy_f32x2 *)(b_out2 + from7) = xy_f32x2{{sum28, sum29}};
      }
      const int n7 = (left_ + 64);
      if ((n7 < 768)) {
        const int from8 = ((top_ * 768) + n7);
        *(xy_f32x2 *)(b_out2 + from8) = xy_f32x2{{sum32, sum33}};
      }
      const int n8 = (left_ + 72);
      if ((n8 < 768)) {
        const int from9 = ((top_ * 768) + n8);
        *(xy_f32x2 *)(b_out2 + from9) = xy_f32x2{{sum36, sum37}};
      }
      const int n9 = (left_ + 80);
      if ((n9 < 768)) {
        const int from10 = ((top_ * 768) + n9);
        *(xy_f32x2 *)(b_out2 + from10) = xy_f32x2{{sum40, sum41}};
      }
      const int n10 = (left_ + 88);
      if ((n10 < 768)) {
        const int from11 = ((top_ * 768) + n10);
        *(xy_f32x2 *)(b_out2 + from11) = xy_f32x2{{sum44, sum45}};
      }
      const int n11 = (left_ + 96);
      if ((n11 < 768)) {
        const int from12 = ((top_ * 768) + n11);
        *(xy_f32x2 *)(b_out2 + from12) = xy_f32x2{{sum48, sum49}};
      }
      const int n12 = (left_ + 104);
      if ((n12 < 768)) {
        const int from13 = ((top_ * 768) + n12);
        *(xy_f32x2 *)(b_out2 + from13) = xy_f32x2{{sum52, sum53}};
      }
      const int n13 = (left_ + 112);
      if ((n13 < 768)) {
        const int from14 = ((top_ * 768) + n13);
        *(xy_f32x2 *)(b_out2 + from14) = xy_f32x2{{sum56, sum57}};
      }
      const int n14 = (left_ + 120);
      if ((n14 < 768)) {
        const int from15 = ((top_ * 768) + n14);
        *(xy_f32x2 *)(b_out2 + from15) = xy_f32x2{{sum60, sum61}};
      }
    }
    const int m_ = (top_ + 8);
    if ((m_ < p_1)) {
      if ((left_ < 768)) {
        const int from16 = ((m_ * 768) + left_);
        *(xy_f32x2 *)(b_out2 + from16) = xy_f32x2{{sum2, sum3}};
      }
      const int n15 = (left_ + 8);
      if ((n15 < 768)) {
        const int from17 = ((m_ * 768) + n15);
        *(xy_f32x2 *)(b_out2 + from17) = xy_f32x2{{sum6, sum7}};
      }
      const int n16 = (left_ + 16);
      if ((n16 < 768)) {
        const int from18 = ((m_ * 768) + n16);
        *(xy_f32x2 *)(b_out2 + from18) = xy_f32x2{{sum10, sum11}};
      }
      const int n17 = (left_ + 24);
      if ((n17 < 768)) {
        const int from19 = ((m_ * 768) + n17);
        *(xy_f32x2 *)(b_out2 + from19) = xy_f32x2{{sum14, sum15}};
      }
      const int n18 = (left_ + 32);
      if ((n18 < 768)) {
        const int from20 = ((m_ * 768) + n18);
        *(xy_f32x2 *)(b_out2 + from20) = xy_f32x2{{sum18, sum19}};
      }
      const int n19 = (left_ + 40);
      if ((n19 < 768)) {
        const int from21 = ((m_ * 768) + n19);
        *(xy_f32x2 *)(b_out2 + from21) = xy_f32x2{{sum22, sum23}};
      }
      const int n20 = (left_ + 48);
      if ((n20 < 768)) {
        const int from22 = ((m_ * 768) + n20);
        *(xy_f32x2 *)(b_out2 + from22) = xy_f32x2{{sum26, sum27}};
      }
      const int n21 = (left_ + 56);
      if ((n21 < 768)) {
        const int from23 = ((m_ * 768) + n21);
        *(xy_f32x2 *)(b_out2 + from23) = xy_f32x2{{sum30, sum31}};
      }
      const int n22 = (left_ + 64);
      if ((n22 < 768)) {
        const int from24 = ((m_ * 768) + n22);
        *(xy_f32x2 *)(b_out2 + from24) = xy_f32x2{{sum34, sum35}};
      }
      const int n23 = (left_ + 72);
      if ((n23 < 768)) {
        const int from25 = ((m_ * 768) + n23);
        *(xy_f32x2 *)(b_out2 + from25) = xy_f32x2{{sum38, sum39}};
      }
      const int n24 = (left_ + 80);
      if ((n24 < 768)) {
        const int from26 = ((m_ * 768) + n24);
        *(xy_f32x2 *)(b_out2 + from26) = xy_f32x2{{sum42, sum43}};
      }
      const int n25 = (left_ + 88);
      if ((n25 < 768)) {
        const int from27 = ((m_ * 768) + n25);
        *(xy_f32x2 *)(b_out2 + from27) = xy_f32x2{{sum46, sum47}};
      }
      const int n26 = (left_ + 96);
      if ((n26 < 768)) {
        const int from28 = ((m_ * 768) + n26);
        *(xy_f32x2 *)(b_out2 + from28) = xy_f32x2{{sum50, sum51}};
      }
      const int n27 = (left_ + 104);
      if ((n27 < 768)) {
        const int from29 = ((m_ * 768) + n27);
        *(xy_f32x2 *)(b_out2 + from29) = xy_f32x2{{sum54, sum55}};
      }
      const int n28 = (left_ + 112);
      if ((n28 < 768)) {
        const int from30 = ((m_ * 768) + n28);
        *(xy_f32x2 *)(b_out2 + from30) = xy_f32x2{{sum58, sum59}};
      }
      const int n29 = (left_ + 120);
      if ((n29 < 768)) {
        const int from31 = ((m_ * 768) + n29);
        *(xy_f32x2 *)(b_out2 + from31) = xy_f32x2{{sum62, sum63}};
      }
    }
  }
}
