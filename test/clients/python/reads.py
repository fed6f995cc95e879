"""Reading requests of every kind: a name, what is asked of a client, and whether an in-memory client answers exactly the same."""

from films import film_id, single
from qdrant_client import models as m

FILMS = "films"
UUID = film_id(100)
PLOT = [single(x) for x in (0.3, -0.5, 0.2, 0.7)]
SOUND = [single(x) for x in (0.1, 0.9, -0.4)]
SCENES = [[0.5, 0.5], [-1.0, 0.25]]
WORDS = m.SparseVector(indices=[20, 3, 8], values=[0.5, 1.25, 0.75])
CENTRE = m.GeoPoint(lon=10, lat=20)


def match(key, **kind):
    (name, value), = kind.items()
    of = {"value": m.MatchValue, "any": m.MatchAny, "text": m.MatchText, "phrase": m.MatchPhrase, "text_any": m.MatchTextAny}
    return m.FieldCondition(key=key, match=m.MatchExcept(**{"except": value}) if name == "excluded" else of[name](**{name: value}))


def ring(west, south, east, north):
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    return m.GeoLineString(points=[m.GeoPoint(lon=lon, lat=lat) for lon, lat in corners])


CONDITIONS = {
    "keyword": match("studio", value="North"),
    "integer": match("year", value=1965),
    "truth": match("colour", value=True),
    "any keyword": match("studio", any=["North", "東京"]),
    "any integer": match("year", any=[1965, 1966, 1967]),
    "except keyword": match("studio", excluded=["Émile", "South"]),
    "except integer": match("year", excluded=[1965, 1966]),
    "uuid": match("reference", value="11111111-1111-4111-8111-000000000003"),
    "list": match("genres", value="drama"),
    "items": match("genres[]", value="war"),
    "range": m.FieldCondition(key="year", range=m.Range(gte=1962, lt=1970)),
    "float range": m.FieldCondition(key="rating", range=m.Range(gt=2.5, lte=7.25)),
    "unindexed range": m.FieldCondition(key="length", range=m.Range(gt=70, lte=130)),
    "dates": m.FieldCondition(key="released", range=m.DatetimeRange(gte="1965-01-01T00:00:00Z", lt="1972-06-01T12:30:00+02:00")),
    "radius": m.FieldCondition(key="place", geo_radius=m.GeoRadius(center=CENTRE, radius=6_000_000)),
    "box": m.FieldCondition(
        key="place",
        geo_bounding_box=m.GeoBoundingBox(top_left=m.GeoPoint(lon=-90, lat=60), bottom_right=m.GeoPoint(lon=90, lat=-60)),
    ),
    "polygon": m.FieldCondition(
        key="place", geo_polygon=m.GeoPolygon(exterior=ring(-80, -60, 80, 60), interiors=[ring(-20, -20, 20, 20)])
    ),
    "count of values": m.FieldCondition(key="genres", values_count=m.ValuesCount(gte=2, lt=4)),
    "null": m.IsNullCondition(is_null=m.PayloadField(key="draft")),
    "empty": m.IsEmptyCondition(is_empty=m.PayloadField(key="draft")),
    "ids": m.HasIdCondition(has_id=[1, 5, 39, UUID]),
    "vector": m.HasVectorCondition(has_vector="sound"),
    "nested": m.NestedCondition(
        nested=m.Nested(
            key="rooms",
            filter=m.Filter(
                must=[m.FieldCondition(key="seats", range=m.Range(gt=30))], must_not=[match("open", value=True)]
            ),
        )
    ),
    "any text": match("summary", text_any="quiet mountains"),
    "nested key": m.FieldCondition(key="rooms[].seats", range=m.Range(gt=100)),
}
# A client in memory reads these in another way: by substrings, or not at all.
TEXTS = {
    "text": match("summary", text="night river"),
    "field null": m.FieldCondition(key="draft", is_null=True),
    "field empty": m.FieldCondition(key="draft", is_empty=False),
}
FILTER = m.Filter(must=[CONDITIONS["range"]], must_not=[CONDITIONS["truth"]])

