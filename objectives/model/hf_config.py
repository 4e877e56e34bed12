"""Models from Hugging Face ``config.json`` files and from presets of the same form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.files import preset_names, read_input
from objectives.model.families import FAMILIES, MODEL_TYPES, Family
from objectives.model.model import Model
from objectives.model.parameters import total_parameters
from objectives.reading import read_table, shown

_PACKAGE = "objectives.model"
_SIZES = {"B": 1e9, "M": 1e6, "K": 1e3}


def load_model(source: str | Path) -> Model:
    """Read a model from a preset's name, a ``config.json`` or a directory that has one.

    Raises:
        UnknownName: If it is neither; lists the presets.
        InvalidInput: With everything wrong with the config.
    """
    return parse_hf_config(read_hf_config(source), what=f"model {source}")


def read_hf_config(source: str | Path) -> dict[str, Any]:
    """Read the keys of a preset, a ``config.json`` or a directory that has one.

    Raises:
        UnknownName: If it is neither; lists the presets.
        InvalidInput: If it is no JSON object.
    """
    text = read_input(source, package=_PACKAGE, suffix=".json", kind="model")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:  # also endless nesting and numbers
        raise InvalidInput(f"model {source}", f"must be JSON: {error}") from error
    if not isinstance(config, dict):
        raise InvalidInput(f"model {source}", f"must be a JSON object, got {shown(config)}")
    return config


def model_presets() -> list[str]:
    """Names of the models that ship with the package."""
    return preset_names(_PACKAGE, ".json")


def parse_hf_config(config: Mapping[str, Any], *, what: str = "model config") -> Model:
    """Turn the keys of a Hugging Face config into a `Model`.

    Keys that do not decide what training costs are ignored.

    Args:
        config: The keys.
        what: The config, for errors.

    Raises:
        InvalidInput: If the architecture is unknown, naming it and those that are known, or
            with every wrong or missing key.
    """
    architecture = _architecture(config, what)
    family = FAMILIES[architecture]
    values = read_table(config, family.fields, what=what, others_allowed=True)
    sizes = family.sizes(values)
    if problems := _misfits(values, sizes, family):
        raise InvalidInput(what, problems)
    model = Model(name="", architecture=architecture, **sizes)
    return _named(model, config)


def _architecture(config: object, what: str) -> str:
    if not isinstance(config, Mapping):
        raise InvalidInput(what, f"must be a mapping of Hugging Face keys, got {shown(config)}")
    listed = config.get("architectures")
    if isinstance(listed, list) and listed and isinstance(listed[0], str):
        path, name = "architectures", listed[0]
    elif "model_type" in config:
        path, model_type = "model_type", config["model_type"]
        name = MODEL_TYPES.get(str(model_type), model_type)
    else:
        path, name = "architectures", None
    if not isinstance(name, str) or name not in FAMILIES:
        got = "none" if name is None else shown(name)
        message = f"must name a supported architecture, got {got}; supported: {', '.join(FAMILIES)}"
        raise InvalidInput(what, [Problem(path=path, message=message)])
    return name


def _misfits(values: Mapping[str, Any], sizes: Mapping[str, Any], family: Family) -> list[Problem]:
    """What is wrong between the sizes, under the config's own keys."""
    problems = []

    def require(holds: bool, size: str, message: str) -> None:
        if not holds:
            problems.append(Problem(path=family.key(size), message=message))

    heads, kv_heads, layers = sizes["num_heads"], sizes["num_kv_heads"], sizes["num_layers"]
    require(heads % kv_heads == 0, "num_kv_heads", f"must divide the {heads} heads, got {kv_heads}")
    if values.get("head_dim") is None and sizes["mla"] is None:
        hidden = sizes["hidden_size"]
        require(
            hidden % heads == 0,
            "hidden_size",
            f"must be a multiple of the {heads} heads where no head_dim is given, got {hidden}",
        )
    if moe := sizes["moe"]:
        experts = moe.num_experts
        require(
            moe.experts_per_token <= experts,
            "experts_per_token",
            f"must be at most the {experts} experts, got {moe.experts_per_token}",
        )
        require(
            moe.num_dense_layers <= layers,
            "num_dense_layers",
            f"must be at most the {layers} layers, got {moe.num_dense_layers}",
        )
        require(
            experts % moe.expert_groups == 0,
            "expert_groups",
            f"must divide the {experts} experts, got {moe.expert_groups}",
        )
        require(
            moe.groups_per_token <= moe.expert_groups,
            "groups_per_token",
            f"must be at most the {moe.expert_groups} groups, got {moe.groups_per_token}",
        )
    return problems


def _named(model: Model, config: Mapping[str, Any]) -> Model:
    """The model with the last part of its repository's name, or one made of its size."""
    path = config.get("_name_or_path")
    if isinstance(path, str) and path.strip("/. "):
        return replace(model, name=path.rstrip("/").rsplit("/", 1)[-1])
    count = total_parameters(model)
    size = next((size for size in ("B", "M") if count >= _SIZES[size]), "K")
    return replace(model, name=f"{model.architecture}-{count / _SIZES[size]:.3g}{size}")
