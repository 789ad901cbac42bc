"""Pictures: how does a network learn from more images than memory holds?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from experiments.deep_ensembles.images.image_files import ImageFiles, read_square


@dataclass(frozen=True, eq=False)
class Pictures:
    """Image files that stand where an array (n, pixels, pixels, 3) of bytes could.

    Some rows of it are Pictures again, which costs nothing; one row, and `np.asarray` of any, reads the
    files. All of Caltech-256 at 200 pixels would be 4 GB in every process.
    """

    files: ImageFiles
    pixels: int

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            return read_square(self.files.paths[rows], self.pixels)
        return replace(self, files=self.files.subset(np.arange(len(self))[rows]))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.files.pixels(0, len(self), self.pixels).astype(dtype or np.uint8, copy=False)
