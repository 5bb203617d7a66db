"""Spelling: metrics and selections written as text, such as `top_k(5)/kdtree(0.1)/tvd`.

The text is read as an expression of known names, numbers, strings, lists and dictionaries; nothing is run.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.specification import catalogue, strict_json
from calibrant.specification.facts import SLOTS, facts_of
from calibrant.specification.naming import fields_of, is_selection

if TYPE_CHECKING:
    from calibrant.metric import Metric
    from calibrant.selections import Selection

_COMBINE = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_}
_FILE = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|@([^\s,()\[\]'"]+)""")


_SYNONYMS = {
    "acc": "accuracy", "auc": "auroc", "rocauc": "auroc", "nll": "log_loss", "crossentropy": "log_loss",
    "oe": "oe_ratio", "brierscoreloss": "brier", "negbrierscore": "brier", "calibrationerror": "ece",
    "expectedcalibrationerror": "ece", "maximumcalibrationerror": "mce", "maxcalibrationerror": "mce",
    "staticcalibrationerror": "sce", "classwiseece": "sce", "adaptivecalibrationerror": "ace", "smoothece": "smece",
    "kdeece": "ece_kde",
}  # fmt: skip
"""What other libraries call metrics, to be named in errors."""

_MARK = "_"


def metrics(text: str) -> dict[str, Metric]:
    """The metric that a text names, or the several of `likert([...])`, by name.

    A recipe by its name, a composition of pieces joined by `/` in any order, or a recipe with some pieces
    replaced.

    >>> import calibrant
    >>> metrics("ece")["ece"] == calibrant.ECE
    True
    >>> metrics("ece/equal_mass(30)")["ece/equal_mass(30)"].binning
    EqualMass(n_bins=30)
    """
    value = _evaluate(_parsed(text), text)
    if isinstance(value, _Several):
        return {text: composed(value, text)}
    if isinstance(value, dict) and value and all(map(_is_metric, value.values())):
        return {f"{text} {name}": metric for name, metric in value.items()}
    return {text: composed([value], text)}


class _Several(list[Any]):
    """Pieces joined by `/`."""


def selection(text: str) -> Selection:
    """The selection that a text names, such as `label_in(3, 5) & ~where(region="north")`.

    >>> selection("label_in(3, 5) & ~where(region='north')")
    (label_in(3, 5) & ~where(region='north'))
    """
    value = _evaluate(_parsed(text), text)
    if not is_selection(value):
        raise CalibrationInputError("--select", "must be a selection", got=repr(text), hint="such as label_in(3, 5)")
    return value


def composed(pieces: list[Any], text: str = "") -> Metric:
    """Pieces put where they belong, on top of the recipe that is named first, if any."""
    if sum(map(_is_metric, pieces)) > 1:
        raise CalibrationInputError("metric", "must have one recipe", got=f"several in {text!r}")
    base: Metric | None = next(filter(_is_metric, pieces), None)
    fields: dict[str, Any] = {}
    for piece in pieces:
        if _is_metric(piece):
            continue
        field = _field(piece, text)
        if field in fields:
            raise CalibrationInputError("metric", f"must have one {field}", got=f"several in {text!r}")
        fields[field] = piece
    if base is None:
        base = _base(fields.values())
    if unknown := fields.keys() - fields_of(base).keys():
        raise CalibrationInputError("metric", f"has no {sorted(unknown)[0]} to replace", got=repr(text))
    return base.replace(**fields)


def _is_metric(piece: Any) -> bool:
    return facts_of(piece).slot == "metric"


def _base(pieces: Iterable[Any]) -> Metric:
    """What a composition without a recipe is: the estimator that one of its pieces belongs to, or a binned error."""
    return catalogue.find(next(filter(None, [facts_of(piece).estimator for piece in pieces]), "BinnedError"))()


def _field(piece: Any, text: str) -> str:
    if isinstance(piece, type):
        raise CalibrationInputError("metric", f"needs arguments for {piece.__name__}", got=repr(text))
    slot = facts_of(piece).slot
    if slot is None:
        raise CalibrationInputError("metric", "must be made of pieces", got=repr(text))
    return slot


