"""A Ray node on this machine or a cluster, with replicas of pairs and actors that train. Ray places, restarts
and routes."""

from __future__ import annotations

import logging
import os
import weakref
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from omnidemo.core.config import DEFAULT, Settings
from omnidemo.core.processes import signals_kept
from omnidemo.learning.distill import process_worker
from omnidemo.learning.lines.trainer_pool import Trainers
from omnidemo.models.load import load_model
from omnidemo.models.names import drafter_of, resolve, with_files
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Call
from omnidemo.serving.pair_loading import StageReport
from omnidemo.serving.replicas.failover import Batches, Lost
from omnidemo.serving.replicas.pair_replica import ANSWERS, PairReplica
from omnidemo.serving.replicas.replicated_pair import ReplicatedPair
from omnidemo.serving.replicas.trainer import RETRIES, RayTrainer, Trainer

CONVERSATIONS = 64  # that Ray routes to a replica
STARTS = 3  # tries to start a node: Ray gives up after 30 s, in which a busy machine has read its files
PAIRS = 3  # for which this machine's node has cores
NEEDED = "more than one process needs Ray; run `pip install -r requirements-scale.txt`"


class RayCluster:
    """The cluster of the app's replicas, made once in a process; a context that ends what it has started.
    ValueError, one sentence, without Ray or without a cluster at that address."""

    def __init__(self, settings: Settings, replicas: int = 2, address: str | None = None) -> None:
        """`replicas`: of each pair. `address`: of a cluster that has this machine as a node, "auto" for the
        one that runs here; None starts a node on this machine alone."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else a line for each process that starts
        # `ray start` demands a token by default; a program that joins must set this mode itself
        if address is not None and _has_token():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        try:
            import ray
            from ray import serve
        except ImportError as error:
            raise ValueError(NEEDED) from error
        cores = os.cpu_count() or 1
        self.processes = replicas
        self.threads = settings.threads or max(1, cores // replicas)
        self._hub = settings.trust_hub
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            options |= {"num_cpus": max(cores, PAIRS * replicas * self.threads), "include_dashboard": False}
        for left in reversed(range(STARTS if address is None else 1)):
            try:
                with signals_kept():  # Ray's handler of SIGTERM would end this process amid answers
                    ray.init(address=address or "local", **options)
                break
            except Exception as error:  # Ray raises plain exceptions too
                ray.shutdown()
                said = " ".join(str(error).split())[:200]
                if address is not None:
                    raise ValueError(
                        f"this machine is no node of a Ray cluster at {address} ({said}); run `ray start` on"
                        " it first, or give this machine the token of a cluster that asks for one (`ray"
                        " get-auth-token`)"
                    ) from error
                if not left:
                    raise ValueError(
                        f"Ray could not start a node here ({said}); try again when the machine is less busy"
                    ) from error
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR"})
        self._names: set[str] = set()

    def build(
        self,
        target: str,
        drafter: str,
        settings: Settings,
        progress: StageReport = lambda stage, fraction, detail: None,
    ) -> Pair:
        """As `build_pair`. Replicas load the models; this process loads their tokenizers."""
        from ray import serve

        found = [
            resolve(name, settings)
            for name in (target, drafter_of(target, settings) if drafter == DEFAULT else drafter)
        ]
        models = [
            load_model(one.where, device="cpu", absent=True, writes=one is found[0], **settings.loading)
            for one in found
        ]
        progress("target", 0.2, f"starting {self.processes} replicas with {target}")
        name = f"omnidemo-{token_hex(6)}"
        replica = _deployment(self.processes, self.threads, settings.device.startswith("cuda"))
        theirs = with_files(_for_replicas(settings, self.threads), found)
        handle = serve.run(
            replica.bind(models[0].name, models[1].name, theirs, _fetch), name=name, route_prefix=None
        )
        self._names.add(name)
        pair = ReplicatedPair(models[0], models[1], settings.limits, RayReplicas(handle))
        weakref.finalize(pair, self._delete, name)
        return pair

    def trainers(self, pair: Pair) -> Trainers:
        """An actor for each adapter line of a pair."""
        import ray

        # No core of Ray's account: the actor's process is niced and gives way to answers.
        remote: Any = ray.remote  # whose types lack some options
        actor = remote(num_cpus=0, max_restarts=-1, max_task_retries=RETRIES, max_concurrency=4)(Trainer)

        def trainer(domain: str) -> RayTrainer:
            name = f"trainer {pair.drafter.name} {pair.target.name} {domain} {token_hex(4)}"
            return RayTrainer(
                lambda: actor.options(name=name).remote(pair.drafter.name, self._hub, process_worker.NICE)
            )

        return trainer

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(self, *_: object) -> None:
        """End the replicas, and the node that was started here."""
        import ray

        for name in list(self._names):
            self._delete(name)
        ray.shutdown()

    def _delete(self, name: str) -> None:
        import ray
        from ray import serve

        self._names.discard(name)
        if ray.is_initialized():
            with suppress(Exception):  # the cluster may be gone
                serve.delete(name, _blocking=False)


class RayReplicas:
    """The replicas of a pair, by Ray's handle."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def ask(self, call: Call) -> Batches:
        """Let a replica write an answer, if possible one that has read the beginning of the conversation.
        Raises `Lost` where it is gone."""
        from ray.exceptions import RayActorError
        from ray.serve.exceptions import RequestCancelledError

        batches = self._handle.options(
            stream=True, multiplexed_model_id=call.conversation, method_name="answer"
        ).remote(call)
        try:
            yield from batches
        except (RayActorError, RequestCancelledError) as error:
            raise Lost("a replica was lost") from error
        finally:
            batches.cancel()

    def put(self, value: Any) -> Any:
        """Put a value into the object store; its reference."""
        import ray

        return ray.put(value)


def _has_token() -> bool:
    """Whether this machine has a token where Ray looks for it."""
    given = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return given or Path("~/.ray/auth_token").expanduser().exists()


def _deployment(replicas: int, threads: int, gpu: bool) -> Any:
    from ray import serve

    class Replica(PairReplica):
        """Tells Ray which conversations a replica has read."""

        @serve.multiplexed(max_num_models_per_replica=CONVERSATIONS)
        async def conversation(self, name: str) -> str:
            return name

        async def answer(self, call: Call) -> Any:
            await self.conversation(serve.get_multiplexed_model_id())
            async for batch in super().answer(call):
                yield batch

    options = {"num_cpus": threads, "num_gpus": int(gpu)}
    return serve.deployment(
        Replica, name="PairReplica", num_replicas=replicas, max_ongoing_requests=ANSWERS,
        ray_actor_options=options,
    )  # fmt: skip


def _for_replicas(settings: Settings, threads: int) -> Settings:
    """The settings of replicas, without secrets."""
    return settings.model_copy(
        update={"threads": threads, "auth": "", "operator_key": "", "api_keys": "", "database_url": ""}
    )


def _fetch(reference: Any) -> Any:
    import ray

    return ray.get(reference)
