# mypy: ignore-errors
"""Kernels in the forms that people write them: what `on_cpu` reads, and what Triton's interpreter runs."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def bias_gelu(x_ptr, bias_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + offsets % columns, mask=mask, other=0.0)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y, mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    pointers = in_ptr + row * in_stride + cols
    x = tl.load(pointers, mask=cols < columns, other=-float("inf"))
    shifted = x - tl.max(x, axis=0)
    numerator = tl.exp(shifted)
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + cols, numerator / denominator, mask=cols < columns)


@triton.jit
def layer_norm(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd
        tl.store(Y + cols, x_hat * w + b, mask=mask)


@triton.jit
def rms_norm(x_ptr, w_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < columns
    x = tl.load(x_ptr + row * columns + cols, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row * columns + cols, x * scale * w, mask=mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(c_ptr.dtype.element_ty)

    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def linear(x_ptr, w_ptr, bias_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """out = relu(x @ w.T + bias) of contiguous tensors."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n * K + k[:, None], mask=(n < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)
    tl.store(out_ptr + m * N + n, tl.maximum(acc, 0.0), mask=(m < M) & (n < N))


@triton.jit
def column_maxima(x_ptr, out_ptr, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    top = tl.full((BLOCK_R, BLOCK_C), float("-inf"), tl.float32)
    for start in range(0, rows, BLOCK_R):
        r = start + tl.arange(0, BLOCK_R)
        mask = (r[:, None] < rows) & (cols[None, :] < columns)
        top = tl.maximum(top, tl.load(x_ptr + r[:, None] * columns + cols[None, :], mask=mask, other=float("-inf")))
    tl.store(out_ptr + cols, tl.max(top, axis=0), mask=cols < columns)


@triton.jit
def transposed(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=mask)
    tl.store(out_ptr + n[None, :] * M + m[:, None], x, mask=mask)


@triton.jit
def scaled_in_place(x_ptr, scale, first, n, BLOCK: tl.constexpr):
    """The elements from ``first`` on; others stay."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + i, mask=i < n)
    tl.store(x_ptr + first + i, x * scale, mask=i < n)


@triton.jit
def gram(x_ptr, out_ptr, M, K, BLOCK: tl.constexpr):
    """x @ x.T, with the same lanes for rows, columns and what is summed; ones on the diagonal of what is added."""
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + i
        x = tl.load(x_ptr + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        acc += tl.dot(x, tl.trans(x), input_precision="ieee")
    acc += tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    tl.store(out_ptr + i[:, None] * M + i[None, :], acc, mask=(i[:, None] < M) & (i[None, :] < M))


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def softsign(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x / (1.0 + tl.abs(x)), mask=i < n)


@triton.jit
def remainders(out_ptr, by, BLOCK: tl.constexpr):
    """Of numbers below 0, too: C's."""
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, (i - 16) % by + 100 * ((i - 16) // by))


@triton.jit
def chunk_sums(x_ptr, start_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """A sum that begins with what is loaded."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    total = tl.load(start_ptr + lane)
    for first in range(0, columns, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
    tl.store(out_ptr + row * BLOCK + lane, total)


@triton.jit
def count(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """How many elements are above 0, by what is not read."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum((x > 0).to(tl.float32), axis=0))


@triton.jit
def chunked_log_softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Three loops over the same lanes."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    top = -float("inf")
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + k + i, mask=k + i < n, other=-float("inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
    total = 0.0
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + k + i, mask=k + i < n, other=-float("inf"))
        total += tl.sum(tl.exp(x - top), axis=0)
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + k + i, mask=k + i < n)
        tl.store(out_ptr + row * n + k + i, x - top - tl.log(total), mask=k + i < n)


@triton.jit
def moving_pointers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    mask = tl.arange(0, BLOCK) < n  # another one in each iteration
    source, target = x_ptr + tl.arange(0, BLOCK), out_ptr + tl.arange(0, BLOCK)
    for k in range(0, n, BLOCK):
        mask = k + tl.arange(0, BLOCK) < n
        tl.store(target, tl.exp(tl.load(source, mask=mask)), mask=mask)
        source += BLOCK
        target += BLOCK


@triton.jit
def smoothed(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Neighbours, with nothing beyond the ends."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for t in tl.static_range(3):
        j = i + t - 1
        acc += (t + 1) * tl.load(x_ptr + j, mask=(j >= 0) & (j < n), other=0.0)
    tl.store(out_ptr + i, acc, mask=i < n)


@triton.jit
def gathered(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.abs(tl.load(x_ptr + i, mask=i < n, other=0.0) * 10).to(tl.int32) % n
    tl.store(out_ptr + i, tl.load(x_ptr + j, mask=i < n), mask=i < n)


@triton.jit
def counted(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A sum that could end where the mask does, and a maximum that could not."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    many, top = tl.sum((x > 0.3).to(tl.int32), axis=0), tl.max((x * 100).to(tl.int32), axis=0)
    tl.store(out_ptr, (1000 * many + top).to(tl.float32))


@triton.jit
def symmetric(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """A block with itself, turned."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
    tl.store(out_ptr + i, tl.sum(x * tl.trans(x), axis=1) + tl.sum(tl.exp(tl.trans(x)), axis=0))


@triton.jit
def standardised(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two sums in one loop."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + k + i, mask=k + i < n, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / n
    deviation = tl.sqrt(tl.sum(squares, axis=0) / n - mean * mean)
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + k + i, mask=k + i < n)
        tl.store(out_ptr + row * n + k + i, (x - mean) / deviation, mask=k + i < n)


@triton.jit
def sum_and_least(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """What is hidden is 0 in the sum, which could end before it, and the least of all in the other."""
    total, least = 0.0, 9.0
    for k in range(0, n):
        total += tl.load(x_ptr + k, mask=k < 5, other=0.0)
        least = tl.minimum(least, tl.load(x_ptr + k, mask=k < 5, other=-7.0))
    tl.store(out_ptr, total * least)
