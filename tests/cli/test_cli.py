"""The command line on small random models: figures that add up, one sentence for bad input, a clean stop."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from omnidemo import load_pair
from omnidemo.cli.common import progress, show
from omnidemo.core.config import Settings
from omnidemo.serving.measuring.adapt import plan_checkpoints
from omnidemo.serving.measuring.prompt_files import hold_out
from omnidemo.serving.measuring.report_tables import Spread
from omnidemo.serving.pair_loading import open_store
from tests.support.cli import TEXTS, Cli, Result, refused

ROOT = Path(__file__).parents[2]


def test_generate_writes_the_text_and_its_figures_apart(cli: Cli, names: list[str]) -> None:
    expected = load_pair(names[1], names[3]).generate(TEXTS[0], max_new_tokens=20)
    result = cli("generate", TEXTS[0], "--max-new-tokens", 20, *names)
    assert result.code == 0 and result.out == expected.text + "\n"
    assert (
        f"{len(expected.token_ids)} tokens in {len(expected.rounds)} rounds" in result.err
        and "ended by length" in result.err
    )


def test_generate_writes_in_the_targets_own_manner_unless_it_is_told_otherwise(
    cli: Cli, names: list[str], tmp_path: Path
) -> None:
    folder = shutil.copytree(names[1], tmp_path / "sampling")
    (folder / "generation_config.json").write_text(
        '{"do_sample": true, "temperature": 0.9, "repetition_penalty": 1.3}'
    )
    own = ["--target", folder, *names[2:]]
    as_said = ["--temperature", 0.9, "--top-k", 50, "--repetition-penalty", 1.3]
    asked = ("generate", TEXTS[0], "--max-new-tokens", 20, "--seed", 1)
    sampled, greedy = cli(*asked, *own).out, cli(*asked, *names).out
    assert sampled == cli(*asked, *names, *as_said).out != greedy
    assert cli(*asked, *own, "--temperature", 0, "--repetition-penalty", 1).out == greedy


def test_generate_obeys_a_schema_in_a_file(cli: Cli, names: list[str], tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    named = {"type": "object", "properties": {"name": {"enum": ["Ann", "Ben"]}}, "required": ["name"]}
    schema.write_text(json.dumps(named | {"additionalProperties": False}))
    said = cli("generate", TEXTS[0], "--schema", schema, *names)
    assert said.code == 0 and said.out in ('{"name": "Ann"}\n', '{"name": "Ben"}\n')
    assert "forced" in said.err and "ended by end" in said.err
    explained = cli("generate", TEXTS[0], "--schema", schema, "--explain", *names)
    assert "of them forced" in " ".join(explained.out.split())
    refused(cli("generate", TEXTS[0], "--schema", tmp_path / "none", *names), "cannot be read", "JSON schema")
    schema.write_text('{"type": "duck"}')
    refused(cli("generate", TEXTS[0], "--schema", schema, *names), "Invalid type: duck", "change it")
    refused(cli("adapt", "--prompts", schema, "--schema", schema), "--schema goes with --task")


def test_generate_as_json(cli: Cli, names: list[str]) -> None:
    options = [
        "--max-new-tokens",
        20,
        "--temperature",
        0.8,
        "--seed",
        3,
        "--top-k",
        9,
        "--top-p",
        0.9,
        "--draft-length",
        2,
        "--json",
    ]
    first, again = (
        cli("generate", TEXTS[0], "--method", "token-intersection", *options, *names) for _ in range(2)
    )
    made = json.loads(first.out)
    assert made["token_ids"] == json.loads(again.out)["token_ids"] and len(made["token_ids"]) == 20
    assert made["method"] == "token-intersection" and made["seed"] == 3 and made["metrics"]["tokens"] == 20
    tokens = [token for one in made["rounds"] for token in one["tokens"]]
    assert [token["id"] for token in tokens] == made["token_ids"] and "".join(
        token["text"] for token in tokens
    ) == made["text"]
    assert {one["draft_length"] for one in made["rounds"][:-3]} == {2}


def test_generate_keeps_the_ngram_cache_in_its_storage(cli: Cli, names: list[str], tmp_path: Path) -> None:
    assert cli("generate", TEXTS[0], "--max-new-tokens", 40, "--storage", tmp_path / "kept", *names).code == 0
    store = open_store(Settings(storage=tmp_path / "kept"))
    try:
        # the command's own writer has to come to it first: here its process goes on
        until = time.monotonic() + 20
        while not (kept := store.load_ngrams(names[1], names[3])) and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        store.close()
    assert kept and all(len(entry.drafter_ids) > 1 for entry in kept)


def test_models(cli: Cli) -> None:
    cards = json.loads(cli("models", "--json").out)
    assert {"bundled/large", "bundled/drafter"} <= {card["name"] for card in cards}
    assert all(card["note"] and card["role"] in ("target", "drafter", "both") for card in cards)
    table = cli("models").out
    assert all(card["name"] in table for card in cards)


def test_compare(cli: Cli, names: list[str], prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "compare.csv"
    options = ["--limit", 3, "--max-new-tokens", 12, "--csv", out, "--fill-cache"]
    result = cli(
        "compare", "--prompts", prompts, "--methods", "ngram-exact, token-intersection", *options, *names
    )
    assert result.code == 0, result.err
    table = pd.read_csv(out)
    # All take turns; the row of the baseline comes first on every prompt.
    order = [group["method"].tolist() for _, group in table.groupby("prompt_index")]
    assert order[0] == ["autoregressive", "ngram-exact", "token-intersection"]
    assert order[1] == ["autoregressive", "ngram-exact", "token-intersection"]
    assert order[2] == ["autoregressive", "token-intersection", "ngram-exact"]
    plain = table[table["method"] == "autoregressive"].set_index("prompt_index")
    for _, row in table.iterrows():
        base = plain.loc[row["prompt_index"]]
        assert row["identical"] and row["answer"] == base["answer"] and row["tokens"] == 12
        assert row["speedup"] == pytest.approx(row["tokens_per_second"] / base["tokens_per_second"])
    assert table["prompt"].str.lstrip("'").drop_duplicates().tolist() == TEXTS[:3]
    assert not table["prompt"].str.startswith("=").any()  # a spreadsheet would run it
    totals = table.groupby("method")[["tokens", "rounds"]].sum()
    for method, total in totals.iterrows():
        line = next(line for line in result.out.splitlines() if line.strip().startswith(str(method)))
        assert line.split()[1] == "3" and line.split()[-1] == "3/3"
        assert f" {total['tokens'] / total['rounds']:.2f} " in line or method != "autoregressive"


def test_compare_in_the_targets_own_manner(cli: Cli, names: list[str], prompts: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(names[1], tmp_path / "sampling")
    (folder / "generation_config.json").write_text(
        '{"do_sample": true, "temperature": 0.9, "repetition_penalty": 1.3}'
    )
    own = ["--target", folder, *names[2:]]
    answers = []
    for more in (["--own-manner"], ["--temperature", 0.9], []):
        out = tmp_path / "own.csv"
        result = cli(
            "compare",
            "--prompts",
            prompts,
            "--limit",
            1,
            "--seed",
            1,
            "--max-new-tokens",
            16,
            "--csv",
            out,
            *own,
            *more,
        )
        assert result.code == 0 and pd.read_csv(out)["identical"].all(), result.err
        answers.append(pd.read_csv(out)["answer"][0])
    expected = load_pair(str(folder), names[3]).generate(
        TEXTS[0], max_new_tokens=16, seed=1, method="autoregressive"
    )
    assert answers[0] == expected.text and len(set(answers)) == 3, (
        "without it nothing but the temperature is of the manner"
    )


def adaptation(
    cli: Cli, names: list[str], prompts: Path, out: Path, *more: object
) -> tuple[Result, pd.DataFrame]:
    options = [
        "--requests",
        5,
        "--update-interval",
        2,
        "--steps",
        3,
        "--eval-at",
        "0,2,99",
        "--eval-limit",
        1,
        "--max-new-tokens",
        10,
    ]
    result = cli("adapt", "--prompts", prompts, "--csv", out, *options, *names, *more)
    assert result.code == 0, result.err
    return result, pd.read_csv(out)


def test_adapt(cli: Cli, names: list[str], prompts: Path, tmp_path: Path) -> None:
    result, table = adaptation(cli, names, prompts, tmp_path / "curve.csv")
    traffic, held = table[table["kind"] == "traffic"], table[table["kind"] == "held-out"]
    assert traffic["requests"].tolist() == [0, 1, 2, 3, 4]
    # Each update is in use from the next request on, whatever the machine's speed.
    assert traffic["adapter_version"].tolist() == [0, 0, 1, 1, 2]
    # of every answer, by its own version
    assert traffic["agreement"].between(0, 1).all() and traffic["same_first"].between(0, 1).all()
    assert held["requests"].tolist() == [0, 0, 2, 2, 5, 5] and held["train_steps"].tolist() == [
        0,
        0,
        3,
        3,
        6,
        6,
    ]
    assert held["method"].tolist() == ["autoregressive", "ngram-exact"] * 3 and held["identical"].all()
    assert held["adapter_version"].tolist() == [0, 0, 1, 1, 2, 2]
    agreed = held[held["method"] == "ngram-exact"]["agreement"]
    assert agreed.between(0, 1).all() and agreed.nunique() == 3 and "agreement" in result.out.splitlines()[0]
    assert set(held["prompt"]) == {TEXTS[-1]} and TEXTS[-1] not in set(traffic["prompt"])
    assert held["loss_nats"].isna().tolist() == [True, True] + [False] * 4
    assert [line.split()[:3] for line in result.out.splitlines()[1:]] == [
        ["0", "0", "0"],
        ["2", "1", "3"],
        ["5", "2", "6"],
    ]
    _, again = adaptation(cli, names, prompts, tmp_path / "again.csv")
    same = [
        "requests",
        "adapter_version",
        "alpha",
        "block_efficiency_tokens_per_round",
        "loss_nats",
        "answer",
    ]
    pd.testing.assert_frame_equal(table[same], again[same])


def test_adapt_goes_on_from_its_storage_and_export_has_it_all(
    cli: Cli, names: list[str], prompts: Path, tmp_path: Path
) -> None:
    kept = ["--storage", tmp_path / "kept"]
    adaptation(cli, names, prompts, tmp_path / "first.csv", *kept)
    _, table = adaptation(cli, names, prompts, tmp_path / "second.csv", *kept)
    assert (
        table["adapter_version"].iloc[0] == 2
        and table["adapter_version"].iloc[-1] == 4
        and table["cache_entries"].iloc[0] > 0
    )
    for kind, rows in (("requests", 10), ("steps", 12)):
        result = cli("export", "--csv", tmp_path / f"{kind}.csv", "--kind", kind, *kept)
        assert result.code == 0 and f"{rows} rows" in result.err
        assert len(pd.read_csv(tmp_path / f"{kind}.csv")) == rows
    assert cli("export", "--csv", tmp_path / "none.csv", "--target", "another", *kept).err.startswith(
        "0 rows"
    )
    refused(
        cli("export", "--csv", tmp_path / "x.csv", "--kind", "frogs", *kept),
        "frogs",
        "requests, rounds or steps",
    )


def test_texts_of_others_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show(("[b]method", "is"), [("[/b]", "[red]x"), ("a", "[link=x]")], "note", "[/i] title")
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("[b]method", "[/b]", "[red]x", "[link=x]", "[/i] title"))
    with progress() as bar:
        bar.add_task("[/b] [red]x", total=1)
    assert "[/b] [red]x" in capsys.readouterr().err


def test_held_out_prompts_are_never_traffic() -> None:
    assert hold_out(list("abcde"), None, 2) == (["a", "b", "c"], ["d", "e"])
    # Evenly over a given list, none of which is traffic.
    assert hold_out(list("abc"), list("cxyz"), 2) == (["a", "b"], ["c", "y"])
    with pytest.raises(ValueError, match="--eval-limit"):
        hold_out(["a", "b"], None, 2)


def test_checkpoints() -> None:
    assert plan_checkpoints("50, 25,0,999", 60) == [0, 25, 50, 60]
    with pytest.raises(ValueError, match="whole numbers"):
        plan_checkpoints("0,many", 60)


def test_spread() -> None:
    assert (
        str(Spread.of([1.0, None, 3.0])) == "2.00 ± 1.41"
        and str(Spread.of([2.0])) == "2.00"
        and str(Spread.of([None])) == "–"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "hi", "--method", "magic"], ["magic", "ngram-exact"]),
        (["generate", "hi", "--target", "bundled/zebra"], ["bundled/zebra", "git checkout assets/models"]),
        (["generate", "hi", "--target", "./nowhere"], ["./nowhere"]),
        (["generate", "hi", "--draft-length", "99"], ["OMNIDEMO_DRAFT_LENGTH", "99"]),
        (["generate", "hi", "--max-new-tokens", "few"], ["--max-new-tokens", "integer"]),
        (["generate"], ["prompt"]),
        (["frobnicate"], ["No such command", "frobnicate"]),
        (["train-bundled"], ["No such command", "train-bundled"]),
        (["compare", "--prompts", "nowhere.jsonl", "--csv", "x.csv"], ["nowhere.jsonl", "No such file"]),
        (["export", "--csv", "x.csv", "--storage", "nowhere"], ["nowhere", "--storage"]),
    ],
    ids=lambda value: " ".join(value[:4]),
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: list[str], words: list[str]) -> None:
    refused(cli(*arguments), *words)
    assert not Path("x.csv").exists() and not Path("nowhere").exists()


def test_an_output_that_cannot_be_written_is_told_before_anything_runs(
    cli: Cli, prompts: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    refused(
        cli(
            "compare", "--prompts", prompts, "--csv", tmp_path / "file" / "x.csv", "--target", "bundled/zebra"
        ),
        "file",
    )
    refused(
        cli("compare", "--prompts", prompts, "--csv", tmp_path, "--target", "bundled/zebra"),
        "cannot be written",
    )


@pytest.mark.parametrize("closed", ["1", "012"])
def test_closed_streams_are_no_fault(closed: str) -> None:
    shell = f"exec {sys.executable} -m omnidemo models " + " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(["sh", "-c", shell], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr
    assert ("bundled/large" in done.stdout) == ("1" not in closed)


@pytest.mark.parametrize(
    ("given", "word"),
    [("<&-", "closed"), ("", "UTF-8")],
)
def test_a_standard_input_without_a_text_is_refused(given: str, word: str) -> None:
    shell = f"exec {sys.executable} -m omnidemo generate - {given}"
    done = subprocess.run(["sh", "-c", shell], cwd=ROOT, capture_output=True, input=b"\xff", timeout=120)
    said = done.stderr.decode()
    assert done.returncode == 2 and said.startswith("Error: the standard input") and word in said
    assert len(said.splitlines()) == 1 and not done.stdout


def test_an_output_may_be_a_link_or_a_pipe(cli: Cli, tmp_path: Path) -> None:
    storage, real, link, pipe = (tmp_path / name for name in ("storage", "real.csv", "link.csv", "pipe"))
    store = open_store(Settings(storage=storage))
    store.close()
    real.write_text("old " * 1000)
    link.symlink_to(real.name)
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        piped = pool.submit(pipe.read_text, "utf-8-sig")
        for out in (link, pipe):
            result = cli("export", "--csv", out, "--storage", storage)
            assert result.code == 0, result.err
        text = piped.result(30)
    assert text.startswith("request_id,") and real.read_text("utf-8-sig") == text
    assert link.is_symlink() and stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "missing" / "x.csv")
    refused(cli("export", "--csv", tmp_path / "nowhere.csv", "--storage", storage), "missing")


def test_a_prompt_beyond_the_window_leaves_an_older_csv_alone(
    cli: Cli, names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "long.jsonl").write_text(json.dumps({"prompt": "the cat " * 400}))
    (tmp_path / "old.csv").write_text("precious")
    refused(
        cli("compare", "--prompts", tmp_path / "long.jsonl", "--csv", tmp_path / "old.csv", *names),
        "the cat",
        "reads 256",
        "shorten",
    )
    assert (tmp_path / "old.csv").read_text() == "precious"


def test_settings_of_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    monkeypatch.setenv("OMNIDEMO_MAX_NEW_TOKENS", "7")
    assert cli("generate", TEXTS[0], *names).err.startswith("7 tokens")
    monkeypatch.setenv("OMNIDEMO_MAX_NEW_TOKENS", "none")
    refused(cli("models"), "OMNIDEMO_MAX_NEW_TOKENS", "none")
    monkeypatch.delenv("OMNIDEMO_MAX_NEW_TOKENS")
    monkeypatch.setenv("OMNIDEMO_TARGET", "bundled/a")
    refused(cli("generate", TEXTS[0]), "bundled/a is not there", "bundled/large")
    monkeypatch.setenv("OMNIDEMO_TARGT", "bundled/large")
    refused(cli("models"), "OMNIDEMO_TARGT", "OMNIDEMO_TARGET?")


def test_ctrl_c_stops_with_130_and_keeps_what_was_measured(names: list[str], tmp_path: Path) -> None:
    prompts, out = tmp_path / "many.jsonl", tmp_path / "partial.csv"
    prompts.write_text("\n".join(json.dumps({"prompt": f"the cat {number}"}) for number in range(5000)))

    def rows() -> list[dict[str, str]]:
        if not out.exists():
            return []
        with out.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))  # an answer may have several lines

    command = [
        sys.executable,
        "-m",
        "omnidemo",
        "compare",
        "--prompts",
        str(prompts),
        "--csv",
        str(out),
        "--max-new-tokens",
        "20",
        *names,
    ]
    # A shell's background jobs ignore SIGINT, and hand that on.
    run = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and run.poll() is None and len(rows()) < 4:
            time.sleep(0.05)
        while True:  # Python drops a KeyboardInterrupt in a finalizer: whoever pressed then presses again
            run.send_signal(signal.SIGINT)
            try:
                shown, told = run.communicate(timeout=20)
                break
            except subprocess.TimeoutExpired:
                assert time.monotonic() < deadline
    finally:
        run.kill()
    assert run.returncode == 130, told
    assert "Stopped." in told and "ngram-exact" in shown
    assert "Traceback" not in told or "Exception ignored" in told
    assert 3 <= len(rows()) < 10_000 and all(
        float(row["tokens_per_second"]) > 0 and row["answer"] for row in rows()
    )


def test_adapt_repeats_a_task_and_says_what_less_learned_would_have_taken(
    cli: Cli, names: list[str], tmp_path: Path
) -> None:
    own, out = tmp_path / "ducks.jsonl", tmp_path / "curve.csv"
    own.write_text("\n".join(["the other ducks swim", '{"input": "the other ducks swam"}', "the other duck"]))
    options = [
        "--task",
        own,
        "--system",
        "quack",
        "--max-new-tokens",
        20,
        "--update-interval",
        2,
        "--steps",
        1,
    ]
    kept = ["--storage", tmp_path / "kept"]
    result = cli("adapt", *options, "--csv", out, *names, *kept)
    assert result.code == 0, result.err
    table = pd.read_csv(out)
    heading, *lines, headline = result.out.splitlines()
    assert len(table) == len(lines) == 3 and heading.split()[0] == "answer"
    assert table["adapter_version"].tolist() == [0, 0, 1], (
        "an update that is due comes before the next answer"
    )
    assert (
        table[[f"{of}_tokens" for of in ("copied", "guessed", "forced", "own")]].sum(axis=1)
        == table["tokens"]
    ).all()
    for row, line in zip(table.to_dict("records"), lines, strict=True):
        cells = line.split()
        assert cells[0] == str(row["number"]) and float(cells[1]) == pytest.approx(
            row["tokens_per_round"], abs=0.005
        )
        assert float(cells[-1]) == pytest.approx(row["nothing_learned_tokens_per_round"], abs=0.005)
        assert row["as_it_was_tokens_per_round"] == pytest.approx(row["tokens_per_round"]), "no clock decides"
    assert f"answer 3: {table['tokens_per_round'][2]:.2f}; with nothing learned" in headline
    assert cli("export", "--csv", tmp_path / "requests.csv", *kept).code == 0
    history = pd.read_csv(tmp_path / "requests.csv")
    assert set(history["domain"]) == {"ducks"} and set(history["prompt"]) == set(table["input"])


def test_adapt_lists_the_tasks_and_refuses_what_it_cannot_ask(cli: Cli, tmp_path: Path) -> None:
    shown = cli("adapt", "--task", "list")
    assert shown.code == 0 and all(name in shown.out for name in ("json", "sql", "commits", "handbook"))
    refused(cli("adapt", "--task", "jason"), "choose one of json")
    refused(cli("adapt", "--task", "json", "--system", "a"), "system prompt of its own")
    refused(cli("adapt"), "either --prompts", "--task")
    refused(cli("adapt", "--task", "json", "--prompts", tmp_path / "a"), "either --prompts")
    (tmp_path / "bad.jsonl").write_text("fine\n{oops\n")
    refused(cli("adapt", "--task", tmp_path / "bad.jsonl"), "bad.jsonl, line 2", "not JSON")
