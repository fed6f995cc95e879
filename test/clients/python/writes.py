"""Writing requests of every kind, in the order in which they are carried out."""

from random import Random

from films import INDEXES, film_id, payload, vectors
from qdrant_client import models as m

UUID = film_id(100)
NORTH = m.Filter(must=[m.FieldCondition(key="studio", match=m.MatchValue(value="North"))])
YEARS = m.Filter(must=[m.FieldCondition(key="year", range=m.Range(gte=1975))])


def film(at, title="new"):
    rng = Random(at)
    return m.PointStruct(id=at, vector=vectors(rng, at), payload={**payload(rng, at), "title": title})


def writes():
    """Yields (name, act of a client on a collection, whether a client in memory does the same)."""
    yield "upsert", lambda c, n: c.upsert(n, [film(1), film(501), m.PointStruct(id=502, vector={}, payload={})]), True
    columns = m.Batch(ids=[503, UUID], vectors={"plot": [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]}, payloads=[{"a": 1.5}, {"a": None}])
    yield "upsert of columns", lambda c, n: c.upsert(n, columns), True
    yield "upsert with ordering", lambda c, n: c.upsert(n, [film(504)], ordering=m.WriteOrdering.STRONG, timeout=10), True
    yield "upsert of new ones", lambda c, n: c.upsert(n, [film(2, "again"), film(505)], update_mode=m.UpdateMode.INSERT_ONLY), False
    yield "upsert of old ones", lambda c, n: c.upsert(n, [film(3, "again"), film(506)], update_mode=m.UpdateMode.UPDATE_ONLY), False
    yield "upsert under a filter", lambda c, n: c.upsert(n, [film(4, "again"), film(5, "again")], update_filter=NORTH), False
    document = m.Document(text="the night train", model="qdrant/bm25")
    yield "upsert of a text", lambda c, n: c.upsert(n, [m.PointStruct(id=507, vector={"rare": document}, payload={})]), False
    yield "no more of them", lambda c, n: c.delete(n, [2, 3, 4, 5, 505, 506, 507]), True

    moved = [
        m.PointVectors(id=6, vector={"plot": [0.0, 0.0, 0.0, 1.0], "words": m.SparseVector(indices=[4], values=[0.5])}),
        m.PointVectors(id=UUID, vector={"sound": [1.0, 2.0, 3.0], "scenes": [[1.0, 2.0]]}),
    ]
    yield "update of vectors", lambda c, n: c.update_vectors(n, moved), True
    yield "deletion of vectors", lambda c, n: c.delete_vectors(n, ["sound", "rare"], points=[6, 7, UUID]), True
    yield "deletion of vectors by filter", lambda c, n: c.delete_vectors(n, ["words"], points=NORTH), True

    yield "set payload", lambda c, n: c.set_payload(n, {"award": "gold", "year": 1980}, points=[1, 8, UUID]), True
    yield "set payload by filter", lambda c, n: c.set_payload(n, {"x": {"y": [1, None]}}, points=NORTH), True
    yield "set payload at a key", lambda c, n: c.set_payload(n, {"b": 1}, points=[9], key="deep.er"), True
    yield "overwrite payload", lambda c, n: c.overwrite_payload(n, {"only": True}, points=[10, 11]), True
    yield "delete payload", lambda c, n: c.delete_payload(n, ["genres", "draft"], points=[13, 14, 15]), True
    yield "delete payload by filter", lambda c, n: c.delete_payload(n, ["rating"], points=YEARS), True
    yield "clear payload", lambda c, n: c.clear_payload(n, points_selector=[17, 18]), True

    operations = [
        m.UpsertOperation(upsert=m.PointsList(points=[film(600), film(601), film(602)])),
        m.SetPayloadOperation(set_payload=m.SetPayload(payload={"set": 1}, points=[600])),
        m.OverwritePayloadOperation(overwrite_payload=m.SetPayload(payload={"over": [1.5]}, points=[601])),
        m.DeletePayloadOperation(delete_payload=m.DeletePayload(keys=["studio"], points=[602])),
        m.ClearPayloadOperation(clear_payload=m.PointIdsList(points=[19])),
        m.UpdateVectorsOperation(update_vectors=m.UpdateVectors(points=[m.PointVectors(id=600, vector={"plot": [1.0, 1.0, 0.0, 0.0]})])),
        m.DeleteVectorsOperation(delete_vectors=m.DeleteVectors(points=[601], vector=["plot"])),
        m.DeleteOperation(delete=m.PointIdsList(points=[20, 602])),
        m.DeleteOperation(delete=m.FilterSelector(filter=m.Filter(must=[m.HasIdCondition(has_id=[21, 22])]))),
    ]
    yield "batch", lambda c, n: c.batch_update_points(n, operations), True

    for field, schema in INDEXES.items():
        yield f"index: {field}", lambda c, n, f=field, s=schema: c.create_payload_index(n, f, s), False
    stems = m.TextIndexParams(
        type="text",
        tokenizer=m.TokenizerType.MULTILINGUAL,
        stopwords=m.StopwordsSet(languages=["english"], custom=["film"]),
        stemmer=m.SnowballParams(type="snowball", language="english"),
        phrase_matching=True,
        ascii_folding=True,
        on_disk=True,
    )
    yield "index with all parameters", lambda c, n: c.create_payload_index(n, "summary", stems), False
    yield "no index", lambda c, n: c.delete_payload_index(n, "year"), False

    dense = m.DenseVectorNameConfig(dense=m.DenseVectorConfig(size=2, distance=m.Distance.DOT))
    yield "new vector", lambda c, n: c.create_vector_name(n, "late", dense), False
    yield "new sparse vector", lambda c, n: c.create_vector_name(
        n, "late-sparse", m.SparseVectorNameConfig(sparse=m.SparseVectorConfig(modifier=m.Modifier.IDF))
    ), False
    yield "points of a new vector", lambda c, n: c.update_vectors(n, [m.PointVectors(id=1, vector={"late": [1.0, 2.0]})]), False
    yield "no vector", lambda c, n: c.delete_vector_name(n, "late"), False

    yield "settings", lambda c, n: c.update_collection(
        n,
        optimizers_config=m.OptimizersConfigDiff(indexing_threshold=50, max_optimization_threads=2),
        hnsw_config=m.HnswConfigDiff(m=8, ef_construct=32),
        collection_params=m.CollectionParamsDiff(read_fan_out_factor=1),
        vectors_config={"plot": m.VectorParamsDiff(on_disk=True, hnsw_config=m.HnswConfigDiff(m=12))},
        sparse_vectors_config={"words": m.SparseVectorParams(index=m.SparseIndexParams(on_disk=True))},
        quantization_config=m.ScalarQuantization(scalar=m.ScalarQuantizationConfig(type=m.ScalarType.INT8, quantile=0.99)),
        strict_mode_config=m.StrictModeConfig(enabled=False, max_query_limit=100),
        metadata={"owner": "me", "deep": [1, None]},
    ), False
    yield "no quantization", lambda c, n: c.update_collection(n, quantization_config=m.Disabled.DISABLED), False

    yield "delete", lambda c, n: c.delete(n, [1, 30, UUID, 9999]), True
    yield "delete by filter", lambda c, n: c.delete(n, NORTH), True
    yield "refused: length of a vector", lambda c, n: c.upsert(n, [m.PointStruct(id=1, vector={"plot": [1.0]}, payload={})]), False
    yield "refused: name of a vector", lambda c, n: c.upsert(n, [m.PointStruct(id=1, vector={"none": [1.0]}, payload={})]), False
    yield "refused: collection", lambda c, n: c.upsert("none", [film(1)]), False
    yield "refused: creation", lambda c, n: c.create_collection(n, vectors_config=m.VectorParams(size=4, distance=m.Distance.DOT)), False
    yield "refused: key", lambda c, n: c.delete_payload(n, ["a["], points=[1]), False
    yield "refused: order", lambda c, n: c.scroll(n, order_by="length"), False
    yield "refused: example", lambda c, n: c.query_points(n, query=9999, using="plot"), False
