struct __align__(64) xy_tensor_map { unsigned long long words[16]; };
static __device__ __forceinline__ void xy_mbarrier_init(void *at, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(arrivals) : "memory"); }
static __device__ __forceinline__ void xy_mbarriers_ready() { asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); }
static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
static __device__ __forceinline__ int xy_passed(void *at, int parity) { int passed; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(passed) : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(parity) : "memory"); return passed; }
static __device__ __forceinline__ void xy_expect(void *at, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(at)), "r"(bytes) : "memory"); }
static __device__ __forceinline__ void xy_copy_tensor_2(void *to, const xy_tensor_map &map, void *at, int x0, int x1) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(&map), "r"((unsigned)__cvta_generic_to_shared(at)), "r"(x0), "r"(x1) : "memory"); }
static __device__ __forceinline__ int xy_of_warp(int v) { return __shfl_sync(0xffffffffu, v, 0); }
static __device__ __forceinline__ void xy_dot_bf16_128_01(unsigned long long a, unsigned long long b, float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 1; }" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) : "l"(a), "l"(b)); }
static __device__ __forceinline__ unsigned long long xy_matrix(const void *at, int apart) { const unsigned long long address = __cvta_generic_to_shared(at); return (address & 0x3ffff) / 16 | (unsigned long long)(apart / 16) << 16 | 64ull << 32 | 1ull << 62; }
static __device__ __forceinline__ void xy_arrive(void *at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory"); }
static __device__ __forceinline__ void xy_products_complete_64(float &c0, float &c1, float &c2, float &c3, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, float &c12, float &c13, float &c14, float &c15, float &c16, float &c17, float &c18, float &c19, float &c20, float &c21, float &c22, float &c23, float &c24, float &c25, float &c26, float &c27, float &c28, float &c29, float &c30, float &c31, float &c32, float &c33, float &c34, float &c35, float &c36, float &c37, float &c38, float &c39, float &c40, float &c41, float &c42, float &c43, float &c44, float &c45, float &c46, float &c47, float &c48, float &c49, float &c50, float &c51, float &c52, float &c53, float &c54, float &c55, float &c56, float &c57, float &c58, float &c59, float &c60, float &c61, float &c62, float &c63) { asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3), "+f"(c4), "+f"(c5), "+f"(c6), "+f"(c7), "+f"(c8), "+f"(c9), "+f"(c10), "+f"(c11), "+f"(c12), "+f"(c13), "+f"(c14), "+f"(c15), "+f"(c16), "+f"(c17), "+f"(c18), "+f"(c19), "+f"(c20), "+f"(c21), "+f"(c22), "+f"(c23), "+f"(c24), "+f"(c25), "+f"(c26), "+f"(c27), "+f"(c28), "+f"(c29), "+f"(c30), "+f"(c31), "+f"(c32), "+f"(c33), "+f"(c34), "+f"(c35), "+f"(c36), "+f"(c37), "+f"(c38), "+f"(c39), "+f"(c40), "+f"(c41), "+f"(c42), "+f"(c43), "+f"(c44), "+f"(c45), "+f"(c46), "+f"(c47), "+f"(c48), "+f"(c49), "+f"(c50), "+f"(c51), "+f"(c52), "+f"(c53), "+f"(c54), "+f"(c55), "+f"(c56), "+f"(c57), "+f"(c58), "+f"(c59), "+f"(c60), "+f"(c61), "+f"(c62), "+f"(c63) :: "memory"); }
struct __align__(16) xy_f32x4 { float e[4]; };
extern "C" __global__ void __launch_bounds__(384, 1) xy_gemm_bf16_wgmma_64x128x2x1(const unsigned short *b_a0, const unsigned short *b_b1, float *b_out2, const __grid_constant__ xy_tensor_map m_a0, const __grid_constant__ xy_tensor_map m_b1, const int p_0, const int p_1, const int p_2, const int p_3) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  extern __shared__ __align__(1024) unsigned char xy_shared[];
  unsigned short *const tile_ = (unsigned short *)(xy_shared + 0);
  unsigned short *const tile1 = (unsigned short *)(xy_shared + 65536);
  long long *const full_ = (long long *)(xy_shared + 196608);
  long long *const empty_ = (long long *)(xy_shared + 196736);
  long long *const mine_ = (long long *)(xy_shared + 196864);
  const int turns_ = (((p_1 - block) + (p_0 - 1)) / p_0);
  const int steps_ = 12;
  if (thread == 0) {
    for (int i = 0; i < 8; ++i) xy_mbarrier_init(full_ + 2 * i, 1);
    for (int i = 0; i < 8; ++i) xy_mbarrier_init(empty_ + 2 * i, 4);
    for (int i = 0; i < 2; ++i) xy_mbarrier_init(mine_ + 2 * i, 4);
    xy_mbarriers_ready();
  }
  __syncthreads();
  if (thread < 128) {  // copies
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0) {
      for (int turn_ = 0; turn_ < turns_; turn_ += 1) {
        const int tile2 = (block + (turn_ * p_0));
        const int band_ = (tile2 / 96);
        const int inside_ = (tile2 - (band_ * 96));
        const int rows_ = xy_min_index((p_2 - (band_ * 16)), 16);
        const int down_ = ((band_ * 16) + (inside_ % rows_));
        const int across_ = (inside_ / rows_);
        const int row_ = (down_ * 64);
        const int column_ = (across_ * 128);
        const int before_ = (turn_ * steps_);
        for (int step_ = 0; step_ < steps_; step_ += 1) {
          const int number_ = (before_ + step_);
          const int slot_ = (number_ % 8);
          while (!xy_passed(empty_ + (slot_ * 2), (1 - ((number_ / 8) % 2)))) {}
          xy_expect(full_ + (slot_ * 2), 24576);
          const int k_ = (step_ * 64);
          xy_copy_tensor_2(tile_ + (slot_ * 4096), m_a0, full_ + (slot_ * 2), k_, row_);
          xy_copy_tensor_2(tile1 + (slot_ * 8192), m_b1, full_ + (slot_ * 2), column_, k_);
          xy_copy_tensor_2(tile1 + 4096 + (slot_ * 8192), m_b1, full_ + (slot_ * 2), (column_ + 64), k_);
        }
      }
    }
  }
  else {  // multiplies
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group_ = xy_of_warp((thread - 128) / 128);
    const int lane_ = (thread % 32);
    const int row1 = ((((thread % 128) / 32) * 16) + (lane_ / 4));
    for (int turn1 = group_; turn1 < turns_; turn1 += 2) {
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
      const int before1 = (turn1 * steps_);
      const int group1 = (turn1 % 2);
      while (!xy_passed(mine_ + (group1 * 2), ((((turn1 / 2) + 1) - group1) % 2))) {}
      for (int step1 = 0; step1 < steps_; step1 += 1) {
        const int number1 = (before1 + step1);
        const int slot1 = (number1 % 8);
        while (!xy_passed(full_ + (slot1 * 2), ((number1 / 8) % 2))) {}
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096), 16), xy_matrix(tile1 + (slot1 * 8192), 8192), sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
        xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096), 16) + (unsigned)(16) / 8, xy_matrix(tile1 + (slot1 * 8192), 8192) + (unsigned)(1024) / 8, sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
        xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096), 16) + (unsigned)(32) / 8, xy_matrix(tile1 + (slot1 * 8192), 8192) + (unsigned)(2048) / 8, sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
        xy_dot_bf16_128_01(xy_matrix(tile_ + (slot1 * 4096), 16) + (unsigned)(48) / 8, xy_matrix(tile1 + (slot1 * 8192), 8192) + (unsigned)(3072) / 8, sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if ((0 < step1)) {
          const int read_ = ((number1 - 1) % 8);
          if (thread % 32 == 0) xy_arrive(empty_ + (read_ * 2));
        }
      }
      const int other_ = ((turn1 + 1) % 2);
      if (thread % 32 == 0) xy_arrive(mine_ + (other_ * 2));
      xy_products_complete_64(sum_, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31, sum32, sum33, sum34, sum35, sum36, sum37, sum38, sum39, sum40, sum41, sum42, sum43, sum44, sum45, sum46, sum47, sum48, sum49, sum50, sum51, sum52, sum53, sum54, sum55, sum56, sum57, sum58, sum59, sum60, sum61, sum62, sum63);
      if ((0 < steps_)) {
        const int read1 = ((before1 + (steps_ - 1)) % 8);
        if (thread % 32 == 0) xy_arrive(empty_ + (read1 * 2));
      }
      const int tile3 = (block + (turn1 * p_0));
      const int band1 = (tile3 / 96);
      const int inside1 = (tile3 - (band1 * 96));
      const int rows1 = xy_min_index((p_2 - (band1 * 16)), 16);
      const int down1 = ((band1 * 16) + (inside1 % rows1));
      const int across1 = (inside1 / rows1);
      const int row2 = (down1 * 64);
      const int column1 = (across1 * 128);
      const int left_ = (column1 + (((lane_ % 2) * 8) + (((lane_ % 4) / 2) * 4)));
      const int odd_ = (lane_ % 2);
      const int m_ = (row2 + row1);
      const float given_ = (odd_ ? sum_ : sum4);
      const float given1 = (odd_ ? sum1 : sum5);
      const float taken_ = __shfl_xor_sync(0xffffffffu, given_, 1);
      const float taken1 = __shfl_xor_sync(0xffffffffu, given1, 1);
      const float low_ = (odd_ ? taken_ : sum_);
      const float low1 = (odd_ ? taken1 : sum1);
      const float high_ = (odd_ ? sum4 : taken_);
      const float high1 = (odd_ ? sum5 : taken1);
      if ((m_ < p_3)) {
        const int from_ = ((m_ * 768) + left_);
        *(xy_f32x4 *)(b_out2 + from_) = xy_f32x4{{low_, low1, high_, high1}};
      }
      const float given2 = (odd_ ? sum8 : sum12);
      const float given3 = (odd_ ? sum9 : sum13);
      const float taken2 = __shfl_xor_sync(0xffffffffu, given2, 1);
      const float taken3 = __shfl_xor_sync(0xffffffffu, given3, 1);
      const float low2 = (odd_ ? taken2 : sum8);
      const float low3 = (odd_ ? taken3 : sum9);
      const float high2 = (odd_ ? sum12 : taken2);
      const float high3 = (odd_ ? sum13 : taken3);
      const int n_ = (left_ + 16);
      if ((m_ < p_3)) {
        const int from1 = ((m_ * 768) + n_);
        *(xy_f32x4 *)(b_out2 + from1) = xy_f32x4{{low2, low3, high2, high3}};
      }
      const float given4 = (odd_ ? sum16 : sum20);
      const float given5 = (odd_ ? sum17 : sum21);
      const float taken4 = __shfl_xor_sync(0xffffffffu, given4, 1);
      const float taken5 = __shfl_xor_sync(0xffffffffu, given5, 1);
      const float low4 = (odd_ ? taken4 : sum16);
      const float low5 = (odd_ ? taken5 : sum17);
      const float high4 = (odd_ ? sum20 : taken4);
      const float high5 = (odd_ ? sum21 : taken5);
      const int n1 = (left_ + 32);
      if ((m_ < p_3)) {
        const int from2 = ((m_ * 768) + n1);
        *(xy_f32x4 *)(b_out2 + from2) = xy_f32x4{{low4, low5, high4, high5}};
      }
      const float given6 = (odd_ ? sum24 : sum28);
      const float given7 = (odd_ ? sum25 : sum29);
      const float taken6 = __shfl_xor_sync(0xffffffffu, given6, 1);
      const float taken7 = __shfl_xor_sync(0xffffffffu, given7, 1);
      const float low6 = (odd_ ? taken6 : sum24);
      const float low7 = (odd_ ? taken7 : sum25);
      const float high6 = (odd_ ? sum28 : taken6);
      const float high7 = (odd_ ? sum29 : taken7);
      const int n2 = (left_ + 48);
      if ((m_ < p_3)) {
        const int from3 = ((m_ * 768) + n2);
        *(xy_f32x4 *)(b_out2 + from3) = xy_f32x4{{low6, low7, high6, high7}};
      }
      const float given8 = (odd_ ? sum32 : sum36);
      const float given9 = (odd_ ? sum33 : sum37);
      const float taken8 = __shfl_xor_sync(0xffffffffu, given8, 1);
      const float taken9 = __shfl_xor_sync(0xffffffffu, given9, 1);
      const float low8 = (odd_ ? taken8 : sum32);
      const float low9 = (odd_ ? taken9 : sum33);
      const float high8 = (odd_ ? sum36 : taken8);
      const float high9 = (odd_ ? sum37 : taken9);
      const int n3 = (left_ + 64);
      if ((m_ < p_3)) {
        const int from4 = ((m_ * 768) + n3);
        *(xy_f32x4 *)(b_out2 + from4) = xy_f32x4{{low8, low9, high8, high9}};
      }
      const float given10 = (odd_ ? sum40 : sum44);
      const float given11 = (odd_ ? sum41 : sum45);
      const float taken10 = __shfl_xor_sync(0xffffffffu, given10, 1);
      const float taken11 = __shfl_xor_sync(0xffffffffu, given11, 1);
      const float low10 = (odd_ ? taken10 : sum40);
      const float low11 = (odd_ ? taken11 : sum41);
      const float high10 = (odd_ ? sum44 : taken10);
      const float high11 = (odd_ ? sum45 : taken11);
      const int n4 = (left_ + 80);
      if ((m_ < p_3)) {
        const int from5 = ((m_ * 768) + n4);
        *(xy_f32x4 *)(b_out2 + from5) = xy_f32x4{{low10, low11, high10, high11}};
      }
      const float given12 = (odd_ ? sum48 : sum52);
      const float given13 = (odd_ ? sum49 : sum53);
      const float taken12 = __shfl_xor_sync(0xffffffffu, given12, 1);
      const float taken13 = __shfl_xor_sync(0xffffffffu, given13, 1);
      const float low12 = (odd_ ? taken12 : sum48);
      const float low13 = (odd_ ? taken13 : sum49);
      const float high12 = (odd_ ? sum52 : taken12);
      const float high13 = (odd_ ? sum53 : taken13);
      const int n5 = (left_ + 96);
      if ((m_ < p_3)) {
        const int from6 = ((m_ * 768) + n5);
        *(xy_f32x4 *)(b_out2 + from6) = xy_f32x4{{low12, low13, high12, high13}};
      }
      const float given14 = (odd_ ? sum56 : sum60);
      const float given15 = (odd_ ? sum57 : sum61);
      const float taken14 = __shfl_xor_sync(0xffffffffu, given14, 1);
      const float taken15 = __shfl_xor_sync(0xffffffffu, given15, 1);
      const float low14 = (odd_ ? taken14 : sum56);
      const float low15 = (odd_ ? taken15 : sum57);
      const float high14 = (odd_ ? sum60 : taken14);
      const float high15 = (odd_ ? sum61 : taken15);
      const int n6 = (left_ + 112);
      if ((m_ < p_3)) {
        const int from7 = ((m_ * 768) + n6);
        *(xy_f32x4 *)(b_out2 + from7) = xy_f32x4{{low14, low15, high14, high15}};
      }
      const int m1 = ((row2 + 8) + row1);
      const float given16 = (odd_ ? sum2 : sum6);
      const float given17 = (odd_ ? sum3 : sum7);
      const float taken16 = __shfl_xor_sync(0xffffffffu, given16, 1);
      const float taken17 = __shfl_xor_sync(0xffffffffu, given17, 1);
      const float low16 = (odd_ ? taken16 : sum2);
      const float low17 = (odd_ ? taken17 : sum3);
      const float high16 = (odd_ ? sum6 : taken16);
      const float high17 = (odd_ ? sum7 : taken17);
      if ((m1 < p_3)) {
        const int from8 = ((m1 * 768) + left_);
        *(xy_f32x4 *)(b_out2 + from8) = xy_f32x4{{low16, low17, high16, high17}};
      }
      const float given18 = (odd_ ? sum10 : sum14);
      const float given19 = (odd_ ? sum11 : sum15);
      const float taken18 = __shfl_xor_sync(0xffffffffu, given18, 1);
      const float taken19 = __shfl_xor_sync(0xffffffffu, given19, 1);
      const float low18 = (odd_ ? taken18 : sum10);
      const float low19 = (odd_ ? taken19 : sum11);
      const float high18 = (odd_ ? sum14 : taken18);
      const float high19 = (odd_ ? sum15 : taken19);
      const int n7 = (left_ + 16);
      if ((m1 < p_3)) {
        const int from9 = ((m1 * 768) + n7);
        *(xy_f32x4 *)(b_out2 + from9) = xy_f32x4{{low18, low19, high18, high19}};
      }
      const float given20 = (odd_ ? sum18 : sum22);
      const float given21 = (odd_ ? sum19 : sum23);
      const float taken20 = __shfl_xor_sync(0xffffffffu, given20, 1);
      const float taken21 = __shfl_xor_sync(0xffffffffu, given21, 1);
      const float low20 = (odd_ ? taken20 : sum18);
      const float low21 = (odd_ ? taken21 : sum19);
      const float high20 = (odd_ ? sum22 : taken20);
      const float high21 = (odd_ ? sum23 : taken21);
      const int n8 = (left_ + 32);
      if ((m1 < p_3)) {
        const int from10 = ((m1 * 768) + n8);
        *(xy_f32x4 *)(b_out2 + from10) = xy_f32x4{{low20, low21, high20, high21}};
      }
      const float given22 = (odd_ ? sum26 : sum30);
      const float given23 = (odd_ ? sum27 : sum31);
      const float taken22 = __shfl_xor_sync(0xffffffffu, given22, 1);
      const float taken23 = __shfl_xor_sync(0xffffffffu, given23, 1);
      const float low22 = (odd_ ? taken22 : sum26);
      const float low23 = (odd_ ? taken23 : sum27);
      const float high22 = (odd_ ? sum30 : taken22);
      const float high23 = (odd_ ? sum31 : taken23);
      const int n9 = (left_ + 48);
      if ((m1 < p_3)) {
        const int from11 = ((m1 * 768) + n9);
        *(xy_f32x4 *)(b_out2 + from11) = xy_f32x4{{low22, low23, high22, high23}};
      }
      const float given24 = (odd_ ? sum34 : sum38);
      const float given25 = (odd_ ? sum35 : sum39);
      const float taken24 = __shfl_xor_sync(0xffffffffu, given24, 1);
      const float taken25 = __shfl_xor_sync(0xffffffffu, given25, 1);
      const float low24 = (odd_ ? taken24 : sum34);
      const float low25 = (odd_ ? taken25 : sum35);
      const float high24 = (odd_ ? sum38 : taken24);
      const float high25 = (odd_ ? sum39 : taken25);
      const int n10 = (left_ + 64);
      if ((m1 < p_3)) {
        const int from12 = ((m1 * 768) + n10);
        *(xy_f32x4 *)(b_out2 + from12) = xy_f32x4{{low24, low25, high24, high25}};
      }
      const float given26 = (odd_ ? sum42 : sum46);
      const float given27 = (odd_ ? sum43 : sum47);
      const float taken26 = __shfl_xor_sync(0xffffffffu, given26, 1);
      const float taken27 = __shfl_xor_sync(0xffffffffu, given27, 1);
      const float low26 = (odd_ ? taken26 : sum42);
      const float low27 = (odd_ ? taken27 : sum43);
      const float high26 = (odd_ ? sum46 : taken26);
      const float high27 = (odd_ ? sum47 : taken27);
      const int n11 = (left_ + 80);
      if ((m1 < p_3)) {
        const int from13 = ((m1 * 768) + n11);
        *(xy_f32x4 *)(b_out2 + from13) = xy_f32x4{{low26, low27, high26, high27}};
      }
      const float given28 = (odd_ ? sum50 : sum54);
      const float given29 = (odd_ ? sum51 : sum55);
      const float taken28 = __shfl_xor_sync(0xffffffffu, given28, 1);
      const float taken29 = __shfl_xor_sync(0xffffffffu, given29, 1);
      const float low28 = (odd_ ? taken28 : sum50);
      const float low29 = (odd_ ? taken29 : sum51);
      const float high28 = (odd_ ? sum54 : taken28);
      const float high29 = (odd_ ? sum55 : taken29);
      const int n12 = (left_ + 96);
      if ((m1 < p_3)) {
        const int from14 = ((m1 * 768) + n12);
        *(xy_f32x4 *)(b_out2 + from14) = xy_f32x4{{low28, low29, high28, high29}};
      }
      const float given30 = (odd_ ? sum58 : sum62);
      const float given31 = (odd_ ? sum59 : sum63);
      const float taken30 = __shfl_xor_sync(0xffffffffu, given30, 1);
      const float taken31 = __shfl_xor_sync(0xffffffffu, given31, 1);
      const float low30 = (odd_ ? taken30 : sum58);
      const float low31 = (odd_ ? taken31 : sum59);
      const float high30 = (odd_ ? sum62 : taken30);
      const float high31 = (odd_ ? sum63 : taken31);
      const int n13 = (left_ + 112);
      if ((m1 < p_3)) {
        const int from15 = ((m1 * 768) + n13);
        *(xy_f32x4 *)(b_out2 + from15) = xy_f32x4{{low30, low31, high30, high31}};
      }
    }
  }
}