PREFETCHES = [
    m.Prefetch(query=PLOT, using="plot", limit=25),
    m.Prefetch(query=WORDS, using="words", limit=20, filter=FILTER),
    m.Prefetch(query=SOUND, using="sound", limit=15),
]

# Queries that a client in memory answers the same.
QUERIES = {
    "cosine": dict(query=PLOT, using="plot"),
    "euclid": dict(query=SOUND, using="sound"),
    "manhattan": dict(query=SOUND, using="steps"),
    "multivector": dict(query=SCENES, using="scenes"),
    "sparse": dict(query=WORDS, using="words"),
    "sparse with idf": dict(query=WORDS, using="rare"),
    "id": dict(query=7, using="plot"),
    "uuid": dict(query=UUID, using="steps"),
    "threshold": dict(query=PLOT, using="plot", score_threshold=0.25),
    "distance threshold": dict(query=SOUND, using="sound", score_threshold=1.0),
    "offset": dict(query=PLOT, using="plot", offset=7),
    "average": dict(query=m.RecommendQuery(recommend=m.RecommendInput(positive=[1, PLOT], negative=[UUID])), using="plot"),
    "best score": dict(
        query=m.RecommendQuery(recommend=m.RecommendInput(positive=[1, 2], negative=[PLOT], strategy="best_score")), using="plot"
    ),
    "sum of scores": dict(
        query=m.RecommendQuery(recommend=m.RecommendInput(positive=[1, 2], negative=[3], strategy="sum_scores")), using="plot"
    ),
    "discover": dict(
        query=m.DiscoverQuery(discover=m.DiscoverInput(target=PLOT, context=[m.ContextPair(positive=1, negative=2)])), using="plot"
    ),
    "context": dict(query=m.ContextQuery(context=[m.ContextPair(positive=1, negative=2)]), using="plot"),
    "rrf": dict(prefetch=PREFETCHES, query=m.FusionQuery(fusion=m.Fusion.RRF)),
    "rrf with k": dict(prefetch=PREFETCHES, query=m.RrfQuery(rrf=m.Rrf(k=7))),
    "dbsf": dict(prefetch=PREFETCHES[:2], query=m.FusionQuery(fusion=m.Fusion.DBSF)),
    "again": dict(prefetch=m.Prefetch(query=WORDS, using="words", limit=40), query=PLOT, using="plot"),
    "deep": dict(
        prefetch=[
            m.Prefetch(prefetch=PREFETCHES, query=m.FusionQuery(fusion=m.Fusion.RRF), limit=60),
            m.Prefetch(prefetch=m.Prefetch(query=SOUND, using="sound", limit=40), query=PLOT, using="plot", limit=20),
        ],
        query=SOUND,
        using="steps",
    ),
    "other collection": dict(query=3, using="plot", lookup_from=m.LookupLocation(collection="more-films", vector="plot")),
}



FORMULAS = {
    "score": "$score",
    "sum": m.SumExpression(sum=["$score", "rating", 1.5]),
    "product": m.MultExpression(mult=[m.NegExpression(neg="$score"), m.AbsExpression(abs=-3.0), m.SqrtExpression(sqrt="length")]),
    "quotient": m.DivExpression(div=m.DivParams(left="rating", right="length")),
    "power": m.PowExpression(pow=m.PowParams(base="rating", exponent=2.0)),
    "functions": m.SumExpression(sum=[m.ExpExpression(exp="$score"), m.LnExpression(ln="length"), m.Log10Expression(log10="length")]),
    "condition": m.SumExpression(sum=["$score", m.MultExpression(mult=[0.5, CONDITIONS["truth"]]), CONDITIONS["range"]]),
    "distance": m.GeoDistance(geo_distance=m.GeoDistanceParams(origin=CENTRE, to="place")),
    "exp decay": m.ExpDecayExpression(
        exp_decay=m.DecayParamsExpression(
            x=m.DatetimeKeyExpression(datetime_key="released"),
            target=m.DatetimeExpression(datetime="1970-01-01T00:00:00Z"),
            scale=86_400_000,
            midpoint=0.25,
        )
    ),
    "gauss decay": m.GaussDecayExpression(gauss_decay=m.DecayParamsExpression(x="length", target=80.0, scale=25.0)),
    "linear decay": m.LinDecayExpression(lin_decay=m.DecayParamsExpression(x="length", target=80.0, scale=25.0)),
}
for name, formula in FORMULAS.items():
    QUERIES[f"formula: {name}"] = dict(
        prefetch=m.Prefetch(query=PLOT, using="plot", limit=50), query=m.FormulaQuery(formula=formula, defaults={"nothing": 1.0})
    )

