"""Nets with LSTM and GRU: text in pictures, speech, series."""

from xyntra_bench.architectures._architecture import Architecture, Exporter, Input, net

ARCHITECTURES = [
    Architecture(
        name="crnn",
        build=net("recurrent.Crnn"),
        inputs={"line": Input(dims=("batch", 1, 32, "width"))},
        sizes={"width": 320},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="speech-lstm",
        build=net("recurrent.SpeechLstm"),
        inputs={"mel": Input(dims=("batch", "frames", 80))},
        sizes={"frames": 200},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="gru-denoiser",
        build=net("recurrent.GruDenoiser"),
        inputs={"bands": Input(dims=("batch", "frames", 42))},
        sizes={"frames": 100},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="lstm-forecaster",
        build=net("recurrent.Forecaster"),
        inputs={"series": Input(dims=("batch", 30, 8))},
        sizes={"batch": 16},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="tagger",
        build=net("recurrent.Tagger"),
        inputs={"input_ids": Input(dims=("batch", "sequence"), type="tensor(int64)")},
        sizes={"sequence": 40},
        exporter=Exporter.TRACED,
    ),
]
