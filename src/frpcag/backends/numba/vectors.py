"""Two vector operations that Numba's loops do not give: a gathered sum in registers, a block transpose.

Written from Python loops, the sum stores its result back to memory for every few neighbours and the transpose moves
single numbers; written as vectors of fixed length, LLVM keeps both in registers on any CPU.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16  # side of a transposed block; rows of all arrays are padded to a multiple of it


def gathered_sum(width: int):
    """Make ``f(Y, idx, val, start, stop, column, out, row, at)`` for vectors of ``width`` numbers.

    It sets ``out[row, at:at+width] += sum_k val[k] * Y[idx[k], column:column+width]`` over ``start <= k < stop``.
    ``out`` and ``val`` may be wider than ``Y``: a certificate takes float64 sums of float32 numbers.
    """

    @intrinsic
    def operation(typingctx, Y, idx, val, start, stop, column, out, row, at):
        def generate(context, builder, signature, args):
            vector = ir.VectorType(context.get_data_type(out.dtype), width)
            load_row = _row_reader(context, builder, Y, args[0], width, vector)
            target = _address(context, builder, out, args[6], args[7], args[8], vector)
            numbers = {
                name: context.make_array(kind)(context, builder, value).data
                for name, kind, value in (("idx", idx, args[1]), ("val", val, args[2]))
            }
            total = cgutils.alloca_once_value(builder, builder.load(target, align=out.dtype.bitwidth // 8))
            one = ir.Constant(args[3].type, 1)
            with cgutils.for_range_slice(builder, args[3], args[4], one, args[3].type) as (k, _):
                neighbour = _number_at(builder, numbers["idx"], k, args[5].type)
                weight = _splat(builder, builder.load(builder.gep(numbers["val"], [k])), vector)
                term = builder.fmul(weight, load_row(neighbour, args[5]), flags=("contract",))
                builder.store(builder.fadd(builder.load(total), term, flags=("contract",)), total)
            builder.store(builder.load(total), target, align=out.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return types.void(Y, idx, val, start, stop, types.intp, out, types.intp, types.intp), generate

    return operation


@intrinsic
def transpose_block(typingctx, A, row, column, B, to_row, to_column):
    """Write the transpose of the LANES x LANES block of ``A`` at (row, column) to ``B`` at (to_row, to_column)."""

    def generate(context, builder, signature, args):
        vector = ir.VectorType(context.get_data_type(A.dtype), LANES)
        load_row = _row_reader(context, builder, A, args[0], LANES, vector)
        shift = [ir.Constant(args[1].type, i) for i in range(LANES)]
        rows = [load_row(builder.add(args[1], s), args[2]) for s in shift]
        half = 1
        while half < LANES:  # swap the off-diagonal squares of side 1, 2, 4, 8
            swapped = list(rows)
            for i in (i for i in range(LANES) if not i & half):
                a, b = rows[i], rows[i + half]
                upper = [x if not x & half else LANES + x - half for x in range(LANES)]
                lower = [x + half if not x & half else LANES + x for x in range(LANES)]
                swapped[i], swapped[i + half] = _shuffle(builder, a, b, upper), _shuffle(builder, a, b, lower)
            rows, half = swapped, 2 * half
        for s, value in zip(shift, rows, strict=True):
            target = _address(context, builder, B, args[3], builder.add(args[4], s), args[5], vector)
            builder.store(value, target, align=A.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(A, types.intp, types.intp, B, types.intp, types.intp), generate


def _address(context, builder, kind, value, row, column, vector):
    """Address of ``value[row, column]`` as a pointer to a vector; the array is C-contiguous."""
    array = context.make_array(kind)(context, builder, value)
    stride = builder.extract_value(array.shape, 1)
    offset = builder.add(builder.mul(row, stride), column)
    return builder.bitcast(builder.gep(array.data, [offset]), vector.as_pointer())


def _row_reader(context, builder, kind, value, width, vector):
    """Return what loads ``width`` numbers of an array, widened to the type of ``vector``."""
    stored = ir.VectorType(context.get_data_type(kind.dtype), width)

    def load(row, column):
        place = _address(context, builder, kind, value, row, column, stored)
        numbers = builder.load(place, align=kind.dtype.bitwidth // 8)
        return numbers if stored == vector else builder.fpext(numbers, vector)

    return load


def _number_at(builder, data, k, wide):
    return builder.sext(builder.load(builder.gep(data, [k])), wide)


def _splat(builder, number, vector):
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return _shuffle(builder, first, undefined, [0] * vector.count)


def _shuffle(builder, a, b, lanes):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(a, b, mask)
