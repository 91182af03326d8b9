"""Encoders and decoders of text, some layers of each."""

from xyntra_bench.architectures._architecture import TOKENS, Architecture, Exporter, Input, causal, hidden, transformer

SENTENCE = {"sequence": 128}
WORDS = 8000


def _encoder_decoder(module: object, *inputs: object) -> object:
    ids, mask = inputs
    return module(input_ids=ids, attention_mask=mask, decoder_input_ids=ids, use_cache=False).last_hidden_state  # type: ignore[operator]


def _decode(module: object, *inputs: object) -> object:
    """The next token, of a prompt whose keys and values are inputs."""
    from transformers import DynamicCache

    ids, mask, *past = inputs
    cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
    return module(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True).logits  # type: ignore[operator]


def _past(layers: int, heads: int, width: int) -> dict[str, Input]:
    return {
        "input_ids": Input(dims=("batch", 1), type="tensor(int64)"),
        "attention_mask": Input(dims=("batch", "all"), type="tensor(int64)"),
        **{f"past_{what}_{i}": Input(dims=("batch", heads, "past", width)) for i in range(layers) for what in ("key", "value")},
    }


_LLAMA = {
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1408,
    "vocab_size": WORDS,
}

ARCHITECTURES = [
    Architecture(
        name="bert",
        build=transformer("BertModel", vocab_size=WORDS, num_hidden_layers=4),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="distilbert",
        build=transformer("DistilBertModel", vocab_size=WORDS, n_layers=3),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
    ),
    Architecture(
        name="roberta",
        build=transformer("RobertaModel", vocab_size=WORDS, num_hidden_layers=4),
        call=hidden,
        inputs=TOKENS,
        sizes={"sequence": 64},
    ),
    Architecture(
        name="albert",
        build=transformer(
            "AlbertModel", vocab_size=WORDS, hidden_size=768, num_attention_heads=12, intermediate_size=3072, num_hidden_layers=4
        ),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="electra-small", build=transformer("ElectraModel", vocab_size=WORDS), call=hidden, inputs=TOKENS, sizes=SENTENCE
    ),
    Architecture(
        name="minilm",
        build=transformer("BertModel", vocab_size=WORDS, hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
        call=hidden,
        inputs=TOKENS,
        sizes={"sequence": 32},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="mpnet",
        build=transformer("MPNetModel", vocab_size=WORDS, num_hidden_layers=4),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
    ),
    Architecture(
        name="deberta-v2",
        build=transformer(
            "DebertaV2Model",
            vocab_size=WORDS,
            hidden_size=768,
            num_hidden_layers=3,
            num_attention_heads=12,
            intermediate_size=3072,
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
        ),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="mobilebert",
        # Nothing normalises its sums, and weights were not trained to keep them small: 8 layers enlarge rounding to 10 %.
        build=transformer("MobileBertModel", vocab_size=WORDS, num_hidden_layers=2),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
    ),
    Architecture(
        name="squeezebert",
        build=transformer("SqueezeBertModel", vocab_size=WORDS, num_hidden_layers=4),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
    ),
    Architecture(
        name="convbert",
        build=transformer("ConvBertModel", vocab_size=WORDS, num_hidden_layers=3),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="modernbert", build=transformer("ModernBertModel", num_hidden_layers=4), call=hidden, inputs=TOKENS, sizes=SENTENCE
    ),
    Architecture(
        name="t5-encoder",
        build=transformer("T5EncoderModel", vocab_size=WORDS, num_layers=4),
        call=hidden,
        inputs=TOKENS,
        sizes=SENTENCE,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="bart",
        build=transformer(
            "BartModel",
            vocab_size=WORDS,
            encoder_layers=2,
            decoder_layers=2,
            d_model=512,
            encoder_attention_heads=8,
            decoder_attention_heads=8,
        ),
        call=_encoder_decoder,
        inputs=TOKENS,
        sizes={"sequence": 64},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="llama-prefill", build=transformer("LlamaForCausalLM", **_LLAMA), call=causal, inputs=TOKENS, sizes=SENTENCE
    ),
    Architecture(
        name="llama-decode",
        build=transformer("LlamaForCausalLM", **_LLAMA),
        call=_decode,
        inputs=_past(4, 2, 64),
        sizes={"past": 255, "all": 256},
    ),
    Architecture(
        name="opt-prefill",
        build=transformer(
            "OPTForCausalLM",
            hidden_size=512,
            num_hidden_layers=4,
            ffn_dim=2048,
            num_attention_heads=8,
            vocab_size=WORDS,
            word_embed_proj_dim=512,
        ),
        call=causal,
        inputs=TOKENS,
        sizes={"sequence": 64},
    ),
    Architecture(
        name="neox-prefill",
        build=transformer(
            "GPTNeoXForCausalLM",
            hidden_size=512,
            num_hidden_layers=4,
            num_attention_heads=8,
            intermediate_size=2048,
            vocab_size=WORDS,
        ),
        call=causal,
        inputs=TOKENS,
        sizes={"sequence": 200},
        exporter=Exporter.TRACED,
    ),
]
