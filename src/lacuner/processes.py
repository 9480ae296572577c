"""Child processes: an ordered map over a process pool, and JSON requests that each run in a new Python process."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from lacuner.errors import ConfigError

Item = TypeVar("Item")
Result = TypeVar("Result")
Request = dict[str, Any]
RunRequests = Callable[
    [str, Sequence[Request], int, Callable[[Request, str | None], None], Callable[[str], None], int], None
]
"""The signature of `run_requests`. A function that runs the requests on other machines has the same one."""

AHEAD = 2
"""Items submitted per pool worker: one being processed, one waiting."""
MAX_WORKERS = 1024
"""Worker processes, at most: all of them are started at once."""
PARENT_POLL_SECONDS = 0.5


def usable_cores() -> int:
    """Number of CPU cores that this process may use.

    >>> usable_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int, start: str | None = None
) -> Iterator[tuple[Item, Result]]:
    """Apply `work` to every item in a process pool; yield `(item, result)` in input order, in bounded memory.

    Where processes can be forked (Linux), workers inherit `work`, so it may be any object and is not copied. Elsewhere
    it is pickled; if that is impossible, everything runs in this process.

    >>> list(map_in_order([1, 2, 3], float, workers=1))
    [(1, 1.0), (2, 2.0), (3, 3.0)]
    """
    start = start or ("fork" if sys.platform == "linux" else "spawn")
    if workers <= 1 or (start != "fork" and not _can_be_pickled(work)):
        for item in items:
            yield item, work(item)
        return
    # imported here: `lacuner --help` needs neither
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(workers, get_context(start), _start_worker, (work, os.getpid()))
    pending: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            pending.append((item, pool.submit(_work_on, item)))
            if len(pending) >= AHEAD * workers:
                item, future = pending.popleft()
                yield item, future.result()
        while pending:
            item, future = pending.popleft()
            yield item, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _can_be_pickled(work: object) -> bool:
    from multiprocessing.reduction import ForkingPickler

    try:
        ForkingPickler.dumps(work)
    except Exception:  # every class may fail in its own way
        return False
    return True


_work: Callable[[Any], Any]


def _start_worker(work: Callable[[Any], Any], parent: int) -> None:
    """Initialise a pool worker."""
    global _work  # noqa: PLW0603 (the only way to hand an object to a worker once)
    _work = work
    use_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives it too, and shuts the pool down
    gc.freeze()  # a garbage collection would write to inherited pages, which copies them
    watch_parent(parent, lambda: os._exit(1))


