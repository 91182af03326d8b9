"""Speech and sound: waves, spectra, and what makes waves."""

from xyntra_bench.architectures._architecture import Architecture, Exporter, Input, hidden, net, transformer

WAVE = {"input_values": Input(dims=("batch", "samples"))}
SECOND = {"samples": 16000}


def _whisper(module: object, *inputs: object) -> object:
    return module.get_encoder()(*inputs).last_hidden_state  # type: ignore[attr-defined]


ARCHITECTURES = [
    Architecture(
        name="wav2vec2",
        build=transformer("Wav2Vec2Model", num_hidden_layers=3),
        call=hidden,
        inputs=WAVE,
        sizes=SECOND,
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="hubert", build=transformer("HubertModel", num_hidden_layers=2), call=hidden, inputs=WAVE, sizes={"samples": 8000}
    ),
    Architecture(
        name="conformer",
        call=hidden,
        exporter=Exporter.TRACED,
        build=transformer(
            "Wav2Vec2BertModel", hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
        ),
        inputs={"input_features": Input(dims=("batch", "frames", 160))},
        sizes={"frames": 200},
    ),
    Architecture(
        name="whisper-encoder",
        call=_whisper,
        inputs={"input_features": Input(dims=("batch", 80, 3000))},
        build=transformer(
            "WhisperModel",
            d_model=384,
            encoder_layers=2,
            encoder_attention_heads=6,
            encoder_ffn_dim=1536,
            decoder_layers=1,
            decoder_attention_heads=6,
            decoder_ffn_dim=1536,
        ),
    ),
    Architecture(
        name="audio-transformer",
        call=hidden,
        inputs={"input_values": Input(dims=("batch", 256, 128))},
        build=transformer(
            "ASTModel", hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768, max_length=256
        ),
    ),
    Architecture(
        name="vocoder",
        build=net("sound.Vocoder"),
        inputs={"mel": Input(dims=("batch", 80, "frames"))},
        sizes={"frames": 40},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="dilated-wave",
        build=net("sound.DilatedWave"),
        inputs={"wave": Input(dims=("batch", 1, "samples"))},
        sizes={"samples": 4000},
    ),
    Architecture(
        name="separator",
        build=net("sound.Separator"),
        inputs={"wave": Input(dims=("batch", 1, "samples"))},
        sizes=SECOND,
        exporter=Exporter.TRACED,
    ),
    Architecture(name="keyword-spotter", build=net("sound.KeywordSpotter"), inputs={"mel": Input(dims=("batch", 1, 49, 10))}),
]
