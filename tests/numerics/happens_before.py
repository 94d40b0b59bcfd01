"""A race detector for the schedule of band LU: a device that runs nothing, with a vector clock for each of its queues.

Two accesses of one word, of which one is a write, must be ordered: by their common queue, by an event for which the
queue of the later access waited, or by the host, which waited for the earlier access before it submitted the later one.
Any other order is a race on a GPU. The history of every word is kept; words have 4 bytes, since matrices are float32.
"""

from types import SimpleNamespace

import numpy as np

from renderer.gpu import DeviceProperties

MOST_QUEUES = 96


class Unordered(AssertionError):
    """Two conflicting accesses that nothing orders."""


class Order:
    """The clocks of all queues; queue 0 is the host."""

    def __init__(self):
        self.clocks = np.zeros((MOST_QUEUES, MOST_QUEUES), np.int32)
        self.names: list[str] = []
        self.accesses = 0
        self.host = self.queue("host")

    def queue(self, name: str) -> int:
        self.names.append(name)
        assert len(self.names) <= MOST_QUEUES
        return len(self.names) - 1

    def come_to(self, queue: int) -> np.ndarray:
        """The vector clock of a queue: all work that happens before the next work of this queue."""
        return self.clocks[queue].copy()

    def wait(self, queue: int, place: np.ndarray) -> None:
        np.maximum(self.clocks[queue], place, out=self.clocks[queue])

    def work(self, queue: int, name: str, reads=(), writes=()) -> None:
        """Work of a queue, asked for by the host now, on (memory, words) pairs."""
        self.wait(queue, self.clocks[self.host])
        self.clocks[queue, queue] += 1
        now = self.clocks[queue]
        for memory, words in reads:
            self.accesses += 1
            memory.check(words, now, self, queue, name, False)
            memory.read_at[queue, words] = now[queue]
            memory.what[queue] = name
        for memory, words in writes:
            self.accesses += 1
            memory.check(words, now, self, queue, name, True)
            memory.written_by[words], memory.written_at[words] = queue, now[queue]
            memory.what[queue] = name


class Memory:
    """When each word was written and read, and by which queue."""

    def __init__(self, name: str, size: int):
        self.name, self.size = name, size
        self.written_by, self.written_at = np.zeros(size, np.int16), np.zeros(size, np.int32)
        self.read_at = np.zeros((MOST_QUEUES, size), np.int32)
        self.what: dict[int, str] = {}

    def check(self, words, now, order: Order, queue: int, name: str, writes: bool) -> None:
        if isinstance(words, np.ndarray) and words.size:
            assert 0 <= words.min() and words.max() < self.size, f"{name} goes beyond {self.name}"
        late = self.written_at[words] > now[self.written_by[words]]
        if late.any():
            other = int(self.written_by[words][late][0])
            self.refuse(order, queue, name, other, "wrote")
        if writes:
            for other in self.what:
                if (self.read_at[other, words] > now[other]).any():
                    self.refuse(order, queue, name, other, "read")

    def refuse(self, order: Order, queue: int, name: str, other: int, did: str) -> None:
        raise Unordered(
            f"{name} in {order.names[queue]} does not wait for {order.names[other]}, which {did} {self.name} "
            f"(last by {self.what.get(other)})"
        )


ALL = slice(None)