QUERIES |= {
    "mmr": dict(query=m.NearestQuery(nearest=PLOT, mmr=m.Mmr(diversity=0.75, candidates_limit=20)), using="plot"),
    "weights": dict(prefetch=PREFETCHES, query=m.RrfQuery(rrf=m.Rrf(k=7, weights=[2.0, 0.5, 1.0]))),
    "order": dict(query=m.OrderByQuery(order_by="year")),
    "order from": dict(query=m.OrderByQuery(order_by=m.OrderBy(key="rating", direction=m.Direction.DESC, start_from=7.5))),
    "order of dates": dict(query=m.OrderByQuery(order_by=m.OrderBy(key="released", start_from="1966-02-03T04:05:06Z"))),
    "multivector recommendation": dict(
        query=m.RecommendQuery(recommend=m.RecommendInput(positive=[1], negative=[2], strategy="best_score")), using="scenes"
    ),
    "nothing": dict(with_vectors=True),
    "feedback": dict(
        query=m.RelevanceFeedbackQuery(
            relevance_feedback=m.RelevanceFeedbackInput(
                target=PLOT,
                feedback=[m.FeedbackItem(example=2, score=0.9), m.FeedbackItem(example=PLOT, score=0.1)],
                strategy=m.NaiveFeedbackStrategy(naive=m.NaiveFeedbackStrategyParams(a=0.5, b=1.5, c=0.25)),
            )
        ),
        using="plot",
    ),
}
# Queries that a client in memory answers otherwise, or not at all.
OTHER_QUERIES = {
    # The node counts distances from their better end.
    "dbsf of distances": dict(prefetch=PREFETCHES, query=m.FusionQuery(fusion=m.Fusion.DBSF)),
    "document": dict(query=m.Document(text="night train", model="qdrant/bm25"), using="rare"),
}
SELECTORS = [
    dict(with_payload=True, with_vectors=True),
    dict(with_payload=False, with_vectors=False),
    dict(with_payload=["studio", "rooms[].name"], with_vectors=["sound", "words"]),
    dict(with_payload=m.PayloadSelectorExclude(exclude=["rooms"]), with_vectors=["scenes"]),
]


