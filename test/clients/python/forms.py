"""Answers in one form, so that those of two doors or of another implementation can be compared."""

import math
from enum import Enum

from films import single
from pydantic import BaseModel


def exact(answer):
    """Two doors: the same values, numbers outside of payloads with the 32 bits that gRPC sends; nothing and empty are the same."""
    return _plain(answer, False)


def _plain(value, in_payload):
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not in_payload:
        return single(value) if math.isfinite(value) else value
    if isinstance(value, dict):
        members = {key: _plain(member, in_payload or key in ("payload", "metadata")) for key, member in value.items()}
        return members if in_payload else {key: member for key, member in members.items() if member not in (None, {}, [])}
    if isinstance(value, (list, tuple)):
        return [_plain(item, in_payload) for item in value]
    return value


def difference(left, right, path="answer"):
    """Where two answers differ and what they have there; None: nowhere. Nothing is tolerated."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            found = difference(left.get(key), right.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        items = (difference(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(zip(left, right)))
        return next((found for found in items if found is not None), None)
    return None if left == right else (path, left, right)


def loose_difference(left, right, path="answer"):
    """As `difference`, with another implementation: numbers may differ as those of 32 bits do after some arithmetic,
    points of one score and groups may come in any order, and which points of the last score are there is open. Versions
    don't count.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            if key == "version":
                continue
            found = loose_difference(left.get(key), right.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        if _is_scored(left) and _is_scored(right):
            return _scored_difference(left, right, path)
        if _is_grouped(left) and _is_grouped(right):
            # Groups with the same best point may come in any order.
            return loose_difference({group["id"]: group for group in left}, {group["id"]: group for group in right}, path)
        items = (loose_difference(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(zip(left, right)))
        return next((found for found in items if found is not None), None)
    if _is_number(left) and _is_number(right):
        return None if _close(left, right) else (path, left, right)
    return None if left == right else (path, left, right)


def _scored_difference(left, right, path):
    for at, (one, other) in enumerate(zip(left, right)):
        if not _close(one["score"], other["score"]):
            return f"{path}[{at}]", one, other
    last = left[-1]["score"]
    others = {point["id"]: point for point in right}
    for point in left:
        if point["id"] in others:
            found = loose_difference(point, others[point["id"]], f"{path} {point['id']}")
            if found is not None:
                return found
        elif not _close(point["score"], last):
            return path, point, "not there"
    return None


def _is_scored(items):
    return len(items) > 0 and all(isinstance(item, dict) and "id" in item and "score" in item for item in items)


def _is_grouped(items):
    return len(items) > 0 and all(isinstance(item, dict) and "id" in item and "hits" in item for item in items)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _close(one, other):
    return math.isclose(one, other, rel_tol=2e-4, abs_tol=2e-5)
