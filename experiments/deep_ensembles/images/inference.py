"""What does a network say of many images, and how is that had quickly on a CPU?"""

import copy
import sys
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

import hullcal as hc
from experiments.deep_ensembles.images.image_files import ImageFiles

Images = NDArray[np.uint8] | ImageFiles
Report = Callable[[int, int], None]

#: Mean and standard deviation of the channels of ImageNet, for pixels from 0 to 1.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def extract(
    network: nn.Module,
    images: Images,
    *,
    size: int,
    normalise: bool = True,
    batch_size: int = 16,
    dtype: DTypeLike = np.float32,
    progress: bool | Report = False,
) -> NDArray[np.floating]:
    """Give the outputs of a network for images that are stretched to a square.

    Parameters
    ----------
    network : torch.nn.Module
        Takes (n, 3, size, size) and gives (n, D). A copy of it is used, in evaluation mode.
    images : ndarray of uint8, shape (n, height, width, 3), or ImageFiles
        Files are read batch by batch and resized by Pillow, arrays by torch; both bilinearly.
    size : int
        Pixels of a side.
    normalise : bool
        Whether the channels are centred and scaled as those of ImageNet; else they go from 0 to 1.
    batch_size : int
        Small batches stay in the cache of a CPU and were the fastest.
    dtype : dtype
        float32, or float16 to halve the room.
    progress : bool or callable
        True prints a line on stderr for every tenth; a callable gets (done, total).

    Returns
    -------
    ndarray of shape (n, D)
    """
    total = check_images(images, size)
    if batch_size < 1:
        raise hc.InvalidInputError(
            f"`batch_size` must be at least 1; got {batch_size}. Leave it out for the default."
        )
    fast = prepared(network)
    report = reporter(progress)
    rows: list[NDArray[np.floating]] = []
    with torch.inference_mode():
        for start in range(0, total, batch_size):
            stop = min(start + batch_size, total)
            outputs = fast(_batch(images, start, stop, size, normalise))
            rows.append(_stored(outputs, dtype))
            report(stop, total)
    return np.concatenate(rows)


def prepared(network: nn.Module) -> nn.Module:
    """Give a copy that computes the same faster: for inference alone, channels last.

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


def check_images(images: Images, size: int) -> int:
    """Refuse what cannot be images; give their number."""
    if not isinstance(images, ImageFiles):
        shape = np.shape(images)
        if getattr(images, "dtype", None) != np.uint8 or len(shape) != 4 or shape[3] != 3:
            raise hc.InvalidInputError(
                "`images` must be ImageFiles or uint8 of shape (n, height, width, 3); got "
                f"{getattr(images, 'dtype', type(images).__name__)} of shape {shape}. "
                "Channels come last, and pixels go from 0 to 255."
            )
    if len(images) == 0:
        raise hc.InvalidInputError("`images` must hold at least one; got none. Look at the folder.")
    if size < 32:
        raise hc.InvalidInputError(
            f"`size` must be at least 32, or the networks pool to nothing; got {size}. Take 32 or more."
        )
    return len(images)


def _batch(images: Images, start: int, stop: int, size: int, normalise: bool) -> Tensor:
    if isinstance(images, ImageFiles):
        pixels = images.pixels(start, stop, size)
    else:
        # A copy, since torch warns of memory that is read-only, as that of a memory map may be.
        pixels = np.array(images[start:stop])
    # Seen with channels first, pixels with channels last are torch's `channels_last` without moving.
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float()
    if x.shape[2:] != (size, size):
        # Shrinking needs a filter, as Pillow has, or fine lines turn into others.
        shrinking = size < max(x.shape[2:])
        x = functional.interpolate(x, (size, size), mode="bilinear", antialias=shrinking)
    x = x / 255
    if normalise:
        x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(DEVIATION)[:, None, None]
    return x.contiguous(memory_format=torch.channels_last)


def _stored(outputs: Tensor, dtype: DTypeLike) -> NDArray[np.floating]:
    with np.errstate(over="ignore"):  # said below, in words
        values = outputs.numpy().astype(dtype)
    if not np.isfinite(values).all():
        raise hc.InvalidInputError(
            f"`network` must give finite outputs that fit {np.dtype(dtype)}; got "
            f"{int((~np.isfinite(values)).sum())} that do not. Look at its weights, or take float32."
        )
    return values


def reporter(progress: bool | Report) -> Report:
    """Give what to call with (done, total)."""
    if callable(progress):
        return progress
    if not progress:
        return lambda done, total: None
    said = 0

    def print_tenths(done: int, total: int) -> None:
        nonlocal said
        if 10 * done // total > said:
            said = 10 * done // total
            print(f"{done} of {total} images", file=sys.stderr, flush=True)

    return print_tenths
