"""Points with vectors and payloads of every kind, the same for the same seed."""

import random
import struct

from qdrant_client import models

COUNT = 120
STUDIOS = ["North", "South", "Émile", "東京"]
SETTINGS = dict(
    vectors_config={
        "plot": models.VectorParams(size=4, distance=models.Distance.COSINE),
        "sound": models.VectorParams(size=3, distance=models.Distance.EUCLID),
        "steps": models.VectorParams(size=3, distance=models.Distance.MANHATTAN),
        "scenes": models.VectorParams(
            size=2,
            distance=models.Distance.DOT,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        ),
    },
    sparse_vectors_config={
        "words": models.SparseVectorParams(),
        "rare": models.SparseVectorParams(modifier=models.Modifier.IDF),
    },
)
INDEXES = {
    "studio": models.KeywordIndexParams(type="keyword", is_tenant=True, on_disk=False),
    "year": models.IntegerIndexParams(type="integer", lookup=True, range=True),
    "rating": models.FloatIndexParams(type="float", on_disk=True),
    "released": models.DatetimeIndexParams(type="datetime", is_principal=False),
    "place": models.PayloadSchemaType.GEO,
    "colour": models.PayloadSchemaType.BOOL,
    "reference": models.UuidIndexParams(type="uuid", on_disk=False),
    "summary": models.TextIndexParams(
        type="text", tokenizer=models.TokenizerType.WORD, lowercase=True, min_token_len=1, max_token_len=30
    ),
    "genres": models.PayloadSchemaType.KEYWORD,
}
SUMMARIES = ["a quiet river", "the night train", "a river at night", "mountains", "train to the mountains"]


def single(value):
    """The nearest number of 32 bits."""
    return struct.unpack("f", struct.pack("f", value))[0]


def numbers(rng, count):
    return [single(rng.uniform(-1, 1)) for _ in range(count)]


def sparse(rng):
    indices = rng.sample(range(30), rng.randint(1, 6))
    return models.SparseVector(indices=indices, values=[single(abs(value) + 0.05) for value in numbers(rng, len(indices))])


def film_id(at):
    return at if at <= COUNT * 2 // 3 else f"00000000-0000-4000-8000-{at:012d}"


def vectors(rng, at):
    found = {
        "plot": numbers(rng, 4),
        "sound": numbers(rng, 3),
        "steps": numbers(rng, 3),
        "scenes": [numbers(rng, 2) for _ in range(1 + at % 3)],
        "words": sparse(rng),
        "rare": sparse(rng),
    }
    # Not every point has every vector.
    for name, every in (("sound", 5), ("words", 6)):
        if at % every == 0:
            del found[name]
    return found


def payload(rng, at):
    found = {
        "studio": STUDIOS[at % 4],
        "year": 1960 + rng.randrange(20),
        "rating": at / 10 if at % 6 == 0 else round(rng.uniform(0, 10), 2),
        "released": f"19{rng.randrange(60, 80)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}T0{at % 10}:00:00Z",
        "place": {"lon": rng.uniform(-180, 180), "lat": rng.uniform(-80, 80)},
        "colour": at % 3 == 0,
        "reference": f"11111111-1111-4111-8111-00000000000{at % 10}",
        "summary": SUMMARIES[at % 5],
        "length": 60 + at,
        "genres": rng.sample(["drama", "comedy", "war", "noir"], rng.randint(1, 3)),
        "rooms": [{"name": "hall", "seats": at, "open": at % 2 == 0}, {"name": "cellar", "seats": COUNT - at, "open": True}],
    }
    if at % 7 == 0:
        found["draft"] = None
    if at % 7 == 1:
        found["draft"] = []
    if at % 7 == 2:
        found["draft"] = {"deep": [1.5, -3, "x", [True, None]]}
    return found


def films(seed):
    rng = random.Random(seed)
    return [models.PointStruct(id=film_id(at), vector=vectors(rng, at), payload=payload(rng, at)) for at in range(1, COUNT + 1)]
