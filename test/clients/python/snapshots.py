"""Snapshots made, listed, restored and deleted by the unmodified client, over REST and over gRPC."""

from qdrant_client import models


def snapshots(tally, rest, grpc, url, key):
    for maker, other in ((rest, grpc), (grpc, rest)):
        made = maker.create_snapshot("films", wait=True)
        compare_lists(tally, rest, grpc)
        location = f"{url}/collections/films/snapshots/{made.name}"
        other.recover_snapshot(
            "restored", location, api_key=key, priority=models.SnapshotPriority.SNAPSHOT, checksum=made.checksum, wait=True
        )
        tally.compare("points of a restored collection", lambda: dump(rest, "films"), lambda: dump(grpc, "restored"))
        other.delete_collection("restored")
        other.delete_snapshot("films", made.name, wait=True)
        compare_lists(tally, rest, grpc)
        full = maker.create_full_snapshot(wait=True)
        tally.compare("full snapshots", lambda: shown(rest.list_full_snapshots()), lambda: shown(grpc.list_full_snapshots()))
        other.delete_full_snapshot(full.name, wait=True)
        tally.compare("no full snapshots", lambda: shown(rest.list_full_snapshots()), lambda: shown(grpc.list_full_snapshots()))


def compare_lists(tally, rest, grpc):
    tally.compare("snapshots of films", lambda: shown(rest.list_snapshots("films")), lambda: shown(grpc.list_snapshots("films")))


def shown(snapshots):
    """Without checksums: this client leaves them out of what comes over gRPC."""
    return [(snapshot.name, snapshot.size, snapshot.creation_time) for snapshot in snapshots]


def dump(client, collection):
    return client.scroll(collection, limit=1000, with_payload=True, with_vectors=True)