class Buffer:
    def __init__(self, device, shape, dtype="f4", name="buffer"):
        self.device, self.dtype = device, np.dtype(dtype)
        self.shape = (int(shape),) if np.isscalar(shape) else tuple(shape)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.memory = Memory(f"{name} of {device.name}", max(self.nbytes // 4, 1))
        self.value = 0  # of a counter that kernels move

    def write(self, array) -> "Buffer":
        self.value = int(np.ravel(array)[0])
        self.device.work("write", writes=[(self.memory, ALL)])
        self.device.order.wait(0, self.device.order.come_to(self.device.entered))
        return self

    def read(self) -> np.ndarray:
        self.device.work("read", [(self.memory, ALL)])
        self.device.order.wait(0, self.device.order.come_to(self.device.entered))
        return np.zeros(self.shape, self.dtype)

    def fill(self, byte: int) -> "Buffer":
        self.device.work("fill", writes=[(self.memory, ALL)])
        return self

    def copy_from(self, source: "Buffer") -> "Buffer":
        """Between devices both entered queues wait for the copy; on one device it is work of the entered queue."""
        order, here, there = self.device.order, self.device.entered, source.device.entered
        order.wait(here, order.come_to(there))
        order.work(here, "copy", [(source.memory, ALL)], [(self.memory, ALL)])
        order.wait(there, order.come_to(here))
        return self


class StagingBuffer:
    """Host memory, a copy in the queue of copies, and the device memory that work() reads."""

    def __init__(self, device, count: int):
        self.device, self.buffer = device, Buffer(device, count, "u1", "a stage")
        self.array, self.outside = np.zeros(count, np.uint8), Memory("a stage's host memory", 1)
        self.arrived = self.used = device.order.come_to(0)

    def map(self) -> np.ndarray:
        self.device.order.wait(0, self.arrived)
        self.device.order.work(0, "filling", writes=[(self.outside, ALL)])
        return self.array

    def upload_then(self, count: int, work) -> None:
        order, copies = self.device.order, self.device.copies
        order.wait(copies, self.used)
        order.work(copies, "sending", [(self.outside, ALL)], [(self.buffer.memory, slice(0, count // 4))])
        self.arrived = order.come_to(copies)
        order.wait(self.device.entered, self.arrived)
        work(self.buffer)
        self.used = order.come_to(self.device.entered)


class ReadbackBuffer:
    def __init__(self, device, count: int):
        self.device, self.buffer = device, Buffer(device, count, "u1", "a tray")
        self.array, self.outside = np.zeros(count, np.uint8), Memory("a tray's host memory", 1)
        self.back, self.arrived = device.order.queue(f"{device.name}'s way back"), device.order.come_to(0)

    def start_copy(self) -> None:
        order = self.device.order
        order.wait(self.back, order.come_to(self.device.entered))
        order.work(self.back, "bringing back", [(self.buffer.memory, ALL)], [(self.outside, ALL)])
        self.arrived = order.come_to(self.back)

    def wait(self) -> np.ndarray:
        self.device.order.wait(0, self.arrived)
        self.device.order.work(0, "reading", [(self.outside, ALL)])
        return self.array


class Queue:
    def __init__(self, device):
        self.device, self.number, self.outer = device, device.order.queue(f"{device.name}'s urgent queue"), []

    def __enter__(self):
        self.outer.append(self.device.entered)
        self.device.entered = self.number

    def __exit__(self, *error):
        self.device.entered = self.outer.pop()


class Device:
    """A GPU of the contract of renderer.gpu; `accesses` maps an entry to what its arguments make it read and write."""

    def __init__(self, order: Order, index: int, accesses: dict, cluster: int = 8, peers: bool = True):
        self.order, self.name, self.accesses, self.peers = order, f"device {index}", accesses, peers
        self.properties = DeviceProperties(132, 32, 1 << 37, 1 << 37, True, cluster)
        self.entered, self.copies = order.queue(self.name), order.queue(f"{self.name}'s copies")
        self.queues = [self.entered, self.copies]

    def work(self, name: str, reads=(), writes=()) -> None:
        self.order.work(self.entered, name, reads, writes)

    def can_access_peer(self, other) -> bool:
        return self.peers or other is self

    def buffer(self, shape, dtype="f4") -> Buffer:
        return Buffer(self, shape, dtype)

    def staging_buffer(self, count: int) -> StagingBuffer:
        return StagingBuffer(self, count)

    def readback_buffer(self, count: int) -> ReadbackBuffer:
        return ReadbackBuffer(self, count)

    def priority_queue(self) -> Queue:
        queue = Queue(self)
        self.queues.append(queue.number)
        return queue

    def record_event(self, reuse=None) -> np.ndarray:
        return self.order.come_to(self.entered)

    def wait_event(self, event) -> None:
        self.order.wait(self.entered, event)

    def timestamp(self):
        return SimpleNamespace(seconds_since=lambda earlier: 0.0)

    def capture_graph(self, work):
        return work

    def finish(self) -> None:
        for queue in self.queues:
            self.order.wait(0, self.order.come_to(queue))

    def kernel(self, file, entry: str, group_size: int = 256, **constants):
        def bound(threads: int, *arguments):
            def launch() -> None:
                reads, writes = self.accesses[entry](constants, *arguments)
                self.work(entry, reads, writes)

            return launch

        def call(threads: int, *arguments) -> None:
            bound(threads, *arguments)()

        call.group_size, call.bind_launch, call.reserve_local = group_size, bound, lambda count: True
        call.supports_cluster_size = lambda groups: groups <= self.properties.max_cluster_size
        return call

    def vendor_blas(self, dtype):
        def bind_gemm_subtract(m, n, k, a, b, c, batch=(1, 0, 0, 0)):
            shapes = ((m, k), (k, n), (m, n))

            def launch() -> None:
                places = []
                for (buffer, first, leading), (rows, columns), step in zip((a, b, c), shapes, batch[1:], strict=True):
                    one = rectangle(first, leading, rows, columns)
                    every = [one + step * number for number in range(batch[0])]
                    places.append((buffer.memory, np.concatenate(every)))
                self.work("product", places[:2], places[2:])

            return launch

        return SimpleNamespace(name="a product", bind_gemm_subtract=bind_gemm_subtract)


def rectangle(first: int, leading: int, rows: int, columns: int) -> np.ndarray:
    """The words of a column-major (rows, columns) part."""
    return (int(first) + np.arange(columns)[:, None] * leading + np.arange(rows)[None]).ravel()
