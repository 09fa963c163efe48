"""A header is believed only where it fits its file: each lie gets one sentence, and takes no memory."""

from __future__ import annotations

import re
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf.architecture import plan_of
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.identity import known_name
from omnidemo.models.gguf.weights import build_config, check_shapes
from tests.support.gguf_files import gguf, tiny_model, write_gguf


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def header(
    keys: bytes = b"", tensors: bytes = b"", counts: tuple[int, int] | None = None, version: int = 3
) -> bytes:
    """The bytes of a file with these key-values and tensors; `counts` of (tensors, keys) where they are not 0
    and 0."""
    return b"GGUF" + struct.pack("<IQQ", version, *(counts or (0, 0))) + keys + tensors


def tensor(name: bytes = b"t", shape: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def key(kind: int, value: bytes, name: bytes = b"k", count: int = 1) -> bytes:
    """A file of `count` equal keys."""
    return header((text(name) + struct.pack("<I", kind) + value) * count, counts=(0, count))


def one_tensor(room: int = 4096, times: int = 1, **about: Any) -> bytes:
    return header(tensors=tensor(**about) * times, counts=(times, 0)) + bytes(room)


LIES: dict[str, tuple[bytes, str]] = {
    "another format": (b"PK\x03\x04" + bytes(100), "is no GGUF file"),
    "empty": (b"", "is no GGUF file"),
    "the magic alone": (b"GGUF", "ends within its header"),
    "an old version": (header(version=1), "version 1, and 2 and 3 are read"),
    "big-endian": (header(version=3 << 24), "big-endian"),
    "400,000 tensors in 24 bytes": (header(counts=(400_000, 0)), "ends within"),
    "2⁶³ keys": (header(counts=(0, 2**63)), "ends within"),
    "2⁶³ keys in zeros": (header(counts=(0, 2**63)) + bytes(10_000), "twice"),
    "a key of 2⁶⁰ bytes": (header(struct.pack("<Q", 2**60), counts=(0, 1)), "ends within"),
    "a text of 2⁴⁰ bytes": (key(8, struct.pack("<Q", 2**40)), "ends within"),
    "a list of 400,000 texts in 150 bytes": (
        key(9, struct.pack("<IQ", 8, 400_000) + bytes(150)),
        "ends within",
    ),
    "a list of 2⁴⁰ texts": (key(9, struct.pack("<IQ", 8, 2**40)), "texts"),
    "a text of 2⁶³ bytes in a list": (key(9, struct.pack("<IQQ", 8, 2, 2**63)), "ends within"),
    "a list of 2⁶² numbers": (key(9, struct.pack("<IQ", 4, 2**62)), "ends within"),
    "lists within lists": (key(9, struct.pack("<IQ", 9, 2**40)), "ends within"),
    "an unknown kind": (key(77, b""), "unknown kind 77"),
    "a key twice": (key(4, bytes(4), count=2), "twice"),
    "an alignment of 0": (key(4, bytes(4), b"general.alignment"), "gives general.alignment as 0"),
    "an alignment that is a text": (key(8, text(b"x"), b"general.alignment"), "general.alignment as x"),
    "a count of parts that is a text": (key(8, text(b"x"), b"split.count"), "cannot be read"),
    "nine dimensions": (one_tensor(shape=(1,) * 9), "the shape"),
    "a shape beyond the file": (one_tensor(shape=(2**40, 2**20)), "cut short"),
    "a shape of nothing": (one_tensor(shape=(0, 4)), "the shape"),
    "a row that is no whole block": (one_tensor(shape=(33, 2), kind=2), "in Q4_0"),
    "weights outside the file": (one_tensor(offset=2**40), "cut short"),
    "weights cut short": (one_tensor(512, shape=(512,)), "cut short"),
    "a tensor twice": (one_tensor(times=2), "twice"),
    "an unknown type": (one_tensor(kind=250), "type 250"),
    "no weights": (header() + bytes(64), "holds no weights"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_one_sentence_and_takes_no_memory(tmp_path: Path, lie: str) -> None:
    data, said = LIES[lie]
    (tmp_path / "model.gguf").write_bytes(data)
    tracemalloc.start()
    with pytest.raises(ModelError, match=re.escape(said)) as caught:
        read_header(tmp_path / "model.gguf")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4_000_000
    assert "\n" not in str(caught.value) and "model.gguf" in str(caught.value) and ";" in str(caught.value)


def test_a_folder_and_a_file_that_is_not_there_are_sentences(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(ModelError, match="cannot be read"):
            read_header(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_with_changed_bytes_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path, good = tmp_path / "good.gguf", tmp_path / "changed.gguf"
    if not path.exists():
        write_gguf(path, tiny_model())
    found = bytearray(path.read_bytes())
    begin = read_header(path).tensors["token_embd.weight"].offset
    for _ in range(data.draw(st.integers(1, 4))):
        found[data.draw(st.integers(0, begin - 1))] = data.draw(st.integers(0, 255))
    good.write_bytes(found[: data.draw(st.sampled_from([len(found), begin // 2, begin + 8]))])
    try:
        plan = plan_of(header := read_header(good))
        check_shapes(header, plan, build_config(plan))
    except ModelError as error:
        assert "\n" not in str(error)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an architecture that is not read": ({"general.architecture": "mamba"}, "architecture"),
    "a window of 0": ({"llama.context_length": 0}, "llama.context_length"),
    "a width of another kind": ({"llama.embedding_length": "wide"}, "llama.embedding_length"),
    "a number for each layer, and they differ": (
        {"llama.feed_forward_length": [96, 48]},
        "gives llama.feed_forward_length as [96 48]); choose another file",
    ),
    "half a head": ({"llama.attention.head_count_kv": 2.5}, "gives llama.attention.head_count_kv as 2.5"),
    "no number": ({"llama.rope.freq_base": float("nan")}, "gives llama.rope.freq_base as nan"),
    "as many layers as memory has bytes": ({"llama.block_count": 2**31}, "llama.block_count"),
    "more layers than tensors": ({"llama.block_count": 500}, "names 500 layers"),
    "another width": (
        {"llama.feed_forward_length": 2**20},
        "as (96, 64), not (1048576, 64)",
    ),
    "experts": ({"llama.expert_count": 8}, "mixture of experts"),
    "experts of each layer": ({"llama.expert_count": [8, 8]}, "mixture of experts"),
    "an encoder": ({"llama.attention.causal": 0}, "an encoder"),
    "positions that depend on the length": (
        {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 4.0},
        "longrope",
    ),
    "something that is not known": ({"llama.attention.clamp_kqv": 8.0}, "llama.attention.clamp_kqv"),
    "partly turned heads": ({"llama.rope.dimension_count": 8}, "asks for llama.rope.dimension_count = 8"),
    "the eyes of a model": ({"general.type": "mmproj"}, "eyes of a model"),
    "an adapter": ({"general.type": "adapter"}, "an adapter"),
}


def test_odd_numbers_and_lists_that_have_one_meaning_are_read(tmp_path: Path) -> None:
    def plan(name: str, kind: str = "llama", more: dict[str, Any] | None = None, **keys: Any) -> Any:
        model = tiny_model({"gemma3": "gemma3_text"}.get(kind, kind), **(more or {}))
        keys = {f"{kind}.{key}": value for key, value in keys.items()}
        found = read_header(write_gguf(tmp_path / f"{name}.gguf", model, architecture=kind, metadata=keys))
        made = plan_of(found)
        check_shapes(found, made, build_config(made))
        return made.options

    usual = plan("usual")
    keys: dict[str, Any] = {
        "attention.head_count_kv": [2, 2], "feed_forward_length": [96, 96], "context_length": 128.0,
        "rope.dimension_sections": [0, 0, 0, 0], "attention.value_length": [16], "expert_count": 0.0,
    }  # fmt: skip
    assert plan("lists", **keys) == usual
    assert plan("nested", **{"rope.dimension_sections": [[0, 0], [0]]}) == usual
    slides = {"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True]}
    assert plan("slides", "gemma3", {"sliding_window": 8}, **slides)["sliding_window"] == 8
    with pytest.raises(ModelError, match=r"sliding_window_pattern = \[ True False\]"):
        plan("other", "gemma3", **slides | {"attention.sliding_window_pattern": [True, False]})
    off = {"attn_logit_softcapping": 0.0, "final_logit_softcapping": 0.0, "attention.sliding_window": 8}
    assert plan("off", "gemma2", **off)["attn_logit_softcapping"] is None


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_computed_is_refused_by_what_the_header_says(tmp_path: Path, wrong: str) -> None:
    keys, said = WRONG[wrong]
    path = write_gguf(tmp_path / "m.gguf", tiny_model(), metadata=keys)
    if "general.architecture" in keys:
        path.write_bytes(
            path.read_bytes().replace(b"llama", keys["general.architecture"].encode().ljust(5, b"x")[:5])
        )
    found = read_header(path)
    with pytest.raises(ModelError, match=re.escape(said)):
        plan = plan_of(found)
        check_shapes(found, plan, build_config(plan))


def test_a_weight_that_is_missing_or_too_many_is_named(tmp_path: Path) -> None:
    missing = read_header(write_gguf(tmp_path / "a.gguf", tiny_model(), leave_out=("blk.1.ffn_up.weight",)))
    plan = plan_of(missing)
    with pytest.raises(ModelError, match=r"it lacks model\.layers\.1\.mlp\.up_proj\.weight"):
        check_shapes(missing, plan, build_config(plan))
    more = read_header(
        write_gguf(
            tmp_path / "b.gguf", tiny_model(), more={"blk.0.attn_sinks.weight": np.ones(4, np.float32)}
        )
    )
    with pytest.raises(ModelError, match="attn_sinks"):
        plan_of(more)


def test_types_that_are_not_read_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor(
        "token_embd.weight", np.zeros((8, 17), np.uint8), raw_dtype=gguf.GGMLQuantizationType.MXFP4
    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="MXFP4"):
        plan_of(read_header(path))


def test_a_file_is_known_by_its_contents(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_model(), "Q4_0")
    name = known_name(read_header(path))
    assert re.fullmatch(r"gguf/Tiny-Test-Q4_0-[0-9a-f]{8}", name)
    moved = tmp_path / "elsewhere" / "other.gguf"
    moved.parent.mkdir()
    path.rename(moved)
    assert known_name(read_header(moved)) == name
    data = bytearray(moved.read_bytes())
    data[read_header(moved).tensors["blk.1.ffn_up.weight"].offset] ^= 1
    moved.write_bytes(data)
    assert known_name(read_header(moved)) != name


def split(tmp_path: Path, number: int, count: int, names: tuple[str, ...]) -> Path:
    path = tmp_path / f"m-{number:05d}-of-{count:05d}.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.no", number - 1)
    writer.add_uint16("split.count", count)
    writer.add_int32("split.tensors.count", 4)
    for name in names:
        writer.add_tensor(name, np.full(8, number, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_split_files_are_read_together(tmp_path: Path) -> None:
    first, second = split(tmp_path, 1, 2, ("a", "b")), split(tmp_path, 2, 2, ("c", "d"))
    found = read_header(first)
    assert found.parts == (first, second) and list(found.tensors) == ["a", "b", "c", "d"]
    assert found.bytes == first.stat().st_size + second.stat().st_size
    with pytest.raises(ModelError, match=r"a part of 2; choose the first, m-00001-of-00002\.gguf"):
        read_header(second)
    second.unlink()
    with pytest.raises(ModelError, match=r"m-00002-of-00002\.gguf is not beside it"):
        read_header(first)
    split(tmp_path, 2, 2, ("b", "d"))
    with pytest.raises(ModelError, match=r"m-00002-of-00002\.gguf repeats 'b'"):
        read_header(first)
    split(tmp_path, 2, 2, ("c",))
    with pytest.raises(ModelError, match="names 4 tensors and its parts hold 3"):
        read_header(first)
    renamed = first.rename(tmp_path / "renamed.gguf")
    with pytest.raises(ModelError, match="give them their names back"):
        read_header(renamed)
