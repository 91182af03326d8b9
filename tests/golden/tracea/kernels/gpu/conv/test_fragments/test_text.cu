static __device__ __forceinline__ int xy_max_index(int a, int b) { return a > b ? a : b; }
static __device__ __forceinline__ int xy_min_index(int a, int b) { return a < b ? a : b; }
static __device__ __forceinline__ void xy_copy_16(void *to, const void *from, int valid) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid) : "memory"); }
static __device__ __forceinline__ void xy_load_fragments(int &a, int &b, int &c, int &d, const void *from) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory"); }
static __device__ __forceinline__ void xy_load_fragments_transposed(int &a, int &b, int &c, int &d, const void *from) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory"); }
static __device__ __forceinline__ void xy_fragment_dot_f16(float &c0, float &c1, float &c2, float &c3, int a0, int a1, int a2, int a3, int b0, int b1) { asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }
struct __align__(8) xy_f32x2 { float e[2]; };
struct __align__(4) xy_f16x2 { unsigned short e[2]; };
static __device__ __forceinline__ unsigned short xy_narrow_f16(float v) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
extern "C" __global__ void __launch_bounds__(64) xy_conv2d_f16_fragments_64x64(const unsigned short *b_x0, const unsigned short *b_w1, unsigned short *b_out2, const float *b_i3, const int p_0, const int p_1, const int p_2) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) int pixel_address_[64];
  __shared__ __align__(16) int pixel_at0_[64];
  __shared__ __align__(16) int pixel_at1_[64];
  __shared__ __align__(16) int depth_address_[18];
  __shared__ __align__(16) int depth_at0_[18];
  __shared__ __align__(16) int depth_at1_[18];
  __shared__ __align__(16) unsigned short tile_[6144];
  __shared__ __align__(16) unsigned short tile1[6144];
  const int quotient_ = ((int)((((long long)block) * ((long long)p_1)) >> 31ll));
  const int remainder_ = (block - (quotient_ * p_0));
  const int short_ = (p_0 <= remainder_);
  const int quotient1 = (quotient_ + short_);
  const int remainder1 = (short_ ? (remainder_ - p_0) : remainder_);
  const int pixel_ = (remainder1 * 64);
  const int k_ = ((thread & 3) * 8);
  const int o_ = (thread >> 2);
  const int lane_ = (thread % 32);
  const int o1 = ((lane_ & 7) + (((lane_ >> 3) & 1) * 8));
  const int k1 = ((lane_ >> 4) * 8);
  const int o2 = ((thread & 7) * 8);
  const int k2 = (thread >> 3);
  const int lane1 = (thread % 32);
  const int k3 = ((lane1 & 7) + (((lane1 >> 3) & 1) * 8));
  const int o3 = ((lane1 >> 4) * 8);
  for (int entry_ = thread; entry_ < 64; entry_ += 64) {
    const int pixel1 = (pixel_ + entry_);
    const int quotient2 = (pixel1 / 28);
    const int remainder2 = (pixel1 % 28);
    const int quotient3 = (quotient2 / 28);
    const int remainder3 = (quotient2 % 28);
    const int begin_ = (remainder3 - 1);
    const int begin1 = (remainder2 - 1);
    const int address_ = (((quotient3 * 50176) + (begin_ * 1792)) + (begin1 * 64));
    const int at_ = ((pixel1 < p_2) ? begin_ : -536870912);
    *(pixel_address_ + entry_) = (int)address_;
    *(pixel_at0_ + entry_) = (int)at_;
    *(pixel_at1_ + entry_) = (int)begin1;
  }
  for (int entry1 = thread; entry1 < 18; entry1 += 64) {
    const int quotient4 = ((entry1 * 32) / 64);
    const int remainder4 = ((entry1 * 32) % 64);
    const int quotient5 = (quotient4 / 3);
    const int remainder5 = (quotient4 % 3);
    const int address1 = ((remainder4 + (quotient5 * 1792)) + (remainder5 * 64));
    *(depth_address_ + entry1) = (int)address1;
    *(depth_at0_ + entry1) = (int)quotient5;
    *(depth_at1_ + entry1) = (int)remainder5;
  }
  __syncthreads();
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
  int part_ = 0;
  int part1 = 0;
  int part2 = 0;
  int part3 = 0;
  int part4 = 0;
  int part5 = 0;
  int part6 = 0;
  int part7 = 0;
  int part8 = 0;
  int part9 = 0;
  int part10 = 0;
  int part11 = 0;
  int part12 = 0;
  int part13 = 0;
  int part14 = 0;
  int part15 = 0;
  int part16 = 0;
  int part17 = 0;
  int part18 = 0;
  int part19 = 0;
  int part20 = 0;
  int part21 = 0;
  int part22 = 0;
  int part23 = 0;
  for (int ahead_ = 0; ahead_ < 2; ahead_ += 1) {
    if ((ahead_ < 18)) {
      const int depth_address1 = ((int)((long long)*(depth_address_ + ahead_)));
      const int depth_at01 = ((int)((long long)*(depth_at0_ + ahead_)));
      const int depth_at11 = ((int)((long long)*(depth_at1_ + ahead_)));
      const int pixel_address1 = ((int)((long long)*(pixel_address_ + o_)));
      const int pixel_at01 = ((int)((long long)*(pixel_at0_ + o_)));
      const int pixel_at11 = ((int)((long long)*(pixel_at1_ + o_)));
      const int at1 = (pixel_at01 + depth_at01);
      const int at2 = (pixel_at11 + depth_at11);
      const int valid_ = ((((-1 < at1) & (at1 < 28)) & ((-1 < at2) & (at2 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + ((o_ * 32) + (k_ ^ ((o_ & 6) << 2))), b_x0 + ((pixel_address1 + depth_address1) + k_), xy_min_index(xy_max_index(valid_, 0), 8) * 2);
      const int pixel_address2 = ((int)((long long)*(pixel_address_ + (o_ + 16))));
      const int pixel_at02 = ((int)((long long)*(pixel_at0_ + (o_ + 16))));
      const int pixel_at12 = ((int)((long long)*(pixel_at1_ + (o_ + 16))));
      const int at3 = (pixel_at02 + depth_at01);
      const int at4 = (pixel_at12 + depth_at11);
      const int valid1 = ((((-1 < at3) & (at3 < 28)) & ((-1 < at4) & (at4 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 16) * 32) + (k_ ^ (((o_ + 16) & 6) << 2))), b_x0 + ((pixel_address2 + depth_address1) + k_), xy_min_index(xy_max_index(valid1, 0), 8) * 2);
      const int pixel_address3 = ((int)((long long)*(pixel_address_ + (o_ + 32))));
      const int pixel_at03 = ((int)((long long)*(pixel_at0_ + (o_ + 32))));
      const int pixel_at13 = ((int)((long long)*(pixel_at1_ + (o_ + 32))));
      const int at5 = (pixel_at03 + depth_at01);
      const int at6 = (pixel_at13 + depth_at11);
      const int valid2 = ((((-1 < at5) & (at5 < 28)) & ((-1 < at6) & (at6 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 32) * 32) + (k_ ^ (((o_ + 32) & 6) << 2))), b_x0 + ((pixel_address3 + depth_address1) + k_), xy_min_index(xy_max_index(valid2, 0), 8) * 2);
      const int pixel_address4 = ((int)((long long)*(pixel_address_ + (o_ + 48))));
      const int pixel_at04 = ((int)((long long)*(pixel_at0_ + (o_ + 48))));
      const int pixel_at14 = ((int)((long long)*(pixel_at1_ + (o_ + 48))));
      const int at7 = (pixel_at04 + depth_at01);
      const int at8 = (pixel_at14 + depth_at11);
      const int valid3 = ((((-1 < at7) & (at7 < 28)) & ((-1 < at8) & (at8 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead_ % 3) * 2048) + (((o_ + 48) * 32) + (k_ ^ (((o_ + 48) & 6) << 2))), b_x0 + ((pixel_address4 + depth_address1) + k_), xy_min_index(xy_max_index(valid3, 0), 8) * 2);
      const int begin2 = (ahead_ * 32);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + ((k2 * 64) + (o2 ^ ((k2 & 7) << 3))), b_w1 + (((begin2 + k2) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((k2 + 8) * 64) + (o2 ^ (((k2 + 8) & 7) << 3))), b_w1 + (((begin2 + (k2 + 8)) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((k2 + 16) * 64) + (o2 ^ (((k2 + 16) & 7) << 3))), b_w1 + (((begin2 + (k2 + 16)) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead_ % 3) * 2048) + (((k2 + 24) * 64) + (o2 ^ (((k2 + 24) & 7) << 3))), b_w1 + (((begin2 + (k2 + 24)) * 64) + o2), 16);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int step_ = 0; step_ < 18; step_ += 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int part24, part25, part26, part27;
    xy_load_fragments(part24, part25, part26, part27, tile_ + ((step_ % 3) * 2048) + ((o1 * 32) + (k1 ^ ((o1 & 6) << 2))));
    part_ = part24;
    part1 = part25;
    part2 = part26;
    part3 = part27;
    int part28, part29, part30, part31;
    xy_load_fragments(part28, part29, part30, part31, tile_ + ((step_ % 3) * 2048) + (((o1 + 16) * 32) + (k1 ^ (((o1 + 16) & 6) << 2))));
    part4 = part28;
    part5 = part29;
    part6 = part30;
    part7 = part31;
    int part32, part33, part34, part35;
    xy_load_fragments(part32, part33, part34, part35, tile_ + ((step_ % 3) * 2048) + (((o1 + 32) * 32) + (k1 ^ (((o1 + 32) & 6) << 2))));
    part8 = part32;
    part9 = part33;
    part10 = part34;
    part11 = part35;
    int part36, part37, part38, part39;
    xy_load_fragments(part36, part37, part38, part39, tile_ + ((step_ % 3) * 2048) + (((o1 + 48) * 32) + (k1 ^ (((o1 + 48) & 6) << 2))));
    part12 = part36;
    part13 = part37;
    part14 = part38;
    part15 = part39;
    int part40, part41, part42, part43;
    xy_load_fragments_transposed(part40, part41, part42, part43, tile1 + ((step_ % 3) * 2048) + ((k3 * 64) + ((o3 + n_) ^ ((k3 & 7) << 3))));
    part16 = part40;
    part17 = part41;
    part18 = part42;
    part19 = part43;
    int part44, part45, part46, part47;
    xy_load_fragments_transposed(part44, part45, part46, part47, tile1 + ((step_ % 3) * 2048) + ((k3 * 64) + ((o3 + (n_ + 16)) ^ ((k3 & 7) << 3))));
    part20 = part44;
    part21 = part45;
    part22 = part46;
    part23 = part47;
    const int ahead1 = (step_ + 2);
    if ((ahead1 < 18)) {
      const int depth_address2 = ((int)((long long)*(depth_address_ + ahead1)));
      const int depth_at02 = ((int)((long long)*(depth_at0_ + ahead1)));
      const int depth_at12 = ((int)((long long)*(depth_at1_ + ahead1)));
      const int pixel_address5 = ((int)((long long)*(pixel_address_ + o_)));
      const int pixel_at05 = ((int)((long long)*(pixel_at0_ + o_)));
      const int pixel_at15 = ((int)((long long)*(pixel_at1_ + o_)));
      const int at9 = (pixel_at05 + depth_at02);
      const int at10 = (pixel_at15 + depth_at12);
      const int valid4 = ((((-1 < at9) & (at9 < 28)) & ((-1 < at10) & (at10 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead1 % 3) * 2048) + ((o_ * 32) + (k_ ^ ((o_ & 6) << 2))), b_x0 + ((pixel_address5 + depth_address2) + k_), xy_min_index(xy_max_index(valid4, 0), 8) * 2);
      const int pixel_address6 = ((int)((long long)*(pixel_address_ + (o_ + 16))));
      const int pixel_at06 = ((int)((long long)*(pixel_at0_ + (o_ + 16))));
      const int pixel_at16 = ((int)((long long)*(pixel_at1_ + (o_ + 16))));
      const int at11 = (pixel_at06 + depth_at02);
      const int at12 = (pixel_at16 + depth_at12);
      const int valid5 = ((((-1 < at11) & (at11 < 28)) & ((-1 < at12) & (at12 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead1 % 3) * 2048) + (((o_ + 16) * 32) + (k_ ^ (((o_ + 16) & 6) << 2))), b_x0 + ((pixel_address6 + depth_address2) + k_), xy_min_index(xy_max_index(valid5, 0), 8) * 2);
      const int pixel_address7 = ((int)((long long)*(pixel_address_ + (o_ + 32))));
      const int pixel_at07 = ((int)((long long)*(pixel_at0_ + (o_ + 32))));
      const int pixel_at17 = ((int)((long long)*(pixel_at1_ + (o_ + 32))));
      const int at13 = (pixel_at07 + depth_at02);
      const int at14 = (pixel_at17 + depth_at12);
      const int valid6 = ((((-1 < at13) & (at13 < 28)) & ((-1 < at14) & (at14 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead1 % 3) * 2048) + (((o_ + 32) * 32) + (k_ ^ (((o_ + 32) & 6) << 2))), b_x0 + ((pixel_address7 + depth_address2) + k_), xy_min_index(xy_max_index(valid6, 0), 8) * 2);
      const int pixel_address8 = ((int)((long long)*(pixel_address_ + (o_ + 48))));
      const int pixel_at08 = ((int)((long long)*(pixel_at0_ + (o_ + 48))));
      const int pixel_at18 = ((int)((long long)*(pixel_at1_ + (o_ + 48))));
      const int at15 = (pixel_at08 + depth_at02);
      const int at16 = (pixel_at18 + depth_at12);
      const int valid7 = ((((-1 < at15) & (at15 < 28)) & ((-1 < at16) & (at16 < 28))) ? 8 : 0);
      xy_copy_16(tile_ + ((ahead1 % 3) * 2048) + (((o_ + 48) * 32) + (k_ ^ (((o_ + 48) & 6) << 2))), b_x0 + ((pixel_address8 + depth_address2) + k_), xy_min_index(xy_max_index(valid7, 0), 8) * 2);
      const int begin3 = (ahead1 * 32);
      xy_copy_16(tile1 + ((ahead1 % 3) * 2048) + ((k2 * 64) + (o2 ^ ((k2 & 7) << 3))), b_w1 + (((begin3 + k2) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead1 % 3) * 2048) + (((k2 + 8) * 64) + (o2 ^ (((k2 + 8) & 7) << 3))), b_w1 + (((begin3 + (k2 + 8)) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead1 % 3) * 2048) + (((k2 + 16) * 64) + (o2 ^ (((k2 + 16) & 7) << 3))), b_w1 + (((begin3 + (k2 + 16)) * 64) + o2), 16);
      xy_copy_16(tile1 + ((ahead1 % 3) * 2048) + (((k2 + 24) * 64) + (o2 ^ (((k2 + 24) & 7) << 3))), b_w1 + (((begin3 + (k2 + 24)) * 64) + o2), 16);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
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
    int part48, part49, part50, part51;
    xy_load_fragments(part48, part49, part50, part51, tile_ + ((step_ % 3) * 2048) + ((o1 * 32) + ((k1 + 16) ^ ((o1 & 6) << 2))));
    part_ = part48;
    part1 = part49;
    part2 = part50;
    part3 = part51;
    int part52, part53, part54, part55;
    xy_load_fragments(part52, part53, part54, part55, tile_ + ((step_ % 3) * 2048) + (((o1 + 16) * 32) + ((k1 + 16) ^ (((o1 + 16) & 6) << 2))));
    part4 = part52;
    part5 = part53;
    part6 = part54;
    part7 = part55;
    int part56, part57, part58, part59;
    xy_load_fragments(part56, part57, part58, part59, tile_ + ((step_ % 3) * 2048) + (((o1 + 32) * 32) + ((k1 + 16) ^ (((o1 + 32) & 6) << 2))));
    part8 = part56;
    part9 = part57;
    part10 = part58;
    part11 = part59;
    int part60, part61, part62, part63;
    xy_load_fragments(part60, part61, part62, part63, tile_ + ((step_ % 3) * 2048) + (((o1 + 48) * 32) + ((k1 + 16) ^ (((o1 + 48) & 6) << 2))));
    part12 = part60;
    part13 = part61;
    part14 = part62;
    part15 = part63;
    int part64, part65, part66, part67;
    xy_load_fragments_transposed(part64, part65, part66, part67, tile1 + ((step_ % 3) * 2048) + (((k3 + 16) * 64) + ((o3 + n_) ^ (((k3 + 16) & 7) << 3))));
    part16 = part64;
    part17 = part65;
    part18 = part66;
    part19 = part67;
    int part68, part69, part70, part71;
    xy_load_fragments_transposed(part68, part69, part70, part71, tile1 + ((step_ % 3) * 2048) + (((k3 + 16) * 64) + ((o3 + (n_ + 16)) ^ (((k3 + 16) & 7) << 3))));
    part20 = part68;
    part21 = part69;
    part22 = part70;
    part23 = part71;
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
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  const int lane3 = (thread & 31);
  const int n1 = (((thread >> 5) & 1) * 32);
  const int m_ = (pixel_ + (lane3 / 4));
  if ((m_ < p_2)) {
    const int n2 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet1 = *(const xy_f32x2 *)(b_i3 + n2);
    const float x_ = packet1.e[0];
    const float x1 = packet1.e[1];
    const int from_ = ((m_ * 64) + n2);
    *(xy_f16x2 *)(b_out2 + from_) = xy_f16x2{{xy_narrow_f16((sum_ + x_)), xy_narrow_f16((sum1 + x1))}};
  }
  const int m1 = ((pixel_ + (lane3 / 4)) + 8);
  if ((m1 < p_2)) {
    const int n3 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet2 = *(const xy_f32x2 *)(b_i3 + n3);
    const float x2 = packet2.e[0];
    const float x3 = packet2.e[1];
    const int from1 = ((m1 * 64) + n3);
    *(xy_f16x2 *)(b_out2 + from1) = xy_f16x2{{xy_narrow_f16((sum2 + x2)), xy_narrow_f16((sum3 + x3))}};
  }
  const int m2 = (pixel_ + (lane3 / 4));
  if ((m2 < p_2)) {
    const int n4 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet3 = *(const xy_f32x2 *)(b_i3 + n4);
    const float x4 = packet3.e[0];
    const float x5 = packet3.e[1];
    const int from2 = ((m2 * 64) + n4);
    *(xy_f16x2 *)(b_out2 + from2) = xy_f16x2{{xy_narrow_f16((sum4 + x4)), xy_narrow_f16((sum5 + x5))}};
  }
  const int m3 = ((pixel_ + (lane3 / 4)) + 8);
  if ((m3 < p_2)) {
    const int n5 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet4 = *(const xy_f32x2 *)(b_i3 + n5);
    const float x6 = packet4.e[0];
    const float x7 = packet4.e[1];
    const int from3 = ((m3 * 64) + n5);
    *(xy_f16x2 *)(b_out2 + from3) = xy_f16x2{{xy_narrow_f16((sum6 + x6)), xy_narrow_f16((sum7 + x7))}};
  }
  const int m4 = (pixel_ + (lane3 / 4));
  if ((m4 < p_2)) {
    const int n6 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet5 = *(const xy_f32x2 *)(b_i3 + n6);
    const float x8 = packet5.e[0];
    const float x9 = packet5.e[1];
    const int from4 = ((m4 * 64) + n6);
    *(xy_f16x2 *)(b_out2 + from4) = xy_f16x2{{xy_narrow_f16((sum8 + x8)), xy_narrow_f16((sum9 + x9))}};
  }
  const int m5 = ((pixel_ + (lane3 / 4)) + 8);
  if ((m5 < p_2)) {
    const int n7 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet6 = *(const xy_f32x2 *)(b_i3 + n7);
    const float x10 = packet6.e[0];
    const float x11 = packet6.e[1];
    const int from5 = ((m5 * 64) + n7);
    *(xy_f16x2 *)(b_out2 + from5) = xy_f16x2{{xy_narrow_f16((sum10 + x10)), xy_narrow_f16((sum11 + x11))}};
  }
  const int m6 = (pixel_ + (lane3 / 4));
  if ((m6 < p_2)) {
    const int n8 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet7 = *(const xy_f32x2 *)(b_i3 + n8);
    const float x12 = packet7.e[0];
    const float x13 = packet7.e[1];
    const int from6 = ((m6 * 64) + n8);
    *(xy_f16x2 *)(b_out2 + from6) = xy_f16x2{{xy_narrow_f16((sum12 + x12)), xy_narrow_f16((sum13 + x13))}};
  }
  const int m7 = ((pixel_ + (lane3 / 4)) + 8);
  if ((m7 < p_2)) {
    const int n9 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet8 = *(const xy_f32x2 *)(b_i3 + n9);
    const float x14 = packet8.e[0];
    const float x15 = packet8.e[1];
    const int from7 = ((m7 * 64) + n9);
    *(xy_f16x2 *)(b_out2 + from7) = xy_f16x2{{xy_narrow_f16((sum14 + x14)), xy_narrow_f16((sum15 + x15))}};
  }
  const int m8 = ((pixel_ + 16) + (lane3 / 4));
  if ((m8 < p_2)) {
    const int n10 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet9 = *(const xy_f32x2 *)(b_i3 + n10);
    const float x16 = packet9.e[0];
    const float x17 = packet9.e[1];
    const int from8 = ((m8 * 64) + n10);
    *(xy_f16x2 *)(b_out2 + from8) = xy_f16x2{{xy_narrow_f16((sum16 + x16)), xy_narrow_f16((sum17 + x17))}};
  }
  const int m9 = (((pixel_ + 16) + (lane3 / 4)) + 8);
  if ((m9 < p_2)) {
    const int n11 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet10 = *(const xy_f32x2 *)(b_i3 + n11);
    const float x18 = packet10.e[0];
    const float x19 = packet10.e[1];
    const int from9 = ((m9 * 64) + n11);
    *(xy_f16x2 *)(b_out2 + from9) = xy_f16x2{{xy_narrow_f16((sum18 + x18)), xy_narrow_f16((sum19 + x19))}};
  }
  const int m10 = ((pixel_ + 16) + (lane3 / 4));
  if ((m10 < p_2)) {
    const int n12 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet11 = *(const xy_f32x2 *)(b_i3 + n12);
    const float x20 = packet11.e[0];
    const float x21 = packet11.e[1];
    const int from10 = ((m10 * 64) + n12);
    *(xy_f16x2 *)(b_out2 + from10) = xy_f16x2{{xy_narrow_f16((sum20 + x20)), xy_narrow_f16((sum21 + x21))}};
  }
  const int m11 = (((pixel_ + 16) + (lane3 / 4)) + 8);
  if ((m11 < p_2)) {
    const int n13 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet12 = *(const xy_f32x2 *)(b_i3 + n13);
    const float x22 = packet12.e[0];
    const float x23 = packet12.e[1];
    const int from11 = ((m11 * 64) + n13);
    *(xy_f16x2 *)(b_out2 + from11) = xy_f16x2{{xy_narrow_f16((sum22 + x22)), xy_narrow_f16((sum23 + x23))}};
  }
  const int m12 = ((pixel_ + 16) + (lane3 / 4));
  if ((m12 < p_2)) {
    const int n14 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet13 = *(const xy_f32x2 *)(b_i3 + n14);
    const float x24 = packet13.e[0];
    const float x25 = packet13.e[1];
    const int from12 = ((m12 * 64) + n14);
    *(xy_f16x2 *)(b_out2 + from12) = xy_f16x2{{xy_narrow_f16((sum24 + x24)), xy_narrow_f16((sum25 + x25))}};
  }
  const int m13 = (((pixel_ + 16) + (lane3 / 4)) + 8);
  if ((m13 < p_2)) {
    const int n15 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet14 = *(const xy_f32x2 *)(b_i3 + n15);
    const float x26 = packet14.e[0];
    const float x27 = packet14.e[1];
    const int from13 = ((m13 * 64) + n15);
    *(xy_f16x2 *)(b_out2 + from13) = xy_f16x2{{xy_narrow_f16((sum26 + x26)), xy_narrow_f16((sum27 + x27))}};
  }
  const int m14 = ((pixel_ + 16) + (lane3 / 4));
  if ((m14 < p_2)) {
    const int n16 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet15 = *(const xy_f32x2 *)(b_i3 + n16);
    const float x28 = packet15.e[0];
    const float x29 = packet15.e[1];
    const int from14 = ((m14 * 64) + n16);
    *(xy_f16x2 *)(b_out2 + from14) = xy_f16x2{{xy_narrow_f16((sum28 + x28)), xy_narrow_f16((sum29 + x29))}};
  }
  const int m15 = (((pixel_ + 16) + (lane3 / 4)) + 8);
  if ((m15 < p_2)) {
    const int n17 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet16 = *(const xy_f32x2 *)(b_i3 + n17);
    const float x30 = packet16.e[0];
    const float x31 = packet16.e[1];
    const int from15 = ((m15 * 64) + n17);
    *(xy_f16x2 *)(b_out2 + from15) = xy_f16x2{{xy_narrow_f16((sum30 + x30)), xy_narrow_f16((sum31 + x31))}};
  }
  const int m16 = ((pixel_ + 32) + (lane3 / 4));
  if ((m16 < p_2)) {
    const int n18 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet17 = *(const xy_f32x2 *)(b_i3 + n18);
    const float x32 = packet17.e[0];
    const float x33 = packet17.e[1];
    const int from16 = ((m16 * 64) + n18);
    *(xy_f16x2 *)(b_out2 + from16) = xy_f16x2{{xy_narrow_f16((sum32 + x32)), xy_narrow_f16((sum33 + x33))}};
  }
  const int m17 = (((pixel_ + 32) + (lane3 / 4)) + 8);
  if ((m17 < p_2)) {
    const int n19 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet18 = *(const xy_f32x2 *)(b_i3 + n19);
    const float x34 = packet18.e[0];
    const float x35 = packet18.e[1];
    const int from17 = ((m17 * 64) + n19);
    *(xy_f16x2 *)(b_out2 + from17) = xy_f16x2{{xy_narrow_f16((sum34 + x34)), xy_narrow_f16((sum35 + x35))}};
  }
  const int m18 = ((pixel_ + 32) + (lane3 / 4));
  if ((m18 < p_2)) {
    const int n20 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet19 = *(const xy_f32x2 *)(b_i3 + n20);
    const float x36 = packet19.e[0];
    const float x37 = packet19.e[1];
    const int from18 = ((m18 * 64) + n20);
    *(xy_f16x2 *)(b_out2 + from18) = xy_f16x2{{xy_narrow_f16((sum36 + x36)), xy_narrow_f16((sum37 + x37))}};
  }
  const int m19 = (((pixel_ + 32) + (lane3 / 4)) + 8);
  if ((m19 < p_2)) {
    const int n21 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet20 = *(const xy_f32x2 *)(b_i3 + n21);
    const float x38 = packet20.e[0];
    const float x39 = packet20.e[1];
    const int from19 = ((m19 * 64) + n21);
    *(xy_f16x2 *)(b_out2 + from19) = xy_f16x2{{xy_narrow_f16((sum38 + x38)), xy_narrow_f16((sum39 + x39))}};
  }
  const int m20 = ((pixel_ + 32) + (lane3 / 4));
  if ((m20 < p_2)) {
    const int n22 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet21 = *(const xy_f32x2 *)(b_i3 + n22);
    const float x40 = packet21.e[0];
    const float x41 = packet21.e[1];
    const int from20 = ((m20 * 64) + n22);
    *(xy_f16x2 *)(b_out2 + from20) = xy_f16x2{{xy_narrow_f16((sum40 + x40)), xy_narrow_f16((sum41 + x41))}};
  }
  const int m21 = (((pixel_ + 32) + (lane3 / 4)) + 8);
  if ((m21 < p_2)) {
    const int n23 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet22 = *(const xy_f32x2 *)(b_i3 + n23);
    const float x42 = packet22.e[0];
    const float x43 = packet22.e[1];
    const int from21 = ((m21 * 64) + n23);
    *(xy_f16x2 *)(b_out2 + from21) = xy_f16x2{{xy_narrow_f16((sum42 + x42)), xy_narrow_f16((sum43 + x43))}};
  }
  const int m22 = ((pixel_ + 32) + (lane3 / 4));
  if ((m22 < p_2)) {
    const int n24 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet23 = *(const xy_f32x2 *)(b_i3 + n24);
    const float x44 = packet23.e[0];
    const float x45 = packet23.e[1];
    const int from22 = ((m22 * 64) + n24);
    *(xy_f16x2 *)(b_out2 + from22) = xy_f16x2{{xy_narrow_f16((sum44 + x44)), xy_narrow_f16((sum45 + x45))}};
  }
  const int m23 = (((pixel_ + 32) + (lane3 / 4)) + 8);
  if ((m23 < p_2)) {
    const int n25 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet24 = *(const xy_f32x2 *)(b_i3 + n25);
    const float x46 = packet24.e[0];
    const float x47 = packet24.e[1];
    const int from23 = ((m23 * 64) + n25);
    *(xy_f16x2 *)(b_out2 + from23) = xy_f16x2{{xy_narrow_f16((sum46 + x46)), xy_narrow_f16((sum47 + x47))}};
  }
  const int m24 = ((pixel_ + 48) + (lane3 / 4));
  if ((m24 < p_2)) {
    const int n26 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet25 = *(const xy_f32x2 *)(b_i3 + n26);
    const float x48 = packet25.e[0];
    const float x49 = packet25.e[1];
    const int from24 = ((m24 * 64) + n26);
    *(xy_f16x2 *)(b_out2 + from24) = xy_f16x2{{xy_narrow_f16((sum48 + x48)), xy_narrow_f16((sum49 + x49))}};
  }
  const int m25 = (((pixel_ + 48) + (lane3 / 4)) + 8);
  if ((m25 < p_2)) {
    const int n27 = (n1 + ((lane3 % 4) * 2));
    const xy_f32x2 packet26 = *(const xy_f32x2 *)(b_i3 + n27);
    const float x50 = packet26.e[0];
    const float x51 = packet26.e[1];
    const int from25 = ((m25 * 64) + n27);
    *(xy_f16x2 *)(b_out2 + from25) = xy_f16x2{{xy_narrow_f16((sum50 + x50)), xy_narrow_f16((sum51 + x51))}};
  }
  const int m26 = ((pixel_ + 48) + (lane3 / 4));
  if ((m26 < p_2)) {
    const int n28 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet27 = *(const xy_f32x2 *)(b_i3 + n28);
    const float x52 = packet27.e[0];
    const float x53 = packet27.e[1];
    const int from26 = ((m26 * 64) + n28);
    *(xy_f16x2 *)(b_out2 + from26) = xy_f16x2{{xy_narrow_f16((sum52 + x52)), xy_narrow_f16((sum53 + x53))}};
  }
  const int m27 = (((pixel_ + 48) + (lane3 / 4)) + 8);
  if ((m27 < p_2)) {
    const int n29 = ((n1 + 8) + ((lane3 % 4) * 2));
    const xy_f32x2 packet28 = *(const xy_f32x2 *)(b_i3 + n29);
    const float x54 = packet28.e[0];
    const float x55 = packet28.e[1];
    const int from27 = ((m27 * 64) + n29);
    *(xy_f16x2 *)(b_out2 + from27) = xy_f16x2{{xy_narrow_f16((sum54 + x54)), xy_narrow_f16((sum55 + x55))}};
  }
  const int m28 = ((pixel_ + 48) + (lane3 / 4));
  if ((m28 < p_2)) {
    const int n30 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet29 = *(const xy_f32x2 *)(b_i3 + n30);
    const float x56 = packet29.e[0];
    const float x57 = packet29.e[1];
    const int from28 = ((m28 * 64) + n30);
    *(xy_f16x2 *)(b_out2 + from28) = xy_f16x2{{xy_narrow_f16((sum56 + x56)), xy_narrow_f16((sum57 + x57))}};
  }
  const int m29 = (((pixel_ + 48) + (lane3 / 4)) + 8);
  if ((m29 < p_2)) {
    const int n31 = ((n1 + 16) + ((lane3 % 4) * 2));
    const xy_f32x2 packet30 = *(const xy_f32x2 *)(b_i3 + n31);
    const float x58 = packet30.e[0];
    const float x59 = packet30.e[1];
    const int from29 = ((m29 * 64) + n31);
    *(xy_f16x2 *)(b_out2 + from29) = xy_f16x2{{xy_narrow_f16((sum58 + x58)), xy_narrow_f16((sum59 + x59))}};
  }
  const int m30 = ((pixel_ + 48) + (lane3 / 4));
  if ((m30 < p_2)) {
    const int n32 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet31 = *(const xy_f32x2 *)(b_i3 + n32);
    const float x60 = packet31.e[0];
    const float x61 = packet31.e[1];
    const int from30 = ((m30 * 64) + n32);
    *(xy_f16x2 *)(b_out2 + from30) = xy_f16x2{{xy_narrow_f16((sum60 + x60)), xy_narrow_f16((sum61 + x61))}};
  }
  const int m31 = (((pixel_ + 48) + (lane3 / 4)) + 8);
  if ((m31 < p_2)) {
    const int n33 = ((n1 + 24) + ((lane3 % 4) * 2));
    const xy_f32x2 packet32 = *(const xy_f32x2 *)(b_i3 + n33);
    const float x62 = packet32.e[0];
    const float x63 = packet32.e[1];
    const int from31 = ((m31 * 64) + n33);
    *(xy_f16x2 *)(b_out2 + from31) = xy_f16x2{{xy_narrow_f16((sum62 + x62)), xy_narrow_f16((sum63 + x63))}};
  }
}
