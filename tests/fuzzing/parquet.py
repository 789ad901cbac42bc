"""How is a Parquet file changed so that it stays one, and its columns are not what they were?"""

import datetime
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing.mutations import WORDS

#: Cells of types that no number, name or label has, and their type where it is not theirs already.
CELLS = [
    *((None, None), (True, None), (1, pa.int8()), (2**63, pa.uint64()), (0.5, pa.float16())),
    *((0.5, pa.float32()), ("0.5", None), ("", None), ("x", pa.large_string()), (b"\xff", None)),
    *((b"ab", pa.binary(2)), (0, pa.timestamp("ns")), (-1, pa.duration("s")), ([0.5], None)),
    *(([], pa.list_(pa.float64(), 0)), ({"a": 0.5}, None), ([(1, 0.5)], pa.map_("i4", "f8"))),
    *((datetime.date(1, 1, 1), None), (datetime.time(1), None)),
    *(("x", pa.dictionary(pa.int8(), pa.string())), (1, pa.decimal128(38, 37))),
]
#: Numbers that are no probabilities.
NUMBERS = [np.nan, np.inf, -np.inf, 2.0, -0.5, 1e308, 5e-324, None]
PACKED = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]


def parquet_altered(data, rng, others=()):
    """A sound file with a column more or less, of another name or type, or with other cells."""
    table = pq.read_table(io.BytesIO(data))
    place = int(rng.integers(table.num_columns))
    name, kind = table.column_names[place], rng.integers(8)
    if kind == 0:
        table = table.remove_column(place)
    elif kind == 1:
        names = [*table.column_names, *WORDS]
        renamed = names[rng.integers(len(names))]
        table = table.set_column(place, renamed, table.column(place))
    elif kind == 2:
        names = [*table.column_names, *WORDS]
        table = table.append_column(names[rng.integers(len(names))], table.column(place))
    elif kind == 3:
        cells = table.column(place).to_pylist()
        if cells and isinstance(cells[0], float):
            cells[rng.integers(len(cells))] = NUMBERS[rng.integers(len(NUMBERS))]
        elif cells:
            cells[rng.integers(len(cells))] = [None, "", "nobody"][rng.integers(3)]
        table = table.set_column(place, name, pa.array(cells, table.schema.field(place).type))
    elif kind == 4:
        table = pa.concat_tables([table] * int(rng.choice([2, 3, 100])))
    elif kind == 5:
        table = table.slice(0, int(rng.integers(2)))
    else:
        cell, of = CELLS[rng.integers(len(CELLS))]
        cells = pa.array([cell] * table.num_rows, of)
        table = table.set_column(place, name, cells)
    return _written(table, rng)


def _written(table, rng):
    buffer = io.BytesIO()
    how = {
        "compression": str(rng.choice(PACKED)),
        "row_group_size": int(rng.choice([1, 2, 1000])),
        "data_page_version": str(rng.choice(["1.0", "2.0"])),
        "use_dictionary": bool(rng.integers(2)),
        "store_schema": bool(rng.integers(2)),
    }
    pq.write_table(table, buffer, **how)
    return buffer.getvalue()
