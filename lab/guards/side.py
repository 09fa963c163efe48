"""One side of a comparison: a process that answers with the `omnidemo` of its working directory.

It is started by its path, so that it runs in a checkout that lacks this file. Requests and answers are lines
of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    from omnidemo.api import load_pair
    from omnidemo.backends import compile_kernels
    from omnidemo.core.config import Settings
    from omnidemo.decoding.methods import METHODS, fitting

    pair: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "target" in asked:
            pair = load_pair(asked["target"], settings=Settings(training="off"))
            compile_kernels.wait()
            told: Any = [
                name for name in fitting(pair.map) if METHODS[name].lossless and METHODS[name].coupled
            ]
        else:
            began = perf_counter()
            done = pair.generate(asked["prompt"], **asked["options"])
            told = done.token_ids, perf_counter() - began
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