def reads():
    """Yields (name, request of a client, whether a client in memory is asked too)."""
    for name, condition in {**CONDITIONS, **TEXTS}.items():
        local = name in CONDITIONS
        for kind, only in (("must", m.Filter(must=[condition])), ("must_not", m.Filter(must_not=[condition]))):
            label = f"filter {kind}: {name}"
            yield label, lambda c, f=only: c.scroll(FILMS, scroll_filter=f, limit=500, with_payload=False), local
            yield label, lambda c, f=only: c.count(FILMS, count_filter=f, exact=True), local
            yield label, lambda c, f=only: c.query_points(FILMS, query=PLOT, using="plot", query_filter=f, limit=20), local
    least = m.MinShould(conditions=[CONDITIONS["truth"], CONDITIONS["range"], CONDITIONS["list"]], min_count=2)
    yield "filter: min_should", lambda c: c.scroll(FILMS, scroll_filter=m.Filter(min_should=least), limit=500), True

    for name, query in {**QUERIES, **OTHER_QUERIES}.items():
        local = name in QUERIES
        yield f"query: {name}", lambda c, q=query: c.query_points(FILMS, limit=12, **q), local
        # The node applies the filter to the prefetches too, the client in memory only afterwards or not at all.
        plain = local and "prefetch" not in query
        yield f"query: {name}, filtered", lambda c, q=query: c.query_points(FILMS, limit=9, query_filter=FILTER, **q), plain
    yield "query batch", lambda c: c.query_batch_points(FILMS, [
        m.QueryRequest(query=PLOT, using="plot", limit=3, with_payload=True),
        m.QueryRequest(query=WORDS, using="words", limit=4, filter=FILTER),
        m.QueryRequest(prefetch=PREFETCHES, query=m.FusionQuery(fusion=m.Fusion.RRF), limit=5),
    ]), True
    for params in (m.SearchParams(hnsw_ef=64), m.SearchParams(exact=True), m.SearchParams(indexed_only=False)):
        yield "query with parameters", lambda c, p=params: c.query_points(FILMS, query=PLOT, using="plot", search_params=p), True
    for only in SELECTORS:
        yield "query, selected", lambda c, s=only: c.query_points(FILMS, query=PLOT, using="plot", limit=4, **s), True
        yield "retrieve, selected", lambda c, s=only: c.retrieve(FILMS, ids=[1, 999, UUID, 2], **s), True
        yield "scroll, selected", lambda c, s=only: c.scroll(FILMS, limit=6, **s), True

    # As many groups as there are: which ones with the same best point are left out is open.
    for group_by in ("studio", "year", "genres"):
        yield f"groups: {group_by}", lambda c, g=group_by: c.query_points_groups(
            FILMS, group_by=g, query=PLOT, using="plot", limit=25, group_size=2, query_filter=FILTER
        ), True
    yield "groups of a fusion", lambda c: c.query_points_groups(
        FILMS, group_by="studio", prefetch=PREFETCHES, query=m.FusionQuery(fusion=m.Fusion.RRF), limit=4, group_size=2
    ), False
    yield "groups with lookup", lambda c: c.query_points_groups(
        FILMS,
        group_by="length",
        query=PLOT,
        using="plot",
        limit=4,
        with_lookup=m.WithLookup(collection="more-films", with_payload=True, with_vectors=["plot"]),
    ), True

    yield "scroll from an id", lambda c: c.scroll(FILMS, limit=5, offset=38), True
    yield "scroll from a uuid", lambda c: c.scroll(FILMS, limit=5, offset=UUID), True
    yield "scroll in an order", lambda c: c.scroll(FILMS, limit=500, order_by="year"), True
    yield "scroll from a value", lambda c: c.scroll(
        FILMS, limit=9, order_by=m.OrderBy(key="rating", direction=m.Direction.DESC, start_from=5.5), scroll_filter=FILTER
    ), True
    yield "count", lambda c: c.count(FILMS, exact=True), True

    for key in ("studio", "year", "colour", "genres", "reference"):
        yield f"facet: {key}", lambda c, k=key: c.facet(FILMS, key=k, limit=50, exact=True), True
        yield f"facet: {key}, filtered", lambda c, k=key: c.facet(FILMS, key=k, limit=50, facet_filter=FILTER, exact=True), True
    # A sample of all points is no matter of chance.
    yield "matrix of pairs", lambda c: c.search_matrix_pairs(FILMS, sample=500, limit=3, using="plot"), False
    yield "matrix of offsets", lambda c: c.search_matrix_offsets(FILMS, sample=500, limit=3, using="steps", query_filter=FILTER), False

    yield "collections", lambda c: c.get_collections(), False
    yield "collection", lambda c: c.get_collection(FILMS), False
    yield "exists", lambda c: [c.collection_exists(FILMS), c.collection_exists("none")], True
    yield "aliases", lambda c: c.get_aliases(), False
    yield "aliases of a collection", lambda c: c.get_collection_aliases(FILMS), False
    yield "alias", lambda c: c.count("an-alias", exact=True), False
    yield "what the node is", lambda c: [c.info().title, c.info().version, c.info().commit], False
    yield "shards", lambda c: c.collection_cluster_info(FILMS), False
