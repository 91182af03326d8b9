"""Products whose sums a second one of little depth goes on with.

LowRankGemm -> semantic IR
"""
