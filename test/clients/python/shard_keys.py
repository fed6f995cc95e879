"""Points under shard keys on the nodes of a cluster, with the unmodified client: keys are created, points uploaded under
them in every way that the client has, and all of them are found through every node, over REST and over gRPC.

Arguments: for each node, its port of REST, a colon, and its port of gRPC.
"""

import logging
import sys
import warnings

from qdrant_client import QdrantClient, models

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

KEYS = ("a", 7, "ü/ö")
PER_KEY = 402


def clients(addresses):
    for rest, grpc in addresses:
        yield f"REST of {rest}", QdrantClient(url=f"http://127.0.0.1:{rest}")
        yield f"gRPC of {grpc}", QdrantClient(host="127.0.0.1", port=rest, grpc_port=grpc, prefer_grpc=True)


def point(at):
    return models.PointStruct(id=at, vector=[at % 7, 0, 0, 1.0], payload={"n": at % 1000})


def upload(client, name, key, first):
    """PER_KEY points, with ids from `first` on."""
    client.upload_points(name, [point(at) for at in range(first, first + 200)], shard_key_selector=key, batch_size=64)
    rest = range(first + 200, first + 400)
    vectors = [point(at).vector for at in rest]
    payloads = [{"n": at % 1000} for at in rest]
    client.upload_collection(name, vectors=vectors, payload=payloads, ids=list(rest), shard_key_selector=key, wait=True)
    client.upsert(name, points=[point(first + 400)], shard_key_selector=key, wait=True)
    last = models.PointsList(points=[point(first + 401)], shard_key=key)
    client.batch_update_points(name, [models.UpsertOperation(upsert=last)], wait=True)


def found(client, name):
    """What the client finds, as every client should."""
    below = models.Filter(must=[models.FieldCondition(key="n", range=models.Range(lt=100))])
    hits = client.query_points(name, query=[1, 0, 0, 0.0], limit=3, shard_key_selector="a").points
    return {
        "all": client.count(name, exact=True).count,
        "by key": [client.count(name, exact=True, shard_key_selector=key).count for key in KEYS],
        "two keys": client.count(name, exact=True, shard_key_selector=["a", 7]).count,
        "filtered": client.count(name, exact=True, shard_key_selector="a", count_filter=below).count,
        "scrolled": len(client.scroll(name, limit=1000, shard_key_selector=7)[0]),
        "retrieved": len(client.retrieve(name, ids=[1001], shard_key_selector=7)),
        "keys of hits": [hit.shard_key for hit in hits],
        "indexes": list(client.get_collection(name).payload_schema),
    }


EXPECTED = {
    "all": len(KEYS) * PER_KEY,
    "by key": [PER_KEY] * len(KEYS),
    "two keys": 2 * PER_KEY,
    "filtered": 100,
    "scrolled": PER_KEY,
    "retrieved": 1,
    "keys of hits": ["a"] * 3,
    "indexes": ["n"],
}


def main():
    every = dict(clients([tuple(map(int, address.split(":"))) for address in sys.argv[1:]]))
    wrong = 0
    for maker, client in every.items():
        vectors = models.VectorParams(size=4, distance=models.Distance.DOT)
        custom = models.ShardingMethod.CUSTOM
        client.create_collection("keyed", vectors_config=vectors, sharding_method=custom, shard_number=2, replication_factor=2)
        client.create_payload_index("keyed", "n", "integer", wait=True)
        for at, key in enumerate(KEYS):
            client.create_shard_key("keyed", key)
            upload(client, "keyed", key, 1000 * at)
        for reader, other in every.items():
            answers = found(other, "keyed")
            for what, expected in EXPECTED.items():
                if answers[what] != expected:
                    wrong += 1
                    print(f"{what}, uploaded by {maker}, read by {reader}: {answers[what]}, not {expected}")
        client.delete_shard_key("keyed", 7)
        if client.count("keyed", exact=True).count != 2 * PER_KEY:
            wrong += 1
            print(f"points of a deleted key are still there, by {maker}")
        client.delete_collection("keyed")
    print(f"shard keys: {len(every)} clients, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
