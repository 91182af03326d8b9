extern "C" __global__ void __launch_bounds__(32) subgroup_sum(const float *b_x0, float *b_y1) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  float total_ = *(b_x0 + ((block * 32) + thread));
  total_ = (total_ + __shfl_xor_sync(0xffffffffu, total_, 16));
  total_ = (total_ + __shfl_xor_sync(0xffffffffu, total_, 8));
  total_ = (total_ + __shfl_xor_sync(0xffffffffu, total_, 4));
  total_ = (total_ + __shfl_xor_sync(0xffffffffu, total_, 2));
  total_ = (total_ + __shfl_xor_sync(0xffffffffu, total_, 1));
  if ((thread < 1)) {
    *(b_y1 + block) = total_;
  }
}
