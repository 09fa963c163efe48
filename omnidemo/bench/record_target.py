"""Recording a target for experiments: every answer once, by a pair that is loaded for it. `probes/replayed_target.py` replays them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnidemo.config import Settings
from omnidemo.probes.replayed_target import RecordedAnswer, TargetRecords
from omnidemo.records import Trace
from omnidemo.serving.pair_loading import build_measured_pair


def record(records: TargetRecords, prompts: Sequence[str], settings: Settings) -> Iterator[str]:
    """Answer the prompts greedily without a draft and keep each with its trace; yield a prompt when its file is written.

    ValueError for a prompt that the target cannot read; ModelError as in `load_model`.
    """
    pair = build_measured_pair(records.target, records.drafter, settings)
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    records.note(pair.target)
    for prompt in prompts:
        ids = pair.prompt_ids(prompt)
        traces.clear()
        made = pair.generate(ids, method="autoregressive", max_new_tokens=settings.max_new_tokens, reuse=False)
        if not traces:
            raise RuntimeError(f"the answer to {prompt[:40]!r}… left no trace to learn from; leave this prompt out")
        records.save(prompt, RecordedAnswer(tuple(ids), made.token_ids, traces[0]))
        yield prompt
