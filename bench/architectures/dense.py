"""An answer for each pixel or box: segmentation, detection, images from images."""

from xyntra_bench.architectures._architecture import (
    ANY_IMAGE,
    Architecture,
    Exporter,
    Input,
    hidden,
    image,
    logits,
    net,
    transformer,
)


def _boxes(module: object, *inputs: object) -> object:
    return module(*inputs).pred_boxes  # type: ignore[operator]


def _depth(module: object, *inputs: object) -> object:
    return module(*inputs).predicted_depth  # type: ignore[operator]


def _picture(module: object, *inputs: object) -> object:
    return module(*inputs).reconstruction  # type: ignore[operator]


ARCHITECTURES = [
    Architecture(
        name="unet", build=net("pictures.UNet"), inputs=ANY_IMAGE, sizes={"height": 256, "width": 256}, exporter=Exporter.TRACED
    ),
    Architecture(name="deeplab", build=net("pictures.DeepLab"), inputs=ANY_IMAGE, sizes={"height": 257, "width": 321}),
    Architecture(
        name="segformer-b0",
        build=transformer("SegformerForSemanticSegmentation"),
        call=logits,
        inputs=ANY_IMAGE,
        sizes={"height": 256, "width": 256},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="yolo", build=net("pictures.Yolo"), inputs=ANY_IMAGE, sizes={"height": 320, "width": 320}, exporter=Exporter.TRACED
    ),
    Architecture(
        name="yolos-tiny",
        call=_boxes,
        inputs=image(224),
        build=transformer(
            "YolosForObjectDetection",
            hidden_size=192,
            num_attention_heads=3,
            intermediate_size=768,
            num_hidden_layers=6,
            image_size=[224, 224],
            num_detection_tokens=100,
            use_mid_position_embeddings=False,
        ),
    ),
    Architecture(
        name="dpt-small",
        call=_depth,
        inputs=image(224),
        exporter=Exporter.TRACED,
        build=transformer(
            "DPTForDepthEstimation",
            hidden_size=384,
            num_hidden_layers=4,
            num_attention_heads=6,
            intermediate_size=1536,
            image_size=224,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[48, 96, 192, 384],
            fusion_hidden_size=64,
            is_hybrid=False,
        ),
    ),
    Architecture(
        name="style-transfer",
        build=net("pictures.StyleTransfer"),
        inputs=ANY_IMAGE,
        sizes={"height": 224, "width": 224},
        exporter=Exporter.TRACED,
    ),
    Architecture(
        name="super-resolution",
        build=net("pictures.SubPixel"),
        inputs={"pixel_values": Input(dims=("batch", 1, "height", "width"))},
        sizes={"height": 160, "width": 160},
    ),
    Architecture(
        name="swin2sr",
        call=_picture,
        inputs=image(64),
        exporter=Exporter.TRACED,
        build=transformer("Swin2SRForImageSuperResolution", embed_dim=60, depths=[2, 2], num_heads=[6, 6], image_size=64),
    ),
    Architecture(name="gan-generator", build=net("pictures.Generator"), inputs={"z": Input(dims=("batch", 100))}),
    Architecture(name="keypoints", build=net("pictures.Hourglass"), inputs=ANY_IMAGE, sizes={"height": 192, "width": 256}),
    Architecture(name="hiera", build=transformer("HieraModel", depths=[1, 2, 4, 1]), call=hidden, inputs=image(224)),
]
