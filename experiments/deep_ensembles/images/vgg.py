"""VGG16 trunk: which layers turn an image into 512 pooled channels?

Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR
2015, Table 1, configuration D, without its three dense layers. Parameters have torchvision's names.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.deep_ensembles.downloads import restricted_pickle, unpacked

#: Configuration D: the channels of the convolutions between two poolings.
STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VGG16Trunk(nn.Module):
    """The 13 convolutions of VGG16 with their poolings, then the mean over all places."""

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


def pretrained() -> VGG16Trunk:
    """Give the trunk with its ImageNet weights, ready for inference."""
    stored = restricted_pickle(unpacked("vgg16_trunk") / "vgg16.ckpt")
    network = VGG16Trunk()
    network.load_state_dict(state_dict(stored["VGG16_0"]))
    return network.eval()


def state_dict(layers: dict[str, dict[str, Any]]) -> dict[str, Tensor]:
    """Give weights stored as `Conv_k/{kernel, bias}` their names and order here.

    A stored kernel has the axes height, width, input, output; torch wants output and input first.
    """
    places = [i for i, layer in enumerate(VGG16Trunk().features) if isinstance(layer, nn.Conv2d)]
    state = {}
    for k, place in enumerate(places):
        kernel = np.asarray(layers[f"Conv_{k}"]["kernel"]).transpose(3, 2, 0, 1)
        state[f"features.{place}.weight"] = torch.from_numpy(np.ascontiguousarray(kernel))
        state[f"features.{place}.bias"] = torch.from_numpy(np.array(layers[f"Conv_{k}"]["bias"]))
    return state
