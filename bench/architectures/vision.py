"""Classifiers and backbones of images."""

from xyntra_bench.architectures._architecture import ANY_IMAGE, Architecture, Exporter, hidden, image, logits, net, transformer

USUAL = {"height": 224, "width": 224}
PHOTO = image(224)

ARCHITECTURES = [
    Architecture(
        name="resnet-50",
        build=transformer("ResNetForImageClassification"),
        call=logits,
        inputs=ANY_IMAGE,
        sizes=USUAL,
        exporter=Exporter.TRACED,
        max_err=1e-4,  # its random weights amplify rounding: inside, ONNX Runtime is 3.2e-5 off float64, and we 4.6e-5
    ),
    Architecture(
        name="resnet-18",
        inputs=ANY_IMAGE,
        sizes=USUAL,
        call=hidden,
        build=transformer("ResNetModel", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic"),
    ),
    Architecture(
        name="mobilenet-v1",
        build=transformer("MobileNetV1ForImageClassification"),
        call=logits,
        inputs=PHOTO,
        exporter=Exporter.TRACED,
    ),
    Architecture(name="mobilenet-v2", build=transformer("MobileNetV2ForImageClassification"), call=logits, inputs=PHOTO),
    Architecture(
        name="efficientnet-b0",
        call=logits,
        inputs=PHOTO,
        build=transformer(
            "EfficientNetForImageClassification", width_coefficient=1.0, depth_coefficient=1.0, image_size=224, hidden_dim=1280
        ),
    ),
    Architecture(
        name="regnet-y",
        call=hidden,
        inputs=ANY_IMAGE,
        sizes=USUAL,
        build=transformer("RegNetModel", hidden_sizes=[48, 104, 208, 440], depths=[1, 3, 6, 2], groups_width=8),
    ),
    Architecture(name="resnext", build=net("classifiers.ResNeXt"), inputs=ANY_IMAGE, sizes=USUAL, exporter=Exporter.TRACED),
    Architecture(name="convnext", build=transformer("ConvNextModel"), call=hidden, inputs=ANY_IMAGE, sizes=USUAL),
    Architecture(name="swin", build=transformer("SwinModel"), call=hidden, inputs=PHOTO),
    Architecture(
        name="deit-tiny",
        call=hidden,
        inputs=PHOTO,
        build=transformer("DeiTModel", hidden_size=192, num_attention_heads=3, intermediate_size=768),
    ),
    Architecture(
        name="dinov2-small",
        call=hidden,
        inputs=PHOTO,
        exporter=Exporter.TRACED,
        build=transformer(
            "Dinov2Model", hidden_size=384, num_attention_heads=6, num_hidden_layers=4, image_size=224, patch_size=14
        ),
    ),
    Architecture(
        name="beit",
        call=hidden,
        inputs=PHOTO,
        build=transformer(
            "BeitModel",
            hidden_size=384,
            num_attention_heads=6,
            intermediate_size=1536,
            num_hidden_layers=4,
            use_relative_position_bias=True,
        ),
    ),
    Architecture(name="poolformer", build=transformer("PoolFormerModel"), call=hidden, inputs=ANY_IMAGE, sizes=USUAL),
    Architecture(name="mobilevit", build=transformer("MobileViTModel", image_size=256), call=hidden, inputs=image(256)),
    Architecture(name="levit", build=transformer("LevitModel"), call=hidden, inputs=PHOTO, exporter=Exporter.TRACED),
    Architecture(name="pvt-v2", build=transformer("PvtV2Model"), call=hidden, inputs=PHOTO, exporter=Exporter.TRACED),
    Architecture(
        name="clip-vision",
        call=hidden,
        inputs=PHOTO,
        build=transformer("CLIPVisionModel", hidden_size=512, intermediate_size=2048, num_attention_heads=8, num_hidden_layers=4),
    ),
    Architecture(name="vgg-11", build=net("classifiers.Vgg"), inputs=PHOTO, exporter=Exporter.TRACED),
    Architecture(name="densenet", build=net("classifiers.DenseNet"), inputs=ANY_IMAGE, sizes=USUAL),
    Architecture(name="squeezenet", build=net("classifiers.SqueezeNet"), inputs=ANY_IMAGE, sizes=USUAL, exporter=Exporter.TRACED),
    Architecture(name="shufflenet-v2", build=net("classifiers.ShuffleNet"), inputs=PHOTO),
    Architecture(name="inception", build=net("classifiers.Inception"), inputs=ANY_IMAGE, sizes=USUAL),
]
