struct __align__(16) xy_f32x4 { float e[4]; };
extern "C" __global__ void __launch_bounds__(256) transpose(const float *b_x0, float *b_y1, const int p_0, const int p_1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  __shared__ __align__(16) float tile_[1024];
  const int across_ = (p_1 / 32);
  const int top_ = ((block / across_) * 32);
  const int left_ = ((block % across_) * 32);
  const int c_ = ((thread & 7) * 4);
  const int r_ = (thread >> 3);
  const xy_f32x4 packet1 = *(const xy_f32x4 *)(b_x0 + ((((top_ + r_) * p_1) + left_) + c_));
  const float v_ = packet1.e[0];
  const float v1 = packet1.e[1];
  const float v2 = packet1.e[2];
  const float v3 = packet1.e[3];
  *(xy_f32x4 *)(tile_ + ((r_ * 32) + (c_ ^ ((r_ & 12) << 1)))) = xy_f32x4{{v_, v1, v2, v3}};
  __syncthreads();
  const int c1 = ((thread & 7) + ((thread >> 6) * 8));
  const int r1 = (((thread >> 3) & 7) * 4);
  const float w_ = *(tile_ + ((r1 * 32) + (c1 ^ ((r1 & 12) << 1))));
  const float w1 = *(tile_ + (((r1 + 1) * 32) + (c1 ^ (((r1 + 1) & 12) << 1))));
  const float w2 = *(tile_ + (((r1 + 2) * 32) + (c1 ^ (((r1 + 2) & 12) << 1))));
  const float w3 = *(tile_ + (((r1 + 3) * 32) + (c1 ^ (((r1 + 3) & 12) << 1))));
  *(xy_f32x4 *)(b_y1 + ((((left_ + c1) * p_0) + top_) + r1)) = xy_f32x4{{w_, w1, w2, w3}};
}
