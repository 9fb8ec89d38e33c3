"""Two forms of a record: whole, as a run writes it, and packed, as it is committed; the second unpacks to the first.

Packed, what several places hold stands once, under ``shared``; objects with the same names become rows of values, the
names standing once, under ``shapes``; cases that passed and have nothing more to say are listed by test function; and a
measurement does not repeat the requirements of its case. All of this works on JSON values; the form is the definition
``packed`` of ``record.schema.json``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burstproof.errors import InputError

PACKED_VERSION = 2
"""``schema_version`` of a packed record; unpacked it is a whole one again."""

_MARK = "$"
"""``{"$": 3}`` is the shared value 3, ``{"$3": [1, 2]}`` an object of shape 3."""

_PARTS = ("cases", "judgements", "passed")
_BY_LINE = ("shapes", "shared", *_PARTS)
_PLAIN = {"case", "stage", "requirements", "outcome", "duration_s"}
_LEAST_SHARED = 16
_LEAST_OBJECTS = 4
"""Shorter texts, and shapes of fewer objects, stay where they are."""


def pack(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the packed form of a whole record without defaults.

    Unpacked, cases that passed and have nothing more to say stand behind the others, by test function.

    Raises
    ------
    InputError
        If a name in the record begins with the mark of references.
    """
    cases = document.get("cases", [])
    parts = {
        "cases": [_own_requirements(case) for case in cases if not is_plain(case)],
        "judgements": document.get("judgements", []),
        "passed": list(functions([case for case in cases if is_plain(case)])),
    }
    writer = _Writer.of(parts)
    rest = {name: value for name, value in document.items() if name not in _PARTS}
    return {
        **rest,
        "schema_version": PACKED_VERSION,
        "shapes": [list(shape) for shape in writer.shapes],
        "shared": [writer.inside(json.loads(text)) for text in writer.shared],
        **{name: [writer.write(item) for item in value] for name, value in parts.items()},
    }


def unpack(document: Mapping[str, Any], version: int, where: str) -> dict[str, Any]:
    """Return the whole form, of schema ``version``, of a packed record.

    Raises
    ------
    InputError
        If a part is no list, a reference points nowhere, or a test function is not what it should be.
    """
    for name in _BY_LINE:
        if not isinstance(document.get(name), list):
            raise InputError(f"a packed record has a list {name}", where=where, got=document.get(name))
    reader = _Reader(document["shapes"], document["shared"], where)
    parts = {name: [reader.read(item) for item in document[name]] for name in _PARTS}
    plain = [case for function in parts["passed"] for case in _cases(function, where)]
    rest = {name: value for name, value in document.items() if name not in _BY_LINE}
    cases = [*(_all_requirements(case, where) for case in parts["cases"]), *plain]
    return {**rest, "schema_version": version, "cases": cases, "judgements": parts["judgements"]}


def lines(document: Mapping[str, Any]) -> str:
    """Return a packed record as JSON text, one line per case, judgement, test function, shape and shared value."""
    texts = [f"{_text(name)}:{_text(value)}" for name, value in document.items() if name not in _BY_LINE]
    for name in _BY_LINE:
        items = ",\n".join(_text(item) for item in document[name])
        texts.append(f"{_text(name)}:[\n{items}\n]" if items else f"{_text(name)}:[]")
    return "{" + ",\n".join(texts) + "}\n"


def is_plain(case: Mapping[str, Any]) -> bool:
    """Whether a case passed and has nothing more to say: no title, no reason, no figure."""
    return case["outcome"] == "passed" and set(case) <= _PLAIN


def function_of(case: str) -> str:
    """Return the test function of a case's id: all before its parameters."""
    return case.partition("[")[0]