def use_one_thread() -> None:
    """Let the libraries that this worker loads from now on compute with one thread."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def watch_parent(parent: int, on_exit: Callable[[], None]) -> None:
    """Call a function, in a thread, when the parent process is gone: workers of a killed parent would wait for ever.

    (PR_SET_PDEATHSIG is no alternative: it fires when the *thread* that created the worker ends.)
    """

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        on_exit()

    threading.Thread(target=poll, daemon=True).start()


def _work_on(item: Any) -> Any:
    return _work(item)


def run_requests(
    program: str,
    requests: Sequence[Request],
    workers: int,
    on_exit: Callable[[Request, str | None], None],
    log: Callable[[str], None],
    threads: int = 1,
) -> None:
    """Run each request in a Python process of its own, `workers` at a time.

    A child process calls `main()` of the module `program`, which gets its request from `read_request`. Each line that
    it prints is passed to `log`. When it ends, `on_exit` is called in this thread with the request and None, or a
    description of the failure. If this function is interrupted, or `on_exit` raises, all children are killed.
    """
    children: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(max(workers, 1)) as pool:
        futures = {pool.submit(run_child, program, request, log, threads, children): request for request in requests}
        try:
            for future in as_completed(futures):
                on_exit(futures[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running = True
            while running:  # again and again: a thread may just be starting a child
                for child in list(children):
                    child.kill()
                time.sleep(0.05)
                running = not all(future.done() for future in futures)  # `wait` never ends for cancelled ones
            raise


def run_child(
    program: str,
    request: Request,
    log: Callable[[str], None],
    threads: int = 1,
    children: list[subprocess.Popen[str]] | None = None,
) -> str | None:
    """Run one request, as `run_requests` does; return a description of the failure, if any.

    `children` receives the child, so that it can be killed.
    """
    count = str(threads)  # and no spinning: a thread that waits actively takes time from the other processes
    env = {**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-P", "-c", f"from {program} import main; main()"]  # -P: no imports from this folder
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # a session of its own: Ctrl-C reaches only the parent
    child = subprocess.Popen(command, env=env, start_new_session=True, encoding="utf-8", errors="replace", **pipes)
    if children is not None:
        children.append(child)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=errors.extend, args=(child.stderr,), daemon=True)
    reader.start()
    with suppress(BrokenPipeError):  # raised if the child dies at once; `errors` will say why
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()  # and left open: the child exits when it is closed
    for line in child.stdout:
        log(line.rstrip("\n"))
    status = child.wait()
    reader.join()
    with suppress(BrokenPipeError):
        child.stdin.close()
    child.stdout.close()
    child.stderr.close()
    if not status:
        return None
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"the process {how}" + (f": {errors[-1].strip()}" if errors else "")


def read_request() -> Request:
    """Return the request of this child process, and exit as soon as the parent closes standard input or dies."""
    request: Request = json.loads(sys.stdin.readline())
    _at_end_of_input(lambda: os._exit(3))
    return request


def end_with_parent() -> None:
    """End this process, with clean-up, when its parent closes standard input or dies, even by kill -9."""
    _at_end_of_input(lambda: os.kill(os.getpid(), signal.SIGTERM))  # half-written files and workers are cleaned up


def _at_end_of_input(call: Callable[[], None]) -> None:
    """Call a function, in a thread, when the parent closes standard input or dies."""

    def wait() -> None:
        while os.read(0, 4096):  # not through sys.stdin, whose lock would be held at the end of the process
            pass
        call()

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder and lock it, or fail if another process holds its lock.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place, lock_folder(Path(place) / "run"), lock_folder(Path(place) / "run"):
    ...     pass
    Traceback (most recent call last):
    lacuner.errors.ConfigError: ...another process is working in this folder
    """
    with _locked(folder, "", folder, wait=False):
        yield


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """A folder that becomes `out` on success and is deleted on error; `out` must not exist, or be empty.

    It is in a hidden folder beside `out`, which only its owner can read. What a killed process has left there is
    removed by the next one that writes `out`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     with atomic_folder(Path(place) / "corpus") as folder:
    ...         _ = (folder / "a.txt").write_text("Mara left.")
    ...     sorted(path.name for path in Path(place).rglob("*"))
    ['a.txt', 'corpus']
    """
    staging = out.parent / f".{out.name}.part"
    with lock_folder(staging):
        try:
            staging.chmod(0o700)
            part = staging / "new"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            yield part
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o777 & ~umask)
            os.replace(part, out)
        except OSError as error:
            raise ConfigError(f"cannot write this folder: {error.strerror or error}", file=out) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which several processes and threads write; waits until the others release it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, lock_file(Path(folder) / "log.jsonl"):
    ...     [file.name for file in Path(folder).iterdir()]
    ['.log.jsonl.lock']
    """
    with _locked(path.parent, f".{path.name}", path, wait=True):
        yield


@contextmanager
def _locked(folder: Path, name: str, place: Path, wait: bool) -> Iterator[None]:
    """Create a lock file, and its folder, and hold its lock; errors name `place`, which it protects."""
    import fcntl  # here, because Windows has no such module

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError as error:
        raise ConfigError(f"cannot write in this folder: {error.strerror}", file=folder) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError("another process is working in this folder", file=place) from error
        except OSError as error:
            raise ConfigError(
                f"this {'file' if wait else 'folder'} cannot be locked: {error.strerror}", file=place
            ) from error
        yield
