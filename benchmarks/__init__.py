"""How fast, how well and at what price: ratios against named opponents, measured in one run."""

import os

# Every figure is one thread's; the libraries read these when they are first imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