def functions(cases: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Cases by test function; the ``parameters`` behind its name by what they begin with."""
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for case in cases:
        function = function_of(case["case"])
        heads = found.setdefault(_text([function, case["stage"], case["requirements"]]), {})
        heads.setdefault(case["case"][len(function) : case["case"].rfind("-") + 1], []).append(case)
    for key, heads in found.items():
        function, stage, requirements = json.loads(key)
        yield {
            "test": function,
            "stage": stage,
            "requirements": requirements,
            "parameters": [
                [head, *(case["case"][len(function) + len(head) :] for case in own)] for head, own in heads.items()
            ],
            "durations_s": [case.get("duration_s", 0.0) or 0 for own in heads.values() for case in own],
        }


def _cases(function: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    try:
        names = [f"{head}{end}" for head, *ends in function["parameters"] for end in ends]
        rows = list(zip(names, function["durations_s"], strict=True))
        test, known = function["test"], {name: function[name] for name in ("stage", "requirements")}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a test function with its cases: {error}", where=f"{where}.passed") from error
    for parameters, duration in rows:
        yield {"case": f"{test}{parameters}", **known, "outcome": "passed", "duration_s": duration}


def _own_requirements(case: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of the measurements the requirements that are those of the case; having none is said."""
    measurements = [{"requirements": [], **one} for one in case.get("measurements", [])]
    for one in measurements:
        if one["requirements"] == case["requirements"]:
            del one["requirements"]
    return {**case, "measurements": measurements} if measurements else dict(case)


def _all_requirements(case: Any, where: str) -> Any:
    try:
        measurements = [{"requirements": case["requirements"], **one} for one in case.get("measurements", [])]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"not a case with its measurements: {error}", where=f"{where}.cases", got=case) from error
    return {**case, "measurements": measurements} if measurements else case


@dataclass(frozen=True)
class _Writer:
    """Puts references in the place of what is shared, and rows in the place of objects of a known shape."""

    shared: Mapping[str, int]
    shapes: Mapping[tuple[str, ...], int]

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> _Writer:
        """Find what is worth writing once, the most frequent first."""
        nested = [value for part in parts.values() for value in _nested(part)]
        texts = Counter(text for text in map(_text, nested) if len(text) >= _LEAST_SHARED)
        shapes = Counter(tuple(value) for value in nested if isinstance(value, dict))
        for name in (name for shape in shapes for name in shape if name.startswith(_MARK)):
            raise InputError(f"a name in a record must not begin with {_MARK}", got=name)
        reference = len(_text({_MARK: 999}))
        shared = [text for text, count in texts.most_common() if count * (len(text) - reference) > len(text)]
        frequent = [shape for shape, count in shapes.most_common() if shape and count >= _LEAST_OBJECTS]
        return cls({text: i for i, text in enumerate(shared)}, {shape: i for i, shape in enumerate(frequent)})

    def write(self, value: Any) -> Any:
        """Pack a value."""
        if not isinstance(value, str | list | dict):
            return value
        place = self.shared.get(_text(value))
        return self.inside(value) if place is None else {_MARK: place}

    def inside(self, value: Any) -> Any:
        """Pack what a value holds, but do not refer to it as a whole."""
        if isinstance(value, list):
            return [self.write(item) for item in value]
        if not isinstance(value, dict):
            return value
        shape = self.shapes.get(tuple(value))
        if shape is None:
            return {name: self.write(item) for name, item in value.items()}
        return {f"{_MARK}{shape}": [self.write(item) for item in value.values()]}


@dataclass(frozen=True)
class _Reader:
    """Puts back what :class:`_Writer` took out."""

    shapes: Sequence[Any]
    shared: Sequence[Any]
    where: str

    def read(self, value: Any) -> Any:
        """Unpack a value."""
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if not isinstance(value, dict):
            return value
        mark = next(iter(value), "")
        if not mark.startswith(_MARK):
            return {name: self.read(item) for name, item in value.items()}
        try:
            if mark == _MARK:
                return self.read(self.shared[_place(value[mark])])
            names = self.shapes[_place(int(mark.removeprefix(_MARK)))]
            return dict(zip(names, self.read(value[mark]), strict=True))
        except (IndexError, TypeError, ValueError, RecursionError) as error:
            raise InputError(f"a reference to nothing: {error}", where=self.where, got=value) from error


def _place(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a place in a list")
    return value


def _nested(value: Any) -> Iterator[Any]:
    """Every string, list and object in ``value``, which is a list or an object."""
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str | list | dict):
            yield item
            if not isinstance(item, str):
                yield from _nested(item)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
