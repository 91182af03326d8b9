"""Encoders and decoders of text."""

from xyntra_bench.architectures._architecture import TOKENS, Architecture, causal, hidden, transformer

ARCHITECTURES = [
    Architecture(name="bert-base", build=transformer("BertModel"), call=hidden, inputs=TOKENS, sizes={"sequence": 128}),
    Architecture(name="gpt2", build=transformer("GPT2LMHeadModel"), call=causal, inputs=TOKENS, sizes={"sequence": 128}),
]
