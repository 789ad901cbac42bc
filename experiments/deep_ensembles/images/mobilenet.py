"""MobileNetV2: which layers turn an image into the 1000 ImageNet outputs?

Sandler, Howard, Zhu, Zhmoginov and Chen, "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
CVPR 2018, Table 2. Layers are nested so that parameters have torchvision's names.
"""

import torch
from torch import Tensor, nn

from experiments.deep_ensembles.downloads import unpacked

#: Table 2 of the paper: expansion t, channels c, repetitions n, stride s of the first of them.
BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class MobileNetV2(nn.Module):
    """Inverted residual blocks, global average pool, one linear layer.

    Parameters
    ----------
    n_outputs : int
        Width of the last layer.
    dropout : float
        Probability of dropping a pooled channel in training.
    """

    def __init__(self, n_outputs: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, 32, kernel=3, stride=2)]
        channels = 32
        for expansion, width, repetitions, stride in BOTTLENECKS:
            for i in range(repetitions):
                layers.append(InvertedResidual(channels, width, stride if i == 0 else 1, expansion))
                channels = width
        layers.append(_convolution(channels, 1280, kernel=1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(1280, n_outputs))

    def forward(self, images: Tensor) -> Tensor:
        """Outputs before the softmax, (n, n_outputs), of images (n, 3, height, width)."""
        return self.classifier(self.features(images).mean(dim=(2, 3)))


class InvertedResidual(nn.Module):
    """Widen, filter each channel by itself, narrow without a nonlinearity (Figure 4d)."""

    def __init__(self, before: int, after: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = before * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(_convolution(before, wide, kernel=1))
        layers.append(_convolution(wide, wide, kernel=3, stride=stride, groups=wide))
        layers += [nn.Conv2d(wide, after, 1, bias=False), nn.BatchNorm2d(after)]
        self.conv = nn.Sequential(*layers)
        self.shortcut = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.shortcut else self.conv(x)


def pretrained() -> MobileNetV2:
    """Give the network with its ImageNet weights, ready for inference."""
    path = unpacked("mobilenet_v2") / "mobilenet_v2-b0353104.pth"
    network = MobileNetV2()
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval()


def _convolution(
    before: int, after: int, *, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU6(inplace=True),
    )
