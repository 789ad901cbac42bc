"""Two pretrained networks, and features of many images by them, computed once.

Layers are nested so that parameters have torchvision's names.
"""

import copy
import hashlib
import json
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

import hullcal as hc
from experiments.deep_ensembles.downloads import ArraysOnly, unpacked
from experiments.deep_ensembles.images import ImageFiles, images_md5

#: Mean and standard deviation of the channels of ImageNet, for pixels from 0 to 1.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
#: Small batches stay in the cache of a CPU and were the fastest.
_BATCH = 16

#: Expansion t, channels c, repetitions n, stride s of the first of them.
BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
#: Configuration D: the channels of the convolutions between two poolings.
STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class MobileNetV2(nn.Module):
    """1,000 outputs by inverted residual blocks (Sandler et al., CVPR 2018, Table 2)."""

    n_outputs = 1000

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, 32, kernel=3, stride=2)]
        channels = 32
        for expansion, width, repetitions, stride in BOTTLENECKS:
            for i in range(repetitions):
                layers.append(InvertedResidual(channels, width, stride if i == 0 else 1, expansion))
                channels = width
        layers.append(_convolution(channels, 1280, kernel=1))
        self.features = nn.Sequential(*layers)
        # Dropout is that of the head alone; the stored weights count this place.
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, self.n_outputs))

    def forward(self, images: Tensor) -> Tensor:
        """Outputs before the softmax, (n, 1000), of images (n, 3, height, width)."""
        return self.classifier(self.features(images).mean(dim=(2, 3)))

    @classmethod
    def pretrained(cls) -> "MobileNetV2":
        """With its ImageNet weights, ready for inference."""
        network = cls()
        path = unpacked("mobilenet_v2") / "mobilenet_v2-b0353104.pth"
        network.load_state_dict(torch.load(path, weights_only=True))
        return network.eval()


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


class VGG16Trunk(nn.Module):
    """The 13 convolutions of VGG16 (Simonyan and Zisserman, ICLR 2015), then the mean over places."""

    n_outputs = 512

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage in STAGES:
            for before, after in pairwise((channels, *stage)):
                layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
            layers.append(nn.MaxPool2d(2))
            channels = stage[-1]
        self.features = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """Pooled channels, (n, 512), of images (n, 3, height, width) of at least 32 pixels a side."""
        return self.features(images).mean(dim=(2, 3))

    @classmethod
    def pretrained(cls) -> "VGG16Trunk":
        """With its ImageNet weights, ready for inference."""
        with (unpacked("vgg16_trunk") / "vgg16.ckpt").open("rb") as file:
            stored = ArraysOnly(file).load()["VGG16_0"]
        network = cls()
        convolutions = [layer for layer in network.features if isinstance(layer, nn.Conv2d)]
        for k, layer in enumerate(convolutions):
            # Stored axes are height, width, input, output; torch wants output and input first.
            kernel = np.asarray(stored[f"Conv_{k}"]["kernel"]).transpose(3, 2, 0, 1)
            layer.weight.data = torch.from_numpy(np.ascontiguousarray(kernel))
            layer.bias.data = torch.from_numpy(np.array(stored[f"Conv_{k}"]["bias"]))
        return network.eval()


def _convolution(
    before: int, after: int, *, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU6(inplace=True),
    )


def seen(images: Tensor, size: int) -> Tensor:
    """Images (n, height, width, 3) of bytes as a network sees them: square, ImageNet's channels."""
    # Seen with channels first, pixels with channels last are torch's `channels_last` without moving.
    x = images.permute(0, 3, 1, 2).float()
    if x.shape[2:] != (size, size):
        # Shrinking needs a filter, as Pillow has, or fine lines turn into others.
        shrinking = size < max(x.shape[2:])
        x = functional.interpolate(x, (size, size), mode="bilinear", antialias=shrinking)
    mean, deviation = (torch.tensor(c, device=x.device)[:, None, None] for c in (MEAN, DEVIATION))
    return ((x / 255 - mean) / deviation).contiguous(memory_format=torch.channels_last)


def extract(network: nn.Module, images: NDArray[np.uint8] | ImageFiles, size: int) -> NDArray[Any]:
    """Outputs (n, D) of a network, in float16, for images that are stretched to a square.

    Files are read batch by batch and resized by Pillow, arrays by torch; both bilinearly. A copy of
    the network is used, in evaluation mode.
    """
    fast = prepared(network)
    rows = []
    with torch.inference_mode(), np.errstate(over="ignore"):
        for start in range(0, len(images), _BATCH):
            # A copy, since torch warns of memory that is read-only, as that of a memory map may be.
            pixels = np.array(images[start : start + _BATCH])
            rows.append(fast(seen(torch.from_numpy(pixels), size)).numpy().astype(np.float16))
    values = np.concatenate(rows)
    if not np.isfinite(values).all():
        raise hc.InvalidInputError(
            f"`network` must give finite outputs that fit float16; got "
            f"{int((~np.isfinite(values)).sum())} that do not. Look at its weights."
        )
    return values


def prepared(network: nn.Module) -> nn.Module:
    """A copy that computes the same faster: for inference alone, channels last.

    A batch normalisation that follows a convolution in a Sequential is merged into it, which changes
    nothing but rounding.
    """
    fast = copy.deepcopy(network).eval()
    for block in fast.modules():
        if isinstance(block, nn.Sequential):
            for i in range(len(block) - 1):
                first, second = block[i], block[i + 1]
                if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                    block[i], block[i + 1] = fuse_conv_bn_eval(first, second), nn.Identity()
    return fast.to(memory_format=torch.channels_last)


def cached_features(
    name: str,
    factory: Callable[[], nn.Module],
    images: NDArray[np.uint8] | ImageFiles,
    folder: Path,
    *,
    size: int,
    rows_per_block: int = 2000,
) -> NDArray[np.float16]:
    """Read features from a folder, or compute them there; what was interrupted goes on.

    A folder of blocks is named after the weights, the images and the size, so that none is taken for
    another. The bits are the same whether or not a run was interrupted.
    """
    network = factory()
    made_of = [_weights_sha256(network), images_md5(images), size, rows_per_block]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    blocks = folder / f"{name}-{key}"
    if isinstance(images, ImageFiles) and not blocks.is_dir():
        images.checked()  # a damaged file is named now, not after an hour
    blocks.mkdir(parents=True, exist_ok=True)
    found = []
    for start in range(0, len(images), rows_per_block):
        path = blocks / f"{start:08d}.npy"
        if not path.exists():
            keep(extract(network, images[start : start + rows_per_block], size), path)
            print(f"{name}: {start} of {len(images)} images", file=sys.stderr, flush=True)
        found.append(np.load(path))
    return np.concatenate(found)


def keep(array: NDArray[Any], path: Path) -> None:
    """Save an array under another name first: a file that is there is whole."""
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.save(file, array)
    os.replace(unfinished, path)


def _weights_sha256(network: nn.Module) -> str:
    whole = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        whole.update(f"{name} {tuple(tensor.shape)}\n".encode())
        whole.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()
