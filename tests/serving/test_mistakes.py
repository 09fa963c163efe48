"""Mistakes, by every way in: one sentence that names the option, and never the error that it would have led
to."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from safetensors.torch import load_file, save_file

from omnidemo import load_pair
from omnidemo.core.config import GenerationConfig, Settings
from omnidemo.models.load import ModelError, load_model
from omnidemo.pair.pair import Pair
from omnidemo.ui.app import build_app
from tests.support.cli import Cli, refused
from tests.support.fakes import FakeServices
from tests.support.models import save

BAD: list[tuple[str, Any]] = [
    *[("temperature", value) for value in (-1, "hot", [], float("nan"), float("inf"), "nan", 101)],
    *[("max_new_tokens", value) for value in (0, -5, 1.5, "many", None, float("nan"), 10**30, {})],
    *[("top_p", value) for value in (0, 1.5, "x", float("nan"))],
    *[("top_k", value) for value in (-1, 2.5, "x", 10**30)],
    *[("min_p", value) for value in (-0.1, 2, float("nan"))],
    *[("repetition_penalty", value) for value in (0, -1, float("inf"), 1e300, "x")],
    *[("draft_length", value) for value in (-1, 33, 2.5, None, "x")],
    *[("longest_draft", value) for value in (0, 33, None)],
    *[("confidence", value) for value in (-0.1, 2, float("nan"), "x")],
    *[("gamma", value) for value in (0, 1, 2, float("nan"))],
    *[("draft_policy", value) for value in ("best", None, 5, [])],
    *[("seed", value) for value in (-1, 2**64, "x", 1.5, float("nan"))],
    *[("stop", value) for value in ("abc", 5, [5], None, ["a"] * 65)],
    *[("method", value) for value in ("best", None, 5, [])],
    *[("domain", value) for value in (None, 5)],
    *[("learn", value) for value in ("perhaps", 7)],
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("mistakes")
    return load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "byte-level", seed=1)
    )


@pytest.mark.parametrize(("option", "value"), BAD, ids=repr)
def test_the_api_names_the_option(pair: Pair, option: str, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        pair.generate("duck", **{option: value})
    said = str(caught.value)
    assert option in said and "\n" not in said and len(said) < 400


def test_numbers_as_texts_are_read_and_then_compared(pair: Pair) -> None:
    made = pair.generate("duck", max_new_tokens="7", temperature="0", seed="3", draft_length="2")
    assert len(made.token_ids) == 7 and made.seed == 3
    assert GenerationConfig.of(max_new_tokens="20").max_new_tokens == 20
    for huge in ("1e999", "20000000000"):
        with pytest.raises(ValueError, match="max_new_tokens"):
            GenerationConfig.of(max_new_tokens=huge)
    for least in (1e-8, "1e-320", 0.00099):  # greedy decoding, as some programs ask for it
        assert GenerationConfig.of(temperature=least).temperature == 0
    assert GenerationConfig.of(temperature=0.001).temperature == 0.001


@pytest.mark.parametrize(
    ("option", "value"),
    [("--temperature", "-1"), ("--temperature", "nan"), ("--top-p", "0"),
        ("--top-p", "nan"),
     ("--top-k", "-1"),
     ("--min-p", "2"), ("--repetition-penalty", "0"), ("--repetition-penalty", "inf"), ("--seed", "-1"),
     ("--max-new-tokens", "0"),
     ("--draft-length", "99"), ("--method", "best"), ("--max-new-tokens", "99999999999")],
)  # fmt: skip
def test_the_command_line_ends_with_2(cli: Cli, names: list[str], option: str, value: str) -> None:
    refused(cli("generate", "duck", option, value, *names), option.lstrip("-").replace("-", "_")[:6])


def test_other_mistakes_on_the_command_line(
    cli: Cli, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    refused(cli("serve", "--port", "99999"), "port")
    refused(cli("serve", "--storage", tmp_path / "file"), "is a file")
    refused(cli("generate", "duck", "--storage", tmp_path / "file" / "below", *names), "is a file")
    refused(cli("generate", "half \ud83d", *names), "half a character")
    (tmp_path / "deep.jsonl").write_text('{"prompt": ' + "[" * 100_000 + "]" * 100_000 + "}")
    (tmp_path / "list.jsonl").write_text("[1]\n5\n")
    for name, word in (("deep.jsonl", "prompt"), ("list.jsonl", "not JSON")):
        refused(cli("compare", "--prompts", tmp_path / name, "--csv", tmp_path / "out.csv", *names), word)
    for name, value in (
        ("THREADS", "100000"),
        ("LORA_RANK", "20000"),
        ("LEARNING_RATE", "inf"),
        ("GAMMA", "nan"),
        ("CONFIDENCE", "2"),
    ):
        monkeypatch.setenv(f"OMNIDEMO_{name}", value)
        refused(cli("generate", "duck", *names), name.lower())
        monkeypatch.delenv(f"OMNIDEMO_{name}")


def edited(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | changes))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", ["ends", "layers", "words", "index", "deep", "shapes", "width", "heads"])
def test_a_damaged_model_is_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    folder = Path(save(tmp_path / "model", "byte-level"))
    if damage == "ends":
        edited(folder, "generation_config.json", eos_token_id=["a", None])
        edited(folder, "config.json", eos_token_id=[5, "a"])
    elif damage == "layers":
        edited(folder, "config.json", num_hidden_layers=10**6)
    elif damage == "words":
        edited(folder, "config.json", num_hidden_layers="many")
    elif damage == "index":
        edited(folder, "model.safetensors.index.json", weight_map={"a": "model.safetensors"})
        (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
        edited(folder, "model.safetensors.index.json", weight_map={"a": "model-00001-of-00001.safetensors"})
    elif damage == "deep":
        (folder / "config.json").write_text("[" * 100_000 + "]" * 100_000)
    elif damage == "shapes":
        weights = load_file(folder / "model.safetensors")
        weights["model.norm.weight"] = weights["model.norm.weight"][:3].clone()
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    elif damage == "width":
        edited(folder, "config.json", hidden_size=10**7)
    else:
        edited(folder, "config.json", num_attention_heads=7)
    with pytest.raises(ModelError) as caught:
        load_model(str(folder), device="cpu")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


# --- the page and its HTTP interface ------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path) -> Iterator[gr.Blocks]:
    made = build_app(FakeServices(load_seconds=0, pace=0, settings=Settings(storage=tmp_path)))
    yield made
    made.close()


def call(page: gr.Blocks, name: str, inputs: list[Any], run: Callable[..., Any] = asyncio.run) -> Any:
    fn = next(fn for fn in page.fns.values() if fn.api_name == name)

    async def asked() -> Any:
        return await page.process_api(fn, inputs, state=None, event_data=gr.EventData(None, None))

    return run(asked())


VALUES: tuple[Any, ...] = (
    None,
    "",
    "x",
    "\ud800",
    5,
    -1,
    1e308,
    float("nan"),
    float("inf"),
    True,
    [],
    [[]],
    {},
    {"a": 1},
    [None],
    10**400,
)


def test_what_gradio_refuses_comes_to_a_sentence(page: gr.Blocks) -> None:
    scripts = [fn for fn in page.fns.values() if fn.fn is None]
    assert scripts
    with pytest.raises(gr.Error, match="runs in the browser alone") as refused:
        asyncio.run(page.process_api(scripts[0], []))
    assert not refused.value.print_exception  # or Gradio writes a traceback to the log
    (chosen,) = (fn for fn in page.fns.values() if fn.api_name == "choose_model")
    with pytest.raises(gr.Error, match="No row of the table was chosen"):
        asyncio.run(page.process_api(chosen, [], event_data=gr.EventData(None, {})))
    short = next(fn for fn in page.fns.values() if fn.fn is not None and len(fn.inputs) > 1)
    with pytest.raises(gr.Error, match="enough input values") as refused:
        asyncio.run(page.process_api(short, []))
    assert not refused.value.print_exception


def test_whatever_is_sent_to_any_event_comes_to_a_sentence_and_one_line_in_the_log(
    page: gr.Blocks, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every event of the page, with each of the values in every place: an answer or one sentence; never
    another kind of error."""
    caplog.set_level(logging.INFO)
    told, wrong = 0, []
    cryptic = re.compile(
        "not supported between|NoneType|object has no attribute|None is still|inside"
        " [(]|Traceback|unhashable|cannot convert|\\n"
    )
    # Gradio itself reads what names a file.
    events = [fn for fn in page.fns.values() if fn.api_name and fn.fn is not None and not fn.preprocess]
    with asyncio.Runner() as runner:
        for fn, value in itertools.product(events, VALUES):
            caplog.clear()
            try:
                answer = call(page, fn.api_name, [value] * len(fn.inputs), runner.run)
                said = json.dumps(answer["data"], default=str)
            except gr.Error as error:
                told += 1
                said = error.message
                assert said and not error.print_exception
            if (
                cryptic.search(said)
                or len(caplog.records) > 2
                or any(record.exc_info for record in caplog.records)
            ):
                wrong.append(
                    (
                        fn.api_name,
                        repr(value)[:30],
                        said[:300],
                        [record.getMessage()[:200] for record in caplog.records],
                    )
                )
    assert not wrong, "\n".join(map(str, wrong))
    assert told > 50
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_our_own_is_one_line_with_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    services = FakeServices(load_seconds=0, pace=0, settings=Settings(storage=tmp_path))
    page = build_app(services)
    services.models = lambda **_: {}["gone"]  # type: ignore[method-assign, index]
    with pytest.raises(gr.Error, match="Something went wrong inside"):
        call(page, "generate", ["a", "", "", "", 5, 0.0, None, None])
    page.close()
    assert "KeyError" in caplog.text and "Traceback" not in caplog.text
