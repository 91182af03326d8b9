"""Are gradients right? Operations of `tracea.ops` and models under torch.compile, against PyTorch in float64.

Comes in: nothing, or a model of the caller's. Goes out: a `GradientReport`. `xyntra check-gradients` prints it. Read first:
`gradients.py`.
"""
