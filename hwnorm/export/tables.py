"""A design's tables, and tables as files for other tools."""

import json


def design_tables(design):
    """The tables of a design.

    Parameters
    ----------
    design : hwnorm.Norm

    Returns
    -------
    dict of str to hwnorm.tables.Table
        By what they are used for.
    """
    design.require_hardware()
    return {name: unit.table for name, unit in design.units.items()}


def _hex(value, width):
    return format(value & (1 << width) - 1, f"0{(width + 3) // 4}x")


def mem_words(values, width):
    """Words as a ``.mem`` file for ``$readmemh``, one a line."""
    return "".join(f"{_hex(v, width)}\n" for v in values)


def coe_words(values, width):
    """Words as a ``.coe`` file, for memory cores of Vivado."""
    body = ",\n".join(_hex(v, width) for v in values)
    return f"memory_initialization_radix=16;\nmemory_initialization_vector=\n{body};\n"


def mif_words(values, width):
    """Words as a ``.mif`` file, for memory cores of Quartus."""
    rows = "".join(f"{n} : {_hex(v, width)};\n" for n, v in enumerate(values))
    return (
        f"DEPTH = {len(values)};\nWIDTH = {width};\n"
        f"ADDRESS_RADIX = DEC;\nDATA_RADIX = HEX;\nCONTENT BEGIN\n{rows}END;\n"
    )


def _mem(column):
    return mem_words(column.values, column.fmt.width)


def _hex_words(column):
    return "".join(f"0x{_hex(v, column.fmt.width)}\n" for v in column.values)


def _coe(column):
    return coe_words(column.values, column.fmt.width)


def _mif(column):
    return mif_words(column.values, column.fmt.width)


def _csv(column):
    rows = "".join(f"{n},{v},{v * column.fmt.lsb!r}\n" for n, v in enumerate(column.values))
    return f"index,integer,real\n{rows}"


def _c_header(column):
    width = next(w for w in (8, 16, 32, 64) if w >= column.fmt.width)
    kind = f"{'' if column.fmt.signed else 'u'}int{width}_t"
    body = "".join(f"    {v},\n" for v in column.values)
    return (
        f"/* {column.fmt.spelling}: integers in units of 2^-{column.frac} */\n"
        f"#include <stdint.h>\n\n"
        f"static const {kind} {column.name}[{len(column.values)}] = {{\n{body}}};\n"
    )


#: Format name to file ending and writer of one column; json holds the whole table.
TABLE_FORMATS = {
    "json": ("json", None),
    "hex": ("hex", _hex_words),
    "mem": ("mem", _mem),
    "coe": ("coe", _coe),
    "mif": ("mif", _mif),
    "csv": ("csv", _csv),
    "c": ("h", _c_header),
}


def table_files(table, name, kind):
    """A table as files.

    Parameters
    ----------
    table : hwnorm.tables.Table
    name : str
        What the file names begin with.
    kind : str
        One of ``TABLE_FORMATS``.

    Returns
    -------
    dict of str to str
        File name to text: one for json, else one a column.
    """
    ending, write = TABLE_FORMATS[kind]
    if write is None:
        return {f"{name}.{ending}": json_text(table)}
    return {f"{name}_c{n}.{ending}": write(column) for n, column in enumerate(table.columns)}


def json_text(table):
    """A table as JSON, a column's values on one line."""
    data = table.to_dict()
    columns = data.pop("columns")
    head = json.dumps(data, indent=2)[:-2]
    rows = ",\n".join("    " + json.dumps(column) for column in columns)
    return f'{head},\n  "columns": [\n{rows}\n  ]\n}}\n'
