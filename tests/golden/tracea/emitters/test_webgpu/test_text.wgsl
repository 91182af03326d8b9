var<workgroup> tile_: array<f32, 1024>;
@group(0) @binding(0) var<storage, read_write> b_x0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b_y1: array<f32>;
struct xy_given { p_0: i32, p_1: i32, xy_units: i32 }
@group(0) @binding(2) var<uniform> xy_params: xy_given;
@compute @workgroup_size(256) fn transpose(@builtin(workgroup_id) xy_block: vec3<u32>,
    @builtin(num_workgroups) xy_blocks: vec3<u32>, @builtin(local_invocation_index) xy_thread: u32) {
  let block = i32(xy_block.x + xy_block.y * xy_blocks.x);
  if (block >= xy_params.xy_units) { return; }
  let thread = i32(xy_thread);
  let p_0 = xy_params.p_0;
  let p_1 = xy_params.p_1;
  let across_ = (p_1 / 32);
  let top_ = ((block / across_) * 32);
  let left_ = ((block % across_) * 32);
  let c_ = ((thread & 7) * 4);
  let r_ = (thread >> 3u);
  let v_ = b_x0[((((top_ + r_) * p_1) + left_) + c_)];
  let v1 = b_x0[((((top_ + r_) * p_1) + left_) + c_) + 1];
  let v2 = b_x0[((((top_ + r_) * p_1) + left_) + c_) + 2];
  let v3 = b_x0[((((top_ + r_) * p_1) + left_) + c_) + 3];
  tile_[((r_ * 32) + (c_ ^ ((r_ & 12) << 1u)))] = v_;
  tile_[((r_ * 32) + (c_ ^ ((r_ & 12) << 1u))) + 1] = v1;
  tile_[((r_ * 32) + (c_ ^ ((r_ & 12) << 1u))) + 2] = v2;
  tile_[((r_ * 32) + (c_ ^ ((r_ & 12) << 1u))) + 3] = v3;
  workgroupBarrier();
  let c1 = ((thread & 7) + ((thread >> 6u) * 8));
  let r1 = (((thread >> 3u) & 7) * 4);
  let w_ = tile_[((r1 * 32) + (c1 ^ ((r1 & 12) << 1u)))];
  let w1 = tile_[(((r1 + 1) * 32) + (c1 ^ (((r1 + 1) & 12) << 1u)))];
  let w2 = tile_[(((r1 + 2) * 32) + (c1 ^ (((r1 + 2) & 12) << 1u)))];
  let w3 = tile_[(((r1 + 3) * 32) + (c1 ^ (((r1 + 3) & 12) << 1u)))];
  b_y1[((((left_ + c1) * p_0) + top_) + r1)] = w_;
  b_y1[((((left_ + c1) * p_0) + top_) + r1) + 1] = w1;
  b_y1[((((left_ + c1) * p_0) + top_) + r1) + 2] = w2;
  b_y1[((((left_ + c1) * p_0) + top_) + r1) + 3] = w3;
}
