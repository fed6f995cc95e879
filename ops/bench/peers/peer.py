"""
A library for vector search in a process of its own, for `run.ts`: `peer.py NAME FOLDER`. FOLDER has `set.json` and the vectors, queries (float32) and
payloads of a data set. Each line on standard input asks for something; one line of JSON answers it. The first answer says that the library is loaded.

All graphs get M 16 and ef_construct 100, all CPUs to be built, and one thread for searches, where the library lets one choose. No answer carries payloads.
"""

import json
import os
import sys
import time

import numpy

M = 16
EF_CONSTRUCT = 100
CPUS = len(os.sched_getaffinity(0))


class Set:
    """What is searched. Rows of vectors come in batches, so that no process holds them beside what its library keeps."""

    def __init__(self, folder):
        with open(os.path.join(folder, "set.json")) as file:
            described = json.load(file)
        self.folder = folder
        self.dim = described["dim"]
        self.is_cosine = described["isCosine"]
        self.filters = described["filters"]
        self.k = described["k"]
        self.file = described["vectorsFile"]
        self.count = os.path.getsize(self.file) // (4 * self.dim)
        self.queries = numpy.fromfile(described["queriesFile"], dtype=numpy.float32).reshape(-1, self.dim)

    def batches(self, size):
        for first in range(0, self.count, size):
            rows = min(size, self.count - first)
            values = numpy.fromfile(self.file, dtype=numpy.float32, count=rows * self.dim, offset=first * self.dim * 4)
            yield numpy.arange(first, first + rows), values.reshape(rows, self.dim)

    def payloads(self):
        with open(os.path.join(self.folder, "payloads.json")) as file:
            return json.load(file)


def conditions_of(filter):
    """(key, operator, value) of each condition, which are all to hold."""
    for condition in filter["must"]:
        for operator, value in condition.get("range", {}).items():
            yield condition["key"], operator, value
        if "match" in condition:
            yield condition["key"], "eq", condition["match"]["value"]


class Hnswlib:
    has_filters = False

    def __init__(self, data, folder):
        import hnswlib

        self.data, self.file = data, os.path.join(folder, "index")
        # Rows have length 1 where distances are cosines.
        self.index = hnswlib.Index(space="ip" if data.is_cosine else "l2", dim=data.dim)

    def build(self):
        self.index.init_index(max_elements=self.data.count, M=M, ef_construction=EF_CONSTRUCT)
        for ids, rows in self.data.batches(10_000):
            self.index.add_items(rows, ids, num_threads=CPUS)
        self.index.save_index(self.file)

    def searcher(self, ef, filter):
        self.index.set_ef(ef)
        queries, k = list(self.data.queries), self.data.k
        return lambda n: self.index.knn_query(queries[n], k=k, num_threads=1)[0][0]


class Usearch:
    has_filters = False

    def __init__(self, data, folder):
        from usearch.index import Index

        self.data, self.file = data, os.path.join(folder, "index")
        metric = "ip" if data.is_cosine else "l2sq"
        self.index = Index(ndim=data.dim, metric=metric, dtype="f32", connectivity=M, expansion_add=EF_CONSTRUCT)

    def build(self):
        for ids, rows in self.data.batches(10_000):
            self.index.add(ids, rows, threads=CPUS)
        self.index.save(self.file)

    def searcher(self, ef, filter):
        self.index.expansion_search = ef
        queries, k = list(self.data.queries), self.data.k
        return lambda n: self.index.search(queries[n], k, threads=1).keys


class Edge:
    """is_quantized: with 8-bit scalar quantization kept in memory, whose best are scored anew."""

    has_filters = True

    def __init__(self, data, folder, is_quantized):
        import qdrant_edge as edge

        self.edge, self.data, self.is_quantized = edge, data, is_quantized
        distance = edge.Distance.Cosine if data.is_cosine else edge.Distance.Euclid
        codes = edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, always_ram=True) if is_quantized else None
        vectors = edge.EdgeVectorParams(size=data.dim, distance=distance, quantization_config=codes)
        hnsw = edge.HnswIndexConfig(m=M, ef_construct=EF_CONSTRUCT, full_scan_threshold=10_000)
        self.shard = edge.EdgeShard.create(os.path.join(folder, "shard"), edge.EdgeConfig(vectors=vectors, hnsw_config=hnsw))
        types = edge.PayloadSchemaType
        for field, schema in (("category", types.Keyword), ("bucket", types.Integer), ("price", types.Float)):
            self.shard.update(edge.UpdateOperation.create_field_index(field, schema))

    def build(self):
        edge, payloads = self.edge, self.data.payloads()
        for ids, rows in self.data.batches(256):
            points = [edge.Point(int(id), row, payloads[id]) for id, row in zip(ids, rows.tolist())]
            self.shard.update(edge.UpdateOperation.upsert_points(points))
        self.shard.optimize()
        self.shard.flush()

    def searcher(self, ef, filter):
        edge, k = self.edge, self.data.k
        codes = edge.QuantizationSearchParams(rescore=True) if self.is_quantized else None
        params = edge.SearchParams(hnsw_ef=ef, quantization=codes)
        condition = None if filter is None else edge.Filter(must=[self.condition(*each) for each in grouped(filter)])
        requests = [
            edge.QueryRequest(query=edge.Query.Nearest(query), limit=k, params=params, filter=condition, with_payload=False)
            for query in self.data.queries.tolist()
        ]
        return lambda n: [point.id for point in self.shard.query(requests[n])]

    def condition(self, key, wanted):
        if "eq" in wanted:
            return self.edge.FieldCondition(key, match=self.edge.MatchValue(wanted["eq"]))
        return self.edge.FieldCondition(key, range=self.edge.RangeFloat(**wanted))


