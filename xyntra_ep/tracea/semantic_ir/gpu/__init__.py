"""What only kernels for GPUs have: nodes, builders, capabilities, and where data lies in shared memory."""
