"""g as a function of the weights: in memory, over blocks of rows, on the workers of Dask."""
