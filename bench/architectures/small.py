"""Nets of a few nodes, tables, points and series."""

from xyntra_bench.architectures._architecture import Architecture, Exporter, Input, net, transformer

ARCHITECTURES = [
    Architecture(name="perceptron", build=net("small.Perceptron"), inputs={"x": Input(dims=("batch", 16))}),
    Architecture(
        name="perceptron-batch",
        build=net("small.Perceptron", hidden=128),
        inputs={"x": Input(dims=("batch", 16))},
        sizes={"batch": 256},
        exporter=Exporter.TRACED,
    ),
    Architecture(name="autoencoder", build=net("small.Autoencoder"), inputs={"x": Input(dims=("batch", 784))}),
    Architecture(
        name="lenet", build=net("small.LeNet"), inputs={"x": Input(dims=("batch", 1, 28, 28))}, exporter=Exporter.TRACED
    ),
    Architecture(
        name="q-network",
        build=net("small.QNetwork"),
        inputs={"frames": Input(dims=("batch", 4, 84, 84))},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="recommender",
        build=net("small.Recommender"),
        sizes={"batch": 64},
        inputs={"dense": Input(dims=("batch", 13)), "sparse": Input(dims=("batch", 26), type="tensor(int64)")},
    ),
    Architecture(
        name="points", build=net("small.PointNet"), inputs={"points": Input(dims=("batch", 3, "count"))}, sizes={"count": 1024}
    ),
    Architecture(
        name="video", build=net("small.Video"), inputs={"clip": Input(dims=("batch", 3, 8, 56, 56))}, exporter=Exporter.TRACED
    ),
    Architecture(
        name="text-cnn",
        build=net("small.TextCnn"),
        inputs={"input_ids": Input(dims=("batch", "sequence"), type="tensor(int64)")},
        sizes={"sequence": 100},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="series-transformer",
        inputs={"past_values": Input(dims=("batch", 512, 7))},
        build=transformer(
            "PatchTSTForPrediction",
            num_input_channels=7,
            context_length=512,
            patch_length=16,
            patch_stride=16,
            prediction_length=96,
        ),
        call=lambda module, x: module(x).prediction_outputs,
    ),
]
