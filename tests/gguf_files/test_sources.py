"""From names as people write them to files: paths, the Hub's cache, Ollama, LM Studio, known names; and what
is listed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from omnidemo.backends.runner import ModelError
from omnidemo.core.config import Settings
from omnidemo.models import names
from omnidemo.models.catalogue import ModelCard, list_models
from omnidemo.models.gguf import places, sources
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.identity import known_name
from tests.support.gguf_files import tiny_model, write_gguf


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf", tiny_model())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.delenv("OMNIDEMO_MODELS", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sources, "_known", {})
    roots = places.ollama_roots
    monkeypatch.setattr(
        places, "ollama_roots", lambda: [root for root in roots() if root.is_relative_to(tmp_path)]
    )
    return home


def refusal(name: str, *words: str, folders: Sequence[str] = ()) -> str:
    with pytest.raises(ModelError) as caught:
        sources.find(name, folders)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 600 and not said.endswith("."), said
    assert all(word in said for word in words), said
    return said


def put(file: Path, *place: Path | str) -> Path:
    path = Path(*place)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, path)
    return path


def in_ollama(file: Path, root: Path, *parts: str, layers: Any = None) -> Path:
    """A model of Ollama; the manifest."""
    digest = "a" * 64
    put(file, root, "blobs", f"sha256-{digest}")
    manifest = root.joinpath("manifests", *parts)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    usual = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "b" * 64},
        {"mediaType": places.MODEL_LAYER, "digest": f"sha256:{digest}"},
    ]
    manifest.write_text(json.dumps({"layers": usual if layers is None else layers}))
    return manifest


def test_a_path_in_every_form(
    file: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = known_name(read_header(file))
    put(file, home, "models", "tiny.gguf")
    monkeypatch.chdir(home)
    for name in (
        "models/tiny.gguf",
        "./models/tiny.gguf",
        "~/models/tiny.gguf",
        f"{home}/models/tiny.gguf",
        "models",
        "../home/models",
    ):
        found = sources.find(name)
        assert sources.is_gguf(name) and found.name == known and found.source == "folder", name
    moved = put(file, tmp_path, "elsewhere", "Another Name.GGUF")
    assert sources.find(str(moved)).name == known, "a moved file keeps its name"
    assert (found.architecture, found.type_name, found.tokens, found.chat) == (
        "llama",
        "F32",
        tiny_model().config.vocab_size,
        True,
    )
    assert [one.name for one in sources.installed()] == [known], "what was named is listed, too"
    assert (
        found.parameters == sum(weight.numel() for weight in tiny_model().parameters())
        and found.bytes == file.stat().st_size
    )


def test_a_folder_has_to_hold_one_model(file: Path, home: Path) -> None:
    folder = put(file, home, "models", "one.gguf").parent
    put(file, folder, "two.gguf")
    refusal(str(folder), "2 models (one.gguf, two.gguf)")
    (folder / "two.gguf").unlink()
    assert sources.find(str(folder)).path.name == "one.gguf"
    (folder / "model.safetensors").touch()
    assert not sources.is_gguf(str(folder)), "a folder with weights of its own is a model as before"
    assert not any(map(sources.is_gguf, ("bundled/large", "Qwen/Qwen2.5-0.5B-Instruct", str(home), "a\0b")))


def test_ollama(file: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = home / ".ollama" / "models"
    in_ollama(file, root, places.OLLAMA_HOST, "library", "tiny", "latest")
    in_ollama(file, root, places.OLLAMA_HOST, "somebody", "tiny", "1b")
    in_ollama(file, root, "hf.co", "some-org", "tiny-GGUF", "Q4_K_M")
    for name, spec in {
        "ollama/tiny": "ollama/tiny:latest",
        "ollama/tiny:latest": "ollama/tiny:latest",
        "ollama/library/tiny:latest": "ollama/tiny:latest",
        "ollama/somebody/tiny:1b": "ollama/somebody/tiny:1b",
        "ollama/hf.co/some-org/tiny-GGUF:Q4_K_M": "ollama/hf.co/some-org/tiny-GGUF:Q4_K_M",
    }.items():
        found = sources.find(name)
        assert (found.spec, found.source, found.name) == (spec, "ollama", known_name(read_header(file)))
    assert [place.spec for place in places.in_ollama(places.Walk())] == [
        "ollama/hf.co/some-org/tiny-GGUF:Q4_K_M", "ollama/tiny:latest", "ollama/somebody/tiny:1b",
    ]  # fmt: skip
    refusal("ollama/tiny:1b", "Ollama has no ollama/tiny:1b", "ollama/tiny:latest", "ollama pull tiny:1b")
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "moved"))
    refusal("ollama/tiny", "Ollama has no ollama/tiny:latest")
    root.rename(home / "moved")
    assert sources.find("ollama/tiny").spec == "ollama/tiny:latest"


@pytest.mark.parametrize(
    "name",
    [
        "ollama/../../etc:x",
        "ollama/tiny:../x",
        "ollama/a/b/c/d:e",
        "ollama/",
        "ollama/.hid:x",
        "ollama/a b:c",
    ],
)
def test_names_that_are_none_of_ollama(name: str, home: Path) -> None:
    refusal(name, "Ollama has no ollama/", "run `ollama pull ")


HOSTILE: dict[str, Any] = {
    "no layers": "{}",
    "no object": "[1, 2]",
    "no JSON": "{",
    "deep": "[" * 50_000,
    "layers of another kind": json.dumps({"layers": [1, None]}),
    "no digest": json.dumps({"layers": [{"mediaType": places.MODEL_LAYER}]}),
    "a path": json.dumps(
        {"layers": [{"mediaType": places.MODEL_LAYER, "digest": "sha256:../../../../etc/passwd"}]}
    ),
    "another hash": json.dumps({"layers": [{"mediaType": places.MODEL_LAYER, "digest": "md5:" + "a" * 64}]}),
    "a number": json.dumps({"layers": [{"mediaType": places.MODEL_LAYER, "digest": 7}]}),
    "huge": " " * (places.MOST_BYTES + 1),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_manifest_is_one_sentence(kind: str, file: Path, home: Path) -> None:
    in_ollama(file, home / ".ollama" / "models", places.OLLAMA_HOST, "library", "tiny", "latest").write_text(
        HOSTILE[kind]
    )
    refusal("ollama/tiny", "names no weights that can be read here; run `ollama pull tiny:latest`")
    (one,) = sources.installed()
    assert one.reason and not one.name


def test_weights_of_ollama_that_are_gone_or_lead_elsewhere(file: Path, home: Path, tmp_path: Path) -> None:
    in_ollama(file, home / ".ollama" / "models", places.OLLAMA_HOST, "library", "tiny", "latest")
    (blob,) = (home / ".ollama" / "models" / "blobs").iterdir()
    blob.unlink()
    refusal("ollama/tiny", "its weights are gone or cannot be read")
    blob.symlink_to(put(file, tmp_path, "outside.gguf"))
    refusal("ollama/tiny", "a link out of Ollama's folder")
    blob.unlink()
    blob.write_bytes(b"nothing of the kind")
    assert "sha256-" not in refusal("ollama/tiny", "ollama/tiny:latest is no GGUF file")


def test_lm_studio(file: Path, home: Path, tmp_path: Path) -> None:
    put(file, home, ".lmstudio", "models", "somebody", "tiny-GGUF", "tiny.gguf")
    name = "lmstudio/somebody/tiny-GGUF/tiny.gguf"
    found = sources.find(name)
    assert found.spec == name and [one.spec for one in sources.installed()] == [name]
    refusal("lmstudio/somebody/tiny-GGUF/other.gguf", "LM Studio has no", "near are", "tiny.gguf")
    put(file, tmp_path, "moved", "models", "a", "b", "c.gguf")
    (home / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'moved'}\n")
    assert sources.find("lmstudio/a/b/c.gguf").path == tmp_path / "moved/models/a/b/c.gguf"
    for wrong in (
        "lmstudio/a/../../etc/x.gguf",
        "lmstudio/x.gguf",
        "lmstudio/a/b/c.bin",
        "lmstudio/a//c.gguf",
        "lmstudio/a/b/..\\c.gguf",
    ):
        refusal(wrong, "LM Studio has no lmstudio/", "a name is lmstudio/<publisher>/<model>/<file>.gguf")


def test_the_hubs_cache(file: Path, home: Path, tmp_path: Path) -> None:
    repository = home / "hub" / "models--some-org--tiny-GGUF"
    blob = put(file, repository, "blobs", "f" * 64)
    for revision in ("1" * 40, "2" * 40):
        snapshot = repository / "snapshots" / revision
        (snapshot / "deep").mkdir(parents=True)
        (snapshot / "tiny.gguf").symlink_to(blob)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("2" * 40)
    name = "some-org/tiny-GGUF:tiny.gguf"
    found = sources.find(name)
    assert found.spec == name and found.source == "hub" and found.path.parent.name == "2" * 40
    (snapshot / "out.gguf").symlink_to(put(file, tmp_path, "outside.gguf"))  # leads out of the cache
    assert [one.spec for one in sources.installed()] == [name]
    with pytest.raises(sources.NotHere):
        sources.find("some-org/tiny-GGUF:out.gguf")
    refusal("some-org/tiny-GGUF:../tiny.gguf", "names no file within some-org/tiny-GGUF")
    refusal("some--org/x..y:tiny.gguf", "no name of a file of the Hub")


def test_known_names_and_what_is_near(file: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_name(read_header(file))
    refusal(
        known, f"no file on this machine is known as {known}", "omnidemo models", "OMNIDEMO_MODEL_FOLDERS"
    )
    put(file, home, "own", "tiny.gguf")
    settings = Settings(model_folders=f"{home / 'nowhere'}, ~/own")
    assert sources.find(known, settings.folders).path == home / "own/tiny.gguf"
    refusal(known[:-1] + "x", "near are " + known, folders=settings.folders)
    monkeypatch.setattr(sources, "_known", {})
    for target, drafter in ((str(home / "own/tiny.gguf"), "drafter-4"), ("bundled/large", "drafter")):
        settings = Settings(target=target, drafter="auto")
        assert names.known_settings(settings).drafter == f"bundled/{drafter}"
    given = names.known_settings(Settings(target=str(home / "own/tiny.gguf"), drafter="bundled/drafter"))
    assert (given.target, given.drafter) == (known, "bundled/drafter")
    monkeypatch.setattr(sources, "_known", {})  # as another process, which has these settings
    assert names.resolve(known, given) == names.Resolved(
        known, str(home / "own/tiny.gguf"), str(home / "own/tiny.gguf")
    )
    odd = put(file, home, "a,b:c", "tiny.gguf")
    assert names.known_settings(Settings(target=str(odd))).folders == [str(odd)], (
        "whatever stands in its path"
    )
    broken = Settings(target=str(home / "nothing.gguf"))
    assert names.known_settings(broken).target == broken.target, "what is wrong is said where it is loaded"


@pytest.mark.parametrize("name", ["", " ", "a\nb.gguf", "x\0.gguf", "\x1b[31m.gguf", "y" * 5000 + ".gguf"])
def test_what_is_no_name(name: str, home: Path) -> None:
    refusal(name, "is no name of a model")


def test_what_is_no_file(home: Path, tmp_path: Path) -> None:
    refusal(str(tmp_path / "nothing.gguf"), "is not there; give the path")
    refusal("z" * 800 + ".gguf", "check the path")  # longer than a name can be
    (tmp_path / "folder.gguf").mkdir()
    refusal(str(tmp_path / "folder.gguf"), "holds no .gguf file")
    (tmp_path / "empty.gguf").touch()
    refusal(str(tmp_path / "empty.gguf"), "empty.gguf is no GGUF file")
    os.mkfifo(tmp_path / "pipe.gguf")
    refusal(str(tmp_path / "pipe.gguf"), "is no file that can be read as one")
    (tmp_path / "circle.gguf").symlink_to(tmp_path / "circle.gguf")
    refusal(str(tmp_path / "circle.gguf"), "give the path")


def test_what_is_wrong_is_listed_with_its_reason(file: Path, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    put(file, folder, "good.gguf")
    put(file, folder, "again.gguf")
    (folder / "cut.gguf").write_bytes(file.read_bytes()[:-100])
    (folder / "empty.gguf").touch()
    write_gguf(folder / "eyes.gguf", tiny_model(), metadata={"general.type": "mmproj"})
    write_gguf(folder / "words.gguf", tiny_model(), metadata={"tokenizer.ggml.pre": "of-tomorrow"})
    os.mkfifo(folder / "pipe.gguf")
    (folder / "outside.gguf").symlink_to(put(file, tmp_path, "elsewhere.gguf"))
    (folder / "round").symlink_to(folder)
    found = {one.path.name: one for one in sources.installed([str(folder), "\0", str(tmp_path / "nowhere")])}
    listed = {"again.gguf", "cut.gguf", "empty.gguf", "eyes.gguf", "pipe.gguf", "words.gguf"}
    assert set(found) == listed, "each model once, nothing from elsewhere"
    assert {name for name, one in found.items() if not one.reason} == {"again.gguf"}
    assert "cut short" in found["cut.gguf"].reason and "eyes" in found["eyes.gguf"].reason
    assert found["words.gguf"].reason.startswith("words.gguf cuts words by the pre-tokenizer 'of-tomorrow'")
    there = list_models(Settings(device="cpu", model_folders=str(folder)))
    cards = {card.title: card for card in there if card.availability != "unusable" or "cut" in card.title}
    assert cards["cut.gguf"].availability == "unusable" and cards["cut.gguf"].note.startswith(
        "Cut.gguf cannot be read as a GGUF file (it is cut short"
    )
    card = cards["Tiny Test"]
    assert isinstance(card, ModelCard) and (card.source, card.type, card.bytes) == (
        "folder",
        "F32",
        file.stat().st_size,
    )
    assert (
        card.availability == "cached"
        and card.parameters
        and card.memory_bytes
        and card.memory_bytes > 4 * card.parameters
    )
    bundled = Settings(device="cpu", model_folders=str(folder), target="bundled/large", drafter="auto")
    hidden = list_models(bundled, scan=False)
    assert not [one for one in hidden if one.source == "folder"], (
        "a public app searches no folder for visitors"
    )


def test_unreadable_files_and_folders(file: Path, home: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = put(file, tmp_path, "shut", "tiny.gguf")
    path.chmod(0)
    refusal(str(path), "cannot be read")
    path.parent.chmod(0)
    assert sources.installed([str(path.parent)]) == []
    path.parent.chmod(0o700)


def test_a_walk_ends_and_says_where(home: Path, tmp_path: Path, file: Path) -> None:
    deep = tmp_path
    for number in range(places.DEPTH + 3):
        deep = deep / f"d{number}"
        put(file, deep, f"{number}.gguf")
    walk = places.Walk()
    names_found = [path.name for path in walk.models(tmp_path, tmp_path)]
    assert len(names_found) == places.DEPTH
    assert walk.cut and walk.cut.path.name == f"d{places.DEPTH}" and "lies too deep" in walk.cut.wrong


def test_an_incomplete_list_says_that_it_is_one(
    home: Path, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "many"
    for number in range(9):
        put(file, folder, f"{number}.gguf")
    settings = Settings(model_folders=str(folder))

    def incomplete() -> list[str]:
        return [card.note for card in list_models(settings) if "incomplete" in card.note]

    assert not incomplete()
    monkeypatch.setattr(places, "MOST_ENTRIES", 5)
    [note] = incomplete()
    assert note == (
        f"The list of models is incomplete at {folder}, because it ends after 5 files; name a"
        " model there by its path."
    )
    with pytest.raises(ModelError, match=r"known as gguf/duck; .* is incomplete at .*many, because"):
        sources.find("gguf/duck", settings.folders)


def test_a_changed_file_is_read_again(file: Path, home: Path, tmp_path: Path) -> None:
    path = put(file, tmp_path, "tiny.gguf")
    before = sources.find(str(path)).name
    write_gguf(path, tiny_model(), metadata={"general.name": "Another\n\x1b[31m one"})
    after = sources.find(str(path))
    assert (
        after.name != before
        and re.fullmatch(r"gguf/[A-Za-z0-9.-]+-F32-[0-9a-f]{8}", after.name)
        and after.title.isprintable()
    )
    with pytest.raises(ModelError, match="no file on this machine is known as"):
        sources.find(before)


def test_what_a_modelfile_adds_is_refused_or_said(file: Path, home: Path) -> None:
    root = home / ".ollama" / "models"

    def with_layers(name: str, **layers: str) -> str:
        named = [{"mediaType": places.MODEL_LAYER, "digest": "sha256:" + "a" * 64}]
        for number, (kind, text) in enumerate(layers.items()):
            digest = f"{number}{len(name)}" + "c" * 62
            put(file, root, "blobs", f"sha256-{digest[:64]}").write_text(text)
            named.append({"mediaType": f"{places.LAYER}{kind}", "digest": f"sha256:{digest[:64]}"})
        in_ollama(file, root, places.OLLAMA_HOST, "library", name, "latest", layers=named)
        return f"ollama/{name}"

    refusal(with_layers("adapted", adapter="GGUF"), "ollama/adapted:latest puts an adapter on its weights")
    usual = json.dumps({"stop": ["<|im_end|>", "[INST]"], "num_ctx": 4096})
    assert (
        sources.find(with_layers("plain", template="{{ .Prompt }}", license="MIT", params=usual)).note == ""
    )
    own = json.dumps({"temperature": 0.1, "stop": ["User:"], "num_ctx": 4096})
    found = sources.find(with_layers("persona", system="You are Mario.", params=own, messages="[]"))
    assert found.note == (
        "Ollama gives ollama/persona:latest a system prompt and messages and parameters (temperature 0.1,"
        ' stop ["User:"]) of its own; here a request has to send these itself'
    )
    assert sources.seen(found.name) == found, "it is said by the name that it is known by, too"
    (listed,) = (one for one in list_models(Settings()) if one.name == found.name)
    assert any(word in listed.note for word in ("of its own", "parameters")), listed.note
    assert sources.find(with_layers("odd", params="[1, 2]", system="x")).spec == "ollama/odd:latest"
