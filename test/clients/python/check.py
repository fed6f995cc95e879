"""Asks a running node for every operation with the unmodified client, over REST and over gRPC, and compares the answers
with each other and, where its answers are exact, with the client's own collections in memory.

Arguments: port of REST, port of gRPC, seed, rounds of random requests; then, where the node wants them: what the client over REST shows as
its key, and what the one over gRPC does. With TROUPE_CA, the file of an authority, both ask over TLS and trust that alone.
"""

import logging
import os
import sys
import warnings

from films import INDEXES, SETTINGS, films
from forms import difference, exact, loose_difference
from qdrant_client import QdrantClient, models
from random_requests import random_requests
from reads import reads
from snapshots import snapshots
from writes import writes

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class Tally:
    def __init__(self):
        self.doors = self.local = 0
        self.wrong = []

    def compare(self, name, rest, grpc, local=None):
        """rest, grpc, local: functions without arguments that ask."""
        answers = [outcome(ask) for ask in (rest, grpc)]
        self.doors += 1
        rest_answer = exact(answers[0])
        self.note(name, "gRPC", difference(rest_answer, exact(answers[1])))
        if local is not None:
            self.local += 1
            self.note(name, "memory", loose_difference(rest_answer, exact(outcome(local))))

    def note(self, name, which, found):
        if found is not None:
            path, left, right = found
            self.wrong.append(f"{name}\n  {path}\n  REST {str(left)[:600]}\n  {which} {str(right)[:600]}")


def outcome(ask):
    """What is answered, or that it is refused: the words and codes of the doors differ."""
    try:
        return ask()
    except Exception as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", lambda: None)()
        if status is None and not isinstance(error, (ValueError, AssertionError)):
            raise
        if getattr(status, "name", status) in ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "DATA_LOSS") or isinstance(status, int) and status >= 500:
            raise
        return "refused"


def prepare(client, in_memory):
    for name in ("films", "more-films"):
        client.create_collection(name, **SETTINGS)
    if not in_memory:
        for field, schema in INDEXES.items():
            client.create_payload_index("films", field, schema, wait=True)
        alias = models.CreateAlias(collection_name="films", alias_name="an-alias")
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    points = films(SEED)
    client.upsert("films", points, wait=True)
    # Points to look up by the values of `length`.
    more = [models.PointStruct(id=at, vector=points[at].vector, payload=points[at].payload) for at in list(range(1, 9)) + list(range(60, 110))]
    client.upsert("more-films", more, wait=True)


def main():
    tally = Tally()
    url = f"{'https' if CA else 'http'}://127.0.0.1:{REST_PORT}"
    more = {"verify": CA, "https": True} if CA else {"https": False}
    rest = QdrantClient(url=url, check_compatibility=True, api_key=REST_KEY, **more)
    grpc = QdrantClient(host="127.0.0.1", port=REST_PORT, grpc_port=GRPC_PORT, prefer_grpc=True, api_key=GRPC_KEY, **more)
    local = QdrantClient(":memory:")
    prepare(rest, False)
    prepare(local, True)

    for name, ask, in_memory in reads():
        tally.compare(name, lambda: ask(rest), lambda: ask(grpc), (lambda: ask(local)) if in_memory else None)
    for name, ask in random_requests(SEED, ROUNDS):
        tally.compare(name, lambda: ask(rest), lambda: ask(grpc), lambda: ask(local))

    snapshots(tally, rest, grpc, url, REST_KEY)

    for client, name in ((rest, "rest"), (grpc, "grpc"), (local, "local")):
        client.create_collection(name, **SETTINGS)
        client.upload_points(name, films(SEED), batch_size=50, wait=True)
    for name, act, in_memory in writes():
        tally.compare(
            name,
            lambda: act(rest, "rest"),
            lambda: act(grpc, "grpc"),
        )
        if in_memory:
            outcome(lambda: act(local, "local"))

        def dump(client, collection):
            return client.scroll(collection, limit=1000, with_payload=True, with_vectors=True)

        tally.compare(
            f"{name}: all points after it",
            lambda: dump(rest, "rest"),
            lambda: dump(rest, "grpc"),
            (lambda: dump(local, "local")) if in_memory else None,
        )
    tally.compare("both collections", lambda: settings(rest, "rest"), lambda: settings(grpc, "grpc"))

    for wrong in tally.wrong:
        print(wrong[:4000])
    print(f"{tally.doors} answers of REST and gRPC compared, {tally.local} of them with a client in memory: {len(tally.wrong)} differ")
    return 1 if tally.wrong else 0


def settings(client, collection):
    info = client.get_collection(collection)
    return [info.config, info.payload_schema, info.points_count]


if __name__ == "__main__":
    REST_PORT, GRPC_PORT, SEED, ROUNDS = (int(argument) for argument in sys.argv[1:5])
    REST_KEY, GRPC_KEY = sys.argv[5:7] if len(sys.argv) > 5 else (None, None)
    CA = os.environ.get("TROUPE_CA")
    if CA:
        # The client hands no authority on to gRPC.
        os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = CA
    sys.exit(main())