class Lance:
    """One partition: a single graph of 8-bit codes. The best are scored anew, twice as many as wanted, which is the least ef."""

    has_filters = True
    refine_factor = 2

    def __init__(self, data, folder):
        # It warns of each search otherwise.
        os.environ.setdefault("RUST_LOG", "error")
        import lancedb

        self.data = data
        self.database = lancedb.connect(os.path.join(folder, "database"))

    def build(self):
        import pyarrow
        from lancedb.index import Bitmap, BTree, HnswSq

        dim, payloads = self.data.dim, self.data.payloads()
        columns = {"id": pyarrow.int64(), "vector": pyarrow.list_(pyarrow.float32(), dim)}
        columns.update({"category": pyarrow.string(), "bucket": pyarrow.int64(), "price": pyarrow.float64()})
        schema = pyarrow.schema(list(columns.items()))

        def batches():
            for ids, rows in self.data.batches(10_000):
                vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), dim)
                some = [payloads[id] for id in ids]
                fields = [pyarrow.array([payload[key] for payload in some], columns[key]) for key in ("category", "bucket", "price")]
                yield pyarrow.RecordBatch.from_arrays([pyarrow.array(ids), vectors, *fields], schema=schema)

        self.table = self.database.create_table("points", pyarrow.RecordBatchReader.from_batches(schema, batches()), schema=schema)
        distance = "cosine" if self.data.is_cosine else "l2"
        self.table.create_index(
            "vector", config=HnswSq(distance_type=distance, num_partitions=1, m=M, ef_construction=EF_CONSTRUCT)
        )
        self.table.create_index("category", config=Bitmap())
        for field in ("bucket", "price"):
            self.table.create_index(field, config=BTree())

    def searcher(self, ef, filter):
        queries, k = list(self.data.queries), self.data.k
        distance = "cosine" if self.data.is_cosine else "l2"
        operators = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
        where = None
        if filter is not None:
            where = " AND ".join(f"{key} {operators[operator]} {literal(value)}" for key, operator, value in conditions_of(filter))

        def search(n):
            query = self.table.search(queries[n]).distance_type(distance).ef(max(ef, self.refine_factor * k))
            query = query.refine_factor(self.refine_factor).limit(k).select(["id", "_distance"])
            if where is not None:
                query = query.where(where, prefilter=True)
            return query.to_arrow()["id"].to_pylist()

        return search


class Chroma:
    has_filters = True

    def __init__(self, data, folder):
        import chromadb

        self.data = data
        settings = chromadb.Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(os.path.join(folder, "database"), settings=settings)
        space = "cosine" if data.is_cosine else "l2"
        hnsw = {"space": space, "max_neighbors": M, "ef_construction": EF_CONSTRUCT, "num_threads": CPUS}
        self.collection = self.client.create_collection("points", configuration={"hnsw": hnsw}, embedding_function=None)

    def build(self):
        payloads = self.data.payloads()
        for ids, rows in self.data.batches(1000):
            self.collection.add(ids=[str(id) for id in ids], embeddings=rows, metadatas=[payloads[id] for id in ids])

    def searcher(self, ef, filter):
        self.collection.modify(configuration={"hnsw": {"ef_search": ef}})
        queries, k = list(self.data.queries), self.data.k
        where = None
        if filter is not None:
            each = [{key: {f"${operator}": value}} for key, operator, value in conditions_of(filter)]
            where = each[0] if len(each) == 1 else {"$and": each}

        def search(n):
            found = self.collection.query(query_embeddings=[queries[n]], n_results=k, where=where, include=[])
            return [int(id) for id in found["ids"][0]]

        return search


def grouped(filter):
    """(key, {operator: value}) of each condition."""
    keys = {}
    for key, operator, value in conditions_of(filter):
        keys.setdefault(key, {})[operator] = value
    return keys.items()


def literal(value):
    return f"'{value}'" if isinstance(value, str) else repr(value)


PEERS = {
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "qdrant-edge-py": lambda data, folder: Edge(data, folder, is_quantized=False),
    "qdrant-edge-py, scalar quantization": lambda data, folder: Edge(data, folder, is_quantized=True),
    "lancedb": Lance,
    "chromadb": Chroma,
}


def searched(search, count, seconds):
    """Every query once, then on until the time is over. CPU is that of all threads of the process."""
    found = [[int(id) for id in search(n)] for n in range(count)] if seconds == 0 else None
    done, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        search(done % count)
        done += 1
    return {"searches": done, "seconds": time.perf_counter() - started, "cpuSeconds": time.process_time() - cpu, "found": found}


def main(name, folder):
    data = Set(folder)
    own = os.path.join(folder, name.replace(", ", "-").replace(" ", "-"))
    os.makedirs(own)
    peer = PEERS[name](data, own)
    tell({"hasFilters": peer.has_filters, "folder": own})
    prepared, search = None, None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["kind"] == "build":
            started, cpu = time.perf_counter(), time.process_time()
            peer.build()
            tell({"seconds": time.perf_counter() - started, "cpuSeconds": time.process_time() - cpu})
            continue
        wanted = (asked["ef"], asked["filter"])
        if wanted != prepared:
            search, prepared = peer.searcher(asked["ef"], data.filters.get(asked["filter"])), wanted
        tell(searched(search, len(data.queries), asked["seconds"]))


def tell(answer):
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
