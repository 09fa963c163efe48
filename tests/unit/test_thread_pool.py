"""The threads that share a pass: they stay as long as it goes on."""

from __future__ import annotations

import threading

from omnidemo.backends.thread_pool import BUSY, Queue, ThreadPool, helping


def test_a_thread_stays_while_a_pass_is_under_way_and_goes_after_it() -> None:
    called = threading.Semaphore(0)

    def run_worker(queue: Queue) -> None:
        """One that finds no work, and goes at once."""
        called.release()

    pool = ThreadPool(1, run_worker)
    assert pool.lock.acquire(timeout=30)
    with pool as queue:
        assert queue[BUSY] == 1
        for _ in range(3):
            assert called.acquire(timeout=30), "it is called again without being woken"
    assert queue[BUSY] == 0 and not pool.lock.locked()


def test_a_queue_that_no_thread_works_on_is_never_busy() -> None:
    with helping(0, lambda queue: None) as queue:
        assert not queue.any()