def _parsed(text: str) -> ast.expr:
    """The text as a syntax tree; @file stands for the JSON in a file."""
    try:
        marked = _FILE.sub(lambda match: match[1] or f"({_MARK}:={match[2]!r})", text.strip())
        return ast.parse(marked, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CalibrationInputError(
            "metric",
            "must be a name or pieces joined by /",
            got=repr(text[:80]),
            hint="such as top_k(5)/kdtree(0.1)/tvd",
        ) from None


def _evaluate(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Constant(value=value) if isinstance(value, (int, float, str)) or value is None:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_selection(_evaluate(operand, text), text)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_evaluate(item, text) for item in items]
        case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
            return {_key(key, text): _evaluate(value, text) for key, value in zip(keys, values, strict=True) if key}
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            before = _evaluate(left, text)
            return _Several([*(before if isinstance(before, _Several) else [before]), _evaluate(right, text)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMBINE:
            return _COMBINE[type(op)](*[_selection(_evaluate(side, text), text) for side in (left, right)])
        case ast.Name(id=name):
            return _bare(_piece(name))
        case ast.NamedExpr(target=ast.Name(id="_"), value=ast.Constant(value=str(name))):
            return _from_file(name)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if all(word.arg for word in keywords):
            return _called(
                name,
                [_evaluate(arg, text) for arg in args],
                {str(word.arg): _evaluate(word.value, text) for word in keywords},
            )
    raise CalibrationInputError("metric", "must be names, numbers and calls", got=repr(text[:80]))


def _called(name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    piece = _piece(name)
    if not callable(piece) or _is_metric(piece):
        raise CalibrationInputError("metric", f"{name} takes no arguments", got=f"{name}(...)")
    if inspect.isfunction(piece) and facts_of(piece).slot != "metrics":
        raise CalibrationInputError("metric", f"{name} takes no arguments", got=f"{name}(...)")
    try:
        for field, value in inspect.signature(piece).bind(*args, **keywords).arguments.items():
            if field in SLOTS and _field(value, name) != field:
                raise CalibrationInputError("metric", f"{name} needs a {field}", got=repr(value)[:40])
        return piece(*args, **keywords)
    except CalibrationInputError:
        raise
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("metric", f"{name} cannot be made so", got=str(reason)) from None


def _selection(value: Any, text: str) -> Selection:
    if not is_selection(value):
        raise CalibrationInputError("metric", "combines selections by & | ~ only", got=repr(text[:80]))
    return value


def _key(node: ast.expr, text: str) -> Any:
    key = _evaluate(node, text)
    if not isinstance(key, (str, int)):
        raise CalibrationInputError("metric", "names groups by text", got=repr(text[:80]))
    return key


def _from_file(name: str) -> Any:
    try:
        return strict_json.read(InputFile.of(name).text())
    except CalibrationInputError:
        raise
    except ValueError as reason:
        raise CalibrationInputError(name, "must be JSON", got=str(reason)[:80]) from None


def _piece(name: str) -> Any:
    """A public name, whatever its capitals and underscores."""
    known = {_plain(public): public for public in catalogue.names()}.get(_plain(name))
    if known is None:
        spellings = map(snake, catalogue.names())
        raise CalibrationInputError("metric", "is unknown", got=repr(name), hint=_intended(name.lower(), spellings))
    return catalogue.find(known)


def _bare(piece: Any) -> Any:
    """A class without arguments stands for its default: `classwise` is `Classwise()`."""
    if not isinstance(piece, type):
        return piece
    try:
        return piece()
    except TypeError:
        return piece


def spelled(piece: Any) -> str:
    """A piece as it can be typed: arguments that are the default left out.

    >>> import calibrant
    >>> spelled(calibrant.ByLabel(calibrant.TopLabel())), spelled(calibrant.KDTree(0.5))
    ('by_label(top_label)', 'kdtree(0.5)')
    """
    if not dataclasses.is_dataclass(piece) or isinstance(piece, type):
        return str(getattr(piece, "__name__", piece))
    fields = dataclasses.fields(piece)
    arguments = [getattr(piece, field.name) for field in fields]
    while arguments and arguments[-1] == fields[len(arguments) - 1].default:
        arguments.pop()
    name = snake(type(piece).__name__)
    return f"{name}({', '.join(spelled(value) for value in arguments)})" if arguments else name


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def plain(text: str) -> str:
    """A spelling without what does not matter in it."""
    return _plain("".join(text.split()))


def snake(name: str) -> str:
    """A class name as it is typed: TopK becomes top_k."""
    return name.lower() if name.isupper() or name.islower() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _intended(name: str, spelled: Iterable[str]) -> str:
    """The likeliest intended name, or where the names are listed."""
    hint = nearest(_SYNONYMS.get(_plain(name), name), spelled)
    return hint if hint.startswith("did you mean") else "`calibrant info` lists the metrics"
