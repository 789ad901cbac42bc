"""ImageFiles: labelled images that stay on disk until they are looked at."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import hullcal as hc

#: Pillow's names for pixels of more than 8 bits, which it would clip rather than scale.
_DEEP_PIXELS = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Paths of images with a class each; nothing is read before it is asked for.

    Attributes
    ----------
    paths : tuple of Path
    labels : ndarray of int64, shape (n,)
        Positions in `classes`.
    classes : tuple of str
    """

    paths: tuple[Path, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"ImageFiles({len(self)} images, {len(self.classes)} classes)"

    def subset(self, rows: NDArray[np.int64]) -> Self:
        """Give the images of some rows, with the same classes."""
        return type(self)(tuple(self.paths[i] for i in rows), self.labels[rows], self.classes)

    def pixels(self, start: int, stop: int, size: int) -> NDArray[np.uint8]:
        """Read the images from `start` to before `stop`, as (n, size, size, 3)."""
        chosen = self.paths[start:stop]
        block = np.empty((len(chosen), size, size, 3), dtype=np.uint8)
        for row, path in zip(block, chosen, strict=True):
            row[:] = read_square(path, size)
        return block

    def check(self) -> None:
        """Decode every image once, and name all that cannot be read."""
        broken = []
        for path in self.paths:
            try:
                read_square(path, 1)
            except hc.InvalidInputError:
                broken.append(str(path))
        if broken:
            some = ", ".join(broken[:5]) + (", ..." if len(broken) > 5 else "")
            raise hc.InvalidInputError(
                f"`images` must all be readable; got {len(broken)} damaged of {len(self)}: {some}. "
                "Fetch these files again, or take them out of their folders."
            )

    def md5(self) -> str:
        """Fingerprint of the files' bytes in their order."""
        whole = hashlib.md5(usedforsecurity=False)
        for path in self.paths:
            with path.open("rb") as file:
                whole.update(hashlib.file_digest(file, "md5").digest())
        return whole.hexdigest()


def read_square(path: Path, size: int) -> NDArray[np.uint8]:
    """Read one image as RGB and stretch it to a square, (size, size, 3), as the paper's authors did."""
    try:
        with Image.open(path) as image:
            if image.mode in _DEEP_PIXELS:
                raise ValueError(f"pixels of more than 8 bits ({image.mode})")
            if "transparency" in image.info:
                # Pillow would warn that a palette's transparency is lost on the way to RGB.
                image = image.convert("RGBA")
            square = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(square)
    # A damaged PNG is a SyntaxError to Pillow, a huge one a DecompressionBombError.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise hc.InvalidInputError(
            f"`path` must be a readable image of 8 bits a channel; got {path}, which is not: {error}. "
            "Fetch the file again, or take it out of its folder."
        ) from error
