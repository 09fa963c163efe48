"""The app's side of a pair with replicas."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from omnidemo.models.load import LanguageModel
from omnidemo.pair.remote.messages import Adapter, Call, Insertions, Message, insertions
from omnidemo.pair.remote.remote_pair import RemotePair
from omnidemo.serving.replicas.failover import whole_answer
from omnidemo.vocabulary.ngram_cache import NgramCache

if TYPE_CHECKING:
    from omnidemo.serving.replicas.ray_cluster import RayReplicas

ALONG = 64  # newest n-grams of each call; a replica that lacks older ones asks for them (`Behind`)


class ReplicatedPair(RemotePair):
    """A pair whose replicas write the answers. A replica takes the newest version and missing n-grams before
    it answers."""

    where = "replicas"
    lost = "The replica that wrote the answer ended before it did; ask again."
    failed = "No replica could write the answer ({}); ask again."

    def __init__(
        self, target: LanguageModel, drafter: LanguageModel, limits: Mapping[str, Any], replicas: RayReplicas
    ) -> None:
        super().__init__(target, drafter, limits)
        self.replicas = replicas

    def _ask(self, call: Call, cancelled: Callable[[], bool]) -> Generator[Message, None, None]:
        domain = call.options["domain"]

        def since(number: int) -> Insertions:
            with self._lock:
                return insertions(self._memory.of(domain), number)

        return whole_answer(
            self.replicas.ask, call, cancelled, since, self._method(call.options["method"]).name
        )

    def _told(self, ngrams: NgramCache) -> Insertions:
        return insertions(ngrams, max(0, len(ngrams) - ALONG))

    def _packed(self, adapter: Adapter) -> Adapter:
        """Each call carries a reference; a replica fetches the weights once."""
        if not adapter.weights:
            return adapter
        return Adapter(
            adapter.serial, adapter.version, elsewhere=self.replicas.put((adapter.weights, adapter.head))
        )
