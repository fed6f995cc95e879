"""Random filters and queries about the films."""

from random import Random

from films import film_id, numbers, sparse
from qdrant_client import models as m
from reads import CONDITIONS, FILMS

DENSE = {"plot": 4, "sound": 3, "steps": 3}


def random_requests(seed, rounds):
    """Yields (name with its number, request of a client)."""
    for at in range(rounds):
        # A round of its own generator can be repeated alone.
        rng = Random(seed * 1_000_003 + at)
        only = random_filter(rng, 2)
        query = random_query(rng)
        limit = rng.randint(1, 40)
        kind = at % 4
        if kind == 0:
            yield f"random scroll {at}: {only!r}", lambda c: c.scroll(FILMS, scroll_filter=only, limit=limit, with_payload=["year"])
        elif kind == 1:
            yield f"random count {at}: {only!r}", lambda c: c.count(FILMS, count_filter=only, exact=True)
        else:
            if "prefetch" in query:
                # The client in memory does not apply it to the prefetches, which have filters of their own.
                only = None
            name = f"random query {at}: {query!r} {only!r} limit {limit}"
            yield name, lambda c: c.query_points(FILMS, query_filter=only, limit=limit, **query)


def random_filter(rng, depth):
    def conditions():
        return [random_condition(rng, depth) for _ in range(rng.randint(1, 3))]

    members = {}
    for clause in ("must", "should", "must_not"):
        if rng.random() < 0.4:
            members[clause] = conditions()
    if rng.random() < 0.15:
        members["min_should"] = m.MinShould(conditions=[random_condition(rng, depth) for _ in range(4)], min_count=rng.randint(1, 3))
    return m.Filter(**members) if members else None


def random_condition(rng, depth):
    if depth > 0 and rng.random() < 0.2:
        return random_filter(rng, depth - 1) or CONDITIONS["truth"]
    kind = rng.randrange(5)
    if kind == 0:
        low = rng.uniform(0, 10)
        return m.FieldCondition(key="rating", range=m.Range(gte=low, lt=low + rng.uniform(0, 6)))
    if kind == 1:
        low = rng.randint(1958, 1980)
        return m.FieldCondition(key="year", range=m.Range(gt=low, lte=low + rng.randint(0, 9)))
    if kind == 2:
        centre = m.GeoPoint(lon=rng.uniform(-180, 180), lat=rng.uniform(-80, 80))
        return m.FieldCondition(key="place", geo_radius=m.GeoRadius(center=centre, radius=rng.uniform(1e5, 9e6)))
    if kind == 3:
        return m.HasIdCondition(has_id=[film_id(rng.randint(1, 130)) for _ in range(20)])
    return rng.choice(list(CONDITIONS.values()))


def random_vector(rng, name):
    return sparse(rng) if name in ("words", "rare") else numbers(rng, DENSE[name])


def random_query(rng):
    kind = rng.randrange(10)
    name = rng.choice(list(DENSE))
    if kind == 0:
        name = rng.choice(["words", "rare"])
        return dict(query=sparse(rng), using=name)
    if kind == 1:
        return dict(query=[numbers(rng, 2) for _ in range(rng.randint(1, 4))], using="scenes")
    if kind == 2:
        examples = [rng.choice([film_id(rng.randint(1, 4)), numbers(rng, DENSE[name])]) for _ in range(4)]
        strategy = rng.choice(list(m.RecommendStrategy))
        recommend = m.RecommendInput(positive=examples[:2], negative=examples[2:], strategy=strategy)
        return dict(query=m.RecommendQuery(recommend=recommend), using=name)
    if kind == 3:
        pairs = [m.ContextPair(positive=numbers(rng, DENSE[name]), negative=numbers(rng, DENSE[name])) for _ in range(2)]
        discover = m.DiscoverInput(target=numbers(rng, DENSE[name]), context=pairs)
        return dict(query=m.DiscoverQuery(discover=discover), using=name)
    if kind == 4:
        prefetch = [
            m.Prefetch(query=random_vector(rng, using), using=using, limit=rng.randint(1, 60), filter=random_filter(rng, 1))
            for using in rng.sample([*DENSE, "words"], 2)
        ]
        return dict(prefetch=prefetch, query=m.FusionQuery(fusion=m.Fusion.RRF))
    if kind == 5:
        using = rng.choice([*DENSE, "words"])
        prefetch = m.Prefetch(query=random_vector(rng, using), using=using, limit=rng.randint(1, 60), filter=random_filter(rng, 1))
        return dict(prefetch=prefetch, query=numbers(rng, DENSE[name]), using=name)
    if kind == 6:
        mmr = m.Mmr(diversity=rng.random(), candidates_limit=rng.randint(1, 60))
        return dict(query=m.NearestQuery(nearest=numbers(rng, DENSE[name]), mmr=mmr), using=name)
    if kind == 7:
        start = rng.choice([None, rng.randint(1960, 1980)])
        order = m.OrderBy(key="year", direction=rng.choice(list(m.Direction)), start_from=start)
        return dict(query=m.OrderByQuery(order_by=order))
    if kind == 8:
        pairs = [m.ContextPair(positive=numbers(rng, DENSE[name]), negative=numbers(rng, DENSE[name])) for _ in range(3)]
        return dict(query=m.ContextQuery(context=pairs), using=name)
    return dict(query=numbers(rng, DENSE[name]), using=name)
