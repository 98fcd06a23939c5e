"""Thread counts during and after work in blocks."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from frpcag.runtime.threads import block_pool, count_threads


def thread_counts():
    return [library["num_threads"] for library in threadpool_info()]


def test_results_come_in_the_order_of_the_blocks():
    with block_pool(3) as run:
        assert run(lambda block: 2 * block, range(50)) == list(range(0, 100, 2))


def test_blocks_run_with_one_thread_of_blas_and_openmp():
    with threadpool_limits(2), block_pool(2) as run:
        assert set().union(*run(lambda _: thread_counts(), range(4))) == {1}


def test_overlapping_pools_give_the_threads_back():
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with block_pool(2) as run:
            run(abs, range(4))
            entered.set()
            may_leave.wait(timeout=60)

    with threadpool_limits(2):
        before = thread_counts()
        thread = threading.Thread(target=other)
        with block_pool(2) as run:
            run(abs, range(4))
            thread.start()
            entered.wait(timeout=60)
        may_leave.set()
        thread.join()
        assert thread_counts() == before


def test_error_in_a_block_gives_the_threads_back():
    def fail(_):
        raise RuntimeError("block")

    with threadpool_limits(2):
        before = thread_counts()
        with pytest.raises(RuntimeError, match="block"), block_pool(2) as run:
            run(fail, range(3))
        assert thread_counts() == before


def test_all_cores_are_none_and_minus_one():
    assert count_threads(None) == count_threads(-1) >= 1
