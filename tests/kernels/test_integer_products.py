"""Products in whole numbers have the bits that numpy finds, in every instruction set that this processor has,
alone and in any batch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from llvmlite import binding, ir
from numpy.typing import NDArray

from omnidemo.backends import processor
from omnidemo.backends.arithmetic import integer
from omnidemo.backends.arithmetic.integer import TOP
from omnidemo.backends.kernels.integer.sets import SETS, Instructions
from omnidemo.backends.packed_forms import BYTES, COLUMNS, LAYOUTS, ROWS, PackedMatrix, Quantized
from tests.kernels.test_packed_matrices import random_matrix

HERE = [way for way in SETS if all(map(processor.has, way.needs))]
Array = NDArray[np.float32]


class Code:
    """Tiles of a set for all forms and the least and the most rows, of one form three rows too, and what
    quantizes, as machine code."""

    def __init__(self, way: Instructions) -> None:
        from omnidemo.backends.kernels.integer import tiles  # not before its machine code is there

        self.block, self.way = tiles.BLOCK, way
        self.counts = {form: sorted({1, way.most} | ({3} if form == BYTES else set())) for form in LAYOUTS}
        module = ir.Module("tiles")
        names = []
        for form, layout in LAYOUTS.items():
            for count in self.counts[form]:
                made = tiles.tile_product(module, f"tile_{form}_{count}", layout, count, way)
                made.linkage = "external"
                names.append(made.name)
        byte = ir.IntType(8).as_pointer()
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [byte, byte]), "quantize")
        builder = ir.IRBuilder(function.append_basic_block())
        tiles.quantize_block(builder, *function.args)
        builder.ret_void()
        target = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=processor.flags(processor.features()), opt=2, jit=True
        )
        self.parsed = binding.parse_assembly(str(module))
        options = binding.PipelineTuningOptions(speed_level=2)
        binding.create_pass_builder(target, options).getModulePassManager().run(
            self.parsed, binding.create_pass_builder(target, options)
        )
        self.engine = binding.create_mcjit_compiler(self.parsed, target)
        self.engine.finalize_object()
        word = ctypes.c_int64
        self.tiles = {
            name: ctypes.CFUNCTYPE(None, *[word] * 6)(self.engine.get_function_address(name))
            for name in names
        }
        self.one = ctypes.CFUNCTYPE(None, word, word)(self.engine.get_function_address("quantize"))

    def quantize(self, x: Array) -> NDArray[np.uint8]:
        blocks = np.zeros((len(x), x.shape[1] // COLUMNS, self.block), np.uint8)
        x = np.ascontiguousarray(x)
        for which in range(blocks.shape[0] * blocks.shape[1]):
            self.one(x.ctypes.data + 128 * which, blocks.ctypes.data + self.block * which)
        return blocks

    def multiply(self, matrix: PackedMatrix, x: Array) -> Array:
        """As `integer.multiply`, for a number of rows that there is a tile for."""
        blocks = self.quantize(x)
        groups = len(matrix.tiles)
        out = np.full((len(x), groups * ROWS), 7, np.float32)
        for group in range(groups):
            self.tiles[f"tile_{matrix.form}_{len(x)}"](
                matrix.tiles[group:].ctypes.data, blocks.shape[1], blocks.ctypes.data,
                out.ctypes.data + 4 * ROWS * group, blocks.strides[0], out.strides[0],
            )  # fmt: skip
        return out[:, : matrix.rows]

    def wanted(self, matrix: PackedMatrix, x: Array) -> Array:
        return integer.multiply(matrix, x)


@pytest.fixture(scope="module", params=HERE, ids=lambda way: way.name)
def code(request: pytest.FixtureRequest) -> Iterator[Code]:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    yield Code(request.param)


def equal(found: Array, wanted: Array) -> bool:
    """Bit for bit, but for which bits say that something is no number."""
    return np.array_equal(found, wanted, equal_nan=True)


@pytest.mark.parametrize("form", LAYOUTS)
def test_all_sets_give_the_bits_of_numpy(code: Code, form: int) -> None:
    rng = np.random.default_rng(form)
    matrix, plain = random_matrix(form, 37, 512)
    x = (rng.normal(size=(200, 512)) * rng.choice([1e-3, 1, 40], (200, 1))).astype(np.float32)
    wanted = code.wanted(matrix, x)
    for count in code.counts[form]:
        for first in range(0, 200 - count, 7 * count):
            rows = slice(first, first + count)
            assert equal(code.multiply(matrix, x[rows]), wanted[rows]), (count, first)
    exact = x.astype(float) @ plain.T.astype(float)
    step = 10 / TOP
    bound = np.abs(x).reshape(200, -1, COLUMNS).max(-1).sum(-1, keepdims=True) * np.abs(plain).max() * step
    assert (np.abs(wanted - exact) < bound).all(), "and they are the product, rounded"


@pytest.mark.parametrize("form", LAYOUTS)
def test_nothing_overflows(code: Code, form: int) -> None:
    """With all quants of a block at either end, and all activations."""
    layout = LAYOUTS[form]
    for code_value in (0, 2**layout.bits - 1):
        value = code_value - layout.zero
        quants = np.full((ROWS, 8 * COLUMNS), value, np.uint8 if layout.minima else np.int8)
        ones = np.ones((ROWS, 8 * layout.scales), layout.number)
        super_scales = np.ones((ROWS, 1, 1 + layout.minima), np.float32) if layout.blocks > 1 else None
        read = Quantized(quants, ones, 0 * ones if layout.minima else None, super_scales)
        matrix = PackedMatrix.of(form, ROWS, 8 * COLUMNS, lambda begin, end, read=read: read)  # type: ignore[misc]
        for sign in (1.0, -1.0):
            x = np.zeros((code.way.most, 8 * COLUMNS), np.float32)
            x[:, :COLUMNS] = sign * TOP  # one block, whose sum float32 holds exactly
            assert (code.multiply(matrix, x) == COLUMNS * sign * TOP * value).all()


def test_what_is_no_number_makes_none_and_zeros_make_zeros(code: Code) -> None:
    matrix, _ = random_matrix(BYTES, 16, 96)
    x = np.random.default_rng(0).normal(size=(3, 96)).astype(np.float32)
    plain = code.multiply(matrix, x)
    for bad in (np.nan, np.inf, -np.inf):
        broken = x.copy()
        broken[1, 40] = bad
        found = code.multiply(matrix, broken)
        assert equal(found, code.wanted(matrix, broken))
        assert np.isnan(found[1]).all() and np.array_equal(found[[0, 2]], plain[[0, 2]])
    for small in (0.0, -0.0, 1e-45, 1e-38, 1e-31):
        tiny = x.copy()
        tiny[1], tiny[2, 32:64] = small, small
        assert equal(code.multiply(matrix, tiny), code.wanted(matrix, tiny))
        assert not code.multiply(matrix, tiny)[1].any()
    large = x * np.float32(1e38)
    assert equal(code.multiply(matrix, large), code.wanted(matrix, large))


def test_scales_of_zero_and_infinity(code: Code) -> None:
    matrix, _ = random_matrix(BYTES, 16, 96)
    x = np.random.default_rng(1).normal(size=(3, 96)).astype(np.float32)
    matrix.tiles["blocks"]["numbers"][0, 1, 0, 0, 3] = np.inf
    matrix.tiles["blocks"]["numbers"][0, :, 0, 0, 5] = 0
    found = code.multiply(matrix, x)
    assert equal(found, code.wanted(matrix, x))
    assert not np.isfinite(found[:, 3]).any() and not found[:, 5].any()
    assert np.isfinite(np.delete(found, 3, 1)).all()


INSTRUCTIONS = {
    "avx512-vnni": ("cascadelake", "vpdpbusd"),
    "avx-vnni": ("alderlake", "{vex} vpdpbusd"),
    "avx2": ("haswell", "vpmaddubsw"),
}


@pytest.mark.parametrize("way", [way for way in SETS if way.name in INSTRUCTIONS], ids=lambda way: way.name)
def test_the_machine_code_has_the_instruction_of_the_set(way: Instructions) -> None:
    """Also where this processor does not have it."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    from omnidemo.backends.kernels.integer import tiles

    module = ir.Module("tiles")
    tiles.tile_product(module, "tile", LAYOUTS[BYTES], 2, way).linkage = "external"
    name, instruction = INSTRUCTIONS[way.name]
    triple = "x86_64-unknown-linux-gnu"
    target = binding.Target.from_triple(triple).create_target_machine(cpu=name, opt=2)
    module.triple = triple
    text = target.emit_assembly(binding.parse_assembly(str(module)))
    assert instruction in " ".join(text.split())


def test_quantizing_is_what_numpy_does(code: Code) -> None:
    x = np.random.default_rng(3).normal(size=(50, 64)).astype(np.float32)
    x[0, :32] = np.arange(-15.5, 16.5)  # ties
    x[0, 0] = TOP
    blocks, wanted = code.quantize(x), integer.quantize(x)
    quants, numbers = np.split(blocks, [COLUMNS], axis=-1)
    assert np.array_equal(quants.view(np.int8), wanted.quants)
    assert np.array_equal(numbers[..., :4].copy().view(np.float32)[..., 0], wanted.scales)
    sums = wanted.quants.astype(np.int32).reshape(50, 2, 2, 16).sum(-1)
    assert np.array_equal(numbers[..., 4:8].copy().view(np.float32)[..., 0], sums.sum(-1))
    assert np.array_equal(numbers[..., 8:].copy().view(np.int32), sums)
    assert np.abs(wanted.quants.astype(int)).max() == TOP
